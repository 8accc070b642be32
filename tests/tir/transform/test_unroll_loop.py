"""UnrollLoop: before and after, and the same results."""

from __future__ import annotations

import pytest

import weft
from weft.ir.functor import collect
from weft.ir.transform import PassContext, Sequential
from weft.script import tir as T
from weft.support.errors import PassError
from weft.tir.expr import Var
from weft.tir.stmt import DeclBuffer, For, ForKind
from weft.tir.transform import LowerOpaqueBlock, UnrollLoop


def test_an_unrolled_loop_is_its_bodies(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        for i in T.unroll(3):
            c[i] = a[i + 1]

    @T.prim_func
    def expected(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        c[0] = a[T.Add(0, 1)]
        c[1] = a[T.Add(1, 1)]
        c[2] = a[T.Add(2, 1)]

    becomes(UnrollLoop(), before, expected)


def test_copies_define_variables_of_their_own(becomes):
    @T.prim_func
    def before(a: T.Buffer((2,), "int32"), c: T.Buffer((2,), "int32")):
        for i in T.unroll(2):
            v: T.int32 = a[i] + 1
            c[i] = v * v

    @T.prim_func
    def expected(a: T.Buffer((2,), "int32"), c: T.Buffer((2,), "int32")):
        with T.LetStmt(a[0] + 1) as v:
            c[0] = v * v
        with T.LetStmt(a[1] + 1) as w:
            c[1] = w * w

    becomes(UnrollLoop(), before, expected)


@T.prim_func
def hinted(a: T.Buffer((8, 3), "int32"), c: T.Buffer((8, 3), "int32")):
    for i in T.serial(8, annotations={"pragma_auto_unroll_max_step": 16}):
        for j in range(3):
            c[i, j] = a[i, j] + 1


@T.prim_func
def hinted_to_llvm(a: T.Buffer((8, 3), "int32"), c: T.Buffer((8, 3), "int32")):
    for i in T.serial(
        8, annotations={"pragma_auto_unroll_max_step": 16, "pragma_unroll_explicit": 0}
    ):
        for j in range(3):
            c[i, j] = a[i, j] + 1


def test_loops_below_the_number_of_steps_unroll():
    steps = Sequential([LowerOpaqueBlock(), UnrollLoop()])
    after = steps(weft.IRModule({"main": hinted}))["main"]
    assert [loop.extent.value for loop in collect(after.body, For)] == [8]


def test_not_explicit_leaves_the_loop_to_llvm():
    steps = Sequential([LowerOpaqueBlock(), UnrollLoop()])
    after = steps(weft.IRModule({"main": hinted_to_llvm}))["main"]
    kinds = {loop.extent.value: loop.kind for loop in collect(after.body, For)}
    assert kinds == {8: ForKind.SERIAL, 3: ForKind.UNROLLED}
    text = weft.build(hinted_to_llvm, name="main").get_source("ll")
    assert "llvm.loop.unroll.full" in text
    assert "llvm.loop.unroll.full" not in weft.build(hinted, name="main").get_source("ll")


def test_an_option_that_is_not_there():
    with PassContext(config={"tir.UnrollLoop": {"max_step": 3}}):
        with pytest.raises(PassError, match="there is no option 'max_step'; there are: auto_max"):
            UnrollLoop()(weft.IRModule({"main": hinted}))


def test_the_shape_of_a_buffer_of_a_copy_uses_the_loops_of_the_copy():
    @T.prim_func
    def before(a: T.Buffer((16,), "int32")):
        for _ in T.unroll(2):
            for i in range(4):
                with T.decl_buffer((i + 1,), "int32") as local:
                    local[0] = a[i]
                    a[i] = local[0] + 1

    after = UnrollLoop()(weft.IRModule({"main": before}))["main"]
    loops = collect(after.body, For)
    assert len(loops) == 2
    for loop in loops:
        (declared,) = collect(loop, DeclBuffer)
        assert collect(declared.buffer.shape, Var) == [loop.loop_var]
