"""LLVM IR text in, object code out: all that weft asks of LLVM when it compiles.

The file imports nothing of weft, so that a process can run it by its path and be ready soon.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple


class Refusal(Exception):
    """LLVM does not take a text; its message says why."""


class Job(NamedTuple):
    """What LLVM is to do with a text: for which machine, how, and what is wanted of it."""

    triple: str
    cpu: str
    features: str
    opt_level: int
    slp: bool
    """Whether scalar operations may become vectors."""
    wanted: str
    """``object``: object code; ``ir``: the optimised IR; ``assembly``: the target's text."""


def translate(llvm: Any, text: str, job: Job) -> bytes:
    """What ``job`` wants of LLVM IR; ``llvm`` is ``llvmlite.binding``. Raises Refusal.

    Nothing stays behind: types and constants live as long as their context does.
    """
    machine = target_machine(llvm, *job[:4])
    with llvm.create_context() as context:
        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise Refusal(str(error).strip()) from error
        with module:
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            _optimize(llvm, module, _pass_builder(llvm, machine, job.opt_level, job.slp))
            if job.wanted == "object":
                code: bytes = machine.emit_object(module)
                return code
            printed = str(module) if job.wanted == "ir" else machine.emit_assembly(module)
            return str(printed).encode()


def _optimize(llvm: Any, module: Any, builder: Any) -> None:
    """Run LLVM's passes; a pass manager can run only once, as its inliner gives its passes away."""
    manager = builder.getModulePassManager()
    try:
        manager.run(module, builder)
    finally:
        if type(manager)._dispose is llvm.ffi.ObjectRef._dispose:  # llvmlite 0.50 has forgotten it
            llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger(manager)
            manager.detach()
        manager.close()


@functools.lru_cache(maxsize=16)
def _pass_builder(llvm: Any, machine: Any, opt_level: int, slp: bool) -> Any:
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    tuning.loop_vectorization = tuning.loop_interleaving = tuning.loop_unrolling = opt_level > 1
    tuning.slp_vectorization = opt_level > 1 and slp
    return llvm.create_pass_builder(machine, tuning)


@functools.lru_cache(maxsize=8)
def target_machine(llvm: Any, triple: str, cpu: str, features: str, opt_level: int) -> Any:
    """LLVM's target machine; a RuntimeError of LLVM where it was built without that target."""
    if triple and triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple or llvm.get_process_triple())
    return target.create_target_machine(
        cpu=cpu, features=features, opt=opt_level, reloc="pic", codemodel="default"
    )
