"""Instructions that a program calls by name, against what the target's processor has.

LLVM ends the process where it is asked for an instruction that the target lacks; so the question is
answered before it is asked.
"""

from __future__ import annotations

import re
from typing import Final

from weft.support.errors import CodegenError
from weft.target.features import required_features
from weft.target.host import LLVMOptions

NEEDED: Final = {
    "llvm.x86.avx512.vpdpbusd.128": "avx512vnni avxvnni",
    "llvm.x86.avx512.vpdpbusd.256": "avx512vnni avxvnni",
    "llvm.x86.avx512.vpdpwssd.128": "avx512vnni avxvnni",
    "llvm.x86.avx512.vpdpwssd.256": "avx512vnni avxvnni",
    "llvm.x86.avx512.vpdp": "avx512vnni",
    "llvm.x86.avx512.": "avx512bw",
    "llvm.x86.avx2.": "avx2",
    "llvm.x86.avx.": "avx",
    "llvm.x86.fma.": "fma",
}
"""How the name of an intrinsic begins -> the feature it needs, or any of several; the first
that fits counts."""

_X86: Final = re.compile(r"@\"?(llvm\.x86\.[A-Za-z0-9.]+)")


def check_instructions(text: str, options: LLVMOptions) -> None:
    """Raise CodegenError if LLVM IR calls an x86 instruction that the target may not have."""
    if "llvm.x86." not in text:
        return
    present = required_features(options)
    for name in sorted(set(_X86.findall(text))):
        needed = next((need for start, need in NEEDED.items() if name.startswith(start)), "")
        if needed and not set(needed.split()) & set(present):
            feature = needed.split()[0]
            raise CodegenError(
                f"{name} needs {feature}, which the target's processor {options.cpu} is not known "
                f"to have; if it does, say so in the target: -mattr=+{feature}"
            )
