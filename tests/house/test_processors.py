"""Only backends name processors and instruction sets; what else does is counted, and goes down."""

from __future__ import annotations

import re
from collections import Counter

import pytest

NAMES = re.compile(
    r"x86|i386|\bsse\d?|\bavx|\bfma3|\bamx|vnni|\bneon\b|\bsve\d?\b|aarch64|arm64|\briscv|"
    r"haswell|skylake|znver|cortex|neoverse|\bapple-m\d|\bxeon\b|\bepyc\b|"
    r"vpdpbusd|vpdpwssd|vpmaddwd|\bfmla\b"
)
BACKENDS = "weft.backends"
TVM = "a name of TVM's"
# Module -> (how often it names one, why). A number that has become smaller is to be lowered here.
ALLOWED: dict[str, tuple[int, str]] = {
    "weft.cli.engines": (1, "says why a peer's own choice of type is turned off"),
    "weft.codegen.llvm.convert": (5, "one conversion by an instruction of its own: to be a row"),
    "weft.codegen.llvm.lane_loads": (2, "why gathers are loads of lanes: a comment"),
    "weft.codegen.llvm.part_vectors": (1, "how LLVM takes vectors apart: a comment"),
    "weft.compat.modules": (4, TVM),
    "weft.runtime.export.library": (1, "an example of a compiler for another system"),
    "weft.target.kinds": (4, "the tags of TVM's targets"),
    "weft.tensor_intrin": (3, TVM),
    "weft.tensor_intrin.x86": (7, TVM),
    "weft.testing": (8, TVM),
    "weft.testing.features": (34, TVM),
    "weft.tir.schedule.primitive.cache.cache_stage": (1, "the name of a scope, TVM's"),
}


def named(text: str) -> list[str]:
    """The processors and instruction sets that a text names, in any case."""
    return NAMES.findall(text.lower())


@pytest.fixture(scope="module")
def counts(weft_sources) -> Counter:
    """Module -> how often it names a processor or an instruction set."""
    counts: Counter = Counter()
    for source in weft_sources:
        if source.module != BACKENDS and not source.module.startswith(f"{BACKENDS}."):
            counts[source.module] = len(named(source.text))
    return +counts


def test_only_backends_name_processors(counts):
    more = [
        f"{module}: {count}, allowed {ALLOWED.get(module, (0, ''))[0]}"
        for module, count in sorted(counts.items())
        if count > ALLOWED.get(module, (0, ""))[0]
    ]
    assert not more, "ask the target's backend (weft/backends), or its tables:\n" + "\n".join(more)


def test_the_allowed_numbers_are_those_that_are_there(counts):
    fewer = [
        f"{module}: {counts[module]}, allowed {most}"
        for module, (most, _) in ALLOWED.items()
        if counts[module] < most
    ]
    assert not fewer, "lower the number, or take the row away:\n" + "\n".join(fewer)


def test_a_name_is_seen():
    assert len(named("llvm.x86.avx512.vpdpbusd on Skylake, else NEON or aarch64")) == 6
    assert not named("resolve, saves, neonate, half a vector")
