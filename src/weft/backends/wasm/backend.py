"""The backend of WebAssembly: LLVM compiles the kernels, weft's own linker makes modules of them.

Graphs, schedules and lowering are those of CPUs; an engine compiles the module for its processor.
"""

from __future__ import annotations

from typing import Final

from weft.backends.cpu import pipeline
from weft.backends.cpu.isa.wasm import WASM32
from weft.backends.wasm.code import WasmCode, compile_variants, options_of
from weft.dlight.apply import ScheduleRule
from weft.ir.module import IRModule
from weft.ir.transform import Pass
from weft.target.host import LLVMOptions
from weft.target.kinds import KINDS, TargetKind
from weft.target.machine import Machine
from weft.target.target import Target

_NO_INSTRUCTION: Final = frozenset({"PrefetchNextIteration", "PrefetchSteps", "PrefetchResult"})
"""Passes whose result WebAssembly has no instruction for."""
_CACHES: Final = {
    "l1d-cache-bytes": 32 << 10, "l2-cache-bytes": 512 << 10, "l3-cache-bytes": 8 << 20
}  # fmt: skip
"""Option -> the size of a cache that schedules count on: less than most machines have."""


class WasmBackend:
    """A ``weft.codegen.backend.Backend`` for targets of the kind ``wasm``."""

    kind: TargetKind = KINDS["wasm"]
    joins_objects: Final = False  # what emit gives are two objects

    def features(self, target: Target) -> Machine:
        """One thread, if not told otherwise, with vectors of 128 bits.

        An engine on x86 has 16 registers for them.
        """
        ((bits, _),) = WASM32.vectors
        ((_, registers),) = WASM32.registers
        l1, l2, l3 = [int(target.attrs.get(name, size)) for name, size in _CACHES.items()]
        ports = int(target.attrs.get("fma-ports", 2))
        return Machine(target.num_cores or 1, bits, registers, ports, l1, l2, l3)

    def options(self, target: Target) -> LLVMOptions:
        """What LLVM is told for the variant that every engine runs."""
        return options_of(target)

    def graph(self, target: Target) -> tuple[Pass, ...]:  # noqa: ARG002 - one for all
        """``weft.backends.cpu.pipeline.GRAPH``."""
        return pipeline.GRAPH

    def lower(self, target: Target) -> tuple[Pass, ...]:  # noqa: ARG002 - one for all
        """``weft.backends.cpu.pipeline.LOWER`` without prefetches."""
        return tuple([step for step in pipeline.LOWER if _name(step) not in _NO_INSTRUCTION])

    def schedules(self, target: Target) -> tuple[ScheduleRule, ...]:  # noqa: ARG002 - one for all
        """``weft.backends.cpu.pipeline.SCHEDULES``."""
        return pipeline.SCHEDULES

    def emit(self, mod: IRModule, target: Target, *, checks: bool = True) -> WasmCode:
        """Compile the functions of ``mod``, with or without safety checks."""
        return compile_variants(mod, target, checks=checks)


def _name(step: Pass) -> str:
    return step.info.name.removeprefix("tir.")


BACKEND: Final = WasmBackend()
