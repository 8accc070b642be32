"""The one place where the runtime touches llvmlite: engines, symbols, object files.

llvmlite is imported at the first call, so ``import weft.runtime`` stays light. An undefined symbol
would end the process inside LLVM; object code is therefore read first (ELF symbol table), and every
external name is bound or refused with an error before LLVM sees it.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

import numpy as np

from weft.runtime.abi import address_of
from weft.support.errors import CodegenError

_LIBRARIES: Final = (None, "libm.so.6", "libgcc_s.so.1", "libc.so.6")
"""Where external functions are looked up: the process itself, then the system's libraries."""

_SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
     ("size", "<u8")]
)  # fmt: skip
_SECTION: Final = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"),
     ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8")]
)  # fmt: skip
_SYMTAB: Final = 2
_FUNCTION: Final = 2
_LOCAL: Final = 0

_RELOCATION: Final = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_RELA: Final = 4
_CALL: Final = 4
"""R_X86_64_PLT32: the distance to a function or to a stub for it."""
_LIBRARY_CALLS_TOO: Final = """
!llvm.module.flags = !{!2147483647}
!2147483647 = !{i32 7, !"RtLibUseGOT", i32 1}
"""
"""For calls that LLVM makes of intrinsics, such as memset."""

_bound: Final[dict[str, int]] = {}


@functools.cache
def binding() -> Any:
    """``llvmlite.binding`` with the native target initialised."""
    try:
        import llvmlite.binding as llvm  # noqa: PLC0415 - loaded with the first code
    except ImportError as error:
        raise CodegenError("loading compiled code needs llvmlite: pip install llvmlite") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def _target() -> Any:
    return binding().Target.from_default_triple()


def engine_from_object(code: bytes) -> Any:
    """An engine that has loaded one relocatable object; every symbol must be bound before.

    Code reaches its constants and its table of external functions by 32-bit distances. LLVM's own
    memory manager maps each section where the system finds room, which in a process that holds
    gigabytes may be further away, and then LLVM aborts the process. llvmlite's puts all sections
    into one mapping, but leaves no room for the table of an object that calls functions directly
    (``module_from_ir``), as those of other compilers do.
    """
    llvm = binding()
    machine = _target().create_target_machine()
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), machine, use_lmm=not calls_directly(code)
    )
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
    except RuntimeError as error:
        raise CodegenError(f"expected object code for this machine, got: {error}") from error
    return engine


def module_from_ir(text: str) -> Any:
    """LLVM's module of a text, in which external functions are called through a table.

    LLVM's loader counts the room for the table's entries only where the calls name it, as with
    ``-fno-plt`` of C compilers. RuntimeError for a text that LLVM refuses.
    """
    module = binding().parse_assembly(text + _LIBRARY_CALLS_TOO)
    for function in module.functions:
        if function.is_declaration and not function.name.startswith("llvm."):
            function.add_function_attribute("nonlazybind")
    return module


def object_from_ir(text: str) -> bytes:
    """Position-independent object code for this machine's baseline from LLVM IR (the runtime's own
    parts, tests).
    """
    machine = _target().create_target_machine(opt=2, reloc="pic", codemodel="default")
    code: bytes = machine.emit_object(module_from_ir(text))
    return code


def compile_ir(text: str) -> Any:
    """An engine with the compiled LLVM IR ``text``."""
    return engine_from_object(object_from_ir(text))


def add_symbol(name: str, address: int) -> None:
    """Bind an external name for all engines made from now on."""
    _bound[name] = address
    binding().add_symbol(name, address)


def elf_symbols(code: bytes) -> tuple[frozenset[str], frozenset[str]] | None:
    """The (defined functions, undefined names) of a 64-bit ELF object; None for another format."""
    if code[:6] != b"\x7fELF\x02\x01" or len(code) < 64:
        return None
    start = int.from_bytes(code[40:48], "little")
    count = int.from_bytes(code[60:62], "little")
    try:
        sections = np.frombuffer(code, _SECTION, count, start)
        defined: set[str] = set()
        undefined: set[str] = set()
        for section in sections[sections["type"] == _SYMTAB]:
            table = _table(code, section, _SYMBOL)
            names = int(sections[int(section["link"])]["offset"])
            for symbol in table[table["name"] != 0]:
                begin = names + int(symbol["name"])
                name = code[begin : code.index(b"\0", begin)].decode()
                if symbol["section"] == 0:
                    undefined.add(name)
                elif symbol["info"] & 15 == _FUNCTION and symbol["info"] >> 4 != _LOCAL:
                    defined.add(name)
    except (ValueError, IndexError) as error:
        raise CodegenError("expected object code, got a truncated ELF file") from error
    return frozenset(defined), frozenset(undefined)


def calls_directly(code: bytes) -> bool:
    """Whether an ELF object for x86-64 calls a function that it does not define by a distance."""
    if code[:6] != b"\x7fELF\x02\x01" or code[18:20] != b"\x3e\0":
        return False
    start = int.from_bytes(code[40:48], "little")
    sections = np.frombuffer(code, _SECTION, int.from_bytes(code[60:62], "little"), start)
    symbols = [_table(code, part, _SYMBOL) for part in sections[sections["type"] == _SYMTAB]]
    for part in sections[sections["type"] == _RELA]:
        relocations = _table(code, part, _RELOCATION)
        calls = relocations["info"][relocations["info"] & 0xFFFFFFFF == _CALL] >> 32
        if any((table["section"][calls] == 0).any() for table in symbols):
            return True
    return False


def _table(code: bytes, section: np.void, entry: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The entries of a section."""
    count = int(section["size"]) // entry.itemsize
    return np.frombuffer(code, entry, count, int(section["offset"]))


def elf_section(code: bytes, name: str) -> tuple[int, int] | None:
    """Offset and size of the section of that name in a 64-bit ELF file; None if there is none."""
    if code[:6] != b"\x7fELF\x02\x01" or len(code) < 64:
        return None
    start, count = int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little")
    try:
        sections = np.frombuffer(code, _SECTION, count, start)
        names = int(sections[int.from_bytes(code[62:64], "little")]["offset"])
        for section in sections:
            begin = names + int(section["name"])
            if code[begin : code.index(b"\0", begin)] == name.encode():
                return int(section["offset"]), int(section["size"])
    except (ValueError, IndexError):
        return None  # a file that is cut off
    return None


def bind_external(name: str) -> bool:
    """Bind an external name to a function of the process or of the system; False if none has it."""
    if name in _bound:
        return True
    for library in _LIBRARIES:
        try:
            found = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        add_symbol(name, address_of(found))
        return True
    return False
