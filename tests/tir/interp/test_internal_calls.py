"""Calls between PrimFuncs in the interpreter: they take and refuse what native code does."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import ir as I
from weft.script import tir as T
from weft.tir import interp


@I.ir_module
class Calls:
    @T.prim_func
    def inner(a: T.Buffer((4,), "float32")):
        for i in range(4):
            a[i] = T.float32(i + 1)

    @T.prim_func
    def sized(p: T.handle, value: T.float32):
        n = T.int64()
        a = T.match_buffer(p, (n,), "float32")
        for i in range(n):
            a[i] = value

    @T.prim_func
    def apart(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(4):
            b[i] = a[i] + T.float32(1)

    @T.prim_func
    def whole(x: T.Buffer((8,), "float32")):
        Calls.inner(x)

    @T.prim_func
    def reshaped(x: T.Buffer((2, 4), "float32")):
        Calls.inner(x)

    @T.prim_func
    def data(x: T.Buffer((8,), "float32")):
        Calls.inner(x.data)

    @T.prim_func
    def address(x: T.Buffer((2, 4), "float32")):
        Calls.inner(T.address_of(x[0, 3]))

    @T.prim_func
    def access(x: T.Buffer((8,), "float32")):
        Calls.inner(x.access_ptr("rw", offset=3))

    @T.prim_func
    def view(x: T.Buffer((8,), "float32")):
        v = T.decl_buffer((5,), "float32", data=x.data, elem_offset=2)
        Calls.inner(v)

    @T.prim_func
    def with_size(x: T.Buffer((8,), "float32")):
        Calls.sized(x, T.float32(3), T.int64(5))

    @T.prim_func
    def halves(x: T.Buffer((8,), "float32")):
        Calls.apart(x, T.address_of(x[4]))

    @T.prim_func
    def further(x: T.Buffer((8,), "float32"), i: T.int32):
        Calls.inner(T.address_of(x[i]))

    @T.prim_func
    def longer(x: T.Buffer((8,), "float32"), n: T.int64):
        Calls.sized(x, T.float32(3), n)

    @T.prim_func
    def overlap(x: T.Buffer((8,), "float32"), i: T.int32):
        Calls.apart(x, T.address_of(x[i]))


@pytest.mark.parametrize(
    "name", ["whole", "reshaped", "data", "address", "access", "view", "with_size", "halves"]
)
def test_a_callee_gets_the_memory_of_its_arguments(name):
    shape = (2, 4) if name in ("reshaped", "address") else (8,)
    interpreted, native = (np.zeros(shape, "float32") for _ in range(2))
    interp.run(Calls[name], interpreted, module=Calls)
    weft.build(Calls)[name](native)
    assert interpreted.any()
    np.testing.assert_array_equal(interpreted, native)


OUTSIDE = [("further", 5), ("further", -1), ("further", 2**31 - 1), ("longer", 9), ("longer", -1),
           ("longer", 2**62), ("overlap", 3), ("overlap", 0)]  # fmt: skip


@pytest.mark.parametrize(("name", "number"), OUTSIDE)
def test_what_native_code_refuses_is_a_fault(name, number):
    x = np.zeros(8, "float32")
    with pytest.raises(weft.TVMError, match="reaches from byte|overlap|expected extents"):
        interp.run(Calls[name], x, number, module=Calls)
    with pytest.raises(weft.TVMError, match="reaches to byte|overlap"):
        weft.build(Calls)[name](x, number)
    assert not x.any()


@I.ir_module
class Missing:
    @T.prim_func
    def sized(p: T.handle, value: T.float32):
        n = T.int64()
        a = T.match_buffer(p, (n,), "float32")
        for i in range(n):
            a[i] = value

    @T.prim_func
    def main(x: T.Buffer((8,), "float32")):
        Missing.sized(x, T.float32(3))


def test_a_call_without_its_sizes_is_refused():
    with pytest.raises(weft.TVMError, match="expected 2 arguments and then 1 sizes, got 2"):
        interp.run(Missing["main"], np.zeros(8, "float32"), module=Missing)
    with pytest.raises(weft.TVMError, match="takes 2 arguments and then 1 sizes as int64, got 2"):
        weft.build(Missing)


@I.ir_module
class Views:
    @T.prim_func
    def first_of(a: T.Buffer((4,), "int32"), b: T.Buffer((4,), "int32")):
        T.func_attr({"tir.noalias": True})
        with T.block("outer"):
            row = T.match_buffer(b[0:2], (2,), "int32")
            with T.block("inner"):
                element = T.match_buffer(row[0:1], (1,), "int32")
                element[0] = a[3]

    @T.prim_func
    def main(x: T.Buffer((4,), "int32")):
        Views.first_of(x, x)


def test_memory_that_is_written_through_a_view_of_a_view_must_not_overlap():
    x = np.arange(4, dtype="int32")
    with pytest.raises(weft.TVMError, match="overlap"):
        interp.run(Views["main"], x, module=Views)
    with pytest.raises(weft.TVMError, match="overlap"):
        weft.build(Views)["main"](x)
    assert x.tolist() == [0, 1, 2, 3]
