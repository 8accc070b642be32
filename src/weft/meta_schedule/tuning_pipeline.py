"""``static_shape_tuning``: a pipeline that fuses a model, tunes its kernels and schedules them."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.ir.transform import ModulePass, Pass, PassContext, PassInfo, Sequential
from weft.meta_schedule.apply_database import MetaScheduleApplyDatabase
from weft.meta_schedule.tune_passes import MetaScheduleTuneIRMod
from weft.relax.transform import (
    AnnotateTIROpPattern,
    AttachAttrLayoutFreeBuffers,
    CanonicalizeBindings,
    DecomposeOpsForInference,
    FoldConstant,
    FuseOps,
    FuseTIR,
    LegalizeOps,
    LiftTransformParams,
    SplitLayoutRewritePreproc,
)
from weft.support.errors import IRValueError
from weft.target.target import TargetLike, target_meant


def static_shape_tuning_pipeline(
    total_trials: int,
    target: TargetLike,
    work_dir: str = "tuning_logs",
    cpu_weight_prepack: bool = False,
    max_trials_per_task: int | None = None,
) -> Pass:
    """A pipeline that tunes a model of fixed shapes; ``relax.build`` compiles its result.

    Args:
        total_trials: how many programs are measured; 0 takes what ``work_dir`` has.
        target: what is tuned for, with ``-num-cores``.
        work_dir: the folder of the database; what it has is not measured again.
        cpu_weight_prepack: whether schedules may ask for weights in another layout. Weights that
            are constants are copied into it at once; for those that are parameters, the result has
            a function ``main_transform_params``, whose result ``main`` takes instead.
        max_trials_per_task: how many programs of one kernel are measured at most.

    Raises:
        IRValueError: ``total_trials`` is negative; when it runs, no database and no trials.

    >>> from weft import relax
    >>> make = relax.pipeline.static_shape_tuning_pipeline
    >>> make(total_trials=8, target="llvm -num-cores=1").info.name
    'relax.static_shape_tuning'
    """
    if total_trials < 0:
        raise IRValueError(
            f"static_shape_tuning: expected total_trials of at least 0, got {total_trials}"
        )
    meant = target_meant(target)
    before = [AttachAttrLayoutFreeBuffers()] if cpu_weight_prepack else []
    after = [SplitLayoutRewritePreproc(), LiftTransformParams(), FoldConstant()]
    tuning = MetaScheduleTuneIRMod({}, work_dir, total_trials, max_trials_per_task)
    steps: list[Pass] = [
        DecomposeOpsForInference(),
        CanonicalizeBindings(),
        LegalizeOps(),
        AnnotateTIROpPattern(),
        FoldConstant(),
        FuseOps(),
        FuseTIR(),
        *before,  # tells schedules which arguments they may lay out anew
        *([tuning] if total_trials else []),
        MetaScheduleApplyDatabase(work_dir),
        *(after if cpu_weight_prepack else []),
    ]

    def run(mod: IRModule, _context: PassContext) -> IRModule:
        with meant:
            return Sequential(steps, name="relax.static_shape_tuning")(mod)

    return ModulePass(run, PassInfo(0, "relax.static_shape_tuning"))
