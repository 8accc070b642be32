"""Instruction sets that code for a target may use: what a processor must have to run it.

The levels of x86-64 are those of its System V ABI (section 3.1.1, "Processor Architecture"), the
rest is each processor's own, by LLVM's names. What only an operating system uses is left out.
"""

from __future__ import annotations

import re
from typing import Final

from weft.target.host import LLVMOptions, host_cpu, host_features

_V2: Final = ("cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")
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

_INSTRUCTIONS: Final = re.compile(
    r"(sse|ssse|avx|fma|f16c|bmi|lzcnt|popcnt|movbe|gfni|aes|vaes|pclmul|vpclmul|sha|adx|xop|tbm"
    r"|amx|cx16|sm[34]|neon|sve|dotprod|fp16|bf16|i8mm|lse|crc|rdm|fullfp16|fp-armv8)"
)


def required_features(options: LLVMOptions) -> tuple[str, ...]:
    """The instruction sets that code compiled with these options may use, sorted.

    Of a processor that is not in ``PROCESSORS``, code is taken to use all that this machine has,
    where it is this machine's, else the processor's own name, which no other has.

    >>> from weft.target.host import llvm_options
    >>> "avx2" in required_features(llvm_options("llvm -mcpu=x86-64-v3"))
    True
    """
    listed = [item for item in options.features.split(",") if item]
    found = {item[1:] for item in listed if item[0] == "+" and _INSTRUCTIONS.match(item[1:])}
    if options.cpu == host_cpu() and len(listed) >= len(host_features()):
        return tuple(sorted(found))
    known = PROCESSORS.get(options.cpu)
    found |= {f"the processor {options.cpu}"} if known is None else set(known)
    return tuple(sorted(found - {item[1:] for item in listed if item[0] == "-"}))
