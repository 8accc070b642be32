"""AArch64: the 64-bit processors of the Arm architecture, from version 8.0 on."""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.isa.architecture import Architecture, Instruction

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
    pause=Instruction(
        "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    ),
)
