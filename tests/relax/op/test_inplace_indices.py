"""Calls built by hand that write over their arguments: what they say of that is checked."""

import re

import pytest

from weft import relax
from weft.ir.attrs import Attrs
from weft.relax.analysis.types import type_problem
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRValueError

PLACES = {
    "missing": ({}, "has an attribute inplace_indices, a list, and the call does not say it"),
    "a number": ({"inplace_indices": 0}, "has an attribute inplace_indices, a list"),
    "beyond the last argument": ({"inplace_indices": [1]}, "between -1, a new tensor, and 0"),
    "below -1": ({"inplace_indices": [-2]}, "between -1, a new tensor, and 0"),
}


@I.ir_module
class Negated:
    @T.prim_func
    def negate(x: T.Buffer((2,), "float32")):
        for i in range(2):
            x[i] = -x[i]

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = R.call_tir_inplace(
            Negated.negate, (x,), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"),
        )  # fmt: skip
        return y


def with_attrs(call, attrs):
    return relax.Call(call.op, call.args, Attrs(attrs), call.sinfo_args)


def problem_of(call):
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(call))
    return type_problem(builder.get())


def refuse_kernel(call, message):
    """The call is refused where it is emitted, and in a module that says what it gives."""
    builder = relax.BlockBuilder(Negated)
    with builder.function("again", Negated["main"].params):
        with pytest.raises(IRValueError, match=message):
            builder.emit(call)
        call.struct_info = relax.TensorStructInfo((2,), "float32")
        builder.emit_func_output(builder.emit(call))
    assert re.search(message, type_problem(builder.get()))


@pytest.mark.parametrize("case", PLACES)
def test_a_kernel(case):
    attrs, message = PLACES[case]
    [binding] = Negated["main"].body.blocks[0].bindings
    refuse_kernel(with_attrs(binding.value, attrs), message)


def test_one_place_for_each_output():
    [binding] = Negated["main"].body.blocks[0].bindings
    call = with_attrs(binding.value, {"inplace_indices": [0, -1]})
    refuse_kernel(call, "2 inplace_indices for 1 outputs")


TENSOR = relax.TensorStructInfo((2,), "float32")


@pytest.mark.parametrize(
    ("infos", "places", "message"),
    [
        ([TENSOR, TENSOR], [0, 0], "argument 0 is overwritten by two outputs; -1 is a new tensor"),
        ([relax.TupleStructInfo([TENSOR])], [0], r"argument 0: expected a tensor, got R\.Tuple"),
        ([TENSOR, relax.TupleStructInfo([TENSOR])], [0], r"argument 1: expected a tensor, got R\."),
        ([relax.ObjectStructInfo()], [0], r"argument 0: expected a tensor, got R\.Object"),
    ],
)
def test_each_output_overwrites_a_tensor_of_its_own(infos, places, message):
    arguments = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
    callee, results = Negated.get_global_var("negate"), [TENSOR] * len(places)
    call = relax.op.call_tir_inplace(callee, arguments, places, results)
    builder = relax.BlockBuilder(Negated)
    with builder.function("again", arguments):
        with pytest.raises(IRValueError, match=message):
            builder.emit(call)
        builder.emit_func_output(arguments[0])


def test_an_object_beside_what_is_overwritten_is_allowed():
    arguments = [relax.Var("x", TENSOR), relax.Var("seed", relax.ObjectStructInfo())]
    call = relax.op.call_tir_inplace(Negated.get_global_var("negate"), arguments, [0], TENSOR)
    assert relax.BlockBuilder(Negated).normalize(call).struct_info == TENSOR


@pytest.mark.parametrize("case", PLACES)
def test_a_registered_function(case):
    attrs, message = PLACES[case]
    x = relax.const([1.0, 2.0], "float32")
    info = R.Tensor((2,), "float32")
    call = relax.op.call_inplace_packed("any.name", x, inplace_indices=[0], sinfo_args=info)
    assert problem_of(call) is None
    assert message in problem_of(with_attrs(call, attrs))
