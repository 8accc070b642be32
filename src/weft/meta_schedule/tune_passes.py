"""Passes that tune the kernels of a module for the current target; the module stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.module import IRModule
from weft.ir.transform import ModulePass, Pass, PassContext, PassInfo
from weft.meta_schedule.relax_integration import tune_relax
from weft.meta_schedule.tir_integration import tune_tir
from weft.meta_schedule.tune_context import current_target
from weft.runtime.ndarray import NDArray


def MetaScheduleTuneTIR(work_dir: str, max_trials_global: int) -> Pass:  # noqa: N802 - TVM's name
    """Tune each PrimFunc of a module for the current target; the module stays as it is."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        tune_tir(mod, current_target(), work_dir, max_trials_global)
        return mod

    return ModulePass(run, PassInfo(0, "MetaScheduleTuneTIR"))


def MetaScheduleTuneIRMod(  # noqa: N802 - TVM's name
    params: Mapping[str, NDArray],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
) -> Pass:
    """Tune the kernels of a model for the current target; the module stays as it is."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        target = current_target()
        tune_relax(mod, params, target, work_dir, max_trials_global, max_trials_per_task, op_names)
        return mod

    return ModulePass(run, PassInfo(0, "MetaScheduleTuneIRMod"))
