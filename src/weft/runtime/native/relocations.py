"""Checks object code before LLVM's loader gets it: it may have certain relocations only.

A relocation is a place in the code where the loader has to write an address. At one of a type that
it does not know, LLVM's loader ends the process, or writes something wrong. So code that weft's own
loader does not take is checked first. The types are tables of weft.backends.cpu.isa.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.backends.cpu.isa import architecture_of, host_system
from weft.runtime.native.elf import RELA, RELOCATION, ObjectFile
from weft.support.errors import CodegenError

_REL: Final = 9
_ALLOCATED: Final = 2


def check_relocations(file: ObjectFile) -> None:
    """Raise CodegenError for object code that weft cannot have written.

    That is code for another processor, relocations of another type, or a symbol that lies in no
    section and is neither a number nor left to others.
    """
    here = architecture_of(host_system()[0])
    if file.machine != here.elf_machine:
        raise CodegenError(
            f"expected object code for {here.name} (ELF machine {here.elf_machine}), got machine "
            f"{file.machine}; compile the model here"
        )
    known = np.array(sorted(here.relocations))
    for number, section in enumerate(file.sections):
        place = file.sections[int(section["info"])] if section["type"] in (RELA, _REL) else None
        if place is None or not int(place["flags"]) & _ALLOCATED:
            continue  # a section that is not loaded, such as tables for debuggers
        if section["type"] == _REL:
            raise CodegenError(_refused(number, "addends in the code"))
        kinds = file.table(section, RELOCATION)["type"]
        foreign = kinds[~np.isin(kinds, known)]
        if len(foreign):
            raise CodegenError(_refused(number, f"relocations of type {int(foreign[0])}"))


def _refused(number: int, what: str) -> str:
    return (
        f"expected object code with relocations that weft writes, found {what} in its section "
        f"{number}; compile the model again"
    )
