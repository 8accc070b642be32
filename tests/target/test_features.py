"""Which instruction sets code for a target may use."""

from __future__ import annotations

import itertools

import pytest

from weft.target import instruction_sets
from weft.target.features import required_features
from weft.target.host import _X86_CPUS, host_cpu, host_features, llvm_options, vector_bits
from weft.target.instruction_sets import NEEDS, PROCESSORS
from weft.target.machine import machine_of


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
        assert all(instruction_sets._INSTRUCTIONS.match(name) for name in names)
        assert set(names) <= set(host_features())


def test_features_that_a_target_names_count():
    text = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2"
    assert "avx" in required(f"{text} -mattr=+avx")
    assert "popcnt" not in required(f"{text} -mattr=-popcnt")


@pytest.mark.parametrize("cpu", ["native", "znver4", "x86-64"])
def test_what_is_off_takes_along_what_needs_it(cpu):
    """LLVM ends the process at instructions of a set that ``-mattr`` has turned off."""
    text = f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu} -mattr="
    for name, needed in [row for row in NEEDS.items() if row[0] != "sse2"]:
        assert name in required(f"{text}+{name}")
        assert name not in required(f"{text}+{name},-{name}")
        for other in set(needed.split()) - {"sse", "sse2"}:
            assert {name, other} & set(required(f"{text}+{name},-{other}")) == set()


@pytest.mark.parametrize(
    ("mattr", "bits", "dots"),
    [
        ("-avx512vnni", 512, ("vpmaddwd",)), ("-avx512bw", 512, ("vpdpbusd", "vpdpwssd")),
        ("-avx512f", 256, ("vpmaddwd",)), ("-fma", 256, ("vpmaddwd",)),
        ("-avx2", 128, ("vpmaddwd",)), ("-sse4.1", 128, ("vpmaddwd",)),
    ],
)  # fmt: skip
def test_schedules_are_for_what_is_left(mattr, bits, dots):
    target = f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr={mattr}"
    assert (vector_bits(target), machine_of(target).dot_products) == (bits, dots)


def test_vectors_of_256_bits_have_dot_products_with_vl_only():
    text = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64 -vector-width=256 -mattr="
    assert machine_of(f"{text}+avx512vnni").dot_products == ("vpmaddwd",)
    assert machine_of(f"{text}+avx512vnni,+avx512vl").dot_products[0] == "vpdpbusd"


def test_what_every_call_needs_stays_on():
    with pytest.raises(ValueError, match="mattr: code for x86-64 needs sse2"):
        llvm_options("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64 -mattr=-sse2")


@pytest.mark.skipif(host_cpu() == "knl", reason="that is this machine")
def test_a_processor_that_is_not_in_the_table_runs_on_itself_only():
    assert "knl" not in PROCESSORS
    assert required("llvm -mcpu=knl") == ("the processor knl",)
