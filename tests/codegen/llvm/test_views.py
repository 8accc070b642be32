"""Accesses through buffers that start or step elsewhere, and vector indices axis by axis."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, Evaluate, IfThenElse, SeqStmt

INDEX = np.array([0, 1, 2, 3], "int32")
OUTSIDE = np.array([0, 1, 2, 5], "int32")


@T.prim_func
def fill_line(a: T.Buffer((32,), "float32")):
    b = T.decl_buffer((16,), "float32", data=a.data, elem_offset=16)
    for i in range(16):
        b[i] = T.float32(1)


@T.prim_func
def fill_square(a: T.Buffer((32,), "float32")):
    b = T.decl_buffer((4, 4), "float32", data=a.data, elem_offset=16)
    for i, j in T.grid(4, 4):
        b[i, j] = T.float32(1)


@T.prim_func
def fill_vector(a: T.Buffer((32,), "float32")):
    b = T.decl_buffer((16,), "float32", data=a.data, elem_offset=16)
    for i in T.vectorized(16):
        b[i] = T.float32(1)


@T.prim_func
def fill_lanes(a: T.Buffer((32,), "float32")):
    b = T.decl_buffer((16,), "float32", data=a.data, elem_offset=16)
    for i in T.vectorized(16):
        b[(i * 5) % 16] = T.float32(1)


@pytest.mark.parametrize("func", [fill_line, fill_square, fill_vector, fill_lanes])
def test_an_offset_moves_every_kind_of_store(func):
    x = np.zeros(32, "float32")
    weft.build(func)(x)
    np.testing.assert_array_equal(x, [0] * 16 + [1] * 16)


@T.prim_func
def gather_offset(
    a: T.Buffer((32,), "float32"), at: T.Buffer((4,), "int32"), out: T.Buffer((4,), "float32")
):
    b = T.decl_buffer((16,), "float32", data=a.data, elem_offset=16)
    for j in T.vectorized(4):
        out[j] = b[at[j]]


def test_an_offset_moves_a_gather():
    out = np.zeros(4, "float32")
    built = weft.build(gather_offset)
    built(np.arange(32, dtype="float32"), INDEX, out)
    np.testing.assert_array_equal(out, [16, 17, 18, 19])
    with pytest.raises(IndexError, match="index 16 is out of bounds for buffer b of extent 16"):
        built(np.arange(32, dtype="float32"), INDEX + 13, out)


@T.prim_func
def gather(
    a: T.Buffer((4, 4), "float32"), at: T.Buffer((4,), "int32"), out: T.Buffer((4,), "float32")
):
    for j in T.vectorized(4):
        out[j] = a[1, at[j]]


@T.prim_func
def scatter(
    a: T.Buffer((4, 4), "float32"), at: T.Buffer((4,), "int32"), out: T.Buffer((4,), "float32")
):
    for j in T.vectorized(4):
        a[1, at[j]] = out[j]


@pytest.mark.parametrize("func", [gather, scatter])
def test_lanes_that_leave_their_axis_are_faults_even_inside_of_the_buffer(func):
    a, out = np.arange(16, dtype="float32").reshape(4, 4), np.zeros(4, "float32")
    built = weft.build(func)
    built(a, INDEX, out)
    np.testing.assert_array_equal(a[1], out)
    with pytest.raises(IndexError, match="index 5 is out of bounds for buffer a on axis 1 of"):
        built(a, OUTSIDE, out)
    with pytest.raises(IndexError, match="index -1 is out of bounds for buffer a on axis 1 of"):
        built(a, INDEX - 1, out)


@T.prim_func
def gather_strided(
    handle: T.handle, at: T.Buffer((4,), "int32"), out: T.Buffer((4,), "float32")
):
    a = T.match_buffer(handle, (4, 4), "float32", strides=(8, 1))
    for j in T.vectorized(4):
        out[j] = a[3, at[j]]


def test_a_gather_from_strided_memory_is_checked_by_its_axes():
    wide = np.arange(32, dtype="float32").reshape(4, 8)[:, :4]
    out = np.zeros(4, "float32")
    weft.build(gather_strided)(wide, INDEX, out)
    np.testing.assert_array_equal(out, [24, 25, 26, 27])
    with pytest.raises(IndexError, match="index 5 is out of bounds for buffer a on axis 1 of"):
        weft.build(gather_strided)(wide, OUTSIDE, out)


@T.prim_func
def offset_parameter(handle: T.handle, out: T.Buffer((4,), "float32")):
    start = T.int32()
    a = T.match_buffer(handle, (4,), "float32", elem_offset=start)
    for i in range(4):
        out[i] = a[i]


def test_an_offset_that_is_a_parameter_is_that_of_the_argument():
    x, out = np.arange(8, dtype="float32"), np.zeros(4, "float32")
    weft.build(offset_parameter)(x[4:], out)
    np.testing.assert_array_equal(out, [4, 5, 6, 7])


def shared_load(noalias, between):
    """``if 0 <= a[0] < 4: <between>; b[a[0]] = 1`` with one node for both reads of ``a``."""
    a, b = decl_buffer((1,), "int32", "a"), decl_buffer((4,), "float32", "b")
    load = BufferLoad(a, [0])
    body = SeqStmt([*between(a), BufferStore(b, op.const(1.0, "float32"), [load])])
    guarded = IfThenElse(op.logical_and(load >= 0, load < 4), body)
    attrs = {"global_symbol": "main", "tir.noalias": noalias}
    return PrimFunc([a, b], guarded, attrs=attrs)


def test_a_store_between_a_test_and_a_use_makes_the_test_say_nothing():
    def between(a):
        return [BufferStore(a, op.const(6, "int32"), [0])]

    memory = np.zeros(8, "float32")
    with pytest.raises(IndexError, match="index 6 is out of bounds for buffer b"):
        weft.build(shared_load(True, between))(np.array([1], "int32"), memory[:4])
    np.testing.assert_array_equal(memory, 0)


def test_a_test_of_memory_that_nothing_writes_saves_the_check():
    func = shared_load(True, lambda a: [Evaluate(op.const(0, "int32"))])
    assert "weft_raise" not in weft.build(func).get_source("ll")
    aliased = shared_load(False, lambda a: [Evaluate(op.const(0, "int32"))])
    assert "weft_raise" in weft.build(aliased).get_source("ll")
