"""Nodes of scalar expressions and statements: their types and checks."""

from __future__ import annotations

import pytest

from weft import ir, te, tir
from weft.support.errors import IRTypeError


def var(dtype, name="x"):
    return tir.Var(name, dtype)


def test_variables_keep_their_type_when_renamed():
    x = var(ir.PointerType(ir.PrimType("int8"), "local"))
    renamed = x.copy_with_suffix("_1")
    assert (renamed.name, renamed.name_hint, renamed.dtype) == ("x_1", "x_1", "handle")
    assert renamed.type_annotation == x.type_annotation
    assert x.with_(name=x.name) is x
    assert isinstance(tir.SizeVar("n", "int64").copy_with_suffix("_1"), tir.SizeVar)


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: tir.Add(var("int8"), var("int8")), "int8"),
        (lambda: tir.LT(var("int8"), var("int8")), "bool"),
        (lambda: tir.LT(var("int8x4"), var("int8x4")), "boolx4"),
        (lambda: tir.And(var("bool"), var("bool")), "bool"),
        (lambda: tir.Select(var("bool"), var("int8"), var("int8")), "int8"),
        (lambda: tir.Cast("float32", var("int8")), "float32"),
        (lambda: tir.Ramp(var("int32"), 1, 4), "int32x4"),
        (lambda: tir.Ramp(var("int32"), 1, tir.vscale() * 4), "int32xvscalex4"),
        (lambda: tir.Broadcast(var("float16"), 8), "float16x8"),
        (lambda: tir.Shuffle([var("int32x4")], [0, 2]), "int32x2"),
        (lambda: tir.Shuffle([var("int32x4")], [1]), "int32"),
        (lambda: tir.Let(var("int8"), tir.const(1, "int8"), var("float32")), "float32"),
        (lambda: tir.decl_buffer((4, 4), "int8")[0, tir.Ramp(0, 1, 4)], "int8x4"),
        (lambda: tir.StringImm("text"), "handle"),
    ],
)
def test_types_of_nodes(make, dtype):
    assert make().dtype == dtype


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tir.Add(var("int8"), var("int16")), "Add: mismatched types, int8 and int16"),
        (
            lambda: tir.And(var("bool"), var("int8")),
            "And: expected bool operands, got bool and int8",
        ),
        (lambda: tir.Select(var("int8"), 1, 2), "Select: expected a bool condition, got int8"),
        (lambda: tir.Select(var("bool"), 1, 2.0), "Select: mismatched types, int32 and float32"),
        (
            lambda: tir.Select(var("boolx8"), 1, 2),
            "Select: expected one condition, or one for each of the 1 lanes of int32 values",
        ),
        (
            lambda: tir.if_then_else(var("boolx8"), 1, 2),
            r"if_then_else: .* got boolx8; broadcast the values, as T.Broadcast\(x, 8\)",
        ),
        (lambda: tir.Cast("int8x2", var("int8")), "the lanes of int8 and int8x2 must be the same"),
        (
            lambda: tir.Ramp(var("int32"), var("int64"), 4),
            "scalars of one type, got int32 and int64",
        ),
        (lambda: tir.Broadcast(var("int8x4"), 4), "Broadcast: expected a scalar, got int8x4"),
        (
            lambda: tir.Broadcast(var("int8"), var("int32")),
            "must be a constant or a constant times",
        ),
        (lambda: tir.Shuffle([], []), "at least one vector and one index"),
    ],
)
def test_errors(make, message):
    with pytest.raises(IRTypeError, match=message):
        make()


def test_loops_cast_their_bounds_to_the_variable():
    loop = tir.For(var("int64", "i"), 0, 8, tir.ForKind.SERIAL, tir.Evaluate(0))
    assert (loop.min.dtype, loop.extent.dtype) == ("int64", "int64")
    assert tir.For(var("int32"), 0, 8, 1, tir.Evaluate(0)).kind is tir.ForKind.PARALLEL


def test_iteration_variables_are_their_variable_in_expressions():
    k = te.reduce_axis((0, 8), name="k")
    assert (k + 1).a is k.var
    assert k.dtype == "int32"
    assert k.iter_type == tir.IterVar.CommReduce
    assert tir.IterVar((0, 4), "i", 0).var.name == "i"


def test_ranges():
    assert ir.Range(8).extent == 8
    assert (ir.Range(2, 8).min, ir.Range(2, 8).extent) == (2, 6)
    made = ir.Range.from_min_extent(2, 8)
    assert (made.min, made.extent) == (2, 8)
    assert made.with_(min=made.min) is made
    n = var("int64", "n")
    assert ir.Range(n).min.dtype == "int64"


@pytest.mark.parametrize("indices", [[], [0], [0, 0, 0]])
def test_a_load_has_an_index_for_each_dimension(indices):
    buffer = tir.decl_buffer((2, 3), name="A")
    with pytest.raises(IndexError, match=f"buffer A has 2 dimensions, got {len(indices)} ind"):
        tir.BufferLoad(buffer, indices)


def test_a_load_is_found_where_tvm_has_it():
    assert tir.expr.BufferLoad is tir.BufferLoad
