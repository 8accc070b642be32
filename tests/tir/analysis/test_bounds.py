from __future__ import annotations

import pytest

from weft.support.errors import IRIndexError
from weft.tir import op
from weft.tir.analysis.bounds import (
    AccessStatus,
    access_bounds,
    check_bounds,
    index_data_dependence,
)
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Ramp, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, Evaluate, IfThenElse, seq

N = Var("n", "int32")


def statuses(func, name):
    return [b.status.value for b in access_bounds(func) if b.buffer.name == name]


def copy(programs, index, extent, size=16, guard=None, before=None):
    """for i in extent: C[i] = A[index(i)], perhaps under ``if guard(i)``."""
    i = Var("i", "int32")
    a, c = decl_buffer((size,), "float32", "A"), decl_buffer((size,), "float32", "C")
    body = BufferStore(c, a[index(i)], [i])
    if guard is not None:
        body = IfThenElse(guard(i), body)
    loop = programs.loop(i, extent, body)
    return PrimFunc([a, c], loop if before is None else seq(before(a, c), loop))


def test_matmul_is_proved(programs):
    found = access_bounds(programs.matmul())
    assert {b.status for b in found} == {AccessStatus.PROVED}
    assert check_bounds(programs.matmul()) == []


def test_constant_loop_past_the_end_is_refused_with_the_numbers(programs):
    func = copy(programs, lambda i: i + 1, 16)
    with pytest.raises(
        IRIndexError, match=r"index 1 to 16 is out of bounds for buffer A.* extent 16"
    ):
        check_bounds(func)


def test_negative_index_is_refused(programs):
    with pytest.raises(IRIndexError, match=r"index -2 to 13 is out"):
        check_bounds(copy(programs, lambda i: i - 2, 16))


def test_condition_proves_the_access(programs):
    func = copy(programs, lambda i: i + 1, 16, guard=lambda i: i < 15)
    assert check_bounds(func) == []


def test_condition_makes_a_wrong_access_unknown_not_refused(programs):
    func = copy(programs, lambda i: i + 1, 16, guard=lambda i: i < 16)
    assert statuses(func, "A") == ["unknown"]


def test_symbolic_extent_is_proved(programs):
    assert check_bounds(copy(programs, lambda i: i, N, size=N)) == []
    assert check_bounds(copy(programs, lambda i: N - 1 - i, N, size=N)) == []


def test_symbolic_extent_past_the_end_is_unknown(programs):
    assert statuses(copy(programs, lambda i: i + 1, N, size=N), "A") == ["unknown"]


def test_padded_loop_is_proved_by_its_condition(programs):
    i, j = Var("i", "int32"), Var("j", "int32")
    a = decl_buffer((N,), "float32", "A")
    store = BufferStore(a, op.const(0.0, "float32"), [i * 4 + j])
    body = IfThenElse(i * 4 + j < N, store)
    loops = programs.loop(i, op.floordiv(N + 3, 4), programs.loop(j, 4, body))
    assert check_bounds(PrimFunc([a], loops)) == []


def test_assume_proves_what_follows(programs):
    m = Var("m", "int32")
    i = Var("i", "int32")
    a = decl_buffer((16,), "float32", "A")
    loop = programs.loop(i, m, BufferStore(a, op.const(0.0, "float32"), [i]))
    assert statuses(PrimFunc([a, m], loop), "A") == ["unknown"]
    assumed = seq(Evaluate(op.assume(m <= 16)), loop)
    assert statuses(PrimFunc([a, m], assumed), "A") == ["proved"]


def test_gather_is_unknown_and_listed_as_data_dependent(programs):
    i = Var("i", "int32")
    a, index = decl_buffer((8,), "float32", "A"), decl_buffer((16,), "int32", "I")
    c = decl_buffer((16,), "float32", "C")
    func = PrimFunc([a, index, c], programs.loop(i, 16, BufferStore(c, a[index[i]], [i])))
    assert [b.buffer.name for b in index_data_dependence(func)] == ["A"]
    assert statuses(func, "A") == ["unknown"]


def test_condition_on_data_is_no_proof(programs):
    """A store in the branch may change the data."""
    i = Var("i", "int32")
    a, index = decl_buffer((8,), "float32", "A"), decl_buffer((16,), "int32", "I")
    inside = op.all(index[i] >= 0, index[i] < 8)
    change = BufferStore(index, op.const(99), [i])
    body = IfThenElse(inside, seq(change, BufferStore(a, op.const(0.0, "float32"), [index[i]])))
    assert statuses(PrimFunc([a, index], programs.loop(i, 16, body)), "A") == ["unknown"]


def test_vector_access_is_judged_at_both_ends(programs):
    i = Var("i", "int32")
    a, c = decl_buffer((16,), "float32", "A"), decl_buffer((16,), "float32", "C")
    ramp = Ramp(i * 4, op.const(1), op.const(4))
    good = programs.loop(i, 4, BufferStore(c, a[ramp], [ramp]))
    assert check_bounds(PrimFunc([a, c], good)) == []
    i = Var("i", "int32")
    ramp = Ramp(i * 4, op.const(1), op.const(4))
    bad = programs.loop(i, 5, BufferStore(c, a[ramp], [ramp]))
    with pytest.raises(IRIndexError, match="index 0 to 19"):
        check_bounds(PrimFunc([a, c], bad))


def test_if_then_else_guards_its_branch(programs):
    i = Var("i", "int32")
    a, c = decl_buffer((16,), "float32", "A"), decl_buffer((18,), "float32", "C")
    value = op.if_then_else(op.all(i >= 1, i < 17), a[i - 1], op.const(0.0, "float32"))
    assert check_bounds(PrimFunc([a, c], programs.loop(i, 18, BufferStore(c, value, [i])))) == []


def test_small_type_index_is_bounded_by_its_type(programs):
    i = Var("i", "int32")
    table, index = decl_buffer((256,), "float32", "T"), decl_buffer((16,), "uint8", "I")
    c = decl_buffer((16,), "float32", "C")
    body = BufferStore(c, table[index[i].astype("int32")], [i])
    assert statuses(PrimFunc([table, index, c], programs.loop(i, 16, body)), "T") == ["proved"]
