from __future__ import annotations

import pytest

from weft import tir
from weft.ir.expr import IntImm
from weft.script import from_source
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.analysis.buffer_access_lca import detect_buffer_access_lca
from weft.tir.analysis.purity import assert_pure_function, is_pure_function
from weft.tir.analysis.resources import calculate_allocated_bytes, count_flops, estimate_tir_flops
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, Evaluate, For, seq


def test_flops_of_a_matmul(programs):
    assert estimate_tir_flops(programs.matmul(16)) == 2 * 16**3


def test_a_schedule_adds_no_flops(programs):
    schedule = tir.Schedule(programs.matmul(16))
    [block] = schedule.get_child_blocks(schedule.get_block("root"))
    for loop in schedule.get_loops(block):
        schedule.split(loop, [None, 4])
    assert estimate_tir_flops(schedule.mod) == 2 * 16**3


def test_tails_of_split_loops_do_nothing(programs):
    schedule = tir.Schedule(programs.matmul(18))
    [block] = schedule.get_child_blocks(schedule.get_block("root"))
    for loop in schedule.get_loops(block):
        schedule.split(loop, [None, 16])
    assert estimate_tir_flops(schedule.mod) == 2 * 18**3


def test_where_an_image_ends_is_no_arithmetic():
    func = from_source("""
@T.prim_func
def f(x: T.Buffer((8,), "float32"), y: T.Buffer((10,), "float32")):
    for i in range(10):
        y[i] = T.if_then_else(1 <= i and i < 9, x[i - 1], T.float32(0)) * T.float32(2)
""")
    assert estimate_tir_flops(func) == 10


def test_flops_of_a_symbolic_loop_is_an_error(programs):
    n, i = Var("n", "int64"), Var("i", "int64")
    a = decl_buffer((n,), "float32", "A")
    body = programs.loop(i, n, BufferStore(a, a[i] + a[i], [i]))
    with pytest.raises(IRValueError, match="extent of loop i is not bounded"):
        estimate_tir_flops(PrimFunc([a], body))


def test_flops_of_symbolic_loops_are_an_expression(programs):
    n, i, j = Var("n", "int64"), Var("i", "int64"), Var("j", "int64")
    a = decl_buffer((n,), "float32", "A")
    inner = programs.loop(j, IntImm("int64", 3), BufferStore(a, a[i] + a[j], [i]))
    func = PrimFunc([a], programs.loop(i, n, inner))
    assert str(count_flops(func, [n])) == "n * T.int64(3)"
    known = func.specialize({func.params[0]: decl_buffer((5,), "float32", "A")})
    assert count_flops(known, []) == estimate_tir_flops(known) == 15
    with pytest.raises(IRValueError, match="extent of loop i is not bounded"):
        count_flops(func, [])


def test_allocated_bytes_by_scope(programs):
    local = decl_buffer((16, 4), "float32", "L", scope="shared")
    a = decl_buffer((16,), "float32", "A")
    body = BufferStore(a, op.const(0.0, "float32"), [0])
    root = Block([], [], [], "root", body, alloc_buffers=[local])
    func = PrimFunc([a], BlockRealize([], IntImm("bool", 1), root))
    assert calculate_allocated_bytes(func) == {"main": {"shared": 256}}


def test_purity(programs):
    assert not is_pure_function(programs.matmul())
    with pytest.raises(IRValueError, match="writes to the buffer C"):
        assert_pure_function(programs.matmul())
    x = Var("x", "int32")
    assert is_pure_function(PrimFunc([x], Evaluate(x + 1)))
    with pytest.raises(IRValueError, match=r"calls tir\.call_extern"):
        assert_pure_function(PrimFunc([x], Evaluate(Call("int32", "call_extern", ["f", x]))))


def test_access_lca(programs):
    func = programs.matmul()
    a, b, c = (func.buffer_map[p] for p in func.params)
    found = detect_buffer_access_lca(func)
    assert found[a].name_hint == found[b].name_hint == found[c].name_hint == "C"


def test_access_lca_is_the_common_loop(programs):
    i, j, k = (Var(name, "int32") for name in "ijk")
    a, c = decl_buffer((8, 8), "float32", "A"), decl_buffer((8, 8), "float32", "C")
    first = programs.loop(j, 8, BufferStore(a, op.const(0.0, "float32"), [i, j]))
    second = programs.loop(k, 8, BufferStore(c, BufferLoad(a, [i, k]), [i, k]))
    func = PrimFunc([a, c], programs.loop(i, 8, seq(first, second)))
    found = detect_buffer_access_lca(func)
    assert isinstance(found[a], For)
    assert found[a].loop_var is i
    assert found[c].loop_var is k
