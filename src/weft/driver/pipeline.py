"""Pipelines by name: which passes run on graphs, in which order, and why in this order.

The pipeline ``weft`` and the lowering of PrimFuncs depend on the processor, so the backend has them
(``weft.backends.cpu.pipeline``).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from weft.codegen.backend import backend_of
from weft.dlight.apply import ScheduleRule
from weft.driver.insertions import checked_rules, insert, remove, with_own_rules
from weft.ir.module import IRModule
from weft.ir.transform import Pass, PassContext, PassInfo, Sequential
from weft.relax.transform.fusion.annotate_tir_op_pattern import AnnotateTIROpPattern
from weft.relax.transform.fusion.fuse_ops import FuseOps
from weft.relax.transform.fusion.fuse_tir import FuseTIR
from weft.relax.transform.graph.attach_global_symbol import AttachGlobalSymbol
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.graph.fold_constant import FoldConstant
from weft.relax.transform.graph.normalize import Normalize
from weft.relax.transform.host.compute_prim_value import ComputePrimValue
from weft.relax.transform.host.purity import RemovePurityChecking, ToNonDataflow
from weft.relax.transform.host.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.relax.transform.host.vm_builtin_lower import LowerRuntimeBuiltin
from weft.relax.transform.host.vm_shape_lower import VMShapeLower
from weft.relax.transform.legalize.legalize_ops import LegalizeOps
from weft.relax.transform.memory.call_tir_rewrite import CallTIRRewrite
from weft.relax.transform.memory.kill_after_last_use import KillAfterLastUse
from weft.relax.transform.memory.lower_alloc_tensor import LowerAllocTensor
from weft.relax.transform.memory.static_plan_block_memory import StaticPlanBlockMemory
from weft.relax.transform.stages import KERNELS, NORMS
from weft.relax.transform.weights.narrow_weights import NarrowWeights
from weft.support.errors import PassError
from weft.support.facade import module_getattr
from weft.support.registration import refuse_second
from weft.target.target import Target, TargetLike, target_meant

__all__ = [
    "RELAX_BUILD", "RELAX_DEFAULT", "RELAX_ZERO", "UNSCHEDULED", "TargetPipeline",
    "get_default_pipeline", "get_pipeline", "insert", "is_default_tir", "is_ours", "lower_tir",
    "register_pipeline", "relax_pipeline_of", "remove", "tir_pipeline_of", "with_rules",
]  # fmt: skip


def lower_tir(target: TargetLike | None = None) -> Sequential:
    """The passes by which a target's backend lowers PrimFuncs; None: the target in scope."""
    meant = target_meant(target)
    return Sequential(backend_of(meant).lower(meant), name="tir.lower")


def is_default_tir(pipeline: object) -> bool:
    """Whether ``pipeline`` stands for the default lowering (None or ``"default"``)."""
    return pipeline is None or (isinstance(pipeline, str) and pipeline == "default")


def tir_pipeline_of(pipeline: object, target: Target) -> Callable[[IRModule], IRModule]:
    """The lowering that ``pipeline`` stands for: a pass, or None or "default" for the target's."""
    if is_default_tir(pipeline):
        return lower_tir(target)
    if not callable(pipeline):
        raise PassError(
            f"the pipeline of PrimFuncs: expected a pass, 'default' or None, got {pipeline!r}"
        )
    return pipeline


Pipeline = Callable[[IRModule], IRModule] | str | None
"""A pass, the name of a registered one, or None for no passes."""

RELAX_DEFAULT: tuple[Pass, ...] = (
    Normalize(),  # functions that users built by hand get struct info and leaf arguments
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    RewriteDataflowReshape(),  # a kernel that only copies is a view of its argument
    DeadCodeElimination(),  # removes functions that are no longer called, and unused bindings
)
"""Lowers operators to calls of TensorIR functions."""

RELAX_ZERO: tuple[Pass, ...] = (
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    AnnotateTIROpPattern(),  # says how each kernel reads and writes, which FuseOps goes by
    FoldConstant(),  # before fusion: computes what depends on constants only
    FuseOps(),  # calls that can share a kernel become a function
    FuseTIR(),  # such a function becomes one kernel
)
"""TVM 0.20's pipeline ``zero``: kernels are fused and not tuned."""

RELAX_BUILD: tuple[Pass, ...] = (
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    RewriteDataflowReshape(),  # while dataflow blocks still say which tensors stay inside
    ToNonDataflow(),  # from here on calls have effects
    RemovePurityChecking(),
    CallTIRRewrite(),  # allocates the destinations of calls
    StaticPlanBlockMemory(),  # lets these tensors share storage
    LowerAllocTensor(),  # tensors that could not be planned get storage of their own
    KillAfterLastUse(),
    LowerRuntimeBuiltin(),  # operators become functions of the virtual machine
    ComputePrimValue(),  # before VMShapeLower: scalar expressions become kernels
    VMShapeLower(),  # puts the values of symbolic extents on a heap
    AttachGlobalSymbol(),
)
"""TVM 0.20's pipeline ``default_build``: lowers a graph to what the virtual machine interprets."""

UNSCHEDULED: tuple[Pass, ...] = (
    *NORMS,
    FoldConstant(),  # computes what depends on weights only
    NarrowWeights(),  # once weights are constants
    *KERNELS,
)
"""The pipeline of ``weft.compile`` without schedules: loops stay as the operators define them."""


class TargetPipeline(Pass):
    """The passes that the backend of the target in scope runs on a graph, with insertions.

    ``rules`` are asked for a kernel's schedule before all others.
    """

    info = PassInfo(0, "relax.weft")

    def __init__(self, rules: Sequence[ScheduleRule] = ()) -> None:
        self.rules = rules

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes for the target in scope, or for this machine's CPU if there is none."""
        return with_own_rules(target_meant(), self.rules)

    def _run(self, mod: IRModule, context: PassContext) -> IRModule:
        return Sequential(self.passes, name=self.info.name).transform_module(mod, context)


Maker = TypeVar("Maker", bound=Callable[..., Pass])

_PIPELINES: Final[dict[str, Callable[..., Pass]]] = {
    "default": lambda: Sequential(RELAX_DEFAULT, name="relax.default"),
    "zero": lambda: Sequential(RELAX_ZERO, name="relax.zero"),
    "weft": TargetPipeline,
    "unscheduled": lambda: Sequential(UNSCHEDULED, name="relax.unscheduled"),
    "default_build": lambda: Sequential(RELAX_BUILD, name="relax.default_build"),
}

_TUNING: Final = {"static_shape_tuning_pipeline": "weft.meta_schedule.tuning_pipeline"}
__getattr__, _ = module_getattr(__name__, _TUNING)


def _static_shape_tuning(**options: object) -> Pass:
    pipeline: Pass = __getattr__("static_shape_tuning_pipeline")(**options)
    return pipeline


_PIPELINES["static_shape_tuning"] = _static_shape_tuning  # loaded with the first use


def get_pipeline(name: str = "zero", **options: object) -> Any:
    """The pass registered as a pipeline under ``name``."""
    constructor = _PIPELINES.get(name)
    if constructor is None:
        nearest = difflib.get_close_matches(name, _PIPELINES, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise PassError(f"there is no pipeline {name!r}; there are {', '.join(_PIPELINES)}{hint}")
    return constructor(**options)


def get_default_pipeline(target: TargetLike | None = None) -> Pass:
    """The pipeline ``default_build``, which is the same for every target that weft compiles for.

    Raises CodegenError for a target that no backend compiles for.
    """
    backend_of(target_meant(target))
    return Sequential(RELAX_BUILD, name="relax.default_build")


def register_pipeline(name: str, *, override: bool = False) -> Callable[[Maker], Maker]:
    """Decorator: register a function that returns a pass under ``name``.

    Raises:
        IRValueError: there is one of that name, and ``override`` is not given.
    """
    refuse_second("the pipeline", name, name in _PIPELINES, override)

    def apply(function: Maker) -> Maker:
        _PIPELINES[name] = function
        return function

    return apply


def is_ours(name: str) -> bool:
    """Whether ``name`` is one of weft's own pipelines, which weft's sources identify."""
    constructor = _PIPELINES.get(name)
    return constructor is not None and constructor.__module__ == __name__


def with_rules(pipeline: Pipeline, rules: object) -> Pipeline:
    """The pipeline ``weft`` with schedule rules of one model; another one if there are none.

    Raises:
        PassError: ``rules`` are no ScheduleRules, or ``pipeline`` is another one, without rules.
    """
    checked = checked_rules(rules)
    if checked and pipeline != "weft":
        raise PassError(
            f"compile: rules= stand before those of the pipeline 'weft', got {pipeline!r} as "
            "relax_pipeline; leave one of the two out"
        )
    return TargetPipeline(checked) if checked else pipeline


def relax_pipeline_of(pipeline: object) -> Callable[[IRModule], IRModule]:
    """The pass that ``pipeline`` stands for: a name, a pass, or None for no passes."""
    if pipeline is None:
        return lambda mod: mod
    if not isinstance(pipeline, str) and not callable(pipeline):
        raise PassError(f"the Relax pipeline: expected a pass, a name or None, got {pipeline!r}")
    chosen: Callable[[IRModule], IRModule] = (
        get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    )
    return chosen
