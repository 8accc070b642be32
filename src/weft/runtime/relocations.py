"""Which places of object code weft lets LLVM's loader fill in, by the kind of processor.

LLVM's loader takes relocations of a type that it does not know for a fault of its own and ends the
process, or writes something. So what weft's own loader leaves to it is looked through first.
Numbers are those of the processor's supplement of the System V ABI: AMD64 1.0, table 4.9, and ELF
for the Arm 64-bit Architecture, section 5.7.
"""

from __future__ import annotations

import platform
from typing import Final

import numpy as np

from weft.runtime.elf import RELA, RELOCATION, ObjectFile
from weft.support.errors import CodegenError

X86_64: Final = 62
AARCH64: Final = 183
_REL: Final = 9
_ALLOCATED: Final = 2

KNOWN: Final[dict[int, frozenset[int]]] = {
    # NONE, 64, PC32, PLT32, GOTPCREL, PC64, GOTPCRELX, REX_GOTPCRELX
    X86_64: frozenset({0, 1, 2, 4, 9, 24, 41, 42}),
    # NONE, ABS64, ABS32, PREL64, PREL32, MOVW_UABS_G0 to G3, ADR_PREL_PG_HI21, ADD_ABS_LO12_NC,
    # LDST8_ABS_LO12_NC, TSTBR14, CONDBR19, JUMP26, CALL26, LDST16, 32 and 64_ABS_LO12_NC,
    # LDST128_ABS_LO12_NC, ADR_GOT_PAGE, LD64_GOT_LO12_NC
    AARCH64: frozenset({
        0, 257, 258, 260, 261, *range(263, 270), 275, 277, 278, 279, 280, 282, 283, 284, 285, 286,
        299, 311, 312,
    }),
}  # fmt: skip
"""The machine of an ELF file -> the types of relocation that code of weft has."""
_MACHINES: Final = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
"""The name that the system gives a processor -> the machine of ELF files for it."""


def check_relocations(file: ObjectFile) -> None:
    """Raise CodegenError where LLVM's loader would be given what weft never writes.

    That is code for another processor, relocations of another type, or a symbol that lies in no
    section and is neither a number nor left to others.
    """
    here = _MACHINES.get(platform.machine().lower())
    if file.machine != here:
        raise CodegenError(
            f"expected object code for {platform.machine()} (ELF machine {here}), got machine "
            f"{file.machine}; compile the model here"
        )
    known = np.array(sorted(KNOWN[here]))
    for number, section in enumerate(file.sections):
        place = file.sections[int(section["info"])] if section["type"] in (RELA, _REL) else None
        if place is None or not int(place["flags"]) & _ALLOCATED:
            continue  # what is not loaded, such as tables for debuggers, is not filled in
        if section["type"] == _REL:
            raise CodegenError(_refused(number, "addends in the code"))
        found = file.table(section, RELOCATION)["type"]
        foreign = found[~np.isin(found, known)]
        if len(foreign):
            raise CodegenError(_refused(number, f"relocations of type {int(foreign[0])}"))


def _refused(number: int, what: str) -> str:
    return (
        f"expected object code with relocations that weft writes, found {what} in its section "
        f"{number}; compile the model again"
    )
