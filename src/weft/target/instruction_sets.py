"""Instruction sets: which ones a processor's name and a list of features stand for, as in LLVM.

The levels of x86-64 are those of its System V ABI (section 3.1.1, "Processor Architecture"), the
rest is each processor's own, by LLVM's names. What only an operating system uses is left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Set as AbstractSet
from typing import Final

_V2: Final = ("crc32", "cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3: Final = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4: Final = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_CRYPTO: Final = ("aes", "pclmul")
_ICELAKE: Final = (
    *_V4, *_CRYPTO, "avx512vnni", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512ifma",
    "avx512vpopcntdq", "gfni", "vaes", "vpclmulqdq", "adx", "sha",
)  # fmt: skip
_SAPPHIRE: Final = (*_ICELAKE, "avx512bf16", "avx512fp16", "avxvnni")
_ALDER: Final = (*_V3, *_CRYPTO, "adx", "sha", "avxvnni", "gfni", "vaes", "vpclmulqdq")
_ZEN1: Final = (*_V3, *_CRYPTO, "adx", "sha", "sse4a")
_ZEN3: Final = (*_ZEN1, "vaes", "vpclmulqdq")
_ZEN4: Final = (*(name for name in _ICELAKE), "sse4a", "avx512bf16")
_SANDY: Final = (*_V2, *_CRYPTO, "avx")

PROCESSORS: Final[dict[str, tuple[str, ...]]] = {
    "generic": (), "x86-64": (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4,
    "nehalem": _V2, "corei7": _V2, "westmere": (*_V2, "pclmul"), "silvermont": (*_V2, "movbe"),
    "sandybridge": _SANDY, "ivybridge": (*_SANDY, "f16c"),
    "haswell": (*_V3, *_CRYPTO), "core-avx2": (*_V3, *_CRYPTO),
    "broadwell": (*_V3, *_CRYPTO, "adx"), "skylake": (*_V3, *_CRYPTO, "adx"),
    "skylake-avx512": (*_V4, *_CRYPTO, "adx"), "skx": (*_V4, *_CRYPTO, "adx"),
    "cascadelake": (*_V4, *_CRYPTO, "adx", "avx512vnni"),
    "cooperlake": (*_V4, *_CRYPTO, "adx", "avx512vnni", "avx512bf16"),
    "icelake-client": _ICELAKE, "icelake-server": _ICELAKE, "tigerlake": _ICELAKE,
    "rocketlake": _ICELAKE, "sapphirerapids": _SAPPHIRE, "emeraldrapids": _SAPPHIRE,
    "alderlake": _ALDER, "raptorlake": _ALDER, "meteorlake": _ALDER,
    "znver1": _ZEN1, "znver2": _ZEN1, "znver3": _ZEN3, "znver4": _ZEN4,
    "znver5": (*_ZEN4, "avxvnni"),
}  # fmt: skip
"""Instruction sets of x86-64 processors that a target may name."""

NEEDS: Final[dict[str, str]] = {
    "sse2": "sse", "sse3": "sse2", "ssse3": "sse3", "sse4.1": "ssse3", "sse4.2": "sse4.1",
    "sse4a": "sse3", "aes": "sse2", "pclmul": "sse2", "gfni": "sse2", "sha": "sse2",
    "avx": "sse4.2", "f16c": "avx", "fma": "avx", "vaes": "aes avx2", "vpclmulqdq": "avx pclmul",
    "fma4": "avx sse4a", "xop": "fma4",
    "avx2": "avx", "avxvnni": "avx2", "avxifma": "avx2", "avxneconvert": "avx2",
    "avxvnniint8": "avx2", "avxvnniint16": "avx2",
    "avx512f": "avx2 f16c fma", "avx512bw": "avx512f", "avx512cd": "avx512f",
    "avx512dq": "avx512f", "avx512vl": "avx512f", "avx512ifma": "avx512f",
    "avx512vnni": "avx512f", "avx512vpopcntdq": "avx512f", "avx512vp2intersect": "avx512f",
    "avx512bf16": "avx512bw", "avx512bitalg": "avx512bw", "avx512vbmi": "avx512bw",
    "avx512vbmi2": "avx512bw", "avx512fp16": "avx512bw avx512dq avx512vl",
    "avx10.1": "avx512bf16 avx512bitalg avx512cd avx512fp16 avx512ifma avx512vbmi avx512vbmi2 "
               "avx512vnni avx512vpopcntdq",
    "avx10.2": "avx10.1",
}  # fmt: skip
"""Feature -> those that LLVM turns on with it; where one of them is turned off, so is it."""

_INSTRUCTIONS: Final = re.compile(
    r"(sse|ssse|avx|fma|f16c|bmi|lzcnt|popcnt|movbe|gfni|aes|vaes|pclmul|vpclmul|sha|adx|xop|tbm"
    r"|amx|cx16|sm[34]|neon|sve|dotprod|fp16|bf16|i8mm|lse|crc|rdm|fullfp16|fp-armv8)"
)


@functools.lru_cache(maxsize=64)
def instruction_sets(cpu: str, features: str) -> frozenset[str]:
    """The instruction sets of a processor with a list of features such as ``+avx2,-avx512f``.

    Of two that disagree the later one counts. A feature brings along what it needs, and takes along
    what needs it. A processor that is not in ``PROCESSORS`` has one that no other has.

    >>> sorted(instruction_sets("x86-64-v3", "-avx2") - instruction_sets("x86-64-v2", "+avx"))
    ['bmi', 'bmi2', 'f16c', 'fma', 'lzcnt', 'movbe']
    """
    known = PROCESSORS.get(cpu)
    found = {of_its_own(cpu)} if known is None else set(known)
    for item in features.split(","):
        sign, name = item[:1], item[1:]
        if sign == "+" and _INSTRUCTIONS.match(name):
            found |= _with_needs(name)
        elif sign == "-":
            found = {other for other in found if name not in _with_needs(other)}
    return frozenset(found)


def offers(present: AbstractSet[str], needed: str) -> bool:
    """Whether one of some sets of features is there.

    >>> offers({"avx512vnni", "avx512f"}, "avx512vnni+avx512vl avxvnni")
    False
    """
    choices = [set(choice.split("+")) for choice in needed.split()]
    return not choices or any(choice <= present for choice in choices)


def of_its_own(cpu: str) -> str:
    """What a processor has that is not in ``PROCESSORS``."""
    return f"the processor {cpu}"


@functools.cache
def _with_needs(name: str) -> frozenset[str]:
    """A feature, what it needs, what that needs, and so on."""
    return frozenset([name]).union(*map(_with_needs, NEEDS.get(name, "").split()))
