"""Pipelines: which passes run, in which order, and why there."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final

from weft.dlight import ScheduleGeneratedFunctions, cpu
from weft.ir.module import IRModule
from weft.ir.transform import Pass, Sequential
from weft.relax.backend.dispatch import DispatchToLibraries
from weft.relax.transform.fusion.annotate_tir_op_pattern import AnnotateTIROpPattern
from weft.relax.transform.fusion.fuse_ops import FuseOps
from weft.relax.transform.fusion.fuse_tir import FuseTIR
from weft.relax.transform.fusion.merge_parallel_kernels import MergeParallelKernels
from weft.relax.transform.graph.attach_global_symbol import AttachGlobalSymbol
from weft.relax.transform.graph.canonicalize_bindings import CanonicalizeBindings
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.graph.decompose_ops import DecomposeOpsForInference
from weft.relax.transform.graph.fold_batch_norm_to_conv2d import FoldBatchnormToConv2D
from weft.relax.transform.graph.fold_constant import FoldConstant
from weft.relax.transform.graph.normalize import Normalize
from weft.relax.transform.graph.simplify_data_movement import SimplifyDataMovement
from weft.relax.transform.graph.split_matmul import SplitMatmul
from weft.relax.transform.host.compute_prim_value import ComputePrimValue
from weft.relax.transform.host.purity import RemovePurityChecking, ToNonDataflow
from weft.relax.transform.host.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.relax.transform.host.vm_builtin_lower import LowerRuntimeBuiltin
from weft.relax.transform.host.vm_shape_lower import VMShapeLower
from weft.relax.transform.layout.attach_attr_layout_free_buffers import AttachAttrLayoutFreeBuffers
from weft.relax.transform.layout.block_channels import BlockChannels
from weft.relax.transform.layout.dequantize_after_product import DequantizeAfterProduct
from weft.relax.transform.layout.fuse_transposes import FuseTransposes
from weft.relax.transform.layout.join_pixels import JoinPixels
from weft.relax.transform.layout.offset_integers import OffsetIntegers
from weft.relax.transform.layout.pad_integer_channels import PadIntegerChannels
from weft.relax.transform.layout.rewrite_conv_transpose import RewriteConvTranspose
from weft.relax.transform.layout.scale_weights import ScaleWeights
from weft.relax.transform.layout.split_layout_rewrite_preproc import SplitLayoutRewritePreproc
from weft.relax.transform.layout.widen_integers import WidenIntegers
from weft.relax.transform.layout.winograd import UseWinograd
from weft.relax.transform.legalize_ops import LegalizeOps
from weft.relax.transform.memory.call_tir_rewrite import CallTIRRewrite
from weft.relax.transform.memory.concatenate_in_place import ConcatenateInPlace
from weft.relax.transform.memory.kill_after_last_use import KillAfterLastUse
from weft.relax.transform.memory.lower_alloc_tensor import LowerAllocTensor
from weft.relax.transform.memory.reuse_dying_arguments import ReuseDyingArguments
from weft.relax.transform.memory.static_plan_block_memory import StaticPlanBlockMemory
from weft.support.errors import PassError
from weft.support.registration import refuse_second
from weft.target.target import as_target
from weft.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from weft.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from weft.tir.transform.convert_ssa import ConvertSSA
from weft.tir.transform.cross_thread_reduction import LowerCrossThreadReduction
from weft.tir.transform.fill_tails import FillTails
from weft.tir.transform.flatten_vector_access import FlattenVectorAccess
from weft.tir.transform.loop_partition import PartitionGuardedLoops
from weft.tir.transform.lower_init_block import LowerInitBlock
from weft.tir.transform.lower_match_buffer import LowerMatchBuffer
from weft.tir.transform.lower_opaque_block import LowerOpaqueBlock
from weft.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from weft.tir.transform.prefetch_next import PrefetchNextIteration
from weft.tir.transform.reciprocal import MultiplyByReciprocal
from weft.tir.transform.remove_no_op import RemoveNoOp
from weft.tir.transform.serialize_threads import SerializeThreads
from weft.tir.transform.shuffle_load import ShuffleLoad
from weft.tir.transform.simplify import Simplify
from weft.tir.transform.skip_padding import SkipPadding
from weft.tir.transform.softmax_largest import LargestOfSoftmax
from weft.tir.transform.split_vector_loop import SplitVectorLoop
from weft.tir.transform.start_with_first import StartWithFirst
from weft.tir.transform.storage_rewrite import StorageRewrite
from weft.tir.transform.transpose_tile import TransposeTile
from weft.tir.transform.unroll_loop import UnrollLoop
from weft.tir.transform.vector_reduction import VectorizeReduction
from weft.tir.transform.vectorize_loop import VectorizeLoop
from weft.tir.transform.verify_thread_memory import VerifyThreadMemory

LOWER_TIR: tuple[Pass, ...] = (
    ConvertSSA(),  # what holds of a variable is taken to hold wherever it stands
    VerifyThreadMemory(),  # refuses what no order of threads makes right, by the names of blocks
    LowerCrossThreadReduction(),  # while blocks still say what is a reduction
    PlanAndUpdateBufferAllocationLocation(),  # while blocks still say what is a reduction
    LowerInitBlock(),  # needs the reduction axes, which the next pass removes
    ConvertBlocksToOpaque(),
    LowerMatchBuffer(),  # needs axes replaced, so that regions speak of loops only
    CompactBufferAllocation(is_strict=False),  # last user of block scopes; tiles are registers
    LowerOpaqueBlock(),  # blocks end here: plain loops, branches, allocations
    SerializeThreads(),  # a CPU has no threads of a GPU; from here on there are loops only
    # FlattenBuffer is not here: code generation checks each axis of an access and computes int64
    # offsets itself, and after flattening an index that leaves its axis would go unseen.
    FlattenVectorAccess(),  # before Simplify, which takes quotients and remainders apart
    Simplify(),  # before vectorising: fewer, simpler indices to widen
    SkipPadding(),  # before loops are cut, and while annotations are where blocks put them
    FillTails(),  # while guards are where blocks put them, on indices that are simple
    PrefetchNextIteration(),  # while a panel has one load in one loop
    PartitionGuardedLoops(),  # before vectorising: a lane-wise test keeps a loop scalar
    VectorizeReduction(),  # once tails are loops of their own, whose rows are not joined together
    TransposeTile(),  # once tails are loops of their own, while the nest is two plain loops
    SplitVectorLoop(),  # LLVM takes vectors of 24 lanes apart, not three of 8
    VectorizeLoop(),
    UnrollLoop(),  # after vectorising: an unrolled loop may hold vector statements
    Simplify(),  # unrolling leaves constants to fold
    StartWithFirst(),  # when statements of unrolled loops follow each other
    ShuffleLoad(),  # when what lanes pick is a matter of constants
    RemoveNoOp(),
    StorageRewrite(),  # after what removes statements: shorter lives
    ConvertSSA(),  # simplifying and unrolling copy expressions, and the lets in them
)
"""From a PrimFunc with blocks to what code generation takes."""


def lower_tir() -> Pass:
    """``LOWER_TIR`` as one pass."""
    return Sequential(LOWER_TIR, name="tir.lower")


def is_default_tir(pipeline: Any) -> bool:
    """Whether this names the lowering that ``build`` uses by itself."""
    return pipeline is None or (isinstance(pipeline, str) and pipeline == "default")


def tir_pipeline_of(pipeline: Any) -> Callable[[IRModule], IRModule]:
    """The lowering from a pass, or None or ``"default"``."""
    if is_default_tir(pipeline):
        return lower_tir()
    if not callable(pipeline):
        raise PassError(
            f"the pipeline of PrimFuncs: expected a pass, 'default' or None, got {pipeline!r}"
        )
    chosen: Callable[[IRModule], IRModule] = pipeline
    return chosen


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

_NORMS: tuple[Pass, ...] = (
    Normalize(),  # what users built by hand gets struct info and leaf arguments
    FoldBatchnormToConv2D(keep_training=True),  # while both are operators
    DecomposeOpsForInference(keep_training=True),  # the norms left, as elementwise operators
)
"""A graph as it is imported: norms that know their statistics become arithmetic."""

_KERNELS: tuple[Pass, ...] = (
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    FoldConstant(),  # what legalisation took apart
    RewriteDataflowReshape(),  # before fusion: a kernel that only copies is a view
    AnnotateTIROpPattern(),  # what FuseOps goes by: how each kernel reads and writes
    FuseOps(),  # calls that may share a kernel become a function of their own
    FuseTIR(),  # and such a function one kernel
    DeadCodeElimination(),  # functions that only legalised operators used, unused bindings
)
"""From operators to fused kernels."""

UNSCHEDULED: tuple[Pass, ...] = (
    *_NORMS,
    FoldConstant(),  # what only depends on weights is computed now
    *_KERNELS,
)
"""What ``weft.compile`` does to a graph, but for schedules: loops as the operators define them."""

WEFT: tuple[Pass, ...] = (
    *_NORMS,
    RewriteConvTranspose(),  # into convolutions, for the passes below
    ScaleWeights(),  # before channels are in blocks
    DequantizeAfterProduct(),  # while weights are bytes
    OffsetIntegers(),  # bytes less a zero point become bytes, where that is a product's operand
    WidenIntegers(),  # before weights are folded
    PadIntegerChannels(),  # so that they make blocks
    BlockChannels(),  # while convolutions are operators
    JoinPixels(),  # of those whose channels are in no blocks
    FoldConstant(),  # what only depends on weights is computed now
    SimplifyDataMovement(),  # while attention, transposes and products are operators
    SplitMatmul(),  # after slices have moved up to the products
    DispatchToLibraries(),  # what the target asks for, while products are operators
    FuseTransposes(),  # those that found nothing to cancel with
    UseWinograd(),  # once the weights of convolutions are constants in blocks
    *_KERNELS,
    AttachAttrLayoutFreeBuffers(),  # tells schedules which arguments are weights
    MultiplyByReciprocal(),  # while softmax is the blocks that define it
    LargestOfSoftmax(),  # once its quotients are products
    ScheduleGeneratedFunctions(cpu.Winograd(), cpu.Default()),  # vectors, tiles, threads
    SplitLayoutRewritePreproc(),  # what lays weights out anew becomes a kernel of its own
    FoldConstant(),  # which runs now, once
    ConcatenateInPlace(),  # once kernels are scheduled, for results that are whole
    DeadCodeElimination(),  # those kernels
    CanonicalizeBindings(),  # before neighbours are looked for: results have one name each
    MergeParallelKernels(),  # neighbours that share a partition, once all are scheduled
    ReuseDyingArguments(),  # last: a part of a concatenation, or of a merged loop, saves more
    DeadCodeElimination(),  # kernels whose calls all write in place
)
"""What ``weft.compile`` does to a graph."""

_PIPELINES: Final[dict[str, Callable[..., Any]]] = {
    "default": lambda: Sequential(RELAX_DEFAULT, name="relax.default"),
    "zero": lambda: Sequential(RELAX_ZERO, name="relax.zero"),
    "weft": lambda: Sequential(WEFT, name="relax.weft"),
    "unscheduled": lambda: Sequential(UNSCHEDULED, name="relax.unscheduled"),
    "default_build": lambda: Sequential(RELAX_BUILD, name="relax.default_build"),
}


def get_pipeline(name: str = "zero", **options: Any) -> Any:
    """The pass registered as a pipeline under ``name``."""
    constructor = _PIPELINES.get(name)
    if constructor is None:
        nearest = difflib.get_close_matches(name, _PIPELINES, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise PassError(f"there is no pipeline {name!r}; there are {', '.join(_PIPELINES)}{hint}")
    return constructor(**options)


def get_default_pipeline(target: Any = None) -> Any:
    """The pipeline ``default_build``, which is the same for every target that weft compiles for."""
    if target is not None:
        as_target(target)  # an error if there is none of that name
    return get_pipeline("default_build")


def register_pipeline(name: str, *, override: bool = False) -> Callable[[Any], Any]:
    """Decorator: register a function that returns a pass under ``name``.

    Raises:
        IRValueError: there is one of that name, and ``override`` is not given.
    """
    refuse_second("the pipeline", name, name in _PIPELINES, override)

    def apply(function: Any) -> Any:
        _PIPELINES[name] = function
        return function

    return apply


def is_ours(name: str) -> bool:
    """Whether a name is that of a pipeline of weft's own, whose sources say what it does."""
    constructor = _PIPELINES.get(name)
    return constructor is not None and constructor.__module__ == __name__


def relax_pipeline_of(pipeline: Any) -> Callable[[IRModule], IRModule]:
    """A pass from a name, a pass or None (no passes)."""
    if pipeline is None:
        return lambda mod: mod
    chosen: Callable[[IRModule], IRModule] = (
        get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    )
    if not callable(chosen):
        raise PassError(f"the Relax pipeline: expected a pass, a name or None, got {pipeline!r}")
    return chosen
