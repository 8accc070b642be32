"""InlinePrivateFunctions: before and after, and what stays where it is."""

from __future__ import annotations

import pytest

import weft
from weft.script import from_source
from weft.script import ir as I
from weft.script import tir as T
from weft.tir.transform import InlinePrivateFunctions


def test_each_call_has_variables_and_buffers_of_its_own():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(4):
                Before.total(T.address_of(A[i, 0]), T.address_of(B[i]), 1.0)
            for i in range(4):
                Before.total(T.address_of(A[i + 4, 0]), T.address_of(B[i + 4]), 2.0)

        @T.prim_func(private=True)
        def total(a: T.handle("float32"), b: T.handle("float32"), by: T.float32):
            row = T.decl_buffer((4,), "float32", data=a)
            sums = T.decl_buffer((1,), "float32", data=b)
            sums[0] = 0.0
            for k in range(4):
                sums[0] = sums[0] + row[k] * by

    @I.ir_module
    class Expected:
        @T.prim_func
        def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(4):
                a: T.handle("float32") = T.address_of(A[i, 0])
                row = T.decl_buffer((4,), "float32", data=a)
                b: T.handle("float32") = T.address_of(B[i])
                sums = T.decl_buffer((1,), "float32", data=b)
                sums[0] = 0.0
                for k in range(4):
                    sums[0] = sums[0] + row[k] * T.float32(1)
            for i in range(4):
                a: T.handle("float32") = T.address_of(A[i + 4, 0])
                row = T.decl_buffer((4,), "float32", data=a)
                b: T.handle("float32") = T.address_of(B[i + 4])
                sums = T.decl_buffer((1,), "float32", data=b)
                sums[0] = 0.0
                for k in range(4):
                    sums[0] = sums[0] + row[k] * T.float32(2)

    after = InlinePrivateFunctions()(Before)
    weft.ir.assert_structural_equal(after, Expected)
    named = InlinePrivateFunctions()(Before.with_attr("name", "both"))
    assert named.attrs["name"] == "both"
    assert InlinePrivateFunctions()(after) is after


def test_what_a_call_reads_is_read_before_the_body():
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        Module.outer(A[0], T.address_of(A[A[0]]))

    @T.prim_func(private=True)
    def outer(first: T.int32, a: T.handle("int32")):
        Module.inner(first + 1, a)

    @T.prim_func(private=True)
    def inner(n: T.int32, a: T.handle("int32")):
        C = T.decl_buffer((2,), "int32", data=a)
        C[0] = n + 4
        C[1] = n
""")

    @I.ir_module
    class Expected:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            first: T.int32 = A[0]
            a: T.handle("int32") = T.address_of(A[A[0]])
            C = T.decl_buffer((2,), "int32", data=a)
            C[0] = first + 1 + 4
            C[1] = first + 1

    weft.ir.assert_structural_equal(InlinePrivateFunctions()(module), Expected)


KEPT = {
    "of another target": ('T.func_attr({"target": T.target("cuda")})\n', "Module.f(A.data, 3)"),
    "that calls itself": ("if n > 1:\n            Module.f(a, n - 1)\n", "Module.f(A.data, 3)"),
    "with a block": ("with T.block('b'):\n            T.evaluate(0)\n", "Module.f(A.data, 3)"),
    "that returns early": ("if n > 1:\n            T.ret(0)\n", "Module.f(A.data, 3)"),
    "in an expression": ("", 'A[0] = T.Cast("float32", T.Call("int32", Module.f, [A.data, 3]))'),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_function_stays(case):
    start, call = KEPT[case]
    module = from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        {call}

    @T.prim_func(private=True)
    def f(a: T.handle("float32"), n: T.int32):
        {start}
        B = T.decl_buffer((4,), "float32", data=a)
        B[n] = T.float32(1)
""")
    assert InlinePrivateFunctions()(module) is module


def test_public_functions_and_those_with_buffers_stay():
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        Module.f(A)
        Module.g(A.data)

    @T.prim_func(private=True)
    def f(B: T.Buffer((4,), "float32")):
        B[0] = T.float32(1)

    @T.prim_func
    def g(b: T.handle("float32")):
        B = T.decl_buffer((4,), "float32", data=b)
        B[0] = T.float32(1)
""")
    assert InlinePrivateFunctions()(module) is module
