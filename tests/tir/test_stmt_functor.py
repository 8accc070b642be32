from __future__ import annotations

import pytest

from weft.ir.functor import collect
from weft.ir.structural import structural_equal
from weft.script import tir as T
from weft.support.errors import IRTypeError
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Add, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, BufferStore, DeclBuffer, For, ForKind, SeqStmt
from weft.tir.stmt_functor import (
    ir_transform,
    post_order_visit,
    pre_order_visit,
    redefined,
    renew_defs,
    substitute,
)

I = Var("i", "int32")


def copy_loop():
    a, c = decl_buffer((8,), "float32", "A"), decl_buffer((8,), "float32", "C")
    store = BufferStore(c, a[I] + a[I], [I])
    return PrimFunc([a, c], For(I, op.const(0), op.const(8), ForKind.SERIAL, store))


def test_orders_of_visit():
    seen = []
    post_order_visit(I + 1, lambda node: seen.append(type(node).__name__))
    assert seen == ["Var", "IntImm", "Add"]
    seen.clear()

    def enter(node):
        seen.append(type(node).__name__)
        return not isinstance(node, BufferStore)

    pre_order_visit(copy_loop().body, enter)
    assert seen[0] == "For"
    assert "BufferLoad" not in seen


def test_substitute():
    assert structural_equal(substitute(I + 1, {I: op.const(3)}), Add(op.const(3), op.const(1)))


def test_ir_transform_replaces_after_the_children():
    body = ir_transform(copy_loop().body, None, lambda load: op.const(1.0, "float32"),
                        ["tir.BufferLoad"])  # fmt: skip
    loads = []
    post_order_visit(body, lambda n: loads.append(n) if isinstance(n, BufferLoad) else None)
    assert not loads


def test_ir_transform_does_not_enter_what_preorder_returns():
    body = copy_loop().body
    assert ir_transform(body, lambda n: n if isinstance(n, For) else None, pytest.fail) is body


def test_ir_transform_of_an_unknown_class():
    with pytest.raises(IRTypeError, match=r"no node class 'tir\.Loop'"):
        ir_transform(copy_loop().body, None, None, ["tir.Loop"])


def test_renew_defs_is_equal_and_shares_no_variable():
    func = copy_loop()
    fresh = renew_defs(func)
    assert structural_equal(func, fresh)
    assert fresh.body.loop_var is not func.body.loop_var
    assert fresh.params[0] is not func.params[0]
    assert not set(fresh.buffer_map.values()) & set(func.buffer_map.values())


def test_renew_defs_of_symbols_that_only_expressions_of_a_shape_hold():
    @T.prim_func
    def func(a: T.handle, b: T.handle, n: T.int64):
        m, s = T.int64(), T.int64()
        A = T.match_buffer(a, (m * 2 + n,), strides=(s * 4,))
        B = T.match_buffer(b, (m, 2), strides=(s, 1))
        for i, j in T.grid(m, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * 2 + vj]

    fresh = renew_defs(func)
    assert structural_equal(func, fresh)
    assert not set(collect(func, Var)) & set(collect(fresh, Var))


def test_redefined_replaces_in_one_walk_what_substitute_would():
    n, extra = Var("n", "int32"), decl_buffer((8,), "float32", "T")
    a = decl_buffer((8,), "float32", "A")
    inside = [
        BufferStore(extra, a[n] + a[I], [n]),
        For(I, n, op.const(8), ForKind.SERIAL, BufferStore(a, extra[I] * 2.0, [I + n])),
        BufferStore(a, op.const(0.0), [op.const(0)]),
    ]
    body = DeclBuffer(extra, SeqStmt(inside))
    stmt = Allocate(extra.data, "float32", [op.const(8)], op.const(True, "bool"), body)
    copy = redefined(stmt, {n: op.const(3)})
    assert structural_equal(copy, substitute(redefined(stmt), {n: op.const(3)}), True)
    assert n not in collect(copy, Var)
    assert copy.buffer_var is not stmt.buffer_var
    assert copy.body.body.seq[1].loop_var is not I
    assert copy.body.body.seq[2] is inside[2]
