"""Integers and places of elements: what the interpreter has closures of its own for."""

from __future__ import annotations

import numpy as np
import pytest

from weft import tir
from weft.script import from_source
from weft.support.errors import RuntimeFault
from weft.tir.interp import run

OPERATIONS = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
}
VALUES = (-128, -127, -7, -1, 0, 1, 5, 100, 127, 200, 255)


def applied(name, dtype, a, b):
    """The operation on two variables."""
    left, right = tir.Var("a", dtype), tir.Var("b", dtype)
    value = getattr(tir, name)(left, right)
    return run(tir.PrimFunc([left, right], tir.Evaluate(tir.ret(value))), a, b)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_pythons_and_wrap(name, dtype):
    limits = np.iinfo(dtype)
    values = [value for value in VALUES if limits.min <= value <= limits.max]
    for a in values:
        for b in values:
            if b or "Floor" not in name:
                exact = OPERATIONS[name](a, b)
                wanted = (exact - limits.min) % 256 + limits.min
                assert applied(name, dtype, a, b) == wanted, (a, b)
            else:
                with pytest.raises(RuntimeFault, match="division by zero"):
                    applied(name, dtype, a, b)


def accessed(shape, place):
    """``y[0] = x[place]; x[place] = 7`` of a buffer of that shape: what is read, the buffer."""
    x, y = tir.decl_buffer(shape, "int32", "x"), tir.decl_buffer((1,), "int32", "y")
    indices = [tir.Var(f"i{axis}", "int32") for axis in range(len(place))]
    read = tir.BufferStore(y, tir.BufferLoad(x, indices), [0])
    body = tir.SeqStmt([read, tir.BufferStore(x, 7, indices)])
    handles = [tir.Var("x", "handle"), tir.Var("y", "handle")]
    func = tir.PrimFunc(
        [*handles, *indices], body, buffer_map=dict(zip(handles, (x, y), strict=True))
    )
    array = np.arange(np.prod(shape, dtype=int), dtype="int32").reshape(shape)
    result = np.zeros(1, "int32")
    run(func, array, result, *place)
    return int(result[0]), array


@pytest.mark.parametrize("rank", range(7))
def test_an_element_is_read_and_written_on_every_number_of_axes(rank):
    shape = (2, 3, 1, 4, 2, 3)[:rank]
    place = (1, 2, 0, 3, 1, 2)[:rank]
    before = np.arange(np.prod(shape, dtype=int), dtype="int32").reshape(shape)
    read, after = accessed(shape, place)
    assert read == before[place]
    before[place] = 7
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("rank", range(1, 7))
@pytest.mark.parametrize("index", [-1, 3, -(2**31), 2**31 - 1])
def test_an_index_outside_is_told_with_its_axis(rank, index):
    for axis in range(rank):
        place = [0] * rank
        place[axis] = index
        message = rf"buffer x: index {index} of axis {axis} is outside \[0, 3\)"
        with pytest.raises(RuntimeFault, match=message):
            accessed((3,) * rank, place)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2)])
def test_nothing_is_in_an_empty_buffer(shape):
    with pytest.raises(RuntimeFault, match=r"is outside \[0, 0\)"):
        accessed(shape, (0,) * len(shape))


@pytest.mark.parametrize("access", ["y[0] = x[i * i]", "x[i * i] = y[0]"])
def test_an_index_beyond_64_bits_is_a_fault(access):
    func = from_source(f"""
@T.prim_func
def main(x: T.Buffer((4,), "int32"), y: T.Buffer((1,), "int32"), i: T.uint64):
    {access}
""")
    with pytest.raises(RuntimeFault, match="is outside"):
        run(func, np.zeros(4, "int32"), np.zeros(1, "int32"), 2**32 - 1)
