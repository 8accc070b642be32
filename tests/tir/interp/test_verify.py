"""VerifyResults names the first pass and function that change a result."""

from __future__ import annotations

import pytest

from weft.driver.pipeline import lower_tir
from weft.ir.module import IRModule
from weft.ir.transform import PassContext, Sequential
from weft.script import ir as I
from weft.script import tir as T
from weft.support.errors import VerifyError
from weft.tir import op
from weft.tir.expr import Add, Sub
from weft.tir.interp import VerifyResults
from weft.tir.transform import prim_func_pass
from weft.tir.transform.prim_func_pass import StmtMutator, rewrite_body


class Wrong(StmtMutator):
    def visit_Add(self, expr):
        return Sub(self.visit(expr.a), self.visit(expr.b)) if expr.dtype.is_float else expr


@prim_func_pass(opt_level=0, name="AddToSub")
def add_to_sub(func, mod, ctx):
    return rewrite_body(func, Wrong())


@I.ir_module
class Two:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    @T.prim_func
    def shift(a: T.handle, b: T.handle):
        n = T.int32()
        x = T.match_buffer(a, (n,))
        y = T.match_buffer(b, (n,))
        for i in range(n):
            y[i] = x[i] + T.float32(1)


def test_a_wrong_pass_is_named_with_its_function():
    steps = Sequential([lower_tir().passes[0], add_to_sub, lower_tir().passes[1]])
    with (
        PassContext(instruments=[VerifyResults()]),
        pytest.raises(VerifyError, match=r"pass AddToSub changes what shift computes: argument 1"),
    ):
        steps(Two)


def test_right_passes_go_through():
    with PassContext(instruments=[VerifyResults()]):
        lowered = lower_tir()(Two)
    assert set(lowered.functions) == set(Two.functions)


def test_a_pass_after_which_it_faults_is_named():
    @prim_func_pass(opt_level=0, name="PastTheEnd")
    def past(func, mod, ctx):
        class Shift(StmtMutator):
            def visit_BufferLoad(self, load):
                return load.with_(indices=[load.indices[0] + op.const(9)])

        return rewrite_body(func, Shift())

    with (
        PassContext(verify=True),
        pytest.raises(VerifyError, match="PastTheEnd changes what scale computes: it faults now"),
    ):
        past(IRModule({"scale": Two["scale"]}))


def test_integers_must_be_equal():
    @T.prim_func
    def f(x: T.Buffer((4,), "int32"), y: T.Buffer((4,), "int32")):
        for i in range(4):
            y[i] = x[i] + 1

    class Off(StmtMutator):
        def visit_Add(self, expr):
            return Add(expr.a, op.const(2))

    bad = prim_func_pass(lambda func, mod, ctx: rewrite_body(func, Off()), opt_level=0, name="Off")
    with (
        PassContext(instruments=[VerifyResults()]),
        pytest.raises(VerifyError, match="differs in 4 of 4 elements"),
    ):
        bad(IRModule({"f": f}))
