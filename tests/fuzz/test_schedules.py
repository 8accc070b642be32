"""Random schedules: what a primitive accepts keeps the meaning, the trace makes it again.

``make test`` runs fixed seeds for a minute at most; ``make fuzz MINUTES=30`` runs new ones for that
long. A failing schedule is printed as the shortest program that shows it, and saved.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

import weft
from tests.lib.random_schedules import (
    CHOOSERS,
    Move,
    problem_of,
    random_schedule,
    report,
    script,
    shrunk,
)
from tests.lib.random_workloads import KINDS, random_workload
from weft.tir.schedule.schedule import Schedule

pytestmark = [
    pytest.mark.sampled(3),
    pytest.mark.no_replay("problem_of replays each schedule that the fuzzer makes"),
]

BLOCK = 25
MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))


@pytest.mark.parametrize("block", range(3))
def test_schedules_keep_the_meaning(block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        failure = report(seed)
        assert failure is None, failure


def test_a_seed_gives_the_same_schedule():
    assert random_schedule(11)[1] == random_schedule(11)[1]


@pytest.mark.slow
def test_every_primitive_and_workload_occurs():
    kinds, made = Counter(), Counter()
    for seed in range(1000, 1250):
        workload, moves, _ = random_schedule(seed)
        kinds[workload.kind] += 1
        made.update(move.primitive for move in moves)
    assert set(kinds) == set(KINDS)
    wanted = {name for name, (_, weight) in CHOOSERS.items() if weight and hasattr(Schedule, name)}
    assert wanted - set(made) <= {"rolling_buffer", "decompose_padding", "merge"}


def test_a_wrong_schedule_is_found_and_shrinks():
    """A split without its predicate writes past the end: the harmless moves go, that one stays."""
    seed = next(n for n in range(100) if "(7," in random_workload(n).func.script().split("in T")[0])
    workload = random_workload(seed)
    names = [
        line.split('"')[1] for line in workload.func.script().splitlines() if "T.block(" in line
    ]
    block = names[-1]
    harmless = [Move("annotate", block, f"block, 'key{n}', 1") for n in range(3)]
    wrong = Move("split", block, "loops[0], [None, 4], disable_predication=True")
    assert problem_of(workload, harmless) is None
    found = problem_of(workload, [*harmless, wrong])
    assert found is not None
    small = shrunk(
        workload, [*harmless[:2], wrong, harmless[2]], lambda m: problem_of(workload, m) is not None
    )
    assert small == [wrong]
    text = script(seed, small)
    with pytest.raises((AssertionError, weft.TVMError)):
        exec(compile(text, "script", "exec"), {})


@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_new_seeds():
    end = time.monotonic() + 60 * MINUTES / 3  # the other fuzzers have the rest
    start = random.SystemRandom().randrange(1 << 40)
    folder = Path(tempfile.mkdtemp(prefix="weft-schedules-"))
    count, failures = 0, []
    while time.monotonic() < end:
        seed = start + count
        count += 1
        failure = report(seed)
        if failure is not None:
            failures.append(seed)
            (folder / f"{seed}.py").write_text(failure, encoding="utf-8")
            print(failure, flush=True)  # noqa: T201 - what the fuzzer is for
        if count % 250 == 0:
            print(f"{count} schedules from {start}, {len(failures)} fail", flush=True)  # noqa: T201
    assert not failures, f"{len(failures)} of {count} schedules; the scripts are in {folder}"
