"""Pipelines by name: which passes run on graphs and on PrimFuncs, in which order, and why there.

What depends on the processor is the backend's: the pipeline ``weft`` and the lowering of PrimFuncs
(``weft.backends.cpu.pipeline``).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final, TypeVar

from weft.codegen.backend import backend_of
from weft.driver.insertions import insert, remove, with_insertions
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
from weft.support.errors import PassError
from weft.support.registration import refuse_second
from weft.target.target import Target, TargetLike, target_meant

__all__ = [
    "RELAX_BUILD", "RELAX_DEFAULT", "RELAX_ZERO", "UNSCHEDULED", "TargetPipeline",
    "get_default_pipeline", "get_pipeline", "insert", "is_default_tir", "is_ours", "lower_tir",
    "register_pipeline", "relax_pipeline_of", "remove", "tir_pipeline_of",
]  # fmt: skip


def lower_tir(target: TargetLike | None = None) -> Sequential:
    """The passes by which a target's backend lowers PrimFuncs, as one (None: that in scope)."""
    meant = target_meant(target)
    return Sequential(backend_of(meant).lower(meant), name="tir.lower")


def is_default_tir(pipeline: object) -> bool:
    """Whether this names the lowering that ``build`` uses by itself."""
    return pipeline is None or (isinstance(pipeline, str) and pipeline == "default")


def tir_pipeline_of(pipeline: object, target: Target) -> Callable[[IRModule], IRModule]:
    """The lowering from a pass, or the target's own from None or ``"default"``."""
    if is_default_tir(pipeline):
        return lower_tir(target)
    if not callable(pipeline):
        raise PassError(
            f"the pipeline of PrimFuncs: expected a pass, 'default' or None, got {pipeline!r}"
        )
    chosen: Callable[[IRModule], IRModule] = pipeline
    return chosen


Pipeline = Callable[[IRModule], IRModule] | str | None
"""A pass, the name of a registered one, or None for no passes."""

RELAX_DEFAULT: tuple[Pass, ...] = (
    Normalize(),  # what users built by hand gets struct info and leaf arguments
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    RewriteDataflowReshape(),  # a kernel that only copies is a view of its argument
    DeadCodeElimination(),  # functions that only legalised operators used, unused bindings
)
"""From graph operators to calls of TensorIR functions."""

RELAX_ZERO: tuple[Pass, ...] = (
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    AnnotateTIROpPattern(),  # what FuseOps goes by: how each kernel reads and writes
    FoldConstant(),  # before fusion: what only depends on constants is no kernel
    FuseOps(),  # calls that may share a kernel become a function of their own
    FuseTIR(),  # and such a function one kernel
)
"""TVM 0.20's ``zero``: fused kernels, nothing tuned."""

RELAX_BUILD: tuple[Pass, ...] = (
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    RewriteDataflowReshape(),  # while dataflow blocks still say which tensors stay inside
    ToNonDataflow(),  # from here on calls have effects
    RemovePurityChecking(),
    CallTIRRewrite(),  # destinations become allocations
    StaticPlanBlockMemory(),  # which share storage
    LowerAllocTensor(),  # what could not be planned gets storage of its own
    KillAfterLastUse(),
    LowerRuntimeBuiltin(),  # operators become functions of the virtual machine
    ComputePrimValue(),  # before extents go: scalar expressions become kernels
    VMShapeLower(),  # symbolic extents become numbers on a heap
    AttachGlobalSymbol(),
)
"""TVM 0.20's ``default_build``: from a graph to what the virtual machine interprets."""

UNSCHEDULED: tuple[Pass, ...] = (
    *NORMS,
    FoldConstant(),  # what only depends on weights is computed now
    *KERNELS,
)
"""What ``weft.compile`` does to a graph, but for schedules: loops as the operators define them."""


class TargetPipeline(Pass):
    """The passes that the backend of the target in scope runs on a graph, and what was inserted."""

    info = PassInfo(0, "relax.weft")

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Those of the target in scope, or of this machine's CPU."""
        return with_insertions(target_meant())

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
    """Whether a name is that of a pipeline of weft's own, whose sources say what it does."""
    constructor = _PIPELINES.get(name)
    return constructor is not None and constructor.__module__ == __name__


def relax_pipeline_of(pipeline: object) -> Callable[[IRModule], IRModule]:
    """A pass from a name, a pass or None (no passes)."""
    if pipeline is None:
        return lambda mod: mod
    if not isinstance(pipeline, str) and not callable(pipeline):
        raise PassError(f"the Relax pipeline: expected a pass, a name or None, got {pipeline!r}")
    chosen: Callable[[IRModule], IRModule] = (
        get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    )
    return chosen
