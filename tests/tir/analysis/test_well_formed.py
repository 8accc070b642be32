from __future__ import annotations

import pytest

from weft.ir.expr import IntImm
from weft.ir.module import IRModule
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.analysis.undefined_vars import undefined_vars
from weft.tir.analysis.verify_well_formed import verify_ssa, verify_well_formed
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Let, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, Evaluate, LetStmt, seq


def test_matmul_is_well_formed(programs):
    assert verify_well_formed(programs.matmul())
    assert verify_well_formed(IRModule({"main": programs.matmul()}))
    assert verify_ssa(programs.matmul())


def test_undefined_variable_is_named(programs):
    a, free = decl_buffer((8,), "float32", "A"), Var("free", "int32")
    func = PrimFunc([a], BufferStore(a, op.const(0.0, "float32"), [free]))
    assert not verify_well_formed(func, assert_mode=False)
    with pytest.raises(IRValueError, match="variable free is used without a definition"):
        verify_well_formed(func)


def test_use_after_the_scope_is_named(programs):
    a, i = decl_buffer((8,), "float32", "A"), Var("i", "int32")
    store = BufferStore(a, op.const(0.0, "float32"), [i])
    with pytest.raises(IRValueError, match="variable i is used after the end of its scope"):
        verify_well_formed(PrimFunc([a], seq(programs.loop(i, 8, store), store)))


def test_one_variable_for_two_loops_is_refused(programs):
    a, i = decl_buffer((8,), "float32", "A"), Var("i", "int32")
    loop = programs.loop(i, 8, BufferStore(a, op.const(0.0, "float32"), [i]))
    func = PrimFunc([a], seq(loop, loop))
    assert not verify_ssa(func)
    with pytest.raises(IRValueError, match="variable i is defined in two places"):
        verify_well_formed(func)
    nested = PrimFunc([a], programs.loop(i, 8, loop))
    with pytest.raises(IRValueError, match="variable i is defined twice in nested scopes"):
        verify_well_formed(nested)


def test_loop_variable_inside_a_block_with_axes_is_refused(programs):
    a, i = decl_buffer((8,), "float32", "A"), Var("i", "int32")
    axis = programs.axis("vi", 8)
    block = Block([axis], [], [], "B", BufferStore(a, op.const(0.0, "float32"), [i]))
    realize = BlockRealize([i], IntImm("bool", 1), block)
    with pytest.raises(IRValueError, match="used inside the non-opaque block B"):
        verify_well_formed(PrimFunc([a], programs.loop(i, 8, realize)))


def test_symbolic_shape_defines_its_variable(programs):
    n, i = Var("n", "int32"), Var("i", "int32")
    a = decl_buffer((n,), "float32", "A")
    body = programs.loop(i, n, BufferStore(a, op.const(0.0, "float32"), [i]))
    assert verify_well_formed(PrimFunc([a], body))


def test_undefined_vars_in_order_of_use():
    x, y, z = (Var(name, "int32") for name in "xyz")
    assert list(undefined_vars(Let(x, y, x + z))) == [y, z]
    assert list(undefined_vars(y + z, [z])) == [y]
    statement = LetStmt(x, op.const(1), Evaluate(x + y))
    assert list(undefined_vars(statement)) == [y]


def test_undefined_vars_counts_buffer_data(programs):
    a, i = decl_buffer((8,), "float32", "A"), Var("i", "int32")
    loop = programs.loop(i, 8, BufferStore(a, op.const(0.0, "float32"), [i]))
    assert list(undefined_vars(loop)) == [a.data]


def test_the_domain_of_an_axis_may_use_a_loop():
    @T.prim_func
    def triangle(A: T.Buffer((8, 8), "int32")):
        for i in range(8):
            for j in range(i):
                with T.block("A"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(i, j)
                    A[vi, vj] = 1

    assert verify_well_formed(triangle)
