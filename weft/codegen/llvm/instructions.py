"""Instructions that a program calls by name, against what the target's processor has.

LLVM ends the process where it is asked for an instruction that the target lacks; so the question is
answered before it is asked.
"""

from __future__ import annotations

import re
from typing import Final

from weft.support.errors import CodegenError
from weft.target.host import LLVMOptions

NEEDED: Final = {
    "llvm.x86.avx512.vpdp": "avx512vnni",
    "llvm.x86.avx512.": "avx512bw",
    "llvm.x86.avx2.": "avx2",
    "llvm.x86.avx.": "avx",
    "llvm.x86.fma.": "fma",
}
"""How the name of an intrinsic begins -> the feature it needs; the first that fits counts."""

_VNNI: Final = frozenset(
    "cascadelake cooperlake icelake-client icelake-server tigerlake rocketlake sapphirerapids "
    "emeraldrapids graniterapids znver4 znver5".split()
)
_AVX512: Final = _VNNI | {"skylake-avx512", "cannonlake", "x86-64-v4"}
_AVX2: Final = _AVX512 | frozenset(
    "haswell broadwell skylake alderlake raptorlake znver1 znver2 znver3 x86-64-v3".split()
)
PROCESSORS: Final = {
    "avx512vnni": _VNNI, "avx512bw": _AVX512, "avx2": _AVX2, "fma": _AVX2, "avx": _AVX2,
}  # fmt: skip
"""Processors known to have a feature, for targets that name another than this machine's."""

_X86: Final = re.compile(r"@\"?(llvm\.x86\.[A-Za-z0-9.]+)")


def check_instructions(text: str, options: LLVMOptions) -> None:
    """Raise CodegenError if LLVM IR calls an x86 instruction that the target may not have."""
    if "llvm.x86." not in text:
        return
    listed = options.features.split(",")
    for name in sorted(set(_X86.findall(text))):
        feature = next((need for start, need in NEEDED.items() if name.startswith(start)), None)
        if feature is None or f"+{feature}" in listed:
            continue
        if f"-{feature}" in listed or options.cpu not in PROCESSORS[feature]:
            raise CodegenError(
                f"{name} needs {feature}, which the target's processor {options.cpu} is not known "
                f"to have; if it does, say so in the target: -mattr=+{feature}"
            )
