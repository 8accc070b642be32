"""From LLVM IR text to object code, at O3 with loop and SLP vectorisation for the target."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from weft.codegen.llvm.emit import emit_module
from weft.codegen.llvm.instructions import check_instructions
from weft.ir.module import IRModule
from weft.runtime.llvm import binding
from weft.runtime.spec import FunctionSpec
from weft.support.errors import CodegenError, InternalError
from weft.support.progress import tell
from weft.target.host import LLVMOptions, llvm_options

SLP_MISTAKES: Final = re.compile(r"uitofp (i|<\d+ x i)(16|32|64)")
"""LLVM 22's SLP vectoriser narrows the operand of such a conversion, then extends its sign, which
turns uint64(-1) into 2**32 - 1 (tests/codegen/llvm/test_llvm_bugs.py); it is off beside one."""


@dataclass(frozen=True)
class CompiledObject:
    """Object code, its functions, and its texts for those who look."""

    object_code: bytes
    specs: tuple[FunctionSpec, ...]
    options: LLVMOptions
    source: Callable[[], str]
    """Gives the LLVM IR as emitted; code from the cache is lowered again for it."""

    @functools.cached_property
    def llvm_ir(self) -> str:
        """The LLVM IR as emitted."""
        return self.source()

    def optimized_ir(self) -> str:
        """The LLVM IR after optimisation."""
        return str(optimized(self.llvm_ir, self.options)[0])

    def assembly(self) -> str:
        """The target's assembly text."""
        module, machine = optimized(self.llvm_ir, self.options)
        text: str = machine.emit_assembly(module)
        return text

    def get_source(self, fmt: str = "ll") -> str:
        """``ll``: LLVM IR as emitted; ``opt``: optimised; ``s`` or ``asm``: assembly."""
        readers: dict[str, Callable[[], str]] = {
            "ll": lambda: self.llvm_ir, "": lambda: self.llvm_ir, "opt": self.optimized_ir,
            "s": self.assembly, "asm": self.assembly,
        }  # fmt: skip
        reader = readers.get(fmt)
        if reader is None:
            raise CodegenError(f"expected one of {', '.join(readers)} as the format, got {fmt!r}")
        return reader()


def compile_module(mod: IRModule, target: Any = None, *, checks: bool = True) -> CompiledObject:
    """Compile every lowered PrimFunc of ``mod`` into one object."""
    options = llvm_options(target)
    text, specs = emit_module(mod, target, checks=checks)
    tell(f"optimising kernels: {len(specs)}")
    return CompiledObject(compile_text(text, options), specs, options, lambda: text)


def compile_text(text: str, options: LLVMOptions) -> bytes:
    """The object code of LLVM IR text."""
    module, machine = optimized(text, options)
    code: bytes = machine.emit_object(module)
    return code


def optimized(text: str, options: LLVMOptions) -> tuple[Any, Any]:
    """The optimised module and its target machine."""
    llvm = binding()
    check_instructions(text, options)
    machine = _machine(*options[:4])
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise InternalError(
            f"LLVM refuses the IR that weft wrote: {str(error).strip()[:400]}"
        ) from error
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=options[3])
    tuning.loop_vectorization = options[3] > 1
    tuning.slp_vectorization = options[3] > 1 and SLP_MISTAKES.search(text) is None
    tuning.loop_interleaving = tuning.loop_unrolling = options[3] > 1
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module, machine


@functools.lru_cache(maxsize=8)
def _machine(triple: str, cpu: str, features: str, opt_level: int) -> Any:
    llvm = binding()
    if triple and triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    try:
        found = llvm.Target.from_triple(triple or llvm.get_process_triple())
    except RuntimeError as error:
        raise CodegenError(
            f"this LLVM has no target for the triple {triple!r}: {str(error).strip()}"
        ) from error
    return found.create_target_machine(
        cpu=cpu, features=features, opt=opt_level, reloc="pic", codemodel="default"
    )


@functools.cache
def llvm_version() -> str:
    """The version of the LLVM in llvmlite."""
    return ".".join([str(part) for part in binding().llvm_version_info])
