"""Random programs that reach for memory: none that is built reads or writes outside of its own.

``make test`` runs fixed seeds in a process of their own. ``make fuzz MINUTES=30`` runs new ones and
prints the seed of each failure. Whether the hunt finds anything is tested too: with a check of code
generation taken out, it must.
"""

from __future__ import annotations

import os
import random
import time

import numpy as np
import pytest

from tests.lib.guarded_memory import GuardedMemory
from tests.lib.memory_safety import hunt
from tests.lib.random_memory import random_memory_program

MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))
BLOCK = 30

_TESTS = "from weft.tir.lowering import access_tests\n"
_INSERTS = "from weft.tir.lowering import insert_checks\n"
PLANTED = {
    "indices": (5000, f"{_TESTS}access_tests._tests_of_ends = lambda *args: ()"),
    "lanes": (21120, f"{_TESTS}access_tests.is_on_axis = lambda *args: True"),
    "views": (5000, f"{_INSERTS}insert_checks.view_test = lambda *args: None"),
    "calls": (5040, f"{_INSERTS}insert_checks._InsertChecks._callee = lambda *args: (None, 0)"),
}
"""A check -> the seed from which on its absence shows soon, and Python that takes it out."""


@pytest.mark.parametrize("block", range(2))
def test_no_program_leaves_its_memory(block):
    findings = hunt(block * BLOCK, BLOCK)
    assert not findings.failures, "\n".join(findings.failures)
    assert findings.counts["built"] > 5


@pytest.mark.parametrize("check", PLANTED)
def test_a_check_that_is_gone_is_found(check):
    first, planted = PLANTED[check]
    assert any(hunt(start, 6, planted).failures for start in range(first, first + 900, 6))


def test_the_same_seed_gives_the_same_program():
    one, other = [random_memory_program(7).module.script() for _ in range(2)]
    assert one == other


def test_programs_cover_what_reaches_memory():
    text = "\n".join(random_memory_program(seed).module.script() for seed in range(120))
    words = (
        "T.match_buffer T.unroll T.vectorized T.parallel T.LetStmt T.decl_buffer T.Buffer( "
        "T.alloc_buffer T.allocate elem_offset= strides= T.Ramp T.truncmod T.if_then_else T.Select "
        "T.address_of access_ptr .data) while assert tir.noalias bfloat16 int8 T.bool callee0("
    )
    for word in words.split():
        assert word in text, word


def test_guarded_memory_shows_what_changed_around_it():
    memory = GuardedMemory(2)
    placed = memory.place(1, 24, True)
    array = memory.array(placed, (2, 3), np.dtype("float32"), (12, 4))
    array[...] = 5
    assert memory.damage(placed) == []
    memory.array(placed, (1,), np.dtype("int8"), (1,), -3)[0] = 1
    assert memory.damage(placed) == [-3]


@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_new_seeds():
    end = time.monotonic() + 60 * MINUTES / 6  # the other fuzzers have the rest
    start = random.SystemRandom().randrange(1 << 40)
    count, failures = 0, []
    while time.monotonic() < end:
        findings = hunt(start + count, 100)
        count += 100
        failures += findings.failures
        counts = ", ".join([f"{number} {name}" for name, number in findings.counts.items()])
        print("\n".join([*findings.failures, counts]), flush=True)  # noqa: T201 - a fuzzer reports
    assert not failures, f"{len(failures)} failures in {count} programs from seed {start}"
