"""Copies of nodes in another process: the same structure, with spans and provenance."""

from __future__ import annotations

import pickle

import numpy as np

from weft import te, tir
from weft.ir import structural_equal
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.ir.pickling import Copied
from weft.script import tir as T


def copy_of(value):
    return pickle.loads(pickle.dumps(Copied(value))).value


def product():
    a, b = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def test_copy_of_a_scheduled_function_is_equal_to_it():
    schedule = tir.Schedule(product())
    i, _j, _k = schedule.get_loops(schedule.get_block("C"))
    schedule.parallel(schedule.split(i, [None, 8])[0])
    func = schedule.mod["main"].with_attr("tir.is_scheduled", 1)
    copy = copy_of(func)
    assert copy is not func
    assert structural_equal(copy, func, map_free_vars=False)
    assert copy.script() == func.script()


def test_provenance_and_spans_are_kept():
    @T.prim_func
    def doubled(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)

    assert product().provenance == copy_of(product()).provenance == "te"
    [loop], [copied] = collect(doubled, tir.For), collect(copy_of(doubled), tir.For)
    assert loop.span is not None
    assert copied.span == loop.span
    assert copy_of(doubled).provenance == doubled.provenance


def test_nodes_shared_in_a_value_are_shared_in_its_copy():
    i = tir.Var("i", "int64")
    both = copy_of((i + 1, i + 1, i))
    assert both[0].a is both[1].a is both[2]


def test_types_and_operators_stay_the_only_ones_of_their_name():
    call = tir.exp(tir.Var("x", "float32"))
    copy = copy_of(call)
    assert copy.dtype is call.dtype
    assert copy.op is Op.get("tir.exp")


def test_summaries_are_those_of_the_copy():
    """A summary tells where variables lie, so that of the original would hide the copy's."""
    i = tir.Var("i", "int32")
    expr = (i + 1) * 2
    tir.stmt_functor.substitute(expr, {i: tir.Var("j", "int32")})  # computes summaries
    copy = copy_of(expr)
    [variable] = tir.analysis.undefined_vars(copy)
    assert str(tir.stmt_functor.substitute(copy, {variable: tir.IntImm("int32", 3)})) == str(
        tir.stmt_functor.substitute(expr, {i: tir.IntImm("int32", 3)})
    )


def test_values_that_are_no_nodes_are_pickled_as_usual():
    assert copy_of(None) is None
    assert (copy_of({"a": np.arange(3)})["a"] == np.arange(3)).all()
