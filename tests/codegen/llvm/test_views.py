"""Accesses through buffers that start or step elsewhere, and vector indices axis by axis."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.tir import interp, op
from weft.tir.buffer import BufferLoad, decl_buffer
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
def gather_strided(handle: T.handle, at: T.Buffer((4,), "int32"), out: T.Buffer((4,), "float32")):
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


@T.prim_func
def from_an_offset(p: T.handle, out: T.Buffer((4,), "int32")):
    a = T.match_buffer(p, (4,), "int32", elem_offset=100)
    for i in range(4):
        out[i] = a[i]


def test_an_argument_that_starts_at_a_constant_offset_is_refused():
    x, out = np.arange(200, dtype="int32"), np.zeros(4, "int32")
    with pytest.raises(weft.TVMError, match="expected element offset 0 or a symbol, got 100"):
        weft.build(from_an_offset)(x[:4], out)
    with pytest.raises(weft.TVMError, match="expected element offset 0 or a symbol, got 100"):
        interp.run(from_an_offset, x[:4], out)
    assert not out.any()


@T.prim_func
def last_of_view(n: T.int32, a: T.Buffer((4,), "int32")):
    v = T.decl_buffer((n,), "int32", data=a.data)
    v[n - 1] = 7


@T.prim_func
def last_of_bytes(n: T.int32, a: T.Buffer((4,), "int32")):
    v = T.decl_buffer((n, 2), "int8", data=a.data)
    v[n - 1, 1] = T.int8(7)


@T.prim_func
def last_of_undeclared(n: T.int32, a: T.Buffer((4,), "int32")):
    v = T.Buffer((n,), "int32", data=a.data)
    v[n - 1] = 7


@T.prim_func
def last_of_allocated(n: T.int32, a: T.Buffer((4,), "int32")):
    b = T.decl_buffer((4,), "int32")
    v = T.decl_buffer((n,), "int32", data=b.data)
    v[n - 1] = 7
    a[3] = b[3]


@T.prim_func
def last_in_parallel(n: T.int32, a: T.Buffer((4,), "int32")):
    for _ in T.parallel(1000000):
        v = T.decl_buffer((n,), "int32", data=a.data)
        v[n - 1] = 7


@T.prim_func
def moved(n: T.int32, a: T.Buffer((4,), "int32")):
    v = T.decl_buffer((1,), "int32", data=a.data, elem_offset=n - 1)
    v[0] = 7


@T.prim_func
def stepped(n: T.int32, a: T.Buffer((4,), "int32")):
    v = T.decl_buffer((2,), "int32", data=a.data, strides=[n - 1])
    v[1] = 7


VIEWS = [last_of_view, last_of_undeclared, last_of_allocated, last_in_parallel, moved, stepped]


@pytest.mark.parametrize("func", VIEWS)
def test_a_view_stays_within_its_memory(func):
    big = np.zeros(64, "int32")
    built = weft.build(func)
    for n in (5, 50, 10**9, -5, -(10**9)):
        with pytest.raises(IndexError, match="view v: reaches to byte"):
            built(n, big[16:20])
        assert not big.any()
        with pytest.raises(weft.TVMError, match="buffer v: .* its memory|expected extents"):
            interp.run(func, n, big[16:20])
    built(4, big[16:20])
    assert big[19] == 7
    assert np.count_nonzero(big) == 1


def test_a_view_of_another_type_counts_in_bytes():
    big = np.zeros(64, "int32")
    built = weft.build(last_of_bytes)
    built(8, big[16:20])
    assert big[19] == 7 << 24
    with pytest.raises(IndexError, match="reaches to byte 18 of a memory of 16 bytes"):
        built(9, big[16:20])


@T.prim_func
def too_large(a: T.Buffer((4,), "int32")):
    v = T.decl_buffer((2, 3), "int32", data=a.data)
    v[0, 0] = 7


@T.prim_func
def before_its_memory(a: T.Buffer((4,), "int32")):
    v = T.decl_buffer((4,), "int32", data=a.data, strides=[-1])
    v[0] = 7


def test_a_view_known_not_to_fit_is_refused():
    with pytest.raises(IndexError, match="view v: .*within the 16 bytes.* from byte 0 to byte 24"):
        weft.build(too_large)
    with pytest.raises(IndexError, match="from byte -12 to byte 4"):
        weft.build(before_its_memory)


@T.prim_func
def flat(p: T.handle, q: T.handle):
    n, m = T.int64(), T.int64()
    a = T.match_buffer(p, (n, m), "float32")
    b = T.match_buffer(q, (n * m,), "float32")
    v = T.decl_buffer((m * n,), "float32", data=a.data)
    w = T.decl_buffer((m, n), "float32", data=b.data)
    for i in range(n * m):
        v[i] = v[i] + T.float32(1)
    for i, j in T.grid(m, n):
        w[i, j] = T.float32(2)


def test_a_view_that_fits_for_every_extent_is_not_tested():
    assert "view" not in weft.build(flat).get_source()


@T.prim_func
def through_a_handle(p: T.handle("int32"), c: T.Buffer((4,), "int32")):
    v = T.decl_buffer((4,), "int32", data=p)
    for i in range(4):
        c[i] = v[i]


def test_a_raw_handle_is_some_memory():
    a, c = np.arange(4, dtype="int32"), np.zeros(4, "int32")
    built = weft.build(through_a_handle)
    for wrong in (None, 0, 77):
        with pytest.raises(IndexError, match="expected the address of memory for p, got"):
            built(wrong, c)
    built(a, c)
    np.testing.assert_array_equal(c, a)


@T.prim_func
def nowhere(n: T.int64, a: T.Buffer((4,), "int32")):
    v = T.decl_buffer((n,), "int32", data=a.data, elem_offset=n * T.int64(4) + T.int64(1 << 62))
    if T.int64(0) < n:
        v[0] = 7


def test_a_view_without_elements_may_lie_anywhere():
    a = np.zeros(4, "int32")
    built = weft.build(nowhere)
    built(0, a)
    interp.run(nowhere, 0, a)
    for n in (1, -1):
        with pytest.raises(IndexError, match="view v: reaches to byte"):
            built(n, a)
    assert not a.any()
