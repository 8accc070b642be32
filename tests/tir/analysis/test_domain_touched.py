"""domain_touched: hand-made cases, and random nests against every point they touch."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.analysis import domain_touched
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Var
from weft.tir.stmt import BufferStore, For, ForKind


@T.prim_func
def stencil(a: T.handle, b: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (100, m))
    B = T.match_buffer(b, (100, m))
    for i, j in T.grid(100, m):
        A[i, j] = B[i - 1, j + 1] + A[i - 1, j - 1]


def ranges(func, number, **options):
    buffer = func.buffer_map[func.params[number]]
    return [(str(r.min), str(r.extent)) for r in domain_touched(func.body, buffer, **options)]


@pytest.mark.parametrize(
    ("number", "loads", "stores", "expected"),
    [
        (0, True, False, [("-1", "100"), ("-1", "m")]),
        (0, False, True, [("0", "100"), ("0", "m")]),
        (0, True, True, [("-1", "101"), ("-1", "m + 1")]),
        (1, True, True, [("-1", "100"), ("1", "m")]),
        (1, False, True, []),
    ],
)
def test_loads_and_stores(number, loads, stores, expected):
    assert ranges(stencil, number, consider_loads=loads, consider_stores=stores) == expected


def test_neither_is_an_error():
    with pytest.raises(IRValueError, match="loads, stores or both"):
        ranges(stencil, 0, consider_loads=False, consider_stores=False)


@T.prim_func
def conditions(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for i in range(64):
        if i < 16:
            A[i] = B[i * 2]
        else:
            A[i // 2] = 1


def test_conditions_narrow_the_loops():
    assert ranges(conditions, 0) == [("0", "32")]
    assert ranges(conditions, 1) == [("0", "31")]


@T.prim_func
def blocks(A: T.Buffer((64, 64), "int32")):
    for i, j in T.grid(4, 8):
        with T.block("fill"):
            vi = T.axis.spatial(8, i + 2)
            vj = T.axis.spatial(64, j * 8)
            A[vi, vj : vj + 4] = T.broadcast(0, 4)


def test_axes_of_blocks_and_vectors():
    assert ranges(blocks, 0) == [("2", "4"), ("0", "60")]


@T.prim_func
def unknown(A: T.Buffer((64,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        A[B[i]] = 0


def test_indices_from_data_give_the_whole_axis():
    assert ranges(unknown, 0) == [("0", "64")]
    assert ranges(unknown, 1) == [("0", "8")]


@settings(max_examples=60, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_random_nests(random):
    """The ranges hold every touched element, and are tight for sums of loops."""
    loops = [Var(name, "int32") for name in "ij"]
    extents = [random.randint(1, 5) for _ in loops]
    factors = [[random.choice([0, 1, 2, 3]) for _ in loops] for _ in range(2)]
    buffer = decl_buffer((99, 99), "int32")
    index = [sum(loop * f for loop, f in zip(loops, row, strict=True)) + 3 for row in factors]
    index = [op.const(i) if isinstance(i, int) else i for i in index]
    stmt = BufferStore(buffer, BufferLoad(buffer, [index[1], index[0]]) + 1, index)
    for loop, extent in zip(loops, extents, strict=True):
        stmt = For(loop, 0, extent, ForKind.SERIAL, stmt)
    points = list(itertools.product(*[range(extent) for extent in extents]))
    for axis, rng in enumerate(domain_touched(stmt, buffer, consider_loads=False)):
        row = factors[axis]
        touched = [sum(p * f for p, f in zip(at, row, strict=True)) + 3 for at in points]
        assert rng.min.value == min(touched)
        assert rng.min.value + rng.extent.value - 1 == max(touched)
    for axis, rng in enumerate(domain_touched(stmt, buffer)):
        both = domain_touched(stmt, buffer, consider_loads=False)
        assert rng.min.value <= min(both[axis].min.value, both[1 - axis].min.value)


def test_it_is_a_name_of_arith_too():
    assert weft.arith.domain_touched is domain_touched
