"""The instruction sets that a processor's name and a list of features stand for, as in LLVM."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from weft.backends.cpu.isa.architecture import Architecture

T = TypeVar("T")


@functools.lru_cache(maxsize=64)
def instruction_sets(architecture: Architecture, cpu: str, features: str) -> frozenset[str]:
    """The instruction sets of a processor with a list of features such as ``+avx2,-avx512f``.

    If two entries of the list disagree, the later one counts. ``+`` also turns on what the feature
    needs, ``-`` also turns off what needs it. A processor that the architecture does not list gets
    a feature of its own, which no other processor has.

    >>> from weft.backends.cpu.isa.x86 import X86_64
    >>> old, new = [instruction_sets(X86_64, f"x86-64-v{n}", "+avx,-avx2") for n in (2, 3)]
    >>> sorted(new - old)
    ['bmi', 'bmi2', 'f16c', 'fma', 'lzcnt', 'movbe']
    """
    known = architecture.processors.get(cpu, () if cpu == "generic" else None)
    present = {of_its_own(cpu)} if known is None else set(known)
    for item in features.split(","):
        sign, name = item[:1], item[1:]
        if sign == "+" and is_instruction_set(architecture, name):
            present |= _with_needs(architecture, name)
        elif sign == "-":
            present = {other for other in present if name not in _with_needs(architecture, other)}
    return frozenset(present)


def is_instruction_set(architecture: Architecture, feature: str) -> bool:
    """Whether a feature stands for instructions, not for tuning."""
    pattern = architecture.instruction_features
    return not pattern or re.match(pattern, feature) is not None


def offers(present: AbstractSet[str], needed: str) -> bool:
    """Whether one of the choices in ``needed`` is present.

    >>> offers({"avx512vnni", "avx512f"}, "avx512vnni+avx512vl avxvnni")
    False
    """
    choices = [set(choice.split("+")) for choice in needed.split()]
    return not choices or any(choice <= present for choice in choices)


def first_offered(present: AbstractSet[str], rows: Sequence[tuple[T, str]], default: T) -> T:
    """The value of the first row (value, needs) whose needs are present; else ``default``.

    >>> first_offered({"avx2"}, ((16, "avx512f"), (8, "avx2")), 0)
    8
    """
    return next((value for value, needed in rows if offers(present, needed)), default)


def of_its_own(cpu: str) -> str:
    """The feature that stands for all that an unlisted processor has."""
    return f"the processor {cpu}"


@functools.cache
def _with_needs(architecture: Architecture, name: str) -> frozenset[str]:
    """A feature, what it needs, what that needs, and so on."""
    needs = [_with_needs(architecture, other) for other in architecture.needs.get(name, "").split()]
    return frozenset([name]).union(*needs)
