"""LoopPartition: before and after, hints, options, and the same results."""

from __future__ import annotations

import importlib
import random

import numpy as np
import pytest

import weft
from tests.lib.agreement import disagreement
from tests.lib.generate import random_prim_func
from weft import tir
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.ir.transform import PassContext, Sequential
from weft.script import tir as T
from weft.support.errors import PassError
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import GE, GT, LE, LT, And, Or, Var
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, For, ForKind, IfThenElse, seq
from weft.tir.transform import (
    LoopPartition,
    LowerOpaqueBlock,
    PartitionGuardedLoops,
    RemoveNoOp,
    Simplify,
)


def test_a_tail_leaves_the_main_loop_free_of_tests(becomes):
    @T.prim_func
    def before(a: T.Buffer((100,), "int32"), c: T.Buffer((100,), "int32")):
        for i, j in T.grid(15, 7):
            if i * 7 + j < 100:
                c[i * 7 + j] = a[i * 7 + j] + 1

    @T.prim_func
    def expected(a: T.Buffer((100,), "int32"), c: T.Buffer((100,), "int32")):
        for i, j in T.grid(14, 7):
            c[i * 7 + j] = a[i * 7 + j] + 1
        for j in range(2):
            c[j + 98] = a[j + 98] + 1

    becomes(Sequential([PartitionGuardedLoops(), RemoveNoOp()]), before, expected)


def test_a_parallel_loop_stays_one_loop(becomes):
    @T.prim_func
    def before(a: T.Buffer((10,), "int32"), c: T.Buffer((10,), "int32")):
        for i in T.parallel(4):
            for j in T.vectorized(3):
                if i * 3 + j < 10:
                    c[i * 3 + j] = a[i * 3 + j] + 1

    @T.prim_func
    def expected(a: T.Buffer((10,), "int32"), c: T.Buffer((10,), "int32")):
        for i in T.parallel(4):
            if i < 3:
                for j in T.vectorized(3):
                    c[i * 3 + j] = a[i * 3 + j] + 1
            else:
                c[9] = a[9] + 1

    becomes(Sequential([PartitionGuardedLoops(), RemoveNoOp()]), before, expected)


def test_a_division_of_the_loop_variable_is_solved(becomes):
    @T.prim_func
    def before(a: T.Buffer((24,), "int32"), c: T.Buffer((24,), "int32")):
        for f in range(24):
            if f // 4 * 2 < 5:
                c[f] = a[f]

    @T.prim_func
    def expected(a: T.Buffer((24,), "int32"), c: T.Buffer((24,), "int32")):
        for f in range(12):
            c[f] = a[f]

    becomes(Sequential([PartitionGuardedLoops(), RemoveNoOp()]), before, expected)


def test_conditions_on_data_stay(becomes):
    @T.prim_func
    def before(a: T.Buffer((10,), "int32"), c: T.Buffer((10,), "int32")):
        for i in range(10):
            if a[i] + i < 5:
                c[i] = 1

    becomes(PartitionGuardedLoops(), before, before)


def test_symbolic_extents():
    @T.prim_func
    def before(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        C = T.match_buffer(c, (n,), "int32")
        for i, j in T.grid((n + 7) // 8, 8):
            if i * 8 + j < n:
                C[i * 8 + j] = A[i * 8 + j] + 1

    after = PartitionGuardedLoops()(weft.IRModule({"main": before}))["main"]
    main = collect(after.body, For)[1]
    assert not collect(main, IfThenElse)
    for size in (0, 1, 7, 8, 9, 40, 43):
        given, result = np.arange(size, dtype="int32"), np.zeros(size, "int32")
        run(after, given, result)
        np.testing.assert_array_equal(result, given + 1)


def test_only_likely_conditions_by_default(becomes):
    @T.prim_func
    def before(a: T.Buffer((12,), "int32"), n: T.int32):
        for i in range(n):
            if T.likely(i < 12):
                a[i] = 1
        for i in range(14):
            if i < 12:
                a[i] = 1

    after = Simplify()(LoopPartition()(weft.IRModule({"main": before})))["main"]
    first, second = after.body.seq[0], after.body.seq[-1]
    assert not collect(first, IfThenElse)
    assert collect(second, IfThenElse)
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": True}}):
        assert LoopPartition()(weft.IRModule({"main": before})) is not None


def test_a_hint_takes_every_comparison(becomes):
    @T.prim_func
    def before(a: T.Buffer((12,), "int32")):
        for i in T.serial(12, annotations={"pragma_loop_partition_hint": 1}):
            if 8 <= i:
                a[i] = 3
            if 4 <= i and i < 8:
                a[i] = 2
            if i < 4:
                a[i] = 1

    @T.prim_func
    def expected(a: T.Buffer((12,), "int32")):
        for i in range(4):
            a[i] = 1
        for i in range(4):
            a[i + 4] = 2
        for i in range(4):
            a[i + 8] = 3

    steps = [LowerOpaqueBlock(), LoopPartition(), Simplify(), RemoveNoOp()]
    becomes(Sequential(steps), before, expected)


def test_a_hinted_loop_without_an_interval_may_unroll():
    @T.prim_func
    def before(a: T.Buffer((12,), "int32")):
        for i in T.serial(4, annotations={"pragma_loop_partition_hint": True}):
            for j in range(12):
                if i * 3 + j == 20:
                    a[j] = 1

    option = {"unroll_loop_with_partition_hint_no_interval": True}
    with PassContext(config={"tir.LoopPartition": option}):
        after = LoopPartition()(weft.IRModule({"main": before}))["main"]
    assert collect(after.body, For)[-1].kind is ForKind.UNROLLED


def test_options_are_checked():
    @T.prim_func
    def func(a: T.Buffer((12,), "int32")):
        a[0] = 1

    with PassContext(config={"tir.LoopPartition": {"partition_constant_loop": True}}):
        with pytest.raises(PassError, match="there is no option 'partition_constant_loop'"):
            LoopPartition()(weft.IRModule({"main": func}))


@pytest.mark.parametrize("seed", range(7000, 7020))
def test_random_programs_agree(seed):
    assert disagreement(random_prim_func(seed), native=False, text=False) is None


@pytest.mark.parametrize("compare", [lambda i, n: i <= n, lambda i, n: i >= n])
@pytest.mark.parametrize("extent", [0, 3])
def test_a_cut_outside_of_the_range_runs_nothing_else(compare, extent):
    n, i = tir.Var("n", "int32"), tir.Var("i", "int32")
    a = tir.decl_buffer((16,), "int32", "a")
    stores = [tir.BufferStore(a, value, [i + 8]) for value in (1, 2)]
    body = tir.SeqStmt([tir.IfThenElse(compare(i, n), stores[0]), *stores[1:]])
    marked = {"pragma_loop_partition_hint": True}
    loop = tir.For(i, -1, extent, ForKind.SERIAL, body, annotations=marked)
    func = tir.PrimFunc([n, a], loop)
    parted = LoopPartition()(weft.IRModule({"main": func}))["main"]
    for value in range(-6, 7):
        results = [np.zeros(16, "int32") for _ in range(2)]
        run(func, value, results[0])
        run(parted, value, results[1])
        np.testing.assert_array_equal(*results)


def guarded_program(seed):
    """Two loops around one or two branches on random comparisons, some with a symbol."""
    pick = random.Random(seed)
    i, j, n = Var("i", "int32"), Var("j", "int32"), Var("n", "int32")
    target = decl_buffer((8, 8), "int32", "A")
    body = []
    for _ in range(pick.randint(1, 2)):
        condition = None
        for _ in range(pick.randint(1, 2)):
            left = i * pick.randint(-3, 3) + j * pick.randint(-3, 3) + pick.randint(-9, 20)
            if pick.random() < 0.3:
                left = op.floordiv(left, pick.choice((2, 3, -2)))
            right = n * pick.randint(-1, 2) if pick.random() < 0.5 else op.const(3, "int32")
            part = pick.choice((LT, LE, GT, GE))(left, right)
            condition = part if condition is None else pick.choice((And, Or))(condition, part)
        value = BufferLoad(target, [i, j]) * 3 + pick.randint(1, 5)
        other = BufferStore(target, value + 7, [i, j]) if pick.random() < 0.4 else None
        body.append(IfThenElse(condition, BufferStore(target, value, [i, j]), other))
    kind = pick.choice((ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED))
    inner = For(j, pick.randint(0, 2), pick.randint(1, 6), ForKind.SERIAL, seq(*body))
    extent = pick.choice((op.const(7, "int32"), op.minimum(op.maximum(n, 0), 8)))
    return PrimFunc([target, n], For(i, 0, extent, kind, inner))


@pytest.mark.parametrize("seed", range(60))
def test_random_guards_keep_their_meaning(seed):
    before = guarded_program(seed)
    after = PartitionGuardedLoops()(weft.IRModule({"main": before}))["main"]
    for size in (-3, 0, 1, 5, 8, 30):
        given = np.arange(64, dtype="int32").reshape(8, 8)
        results = [given.copy(), given.copy()]
        run(before, results[0], size)
        run(after, results[1], size)
        np.testing.assert_array_equal(*results)


def test_conditions_that_fail_outside_of_the_middle_leave_nothing_there():
    """A bound that an outer loop decides: before and after it one condition is known to fail."""

    @T.prim_func
    def before(a: T.Buffer((7,), "int32"), c: T.Buffer((4,), "int32")):
        for row in T.parallel(4):
            for step in range(3):
                if 1 <= row * 2 + step and row * 2 + step < 8:
                    c[row] = c[row] + a[row * 2 + step - 1]

    passes = Sequential([PartitionGuardedLoops(), RemoveNoOp()])
    after = passes(weft.IRModule({"main": before}))["main"]
    steps = [loop for loop in collect(after.body, For) if loop.kind is ForKind.SERIAL]
    assert len(steps) == 2  # of the rows in the middle, and of the first and the last
    assert not [test for loop in steps for test in collect(loop, IfThenElse)]
    results = [np.zeros(4, "int32") for _ in range(2)]
    for func, result in zip((before, after), results, strict=True):
        run(func, np.arange(1, 8, dtype="int32"), result)
    np.testing.assert_array_equal(*results)


def test_a_window_that_slides_over_a_border_is_cut_and_its_rows_are_not(becomes):
    """Each row decides about other steps, so cuts of the rows would copy the loops in them."""

    @T.prim_func
    def before(a: T.Buffer((20, 6), "int32"), c: T.Buffer((20,), "int32")):
        for row in range(20):
            for step in range(3):
                for column in range(6):
                    if 1 <= row + step and row + step < 21:
                        c[row] = c[row] + a[row + step - 1, column]

    @T.prim_func
    def expected(a: T.Buffer((20, 6), "int32"), c: T.Buffer((20,), "int32")):
        for row in range(20):
            for step, column in T.grid(21 - T.max(row, 18) - T.max(1 - row, 0), 6):
                c[row] = c[row] + a[row + step + T.max(1 - row, 0) - 1, column]

    becomes(Sequential([PartitionGuardedLoops(), RemoveNoOp()]), before, expected)


def test_a_vector_loop_is_cut_though_other_cuts_have_used_up_the_growth(becomes, monkeypatch):
    """With a condition for each lane it would be scalar."""

    @T.prim_func
    def before(a: T.Buffer((50,), "int32"), c: T.Buffer((50,), "int32")):
        for i in range(2):
            if i < 1:
                for k in T.vectorized(32):
                    c[k] = a[k] + 1
            else:
                for k in T.vectorized(32):
                    if k < 18:
                        c[k + 32] = a[k + 32] + 1

    @T.prim_func
    def expected(a: T.Buffer((50,), "int32"), c: T.Buffer((50,), "int32")):
        for i in range(2):
            if i < 1:
                for k in T.vectorized(32):
                    c[k] = a[k] + 1
            else:
                for k in T.vectorized(18):
                    c[k + 32] = a[k + 32] + 1

    monkeypatch.setattr(importlib.import_module(PartitionGuardedLoops.__module__), "GROWTH", 0)
    becomes(Sequential([PartitionGuardedLoops(), RemoveNoOp()]), before, expected)


@pytest.mark.parametrize("kind", [T.serial, T.parallel])
def test_a_loop_whose_hint_says_no_is_not_cut(kind):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i in kind(4, annotations={"pragma_loop_partition_hint": 0}):
            for j in range(8):
                c[i, j] = T.if_then_else(1 <= i and 2 <= j, a[i - 1, j], 0)

    after = lower_tir()(weft.IRModule({"main": before}))["main"]
    loops = sorted(int(loop.extent) for loop in collect(after.body, For))
    assert loops == [2, 4, 6]  # the columns are cut, not the rows


def test_a_bound_with_a_call_in_it_is_counted():
    @T.prim_func
    def before(n: T.int32, m: T.int32, a: T.Buffer((16,), "int32")):
        for i in range(T.if_then_else(4 < n, m, 3)):
            if i * 2 + 1 < m and i < 16:
                a[i] = 1

    a = np.zeros(16, "int32")
    after = lower_tir()(weft.IRModule({"main": before}))["main"]
    run(after, 5, 8, a)
    assert a.tolist() == [1] * 4 + [0] * 12


@pytest.mark.no_round_trip  # a text has no two loops of one variable
def test_a_loop_inside_of_another_may_have_its_variable():
    a, c = decl_buffer((8,), "int32", "a"), decl_buffer((24,), "int32", "c")
    i = Var("i", "int32")
    add = BufferStore(c, BufferLoad(c, [i]) + 1, [i])
    inner = For(i, 0, 24, ForKind.SERIAL, IfThenElse(i < 20, add))
    kept = IfThenElse(op.logical_and(i < 3, i > 0), seq(inner, BufferStore(a, i, [i])))
    func = PrimFunc([a, c], For(i, 0, 8, ForKind.SERIAL, kept))
    results = [(np.zeros(8, "int32"), np.zeros(24, "int32")) for _ in range(2)]
    run(func, *results[0])
    weft.build(func)(*results[1])
    assert results[0][0].tolist() == [0, 1, 2, 0, 0, 0, 0, 0]
    assert results[0][1].tolist() == [2] * 20 + [0] * 4
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_loop_whose_extent_the_body_changes_is_not_cut():
    @T.prim_func
    def before(a: T.Buffer((16,), "int64"), c: T.Buffer((4,), "int64")):
        for i in range(T.min(a[2], T.int64(9))):
            if i < T.int64(5):
                a[i] = T.if_then_else(i < T.int64(3), c[i], T.int64(0))

    results = [np.array([2, 3, 7] + [1] * 13) for _ in range(2)]
    after = lower_tir()(weft.IRModule({"main": before}))["main"]
    for func, a in zip((before, after), results, strict=True):
        run(func, a, np.arange(4))
    assert results[0].tolist() == [0, 1, 2, 0, 0] + [1] * 11
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("number", [-128, -3, 0, 3, 4, 5, 6, 7, 127])
def test_a_loop_of_negative_extent_has_no_parts(number):
    @T.prim_func
    def before(p: T.int8, a: T.Buffer((3,), "int32"), c: T.Buffer((3,), "int32")):
        for i in range(T.Cast("int32", p) - 4):
            if i < 3 and i - 1 >= 0:
                a[i] = c[i - 1]
            if i < 1:
                a[i // 2] = c[i]

    results = [np.zeros(3, "int32") for _ in range(2)]
    after = lower_tir()(weft.IRModule({"main": before}))["main"]
    for func, a in zip((before, after), results, strict=True):
        run(func, number, a, np.arange(5, 8, dtype="int32"))
    np.testing.assert_array_equal(*results)


def test_a_loop_is_cut_around_one_whose_bound_is_defined_inside():
    """The number of joined rows has a name of its own in each iteration."""

    @T.prim_func
    def before(p: T.handle):
        n = T.int64()
        b = T.match_buffer(p, (2, n, 20), "int32")
        for i in T.parallel(3):
            with T.LetStmt(n * T.int64(2)) as extent:
                for r in range(extent):
                    for j in range(8):
                        if i * 8 + j < 20:
                            b[r % 2, r // 2, i * 8 + j] = i * 8 + j

    after = PartitionGuardedLoops()(weft.IRModule({"main": before}))["main"]
    [branch] = collect(after.body, IfThenElse)
    assert [var.name for var in collect(branch.condition, Var)] == ["i"]
    for rows in (0, 2, 6):
        result = np.zeros((2, rows, 20), np.int32)
        run(after, result)
        np.testing.assert_array_equal(result, np.broadcast_to(np.arange(20), (2, rows, 20)))
