"""Random operators by their default schedules: as written, scheduled, lowered and native agree.

``make test`` runs one of every kind; ``make fuzz MINUTES=30`` runs new ones.
"""

from __future__ import annotations

import itertools
import os
import random
import time

import pytest

from tests.lib.random_operators import KINDS, problem_of, random_operator
from weft.backends.cpu.schedules import default
from weft.testing import schedules

pytestmark = pytest.mark.sampled(3)

MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))
SHARE = 1 / 6
"""Of the minutes: the other fuzzers have the rest."""
SEED = 5


@pytest.mark.parametrize("kind", KINDS)
def test_default_schedules_keep_the_meaning(kind):
    problem = problem_of(kind, SEED)
    assert problem is None, problem


def test_a_sum_of_one_product_whose_rows_join():
    """A convolution of one pixel and one channel, its image padded: nothing is left to tile."""
    assert problem_of("convolution", 501084297752) is None


def test_a_seed_gives_the_same_operator():
    one, other = (random_operator("convolution", 3) for _ in range(2))
    assert one.func.script() == other.func.script()
    assert (str(one.target), one.sizes) == (str(other.target), other.sizes)


def test_a_wrong_schedule_is_found(monkeypatch):
    """A loop that is cut without its guard writes past the end."""

    def wrong(sch, result, machine):
        sch.split(sch.get_loops(result)[0], [None, 4], disable_predication=True)
        return True

    monkeypatch.setattr(default.elementwise, "schedule", wrong)
    found = [problem_of("element-wise", seed) for seed in range(8)]
    assert any("element-wise" in problem for problem in found if problem is not None)


def test_a_wrong_result_in_place_is_found(monkeypatch):
    """Results written over the first argument, whether or not the kernel reads it elsewhere."""
    monkeypatch.setattr(schedules, "overwritable_arguments", lambda func: (0,))
    assert problem_of("norm", SEED) is not None


@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_new_seeds():
    end = time.monotonic() + 60 * MINUTES * SHARE
    start = random.SystemRandom().randrange(1 << 40)
    count, failures = 0, []
    for seed, kind in ((seed, kind) for seed in itertools.count(start) for kind in KINDS):
        if time.monotonic() > end:
            break
        count += 1
        problem = problem_of(kind, seed)
        if problem is not None:
            failures.append((kind, seed))
            print(problem, flush=True)  # noqa: T201 - what the fuzzer is for
    assert not failures, f"{len(failures)} of {count} operators: {failures}"
