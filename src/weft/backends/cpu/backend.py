"""The backend of CPUs: LLVM compiles the kernels, and they run in this process."""

from __future__ import annotations

from typing import Final

from weft.backends.cpu import pipeline
from weft.backends.cpu.machine import machine_of
from weft.codegen.backend import NativeCode, WrittenCode
from weft.codegen.llvm.compile import compile_emitted
from weft.codegen.llvm.emit import emit_module
from weft.dlight.apply import ScheduleRule
from weft.ir.module import IRModule
from weft.ir.transform import Pass
from weft.support import slots
from weft.support.config import environment_flag
from weft.target.host import LLVMOptions, llvm_options
from weft.target.kinds import KINDS, TargetKind
from weft.target.machine import Machine
from weft.target.target import Target


class CPUBackend:
    """A ``weft.codegen.backend.Backend`` for targets of the kind ``llvm``."""

    kind: TargetKind = KINDS["llvm"]
    joins_objects: Final = True

    def features(self, target: Target) -> Machine:
        """The processor that the target describes."""
        return machine_of(target)

    def options(self, target: Target) -> LLVMOptions:
        """What LLVM is told about that processor: triple, name, features, level."""
        return llvm_options(target)

    def graph(self, target: Target) -> tuple[Pass, ...]:  # noqa: ARG002 - one for all
        """``pipeline.GRAPH``."""
        return pipeline.GRAPH

    def lower(self, target: Target) -> tuple[Pass, ...]:  # noqa: ARG002 - one for all
        """``pipeline.LOWER``."""
        return pipeline.LOWER

    def schedules(self, target: Target) -> tuple[ScheduleRule, ...]:  # noqa: ARG002 - one for all
        """``pipeline.SCHEDULES``."""
        return pipeline.SCHEDULES

    def emit(self, mod: IRModule, target: Target, *, checks: bool = True) -> NativeCode:
        """Compile the functions of ``mod`` to one object file, with or without safety checks."""
        return self.compile(self.write(mod, target, checks=checks), target)

    def write(self, mod: IRModule, target: Target, *, checks: bool) -> WrittenCode:
        """The LLVM IR of the functions of ``mod``."""
        if environment_flag("WEFT_PERF"):
            located: WrittenCode = slots.written_with_lines.get()(mod, target, checks=checks)
            return located
        return WrittenCode(*emit_module(mod, target, checks=checks))

    def compile(self, written: WrittenCode, target: Target) -> NativeCode:
        """The object file of LLVM IR."""
        return compile_emitted(written.text, written.specs, llvm_options(target))


BACKEND: Final = CPUBackend()
