"""Plans of working memory: tensors that live at once share nothing, and no plan is wasteful."""

from __future__ import annotations

import itertools
import random
import threading

import pytest

from weft.runtime.memory.plan import (
    ALIGNMENT,
    KEPT_PLANS,
    OffsetPlanner,
    largest_live,
    plan_offsets,
)
from weft.support.errors import IRValueError


def random_tensors(rng, count):
    """Sizes in bytes, and the first and the last step of each."""
    sizes = [rng.choice([0, 1, 63, 64, 65, 256, 1000, 4096]) for _ in range(count)]
    starts = [rng.randrange(12) for _ in range(count)]
    return sizes, [(start, start + rng.choice([0, 1, 1, 2, 8])) for start in starts]


def rounded(size):
    return max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)


def test_tensors_that_live_at_once_are_apart():
    for seed in range(300):
        sizes, lives = random_tensors(random.Random(seed), seed % 12)
        offsets, total = plan_offsets(sizes, lives)
        ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
        for a, b in itertools.combinations(range(len(sizes)), 2):
            if lives[a][0] <= lives[b][1] and lives[b][0] <= lives[a][1]:
                assert ends[a] <= offsets[b] or ends[b] <= offsets[a], (seed, a, b)
        assert all(offset % ALIGNMENT == 0 for offset in offsets)
        assert max(ends, default=0) <= total


def test_a_plan_takes_between_the_largest_moment_and_the_sum():
    wasted = 0
    for seed in range(300):
        sizes, lives = random_tensors(random.Random(seed), 10)
        _, total = plan_offsets(sizes, lives)
        whole = [rounded(size) for size in sizes]
        least = largest_live(whole, lives)
        assert least <= total <= sum(whole)
        wasted += total > least
    assert wasted < 15  # the best of four orders is seldom above the bound


@pytest.mark.parametrize(
    ("sizes", "lives", "offsets", "total"),
    [
        ([], [], (), 0), ([0], [(0, 0)], (0,), 64), ([1], [(3, 3)], (0,), 64),
        ([64, 64], [(0, 1), (1, 2)], (0, 64), 128), ([64, 64], [(0, 0), (1, 1)], (0, 0), 64),
        ([100, 64, 100], [(0, 1), (1, 2), (2, 3)], (0, 128, 0), 192),
        ([64, 128, 64], [(0, 0), (0, 1), (1, 1)], (128, 0, 128), 192),
    ],
    ids=str,
)  # fmt: skip
def test_plans(sizes, lives, offsets, total):
    assert plan_offsets(sizes, lives) == (offsets, total)


@pytest.mark.parametrize(
    ("sizes", "lives", "most"),
    [([], [], 0), ([5], [(2, 2)], 5), ([5, 7], [(0, 1), (1, 2)], 12), ([5, 7], [(0, 0), (1, 1)], 7),
     ([5, 7, 1], [(0, 9), (1, 1), (2, 3)], 12)],
)  # fmt: skip
def test_the_largest_moment(sizes, lives, most):
    assert largest_live(sizes, lives) == most


def test_tensors_beyond_all_memory():
    with pytest.raises(IRValueError, match=r"tensors of less than 2\*\*56 bytes, got"):
        plan_offsets([1 << 56], [(0, 0)])
    with pytest.raises(IRValueError, match=f"got {3 << 55} bytes"):
        plan_offsets([1 << 55] * 3, [(0, 0), (1, 1), (2, 2)])


class Sizes:
    """Sizes that depend on a symbol, and how often they were asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, n):
        self.asked.append(n)
        return [n * 64, 64, n * 64]


LIVES = [(0, 1), (1, 2), (2, 3)]


def test_a_planner_plans_once_for_each_value():
    sizes = Sizes()
    planner = OffsetPlanner(sizes, LIVES)
    first, again, other = planner(2), planner(2), planner(5)
    assert first is again is not other
    assert sizes.asked == [2, 5]
    for plan, n in ((first, 2), (other, 5)):
        offsets, total = plan_offsets([n * 64, 64, n * 64], LIVES)
        assert tuple(plan.table) == offsets
        assert plan.size == total
        assert plan.address


def test_a_planner_forgets_the_plan_that_was_used_longest_ago():
    sizes = Sizes()
    planner = OffsetPlanner(sizes, LIVES)
    for n in range(KEPT_PLANS):
        planner(n)
    planner(0)
    planner(KEPT_PLANS)
    assert len(sizes.asked) == KEPT_PLANS + 1
    planner(0)
    assert len(sizes.asked) == KEPT_PLANS + 1
    planner(1)
    assert sizes.asked[-1] == 1


def test_a_plan_without_tensors():
    plan = OffsetPlanner(list, [])()
    assert (plan.size, len(plan.table)) == (0, 1)


def test_threads_get_plans_of_their_own_values():
    planner = OffsetPlanner(lambda n: [n * 64], [(0, 0)])
    wrong = []

    def work(begin):
        for n in range(begin, begin + 200):
            if planner(n % 100 + 1).size != (n % 100 + 1) * 64:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(begin,)) for begin in range(0, 200, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
