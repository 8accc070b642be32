"""Damaged files and texts load, or are refused by a TVMError of at most ten lines.

Programs as JSON, traces of schedules, ``.weft`` files (bytes; JSON with right digests; what
describes native code), ONNX models (bytes and fields) and scripts are damaged by seed in processes
of their own (tests/fuzz/hostile_worker.py). What still loads is compiled, or called. Signals,
hangs, bare exceptions and faults of weft are failures, each with its seed:

    python -c "from tests.fuzz.hostile_batches import *; print(run_batch('texts', 1131, 1))"

``make test`` tries a few of each, ``make slow`` 1,000, ``make fuzz MINUTES=30`` new ones.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.fuzz import hostile_batches
from tests.fuzz.hostile_batches import run_batch

KINDS = (
    "ir_json", "trace", "texts", "artifact_bytes", "artifact_json", "artifact_interface",
    "onnx_bytes", "onnx_fields",
)  # fmt: skip
"""Beside these the long run has the models of ONNX's own tests, which take a minute to collect."""
FEW, MANY = 12, 1000
MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))
SHARE = 1 / 4
"""Of the minutes: the other fuzzers have the rest."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_of_each_kind(kind):
    found = run_batch(kind, 0, FEW)
    assert not found.problems, str(found)
    assert sum(found.outcomes.values()) == FEW


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "onnx_suite"])
def test_a_thousand_of_each_kind(kind):
    found = run_batch(kind, FEW, MANY)
    print(kind, found, flush=True)  # noqa: T201 - the counts are what the run is for
    assert not found.problems, str(found)
    assert sum(found.outcomes.values()) == MANY
    assert found.outcomes["refused"] < MANY  # some still say something


@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_new_seeds():
    end = time.monotonic() + 60 * MINUTES * SHARE
    first, problems = random.SystemRandom().randrange(1 << 40), []
    while time.monotonic() < end:
        for kind in KINDS:
            found = run_batch(kind, first, 40)
            print(kind, first, found, flush=True)  # noqa: T201 - what the fuzzer is for
            problems += [(kind, seed) for seed in found.problems]
        first += 40
    assert not problems


DYING = """
import json, os, signal, sys
first, count = int(sys.argv[2]), int(sys.argv[3])
for seed in range(first, first + count):
    print(json.dumps({"seed": seed}), flush=True)
    if seed == 11:
        os.kill(os.getpid(), signal.SIGSEGV)
    problem = "ValueError" if seed == 13 else ""
    print(json.dumps({"seed": seed, "outcome": "refused", "problem": problem}), flush=True)
"""


def test_a_signal_and_a_bare_exception_are_findings_with_their_seed(monkeypatch, tmp_path):
    worker = tmp_path / "dying_worker.py"
    worker.write_text(DYING, encoding="utf-8")
    monkeypatch.setattr(hostile_batches, "WORKER", (str(worker),))
    found = run_batch("texts", 10, 5)
    assert found.outcomes == {"refused": 4, "died": 1}
    assert sorted(found.problems) == [11, 13]
    assert "the process ended with -11" in found.problems[11]


def test_a_worker_that_cannot_start_is_a_finding(monkeypatch, tmp_path):
    monkeypatch.setattr(hostile_batches, "WORKER", (str(tmp_path / "missing.py"),))
    found = run_batch("texts", 0, 2)
    assert sorted(found.problems) == [0, 1]
    assert "No such file" in found.problems[0]
