"""Which instruction sets code for a target may use."""

from __future__ import annotations

import itertools

import pytest

from weft.backends.cpu.isa import ARCHITECTURES, host_system
from weft.backends.cpu.isa.features import is_instruction_set
from weft.backends.cpu.isa.x86 import X86_64
from weft.codegen.llvm.worker import target_machine
from weft.support.llvm_binding import binding
from weft.target.features import required_features
from weft.target.host import host_cpu, host_features, llvm_options, vector_bits
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


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda row: row.name)
def test_the_processors_of_the_tables_are_made_of_instruction_sets(architecture):
    for names in architecture.processors.values():
        assert len(set(names)) == len(names)
        assert all(is_instruction_set(architecture, name) for name in names)
        if architecture.name == host_system()[0]:
            assert set(names) <= set(host_features())


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda row: row.name)
def test_llvm_knows_every_processor_and_feature_of_the_tables(architecture, capfd):
    names = {*architecture.processors, *architecture.wide_processors}
    features = {*architecture.needs, *itertools.chain(*architecture.processors.values())}
    features.update(*[needs.split() for needs in architecture.needs.values()])
    for cpu in sorted(names):
        target_machine(binding(), f"{architecture.name}-linux-gnu", cpu, "", 0)
    text = ",".join([f"+{name}" for name in sorted(features)])
    target_machine(binding(), f"{architecture.name}-linux-gnu", "generic", text, 0)
    assert "is not a recognized" not in capfd.readouterr().err


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda row: row.name)
def test_what_a_table_asks_for_is_something_that_processors_have(architecture):
    known = {*architecture.needs, *itertools.chain(*architecture.processors.values())}
    rows = [*architecture.vectors, *architecture.masked, *architecture.looks_up]
    rows += itertools.chain(*architecture.dot_products.values())
    rows += [
        *architecture.intrinsic_needs,
        ("", architecture.fuses or ""),
        ("", architecture.rich or ""),
    ]
    for _, needed in rows:
        assert set(needed.replace("+", " ").split()) <= known
    for intrinsic in architecture.intrinsics.values():
        assert intrinsic.name.startswith(architecture.prefix)


def test_code_for_aarch64_needs_what_its_processor_is_known_to_have():
    text = "llvm -mtriple=aarch64-linux-gnu"
    assert required(text) == ("fp-armv8", "neon")
    assert "dotprod" in required(f"{text} -mcpu=neoverse-n1")
    assert required(f"{text} -mattr=+sve") == ("fp-armv8", "fullfp16", "neon", "sve")
    machine = machine_of(f"{text} -num-cores=1")
    assert (machine.vector_bits, machine.vector_registers, machine.masked_bits) == (128, 32, None)


def test_of_an_architecture_without_a_table_little_is_known():
    text = "llvm -mtriple=riscv64-linux-gnu -mattr=+v"
    assert required(text) == ("v",)
    assert (vector_bits(text), machine_of(text).dot_products) == (128, ())


def test_features_that_a_target_names_count():
    text = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2"
    assert "avx" in required(f"{text} -mattr=+avx")
    assert "popcnt" not in required(f"{text} -mattr=-popcnt")


@pytest.mark.parametrize("cpu", ["native", "znver4", "x86-64"])
def test_what_is_off_takes_along_what_needs_it(cpu):
    """LLVM ends the process at instructions of a set that ``-mattr`` has turned off."""
    text = f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu} -mattr="
    for name, needed in [row for row in X86_64.needs.items() if row[0] != "sse2"]:
        assert name in required(f"{text}+{name}")
        assert name not in required(f"{text}+{name},-{name}")
        for other in set(needed.split()) - {"sse", "sse2"}:
            assert {name, other} & set(required(f"{text}+{name},-{other}")) == set()


PAIRS = ("vpmaddwd", "vpmaddubsw")


@pytest.mark.parametrize(
    ("mattr", "bits", "dots"),
    [
        ("-avx512vnni", 512, PAIRS), ("-avx512bw", 512, ("vpdpbusd", "vpdpwssd")),
        ("-avx512f", 256, PAIRS), ("-fma", 256, PAIRS), ("-avx2", 128, PAIRS),
        ("-sse4.1", 128, PAIRS), ("-ssse3", 128, ("vpmaddwd",)),
    ],
)  # fmt: skip
def test_schedules_are_for_what_is_left(mattr, bits, dots):
    target = f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr={mattr}"
    assert (vector_bits(target), machine_of(target).dot_products) == (bits, dots)


def test_vectors_of_256_bits_have_dot_products_with_vl_only():
    text = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64 -vector-width=256 -mattr="
    assert machine_of(f"{text}+avx512vnni").dot_products == PAIRS
    assert machine_of(f"{text}+avx512vnni,+avx512vl").dot_products[0] == "vpdpbusd"


def test_what_every_call_needs_stays_on():
    with pytest.raises(ValueError, match="mattr: code for x86-64 needs sse2"):
        llvm_options("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64 -mattr=-sse2")


@pytest.mark.skipif(host_cpu() == "knl", reason="that is this machine")
def test_a_processor_that_is_not_in_the_table_runs_on_itself_only():
    assert "knl" not in X86_64.processors
    assert required("llvm -mcpu=knl") == ("the processor knl",)
