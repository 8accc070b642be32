"""AArch64: the 64-bit processors of the Arm architecture, from version 8.0 on.

Vectors are those of Advanced SIMD (NEON); code for SVE is left to LLVM.
"""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.isa.architecture import Architecture, Statement

_V8: Final = ("fp-armv8", "neon")
_V8_CRC: Final = (*_V8, "crc")
_V82: Final = (*_V8_CRC, "lse", "rdm", "fullfp16", "dotprod")
_V86: Final = (*_V82, "bf16", "i8mm")
_CRYPTO: Final = ("aes", "sha2")

_PROCESSORS: Final[dict[str, tuple[str, ...]]] = {
    "generic": _V8, "cortex-a35": _V8_CRC, "cortex-a53": _V8_CRC, "cortex-a57": _V8_CRC,
    "cortex-a72": _V8_CRC, "cortex-a73": _V8_CRC, "cortex-a55": _V82, "cortex-a75": _V82,
    "cortex-a76": _V82, "cortex-a77": _V82, "cortex-a78": _V82, "cortex-x1": _V82,
    "neoverse-n1": _V82, "neoverse-v1": (*_V86, "sve"), "neoverse-n2": (*_V86, "sve", "sve2"),
    "neoverse-v2": (*_V86, "sve", "sve2"), "apple-m1": _V82, "apple-m2": _V86, "apple-m3": _V86,
}  # fmt: skip
"""Processor -> features that each of its kind has; cryptography is optional in most."""

AARCH64: Final = Architecture(
    "aarch64",
    aliases=("arm64",),
    elf_machine=183,
    # ELF for the Arm 64-bit Architecture, section 5.7: NONE, ABS64, ABS32, PREL64, PREL32,
    # MOVW_UABS_G0 to G3, ADR_PREL_PG_HI21, ADD_ABS_LO12_NC, LDST8_ABS_LO12_NC, TSTBR14, CONDBR19,
    # JUMP26, CALL26, LDST16, 32 and 64_ABS_LO12_NC, LDST128_ABS_LO12_NC, ADR_GOT_PAGE,
    # LD64_GOT_LO12_NC
    relocations=frozenset({
        0, 257, 258, 260, 261, *range(263, 270), 275, 277, 278, 279, 280, 282, 283, 284, 285, 286,
        299, 311, 312,
    }),
    pause=Statement(
        "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    ),
    processors=_PROCESSORS,
    needs={
        "neon": "fp-armv8", "fullfp16": "neon", "dotprod": "neon", "i8mm": "neon", "bf16": "neon",
        "rdm": "neon", "aes": "neon", "sha2": "neon", "sve": "fullfp16", "sve2": "sve",
    },
    instruction_features="neon|sve|dotprod|fp16|bf16|i8mm|lse|crc|rdm|fullfp16|fp-armv8|aes|sha",
    always=frozenset(["fp-armv8", "neon"]),
    portable='"llvm -mcpu=generic" for every AArch64 processor',
    register_names={r"\b[vq](\d+)\b": 128},
    spill=r"st[rpu]+\s+[qv]\d+,.*\[(?:sp|x29)",
    linux_line="Features",
    linux_names={
        "fparmv8": "fp", "neon": "asimd", "crc": "crc32", "lse": "atomics", "rdm": "asimdrdm",
        "fullfp16": "asimdhp", "dotprod": "asimddp",
    },
    vectors=((128, ""),),
    registers=((0, 32),),
    rounds=True,
    has_maximum=True,
    kernel_features=("neon", "dotprod", "i8mm", "sve"),
    prefix="llvm.aarch64.",
    intrinsic_needs=(
        (r"neon\.[su]dot", "dotprod"), (r"neon\.(usdot|[us]mmla|usmmla)", "i8mm"),
        (r"neon\.bf", "bf16"), (r"neon\.sq?rdml[as]h", "rdm"), (r"crypto\.aes", "aes"),
        (r"crypto\.sha", "sha2"), (r"crc32", "crc"), (r"sve\.", "sve"), (r"neon\.", "neon"),
    ),
)  # fmt: skip
