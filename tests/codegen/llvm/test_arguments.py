"""Calls between PrimFuncs: the memory of arguments, and whether it overlaps."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import ir as I
from weft.script import tir as T


@I.ir_module
class Smaller:
    @T.prim_func
    def inner(a: T.Buffer((1024,), "float32")):
        for i in range(1024):
            a[i] = T.float32(7)

    @T.prim_func
    def main(b: T.Buffer((4,), "float32")):
        Smaller.inner(b)


def test_a_buffer_smaller_than_the_callee_is_refused():
    with pytest.raises(IndexError, match="inner: argument a: .* within the 16 bytes .* byte 4096"):
        weft.build(Smaller)


@I.ir_module
class Symbolic:
    @T.prim_func
    def inner(p: T.handle, value: T.float32):
        n = T.int64()
        a = T.match_buffer(p, (n,), "float32")
        for i in range(n):
            a[i] = value

    @T.prim_func
    def main(p: T.handle, n: T.int64):
        m = T.int64()
        b = T.match_buffer(p, (m,), "float32")
        Symbolic.inner(b, T.float32(7), n)

    @T.prim_func
    def pointer(p: T.handle, n: T.int64):
        m = T.int64()
        b = T.match_buffer(p, (m,), "float32")
        Symbolic.inner(T.address_of(b[2]), T.float32(7), n)

    @T.prim_func
    def access(p: T.handle, n: T.int64):
        m = T.int64()
        b = T.match_buffer(p, (m,), "float32")
        Symbolic.inner(b.access_ptr("rw", offset=2), T.float32(7), n)

    @T.prim_func
    def view(p: T.handle, n: T.int64):
        m = T.int64()
        b = T.match_buffer(p, (m,), "float32")
        c = T.decl_buffer((m - 2,), "float32", data=b.data, elem_offset=2)
        Symbolic.inner(c, T.float32(7), n)

    @T.prim_func
    def whole(p: T.handle):
        m = T.int64()
        b = T.match_buffer(p, (m,), "float32")
        Symbolic.inner(b, T.float32(7), m)


STARTS = {"main": 0, "pointer": 2, "access": 2, "view": 2}


@pytest.mark.parametrize(("name", "start"), STARTS.items())
def test_what_the_callee_reaches_is_tested_when_it_is_called(name, start):
    built = weft.build(Symbolic)[name]
    big = np.zeros(64, "float32")
    for n in (9, 40, 1 << 40, -1):
        with pytest.raises(IndexError, match=f"{name}: inner: argument a: reaches to byte"):
            built(big[16:24], n)
        assert not big.any()
    built(big[16:24], 8 - start)
    np.testing.assert_array_equal(np.flatnonzero(big), np.arange(16 + start, 24))


@I.ir_module
class Whole:
    @T.prim_func
    def inner(a: T.Buffer((4,), "float32")):
        for i in range(4):
            a[i] = T.float32(i + 1)

    @T.prim_func
    def main(b: T.Buffer((1,), "float32")):
        c = T.alloc_buffer((4,), "float32")
        Whole.inner(c)
        b[0] = c[0]


def test_an_allocation_given_to_a_function_keeps_its_size():
    x = np.zeros(1, "float32")
    weft.build(Whole)["main"](x)
    assert x[0] == 1


@I.ir_module
class Twice:
    @T.prim_func
    def inner(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(1023):
            b[i + 1] = a[i] + T.float32(1)

    @T.prim_func
    def one(x: T.Buffer((1024,), "float32")):
        Twice.inner(x, x)

    @T.prim_func
    def two(x: T.Buffer((1024,), "float32"), y: T.Buffer((1024,), "float32")):
        Twice.inner(x, y)

    @T.prim_func
    def halves(x: T.Buffer((2048,), "float32")):
        Twice.inner(T.address_of(x[0]), T.address_of(x[1024]))


def test_a_callee_without_aliases_gets_different_memory():
    built, x, y = weft.build(Twice), np.zeros(2048, "float32"), np.zeros(1024, "float32")
    for call in (lambda: built["one"](y), lambda: built["two"](y, y),
                 lambda: built["two"](x[:1024], x[512:1536])):  # fmt: skip
        with pytest.raises(IndexError, match="noalias, but its arguments a and b overlap"):
            call()
    built["two"](x[:1024], y)
    np.testing.assert_array_equal(y, [0] + [1] * 1023)
    built["halves"](x)
    np.testing.assert_array_equal(x[1024:], y)


@I.ir_module
class Addresses:
    @T.prim_func
    def inner(a: T.Buffer((4,), "float32")):
        for i in range(4):
            a[i] = T.float32(7)

    @T.prim_func
    def row32(b: T.Buffer((4, 4), "float32"), i: T.int32):
        Addresses.inner(T.address_of(b[i, 0]))

    @T.prim_func
    def row64(p: T.handle, i: T.int64):
        n = T.int64()
        b = T.match_buffer(p, (n, 4), "float32")
        Addresses.inner(T.address_of(b[i, 0]))

    @T.prim_func
    def column(p: T.handle, i: T.int64):
        n, m = T.int64(), T.int64()
        b = T.match_buffer(p, (n, m), "float32")
        Addresses.inner(T.address_of(b[0, i]))


@pytest.mark.parametrize(
    ("name", "number"),
    [("row32", 1 << 30), ("row32", 1 << 28), ("row64", 1 << 62), ("row64", -(1 << 62)),
     ("row64", 1 << 60), ("column", (1 << 63) - 1), ("column", 13)],
)  # fmt: skip
def test_an_address_beyond_what_its_arithmetic_holds_is_outside(name, number):
    big, built = np.zeros((24, 4), "float32"), weft.build(Addresses)[name]
    with pytest.raises(IndexError, match=f"{name}: inner: argument a: reaches to byte"):
        built(big[10:14], number)
    assert not big.any()
    built(big[10:14], 3)
    assert np.count_nonzero(big) == 4


@I.ir_module
class Negative:
    @T.prim_func
    def inner(n: T.int64, p: T.handle):
        a = T.match_buffer(p, (n,), "int32")
        a[n - 1] = 7

    @T.prim_func
    def main(a: T.Buffer((), "int32")):
        Negative.inner(T.int64(-1), T.address_of(a[()]))


def test_a_callee_of_negative_extent_is_given_no_memory():
    big = np.zeros(8, "int32")
    with pytest.raises(IndexError, match="main: inner: argument a: reaches to byte"):
        weft.build(Negative)["main"](big[4:5].reshape(()))
    assert not big.any()
