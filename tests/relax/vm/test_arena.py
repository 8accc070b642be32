"""Places in working memory, at build and at the call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import relax
from weft.ir.expr import IntImm
from weft.relax.vm.arena import ArenaPlan, TensorLife
from weft.runtime.memory.plan import (
    ALIGNMENT,
    KEPT_PLANS,
    OffsetPlanner,
    largest_live,
    plan_offsets,
)
from weft.script import ir as I
from weft.script import relax as R
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var

INT64 = DataType("int64")
LIVES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 6), st.integers(0, 4)), max_size=12)


def life(size, first, last, name="t"):
    extent = IntImm(INT64, size) if isinstance(size, int) else size
    return TensorLife(decl_buffer((extent,), "uint8", name), extent, first, last)


@given(LIVES)
def test_plans_are_disjoint_aligned_and_not_below_the_bound(given_lives):
    sizes = [size for size, _, _ in given_lives]
    lives = [(first, first + length) for _, first, length in given_lives]
    offsets, whole = plan_offsets(sizes, lives)
    rounded = [max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT) for size in sizes]
    assert whole >= largest_live(rounded, lives)
    for one, (start, size) in enumerate(zip(offsets, sizes, strict=True)):
        assert start % ALIGNMENT == 0
        assert start + size <= whole
        for other in range(one):
            meet = lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]
            if meet and size and sizes[other]:
                end = offsets[other] + sizes[other]
                assert start + size <= offsets[other] or end <= start


@given(LIVES)
def test_the_bound_is_the_largest_sum_over_one_step(given_lives):
    sizes = [size for size, _, _ in given_lives]
    lives = [(first, first + length) for _, first, length in given_lives]
    sums = [
        sum(s for s, (a, b) in zip(sizes, lives, strict=True) if a <= step <= b)
        for step in range(12)
    ]
    assert largest_live(sizes, lives) == max(sums)


def test_tensors_share_memory_when_their_lives_do_not_meet():
    plan = ArenaPlan([life(100, 0, 1), life(100, 2, 3), life(100, 4, 5)])
    assert plan.size == 128
    assert [at.value for _, at in plan.places] == [0, 0, 0]
    assert plan.table is None


def test_symbolic_sizes_are_placed_at_the_call():
    n = Var("n", "int64")
    plan = ArenaPlan([life(n * 4, 0, 1), life(64, 1, 2)])
    assert plan.size is None
    assert [int(extent) for extent in plan.table.shape] == [2]


@pytest.mark.parametrize("lives", [[], [life(0, 0, 0)]])
def test_the_smallest_plans(lives):
    assert ArenaPlan(lives).size == ALIGNMENT * len(lives)


def test_a_planner_keeps_the_last_plans():
    asked = []

    def sizes(n):
        asked.append(n)
        return [n, n]

    planner = OffsetPlanner(sizes, [(0, 1), (1, 2)])
    first = planner(100)
    assert first.size == 256
    assert list(first.table) == [0, 128]
    assert planner(100) is first
    for n in range(KEPT_PLANS):
        planner(n)
    assert planner(100) is not first
    assert asked == [100, *range(KEPT_PLANS), 100]


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.concat([a, a], axis=1)
            c = R.nn.relu(b)
            d = R.sum(c, axis=1)
            e = R.add(a, R.expand_dims(d, 1))
            R.output(e)
        return e


def test_one_artefact_serves_all_sizes():
    executable = relax.build(Chain, "llvm")
    entry = executable.program.functions["main"].native
    assert entry.planned.symbols == ("m", "n")
    machine = relax.VirtualMachine(executable, weft.cpu())
    for n, m in [(3, 4), (1, 1), (0, 3), (5, 0), (17, 33), (3, 4)]:
        x = np.linspace(-1, 1, n * m, dtype="float32").reshape(n, m)
        expected = np.exp(x) + 2 * np.exp(x).sum(1, keepdims=True)
        np.testing.assert_allclose(machine["main"](x).numpy(), expected, rtol=1e-5)


@I.ir_module
class Bounded:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        R.func_attr({"tir_var_upper_bound": {"n": 16}})
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(a)
            c = R.exp(b)
            R.output(c)
        return c


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_upper_bounds_give_a_static_plan_and_are_checked(mode):
    executable = relax.build(Bounded, "llvm")
    entry = executable.program.functions["main"].native
    assert entry.planned is None
    assert entry.arena == 128
    machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
    x = np.zeros(16, "float32")
    np.testing.assert_allclose(machine["main"](x).numpy(), np.exp(np.exp(np.exp(x))), rtol=1e-5)
    with pytest.raises(IRValueError, match=r"main: n is 17, but memory was planned for at most 16"):
        machine["main"](np.zeros(17, "float32"))


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("limit", [(1 << 20) + 1, 1 << 40])
def test_large_upper_bounds_plan_for_the_sizes_of_a_call(mode, limit):
    """A range that a guard gives must not ask for terabytes."""
    main = Bounded["main"].with_attr("tir_var_upper_bound", {"n": limit})
    executable = relax.build(weft.IRModule({"main": main}), "llvm")
    entry = executable.program.functions["main"].native
    assert entry.planned is not None
    machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
    for n in (0, 16, 300):
        x = np.zeros(n, "float32")
        np.testing.assert_allclose(machine["main"](x).numpy(), np.exp(np.exp(np.exp(x))), rtol=1e-5)
