"""Operators that a program registers itself: a rule, a lowering, purity."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.op import Op
from weft.relax.analysis import contains_impure_call
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRTypeError

NAME = "tests.scaled"


@pytest.fixture
def scaled():
    """An operator that multiplies by two, of the first argument's struct info."""
    seen = []

    def infer(call, builder):
        seen.append(builder)
        return call.args[0].struct_info

    def legalize(builder, call):
        return builder.call_te(weft.topi.multiply, call.args[0], weft.tir.const(2, "float32"))

    weft.ir.register_op_attr(NAME, "FInferStructInfo", infer)
    weft.ir.register_op_attr(NAME, "FLegalize", legalize)
    op = Op.get(NAME)
    yield op, seen
    for key in ("FInferStructInfo", "FLegalize", "FPurity"):
        op.reset_attr(key)


def build(op):
    x = relax.Var("x", TensorStructInfo((3,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.Call(op, [x])))
    return builder


def test_its_rule_and_its_lowering_are_used(scaled):
    op, seen = scaled
    builder = build(op)
    mod = builder.get()
    assert seen[0] is builder
    assert mod["main"].ret_struct_info == TensorStructInfo((3,), "float32")
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    np.testing.assert_array_equal(
        machine["main"](np.array([1, 2, 3], "float32")).numpy(), [2, 4, 6]
    )


def test_it_is_pure_unless_it_says_otherwise(scaled):
    op, _ = scaled
    call = relax.Call(op, [relax.const(1.0)])
    assert not contains_impure_call(call)
    weft.ir.register_op_attr(NAME, "FPurity", False)
    assert contains_impure_call(call)


def test_without_a_rule_the_error_says_how_to_register_one():
    op = Op.register("tests.without_rule")
    message = r"tests.without_rule has no struct-info rule; register one: weft.ir.register_op_attr"
    with pytest.raises(IRTypeError, match=message):
        build(op)
