"""TVM 0.20's pipeline ``static_shape_tuning``: fuse, tune the kernels, give them what was found."""

from __future__ import annotations

from weft.driver.pipeline import RELAX_ZERO
from weft.ir.module import IRModule
from weft.ir.transform import ModulePass, Pass, PassContext, PassInfo, Sequential
from weft.meta_schedule.apply_database import MetaScheduleApplyDatabase
from weft.meta_schedule.tune_passes import MetaScheduleTuneIRMod
from weft.relax.transform import CanonicalizeBindings, DecomposeOpsForInference
from weft.support import slots
from weft.support.errors import IRValueError, UnsupportedError
from weft.target.target import TargetLike, target_meant


def static_shape_tuning(
    total_trials: int,
    target: TargetLike,
    work_dir: str = "tuning_logs",
    cpu_weight_prepack: bool = False,
    max_trials_per_task: int | None = None,
) -> Pass:
    """The pipeline of a model whose shapes are known; ``relax.build`` compiles what it gives.

    Args:
        total_trials: how many programs are measured; 0: take what is in ``work_dir``.
        target: what to tune for.
        work_dir: the folder of the database.
        cpu_weight_prepack: expected False: ``weft.compile`` packs weights by itself.
        max_trials_per_task: how many programs of one kernel are measured.

    Raises:
        IRValueError: ``total_trials`` is negative, or 0 and ``work_dir`` has no database.
        UnsupportedError: ``cpu_weight_prepack`` is True.
    """
    if total_trials < 0:
        raise IRValueError(f"static_shape_tuning: expected total_trials ≥ 0, got {total_trials}")
    if cpu_weight_prepack:
        raise UnsupportedError(
            "static_shape_tuning: expected cpu_weight_prepack=False: weft does not give the "
            "packing of weights as a function; weft.compile and weft.tune pack constants themselves"
        )
    tuning = [MetaScheduleTuneIRMod({}, work_dir, total_trials, max_trials_per_task)]
    steps = Sequential(
        [
            DecomposeOpsForInference(),
            CanonicalizeBindings(),
            *RELAX_ZERO,
            *(tuning if total_trials else ()),
            MetaScheduleApplyDatabase(work_dir),
        ],
        name="relax.static_shape_tuning",
    )
    meant = target_meant(target)

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        del ctx
        with meant:
            return steps(mod)

    return ModulePass(run, PassInfo(0, "relax.static_shape_tuning"))


slots.static_shape_tuning.fill(static_shape_tuning)
