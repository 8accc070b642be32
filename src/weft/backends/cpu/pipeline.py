"""The passes over graphs and over PrimFuncs for a CPU: their order, and why each stands there."""

from __future__ import annotations

from weft.backends.cpu.schedules import Default, Winograd
from weft.backends.cpu.vectors.fill_tails import FillTails
from weft.backends.cpu.vectors.flatten_vector_access import FlattenVectorAccess
from weft.backends.cpu.vectors.join_axes import JoinAxes
from weft.backends.cpu.vectors.prefetch_next import PrefetchNextIteration
from weft.backends.cpu.vectors.prefetch_result import PrefetchResult
from weft.backends.cpu.vectors.prefetch_steps import PrefetchSteps
from weft.backends.cpu.vectors.reciprocal import MultiplyByReciprocal
from weft.backends.cpu.vectors.shift_tiles import ShiftTiles
from weft.backends.cpu.vectors.shuffle_load import ShuffleLoad
from weft.backends.cpu.vectors.skip_outside import SkipOutside
from weft.backends.cpu.vectors.skip_padding import SkipPadding
from weft.backends.cpu.vectors.skip_unused import SkipUnused
from weft.backends.cpu.vectors.softmax_largest import LargestOfSoftmax
from weft.backends.cpu.vectors.split_vector_loop import SplitVectorLoop
from weft.backends.cpu.vectors.start_with_first import StartWithFirst
from weft.backends.cpu.vectors.transpose_tile import TransposeTile
from weft.backends.cpu.vectors.unclamp_vectors import UnclampVectors
from weft.backends.cpu.vectors.vector_reduction import VectorizeReduction
from weft.dlight.apply import ScheduleGeneratedFunctions, ScheduleRule
from weft.ir.transform import Pass
from weft.relax.backend.dispatch import DispatchToLibraries
from weft.relax.transform.fusion.attach_size_hints import AttachSizeHints
from weft.relax.transform.fusion.merge_parallel_kernels import MergeParallelKernels
from weft.relax.transform.graph.canonicalize_bindings import CanonicalizeBindings
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.graph.fold_constant import FoldConstant
from weft.relax.transform.graph.simplify_data_movement import SimplifyDataMovement
from weft.relax.transform.graph.slice_splits import SliceSplits
from weft.relax.transform.graph.split_matmul import SplitMatmul
from weft.relax.transform.graph.split_resizes import SplitResizes
from weft.relax.transform.layout.attach_attr_layout_free_buffers import AttachAttrLayoutFreeBuffers
from weft.relax.transform.layout.attach_byte_pairs import AttachBytePairs
from weft.relax.transform.layout.block_channels import BlockChannels
from weft.relax.transform.layout.dequantize_after_product import DequantizeAfterProduct
from weft.relax.transform.layout.fuse_transposes import FuseTransposes
from weft.relax.transform.layout.join_pixels import JoinPixels
from weft.relax.transform.layout.offset_integers import OffsetIntegers
from weft.relax.transform.layout.pad_channels import PadChannels
from weft.relax.transform.layout.rewrite_conv_transpose import RewriteConvTranspose
from weft.relax.transform.layout.scale_after_product import ScaleAfterProduct
from weft.relax.transform.layout.scale_weights import ScaleWeights
from weft.relax.transform.layout.split_layout_rewrite_preproc import SplitLayoutRewritePreproc
from weft.relax.transform.layout.widen_integers import WidenIntegers
from weft.relax.transform.layout.winograd import UseWinograd
from weft.relax.transform.memory.concatenate_in_place import ConcatenateInPlace
from weft.relax.transform.memory.reuse_dying_arguments import ReuseDyingArguments
from weft.relax.transform.stages import KERNELS, NORMS
from weft.relax.transform.weights.narrow_weights import NarrowWeights
from weft.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from weft.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from weft.tir.transform.convert_ssa import ConvertSSA
from weft.tir.transform.inline_elementwise import InlineElementwise
from weft.tir.transform.loop_partition import PartitionGuardedLoops
from weft.tir.transform.lower_init_block import LowerInitBlock
from weft.tir.transform.lower_match_buffer import LowerMatchBuffer
from weft.tir.transform.lower_opaque_block import LowerOpaqueBlock
from weft.tir.transform.merge_branches import MergeBranches
from weft.tir.transform.name_quotients import NameQuotients
from weft.tir.transform.parallel_nests import FuseParallelLoops, UnfuseParallelLoops
from weft.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from weft.tir.transform.remove_no_op import RemoveNoOp
from weft.tir.transform.simplify import Simplify
from weft.tir.transform.skip_assert import SkipAssert
from weft.tir.transform.storage_rewrite import StorageRewrite
from weft.tir.transform.threads.cross_thread_reduction import LowerCrossThreadReduction
from weft.tir.transform.threads.serialize_threads import SerializeThreads
from weft.tir.transform.threads.verify_thread_memory import VerifyThreadMemory
from weft.tir.transform.unroll_loop import UnrollLoop
from weft.tir.transform.vectorize_loop import VectorizeLoop

LOWER: tuple[Pass, ...] = (
    ConvertSSA(),  # first: later passes take a fact about a variable to hold wherever it stands
    SkipAssert(always=False),  # before the passes that prove something by an assert
    UnfuseParallelLoops(),  # before all passes that would take quotients by symbols for indices
    VerifyThreadMemory(),  # while blocks have names: refuses what is wrong in any order of threads
    LowerCrossThreadReduction(),  # while blocks still say what is a reduction
    PlanAndUpdateBufferAllocationLocation(),  # while blocks still say what is a reduction
    LowerInitBlock(),  # needs the reduction axes, which the next pass removes
    ConvertBlocksToOpaque(),
    LowerMatchBuffer(),  # after axes are replaced, so that regions depend on loops only
    CompactBufferAllocation(is_strict=False),  # needs block scopes; makes tiles fit registers
    LowerOpaqueBlock(),  # no blocks from here on: plain loops, branches, allocations
    SerializeThreads(),  # a CPU has no GPU threads; from here on there are loops only
    # FlattenBuffer is not here: code generation checks each axis of an access and computes int64
    # offsets itself, and after flattening an index that leaves its axis would go unseen.
    JoinAxes(),  # before Simplify, which rewrites the quotients that it looks for
    FlattenVectorAccess(),  # before Simplify, for the same reason
    Simplify(),  # before vectorising: fewer, simpler indices to widen
    SkipPadding(),  # before loops are cut, and while annotations are where blocks put them
    FillTails(),  # after Simplify, and while guards are where blocks put them
    ShiftTiles(),  # before prefetching and cuts: tiles of symbolic axes need no copies with guards
    SkipOutside(),  # after ShiftTiles, and while a tile has one store in its loops
    SkipUnused(),  # before loops are cut, as the loops around say how many elements there are
    PrefetchNextIteration(),  # while a panel has one load in one loop
    PrefetchSteps(),  # before loops are cut: a panel that is cut off is fetched as a whole one
    PrefetchResult(),  # before loops are cut: guards are the same as those of the stores
    PartitionGuardedLoops(),  # before vectorising: a test per lane would keep a loop scalar
    VectorizeReduction(),  # after loops are cut: the rows of a cut-off tail are not a full group
    TransposeTile(),  # after loops are cut, and while the nest is two plain loops
    SplitVectorLoop(),  # LLVM takes vectors of 24 lanes apart, but not three of 8
    VectorizeLoop(),
    UnrollLoop(),  # after vectorising: an unrolled loop may hold vector statements
    Simplify(),  # folds the constants that unrolling leaves
    MergeBranches(),  # after unrolling, which leaves equal branches side by side
    StartWithFirst(),  # after unrolling, when statements follow each other
    UnclampVectors(),  # before ShuffleLoad, which makes runs of what is not clamped
    ShuffleLoad(),  # after unrolling, when lanes pick elements by constants
    NameQuotients(),  # after the last Simplify, which would put quotients in the places of names
    FuseParallelLoops(),  # after the last Simplify, which would put quotients back into indices
    RemoveNoOp(),
    StorageRewrite(),  # after the passes that remove statements: buffers live shorter
    ConvertSSA(),  # simplifying and unrolling copy expressions, and the lets in them
)
"""Lowers a PrimFunc with blocks to the loops and statements that code generation takes."""

SCHEDULES: tuple[ScheduleRule, ...] = (Winograd(), Default())
"""The first rule knows the stages of Winograd's algorithm by their names; the second one schedules
every other function by its structure."""

GRAPH: tuple[Pass, ...] = (
    *NORMS,
    RewriteConvTranspose(),  # makes convolutions, which the passes below improve
    ScaleWeights(),  # before channels are in blocks
    DequantizeAfterProduct(),  # while weights are bytes
    ScaleAfterProduct(),  # after DequantizeAfterProduct, which takes products of two such operands
    OffsetIntegers(),  # before WidenIntegers: keeps bytes that have a zero point subtracted bytes
    WidenIntegers(),  # before weights are folded
    PadChannels(),  # before BlockChannels: pads channels to whole blocks
    BlockChannels(),  # while convolutions are operators
    JoinPixels(),  # after BlockChannels: for convolutions whose channels are in no blocks
    FoldConstant(),  # computes what depends on weights only
    SimplifyDataMovement(),  # while attention, transposes and products are operators
    SplitMatmul(),  # after slices have moved up to the products
    DispatchToLibraries(),  # while products are operators: gives libraries what the target says
    FuseTransposes(),  # after SimplifyDataMovement: takes the transposes that are left
    UseWinograd(),  # after FoldConstant: weights must be constants in blocks
    SplitResizes(),  # after BlockChannels: where vectors lie along channels, nothing is gathered
    SliceSplits(),  # after the passes that look for splits
    NarrowWeights(),  # last of the passes that change weights
    *KERNELS,
    AttachAttrLayoutFreeBuffers(),  # tells schedules which arguments are weights
    AttachBytePairs(),  # and of which weights bytes can be multiplied in pairs
    MultiplyByReciprocal(),  # while a softmax is the blocks that define it
    LargestOfSoftmax(),  # after MultiplyByReciprocal, whose form it looks for
    AttachSizeHints(),  # once the kernels are complete, for their schedules
    InlineElementwise(),  # after the two passes that know the blocks of a softmax
    ScheduleGeneratedFunctions(*SCHEDULES),  # vectors, tiles, threads
    SplitLayoutRewritePreproc(),  # makes a kernel of each block that lays a weight out anew
    FoldConstant(),  # runs these kernels now, once
    ConcatenateInPlace(),  # after schedules, which it does not disturb
    DeadCodeElimination(),  # removes the kernels that were replaced
    CanonicalizeBindings(),  # before neighbours are looked for: gives each result one name
    MergeParallelKernels(),  # after schedules: merges neighbours that share a partition
    ReuseDyingArguments(),  # last: concatenating in place and merging save more memory traffic
    DeadCodeElimination(),  # removes kernels that are no longer called
)
"""The passes of ``weft.compile`` over a graph for a CPU."""
