"""What the compiler knows of one family of processors: a row of plain data, and no code.

Everything that names a processor, an instruction or a feature stands in such a row (``x86.py``,
``aarch64.py``); the rest of weft asks the row of the target's triple.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """An instruction that LLVM IR calls by the name of an intrinsic."""

    declaration: str
    call: str


NOTHING = Instruction("", "")
"""Stands where a processor has no such instruction."""


@dataclass(frozen=True)
class Architecture:
    """A family of processors; the defaults hold for one of which nothing is known."""

    name: str
    """The first word of LLVM's triples."""
    aliases: tuple[str, ...] = ()
    """Other names that systems and triples have for it."""
    elf_machine: int = 0
    """Its number in the header of ELF files."""
    relocations: frozenset[int] = frozenset()
    """The types of relocation that code of weft has, by their numbers in ELF files."""
    pause: Instruction = NOTHING
    """Tells the processor that a thread looks at one place until it changes."""
