"""Which instruction sets code for a target may use."""

from __future__ import annotations

import itertools

import pytest

from weft.target import features
from weft.target.features import PROCESSORS, required_features
from weft.target.host import _X86_CPUS, host_cpu, host_features, llvm_options


def required(text):
    return required_features(llvm_options(text))


def test_code_for_this_machine_needs_what_it_has():
    found = required("llvm")
    assert found == required(f"llvm -mcpu={host_cpu()}")
    assert set(found) <= {name for name, on in host_features().items() if on}
    assert list(found) == sorted(found)


def test_the_levels_of_x86_64_hold_each_other():
    levels = [set(required(f"llvm -mcpu=x86-64{level}")) for level in ("", "-v2", "-v3", "-v4")]
    assert levels[0] == set()
    for lower, higher in itertools.pairwise(levels):
        assert lower < higher
    assert {"avx2", "fma"} <= levels[2]
    assert "avx512f" not in levels[2]


def test_every_processor_of_the_table_is_one_that_a_target_may_name():
    assert set(PROCESSORS) <= _X86_CPUS
    for names in PROCESSORS.values():
        assert len(set(names)) == len(names)
        assert all(features._INSTRUCTIONS.match(name) for name in names)
        assert set(names) <= set(host_features())


def test_features_that_a_target_names_count():
    text = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2"
    assert "avx" in required(f"{text} -mattr=+avx")
    assert "popcnt" not in required(f"{text} -mattr=-popcnt")


@pytest.mark.skipif(host_cpu() == "knl", reason="that is this machine")
def test_a_processor_that_is_not_in_the_table_runs_on_itself_only():
    assert "knl" not in PROCESSORS
    assert required("llvm -mcpu=knl") == ("the processor knl",)
