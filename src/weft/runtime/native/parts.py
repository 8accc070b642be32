"""The runtime's own native parts: LLVM IR texts that some code needs, compiled once.

A ``.weft`` file has the object code of those that its code calls, under the digest of their text,
so that the process that loads it needs no LLVM; where the text has changed since, or there is no
file, LLVM compiles it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from typing import Final

from weft.backends.cpu.isa import host_system, system_of
from weft.runtime.native.elf import read_object, undefined_names
from weft.runtime.native.externals import addresses_now, bind_external
from weft.runtime.native.llvm import Engine, object_from_ir
from weft.runtime.native.loader import LoadedObject, load_object
from weft.runtime.native.relocations import check_relocations
from weft.support.errors import CodegenError

_compiled: Final[dict[str, bytes]] = {}


def load_code(code: bytes) -> LoadedObject | Engine:
    """Object code in memory, by weft's loader, or by LLVM's where that does not know the format.

    Every name that it does not define must be bound before.
    """
    file = read_object(code)
    if file is None and sys.platform == "linux":
        raise CodegenError(  # LLVM would end the process
            f"expected object code (64-bit ELF), got {len(code)} bytes of something else; "
            "compile the model again"
        )
    loaded = None if file is None else load_object(file, addresses_now())
    if loaded is not None:
        return loaded
    if file is not None:
        check_relocations(file)
    return Engine(code)


def digest_of(text: str, triple: str = "") -> str:
    """The name of a part on a system ("": this one)."""
    system = "-".join(system_of(triple) if triple else host_system())
    return hashlib.blake2b(f"{system}\n{text}".encode(), digest_size=16).hexdigest()


def part_object(text: str, triple: str = "") -> bytes:
    """The object code of a part on a system ("": this one)."""
    digest = digest_of(text, triple)
    if digest not in _compiled:
        is_here = not triple or system_of(triple) == host_system()
        _compiled[digest] = object_from_ir(text, "" if is_here else triple)
    return _compiled[digest]


def offer_parts(parts: Mapping[str, bytes]) -> None:
    """Take object code from a file, by digest, for parts that this process has not compiled."""
    for digest, code in parts.items():
        _compiled.setdefault(digest, code)


def load_part(text: str) -> LoadedObject | Engine:
    """A part in memory; it may call what the process and the system have."""
    code = part_object(text)
    for name in undefined_names(code):
        bind_external(name)
    return load_code(code)
