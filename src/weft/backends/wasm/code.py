"""Code for WebAssembly in two variants: for every engine, and for those with relaxed SIMD.

Both come from one LLVM IR text. The object cache and files hold them as one sequence of bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.backends.cpu.isa.wasm import BASE, RELAXED, TRIPLE
from weft.codegen.llvm.compile import CompiledObject, compile_emitted
from weft.codegen.llvm.emit import emit_module
from weft.ir.module import IRModule
from weft.runtime.call.spec import FunctionSpec
from weft.support.errors import ArtifactFormatError
from weft.support.lazy_property import lazy_property
from weft.target.host import LLVMOptions
from weft.target.target import Target

_MAGIC: Final = b"weft-wasm-2\n"
_SIZES: Final = struct.Struct("<QQQ")


class Variants(NamedTuple):
    """Relocatable objects of the same functions, for so many threads."""

    base: bytes
    relaxed: bytes
    threads: int = 1

    def packed(self) -> bytes:
        """Both in one sequence of bytes."""
        sizes = _SIZES.pack(len(self.base), len(self.relaxed), self.threads)
        return b"".join([_MAGIC, sizes, self.base, self.relaxed])


def unpacked(data: bytes) -> Variants:
    """What ``Variants.packed`` gave. Raises ArtifactFormatError for other bytes."""
    start = len(_MAGIC) + _SIZES.size
    if data.startswith(_MAGIC) and len(data) >= start:
        base, relaxed, threads = _SIZES.unpack_from(data, len(_MAGIC))
        if len(data) == start + base + relaxed:
            return Variants(data[start : start + base], data[start + base :], threads)
    raise ArtifactFormatError(
        f"expected code for WebAssembly, got {len(data)} other bytes; compile the model again"
    )


def options_of(target: Target, features: tuple[str, ...] = BASE) -> LLVMOptions:
    """LLVM's options for an engine with these features."""
    level = int(target.attrs.get("opt-level", 3))
    return LLVMOptions(TRIPLE, "generic", ",".join([f"+{name}" for name in features]), level, 0)


@dataclass(frozen=True)
class WasmCode:
    """Compiled functions, a ``weft.codegen.backend.NativeCode``; texts are of the base variant."""

    base: CompiledObject
    relaxed: CompiledObject
    threads: int

    @lazy_property
    def object_code(self) -> bytes:
        """Both objects (``Variants.packed``)."""
        objects = self.base.object_code, self.relaxed.object_code
        return Variants(*objects, self.threads).packed()

    @property
    def specs(self) -> tuple[FunctionSpec, ...]:
        """How each function is called."""
        return self.base.specs

    @property
    def options(self) -> LLVMOptions:
        """The system, with the features that every engine has."""
        return self.base.options

    def get_source(self, fmt: str = "ll") -> str:
        """LLVM IR as emitted (``ll``) or optimised (``opt``), or WebAssembly as text (``asm``)."""
        return self.base.get_source(fmt)


def compile_variants(mod: IRModule, target: Target, *, checks: bool) -> WasmCode:
    """Compile every lowered PrimFunc of ``mod``, for both kinds of engines."""
    text, specs = emit_module(mod, target, checks=checks)
    base, relaxed = [
        compile_emitted(text, specs, options_of(target, features)) for features in (BASE, RELAXED)
    ]
    return WasmCode(base, relaxed, target.num_cores or 1)
