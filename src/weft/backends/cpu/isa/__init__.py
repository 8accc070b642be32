"""Tables of instruction sets: the family of processors that a triple names, and its properties.

>>> architecture_of("aarch64-linux-gnu").elf_machine
183
"""

from __future__ import annotations

import platform
import sys
from typing import Final

from weft.backends.cpu.isa.aarch64 import AARCH64
from weft.backends.cpu.isa.architecture import Architecture
from weft.backends.cpu.isa.wasm import WASM32
from weft.backends.cpu.isa.x86 import X86_64

ARCHITECTURES: Final = (X86_64, AARCH64, WASM32)
_BY_NAME: Final = {name: row for row in ARCHITECTURES for name in (row.name, *row.aliases)}
_SYSTEMS: Final = (
    "linux", "android", "darwin", "macosx", "ios", "windows", "win32", "freebsd", "netbsd",
    "openbsd", "none", "wasi",
)  # fmt: skip
"""How the word of a triple for the operating system begins."""


def architecture_of(triple: str) -> Architecture:
    """The family of processors that a triple begins with; if unknown, one with default entries."""
    name = triple.partition("-")[0].lower()
    return _BY_NAME.get(name) or Architecture(name)


def system_of(triple: str) -> tuple[str, str]:
    """The architecture and the operating system of a triple, which decide if object code loads.

    Vendor and C library are left out, since many triples leave them out as well.

    >>> system_of("aarch64-linux-gnu") == system_of("arm64-unknown-linux-gnu")
    True
    """
    words = triple.lower().split("-")[1:]
    named = [name for word in words for name in _SYSTEMS if word.startswith(name)]
    return architecture_of(triple).name, named[0] if named else "".join(words[1:2])


def host_system() -> tuple[str, str]:
    """``system_of`` this process, without asking LLVM."""
    return system_of(f"{platform.machine()}-unknown-{sys.platform}")
