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
from weft.target.instruction_sets import offers

NEEDED: Final = tuple((re.compile(name), need) for name, need in (
    (r"avx512\.vpdp\w+\.(128|256)", "avx512vnni+avx512vl avxvnni"),
    (r"avx512\.vpdp", "avx512vnni"),
    (r"avx512\.(mask\.scalef\.p[sd]|pternlog\.[dq])\.(128|256)", "avx512f+avx512vl"),
    (r"avx512\.(mask\.(scalef\.p[sd]|cvttps2dq\.512)|pternlog\.[dq]|(max|min)\.p[sd])", "avx512f"),
    (r"avx512fp16\.", "avx512fp16"), (r"avx512bf16\..*\.(128|256)", "avx512bf16+avx512vl"),
    (r"avx512bf16\.", "avx512bf16"), (r"avx512\..*\.(128|256)", "avx512bw+avx512dq+avx512vl"),
    (r"avx512\.", "avx512bw"), (r"avx2\.", "avx2"), (r"avx\.", "avx"), (r"fma\.", "fma"),
    (r"vcvtp[hs]2p[hs]\.", "f16c"), (r"vgf2p8\w+\.128", "gfni"), (r"vgf2p8\w+\.256", "gfni+avx"),
    (r"vgf2p8", "gfni+avx512f"), (r"sse3\.", "sse3"), (r"ssse3\.", "ssse3"),
    (r"sse41\.", "sse4.1"), (r"sse42\.crc32", "crc32"), (r"sse42\.", "sse4.2"),
    (r"sse4a\.", "sse4a"), (r"aesni\.\w+\.256", "vaes"), (r"aesni\.\w+\.512", "vaes+avx512f"),
    (r"aesni\.", "aes"), (r"pclmulqdq$", "pclmul"), (r"pclmulqdq\.256", "vpclmulqdq"),
    (r"pclmulqdq\.", "vpclmulqdq+avx512f"), (r"bmi\.bextr", "bmi"), (r"bmi\.", "bmi2"),
    (r"sha(1|256)", "sha"),
))  # fmt: skip
"""How the name of an intrinsic goes on after ``llvm.x86.``, and what it needs, as ``offers`` reads
it; the first that fits counts."""

_X86: Final = re.compile(r"@\"?llvm\.x86\.([A-Za-z0-9.]+)")


def check_instructions(text: str, options: LLVMOptions) -> None:
    """Raise CodegenError if LLVM IR calls an x86 instruction that the target may not have."""
    if "llvm.x86." not in text:
        return
    present = set(required_features(options))
    for name in sorted(set(_X86.findall(text))):
        needed = next((need for pattern, need in NEEDED if pattern.match(name)), "")
        if not offers(present, needed):
            features = [one for one in needed.split()[0].split("+") if one not in present]
            raise CodegenError(
                f"llvm.x86.{name} needs {' and '.join(features)}, which the target's processor "
                f"{options.cpu} is not known to have; if it does, say so in the target: "
                f"-mattr={','.join([f'+{one}' for one in features])}"
            )
