"""Operators that a program registers itself: a rule, a lowering, purity."""

import numpy as np
import pytest

import weft
from weft import relax, te
from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.analysis import contains_impure_call
from weft.relax.expr import Expr
from weft.relax.op.definition import FUNCTIONS, operator
from weft.relax.op.infer import same_as_input
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRTypeError, IRValueError, LegalizeError

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
    for key in ("FInferStructInfo", "FLegalize", "FPurity", "traits"):
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


def convolutions_around(op):
    """conv2d, the operator, conv2d: of images whose channels stand before the axes."""
    x = relax.Var("x", TensorStructInfo((1, 4, 6, 6), "float32"))
    weights = [
        relax.const(np.random.default_rng(seed).standard_normal((4, 4, 3, 3)), "float32")
        for seed in range(2)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit(relax.op.nn.conv2d(x, weights[0], padding=1))
            second = builder.emit(relax.Call(op, [first]))
            out = builder.emit_output(relax.op.nn.conv2d(second, weights[1], padding=1))
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize(("traits", "transposes"), [(Trait.ELEMENTWISE, 2), (Trait.NONE, 4)])
def test_a_layout_goes_through_it_if_it_says_that_it_is_elementwise(scaled, traits, transposes):
    op, _ = scaled
    op.set_attr("traits", traits)
    mod = convolutions_around(op)
    changed = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(mod)
    of_images = [
        line for line in changed.script().splitlines()
        if "R.permute_dims" in line and "metadata" not in line
    ]  # fmt: skip
    assert len(of_images) == transposes
    data = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype("float32")
    results = [
        relax.VirtualMachine(relax.build(item, "llvm"), weft.cpu())["main"](data).numpy()
        for item in (mod, changed)
    ]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("infer", "row", "message"),
    [
        (lambda call, builder: None, {}, r"the struct-info rule: .*'builder'.* with \(call\)"),
        (same_as_input, {"te": lambda x: x}, r"te: too many .*; it is called with \(x, alpha\)"),
        (same_as_input, {"numpy": lambda x, a: x}, r"numpy: .*'a'; .* with \(x, alpha=\)"),
        (same_as_input, {"legalize": lambda call: call}, r"legalize: .* with \(builder, call\)"),
    ],
)
def test_a_row_whose_functions_take_something_else_is_refused(infer, row, message):
    with pytest.raises(IRTypeError, match=rf"relax\.tests\.wrong: {message}"):

        @operator("relax.tests.wrong", infer, **row)
        def wrong(x: Expr, alpha: float = 1.0): ...


def test_a_name_that_scripts_could_not_say_is_refused():
    with pytest.raises(IRValueError, match=r"acme.wrong: expected a name that begins with 'relax"):

        @operator("acme.wrong", same_as_input)
        def wrong(x: Expr): ...


def test_a_rule_that_gives_no_struct_info_is_named():
    op = Op.register("tests.forgetful", FInferStructInfo=lambda call, builder: None)
    message = "tests.forgetful: its struct-info rule gave NoneType; expected a StructInfo"
    with pytest.raises(IRTypeError, match=message):
        build(op)


@pytest.fixture
def shrunk():
    """An operator whose tensor expression has a Python float beside an element."""

    def half(x):
        return te.compute(x.shape, lambda *i: x[i] * 0.5, name="half")

    @operator("relax.tests.half", same_as_input, te=half)
    def build_half(x: Expr): ...

    yield build_half
    del FUNCTIONS["tests.half"]
    for key in ("infer_struct_info", "FLegalize", "te", "function"):
        Op.get("relax.tests.half").reset_attr(key)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_python_float_that_widens_an_element_is_explained(shrunk, dtype):
    x = relax.Var("x", TensorStructInfo((3,), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(shrunk(x)))
    message = rf"a Python float beside an element of {dtype} is float32: write tir.const"
    with pytest.raises(LegalizeError, match=message):
        relax.transform.LegalizeOps()(builder.get())
