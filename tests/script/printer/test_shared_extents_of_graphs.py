"""Extents of a graph that share their parts are printed in as many lines as there are parts."""

from __future__ import annotations

import pytest

from weft import relax
from weft.ir.expr import IntImm
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.relax.struct_info import PrimStructInfo, ShapeStructInfo, TensorStructInfo
from weft.script.parser.entry import from_source
from weft.tir.expr import Var


def squared(var, times):
    """``n`` → ``n * n + 1`` → ``(n * n + 1) * (n * n + 1) + 1``: two places for each object."""
    for _ in range(times):
        var = var * var + 1
    return var


def tensor(*shape):
    return TensorStructInfo(shape, "float32")


def in_a_binding(n, extent):
    """The extent is in a call, and in the types of it, of its user and of the result."""
    return [tensor(n)], lambda bb, x: bb.emit(relax.op.zeros(relax.ShapeExpr([extent]), "float32"))


def in_a_parameter(n, extent):
    return [tensor(n), tensor(extent, extent + 1)], lambda bb, x, y: bb.emit(relax.op.add(y, y))


def in_the_return_value(n, extent):
    return [tensor(n)], lambda bb, x: relax.ShapeExpr([extent, extent * 2])


def in_a_match_cast(n, extent):
    unknown = TensorStructInfo(dtype="float32", ndim=1)
    return [tensor(n), unknown], lambda bb, x, y: bb.match_cast(y, tensor(extent))


def in_a_shape(n, extent):
    return [tensor(n), ShapeStructInfo([extent])], lambda bb, x, s: s


def in_a_scalar(n, extent):
    return [tensor(n)], lambda bb, x: bb.emit(relax.PrimValue(extent))


PLACES = [
    in_a_binding,
    in_a_parameter,
    in_the_return_value,
    in_a_match_cast,
    in_a_shape,
    in_a_scalar,
]


def module(place, times, dataflow=False):
    n = Var("n", "int64")
    infos, body = place(n, squared(n, times))
    params = [relax.Var(f"p{index}", info) for index, info in enumerate(infos)]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        if dataflow:
            with bb.dataflow():
                result = bb.emit_output(body(bb, *params))
        else:
            result = body(bb, *params)
        bb.emit_func_output(result)
    return bb.get()


@pytest.mark.parametrize("place", PLACES)
def test_the_text_grows_with_the_number_of_objects(place):
    sizes = [len(module(place, times).script()) for times in (20, 40, 60)]
    assert sizes[2] - sizes[1] <= 1.1 * (sizes[1] - sizes[0])
    assert sizes[2] < 6000


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("times", [1, 9, 12])
def test_the_text_gives_the_same_graph(place, times):
    before = module(place, times)
    text = before.script()
    after = from_source(text)
    assert structural_equal(before, after)
    assert after.script() == text


def test_a_block_of_dataflow_keeps_names_for_what_follows():
    before = module(in_a_binding, 12, dataflow=True)
    text = before.script()
    assert text.count("T.meta_var(n * n + 1)") == 1
    assert structural_equal(before, from_source(text))


def test_signature_and_body_share_their_names():
    text = module(in_a_binding, 30).script()
    signature, body = text.split("n = T.int64()")
    assert '-> R.Tensor(("shared_' in signature
    assert body.count("T.meta_var") == 29


def test_branches_name_what_only_they_use():
    n = Var("n", "int64")
    x, c = relax.Var("x", tensor(n)), relax.Var("c", TensorStructInfo((), "bool"))
    wide, other = squared(n, 12), squared(n + 7, 12)

    def branch(extent):
        var = relax.Var("v", tensor(extent))
        zeros = relax.op.zeros(relax.ShapeExpr([extent]), "float32")
        total = relax.Var("t", tensor())
        bindings = [relax.VarBinding(var, zeros), relax.VarBinding(total, relax.op.sum(var))]
        return relax.SeqExpr([relax.BindingBlock(bindings)], total)

    gv = relax.Var("gv", tensor())
    choice = relax.VarBinding(gv, relax.If(c, branch(wide), branch(other)))
    body = relax.SeqExpr([relax.BindingBlock([choice])], gv)
    before = IRModule({"main": relax.Function([x, c], body, tensor())})
    text = before.script()
    assert len(text) < 6000
    assert structural_equal(before, from_source(text))


def test_names_in_a_hand_written_text():
    """The first lines ``T.meta_var`` are known in the signature; a later one only below it."""
    text = """
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Shape(["m + 1"]):
    n = T.int64()
    m = T.meta_var(n * 2)
    k = T.meta_var(m + 1)
    return R.shape([k])
"""
    func = from_source(text)
    (n,) = func.params[0].struct_info.shape.values
    (extent,) = func.ret_struct_info.values
    assert structural_equal(extent, n * 2 + IntImm("int64", 1))


def test_a_name_that_needs_a_parameter_is_defined_in_the_body_alone():
    text = """
@R.function
def main(s: R.Prim("int64"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    factor = T.meta_var(2.0)
    y = R.multiply(x, R.const(factor, "float32"))
    return y
"""
    func = from_source(text)
    assert isinstance(func.params[0].struct_info, PrimStructInfo)
    assert "R.const(2.0" in func.script()
