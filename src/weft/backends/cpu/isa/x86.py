"""x86-64: the processors of AMD and Intel."""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.isa.architecture import Architecture, Instruction

X86_64: Final = Architecture(
    "x86_64",
    aliases=("amd64",),
    elf_machine=62,
    # System V ABI, AMD64 supplement 1.0, table 4.9: NONE, 64, PC32, PLT32, GOTPCREL, PC64,
    # GOTPCRELX, REX_GOTPCRELX
    relocations=frozenset({0, 1, 2, 4, 9, 24, 41, 42}),
    pause=Instruction("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
)
