"""Passes over PrimFuncs, one in a file; ``weft.driver.pipeline`` has their order."""

from weft.support.facade import module_getattr

# This function has the name of its submodule. It is imported here and not by the table alone, since
# importing a submodule sets the package's attribute of that name to the module.
from weft.tir.transform.prim_func_pass import prim_func_pass as prim_func_pass

_NAMES = {
    "AnnotateEntryFunc": "weft.tir.transform.annotate_entry_func",
    "Apply": "weft.tir.transform.apply",
    "BindTarget": "weft.tir.transform.bind_target",
    "CompactBufferAllocation": "weft.tir.transform.compact_buffer_allocation",
    "ConvertBlocksToOpaque": "weft.tir.transform.convert_blocks_to_opaque",
    "ConvertForLoopsToSerial": "weft.tir.transform.convert_for_loops_to_serial",
    "ConvertSSA": "weft.tir.transform.convert_ssa",
    "FillTails": "weft.backends.cpu.vectors.fill_tails",
    "Filter": "weft.tir.transform.apply",
    "FlattenVectorAccess": "weft.backends.cpu.vectors.flatten_vector_access",
    "FlattenBuffer": "weft.tir.transform.flatten_buffer",
    "ForceNarrowIndexToInt32": "weft.tir.transform.force_narrow_index",
    "FuseParallelLoops": "weft.tir.transform.parallel_nests",
    "LoopPartition": "weft.tir.transform.loop_partition",
    "HoistExpression": "weft.tir.transform.hoist_expression",
    "HoistIfThenElse": "weft.tir.transform.hoist_expression",
    "HoistedConditionals": "weft.tir.transform.hoist_expression",
    "HoistedLetBindings": "weft.tir.transform.hoist_expression",
    "InjectDoubleBuffer": "weft.tir.transform.inject_double_buffer",
    "InjectSoftwarePipeline": "weft.tir.transform.inject_software_pipeline",
    "InlinePrivateFunctions": "weft.tir.transform.inline_private_functions",
    "InjectVirtualThread": "weft.tir.transform.threads.inject_virtual_thread",
    "LargestOfSoftmax": "weft.backends.cpu.vectors.softmax_largest",
    "LowerCrossThreadReduction": "weft.tir.transform.threads.cross_thread_reduction",
    "LowerInitBlock": "weft.tir.transform.lower_init_block",
    "LowerMatchBuffer": "weft.tir.transform.lower_match_buffer",
    "LowerOpaqueBlock": "weft.tir.transform.lower_opaque_block",
    "LowerThreadAllreduce": "weft.tir.transform.threads.lower_thread_allreduce",
    "MergeParallelLoops": "weft.backends.cpu.vectors.merge_parallel_loops",
    "MergeSharedMemoryAllocations": "weft.tir.transform.storage_rewrite",
    "MultiplyByReciprocal": "weft.backends.cpu.vectors.reciprocal",
    "MergeBranches": "weft.tir.transform.merge_branches",
    "NameQuotients": "weft.tir.transform.name_quotients",
    "NarrowDataType": "weft.tir.transform.narrow_datatype",
    "PartitionGuardedLoops": "weft.tir.transform.loop_partition",
    "PlanAndUpdateBufferAllocationLocation": "weft.tir.transform.plan_buffer_allocation",
    "PrefetchNextIteration": "weft.backends.cpu.vectors.prefetch_next",
    "PrefetchResult": "weft.backends.cpu.vectors.prefetch_result",
    "PrefetchSteps": "weft.backends.cpu.vectors.prefetch_steps",
    "RemoveAssume": "weft.tir.transform.remove_no_op",
    "RemoveNoOp": "weft.tir.transform.remove_no_op",
    "RemoveWeightLayoutRewriteBlock": "weft.tir.transform.remove_weight_layout_rewrite_block",
    "SerializeThreads": "weft.tir.transform.threads.serialize_threads",
    "ShiftTiles": "weft.backends.cpu.vectors.shift_tiles",
    "ShuffleLoad": "weft.backends.cpu.vectors.shuffle_load",
    "Simplify": "weft.tir.transform.simplify",
    "SkipAssert": "weft.tir.transform.skip_assert",
    "SkipOutside": "weft.backends.cpu.vectors.skip_outside",
    "SkipUnused": "weft.backends.cpu.vectors.skip_unused",
    "SkipPadding": "weft.backends.cpu.vectors.skip_padding",
    "SplitVectorLoop": "weft.backends.cpu.vectors.split_vector_loop",
    "StartWithFirst": "weft.backends.cpu.vectors.start_with_first",
    "StorageRewrite": "weft.tir.transform.storage_rewrite",
    "ThreadSync": "weft.tir.transform.threads.thread_sync",
    "TransposeTile": "weft.backends.cpu.vectors.transpose_tile",
    "UnfuseParallelLoops": "weft.tir.transform.parallel_nests",
    "UnifyThreadBinding": "weft.tir.transform.threads.unify_thread_binding",
    "UnclampVectors": "weft.backends.cpu.vectors.unclamp_vectors",
    "UnrollLoop": "weft.tir.transform.unroll_loop",
    "VectorizeLoop": "weft.tir.transform.vectorize_loop",
    "VectorizeReduction": "weft.backends.cpu.vectors.vector_reduction",
    "VerifyThreadMemory": "weft.tir.transform.threads.verify_thread_memory",
    "prim_func_pass": "weft.tir.transform.prim_func_pass",
}
_PLANNED = {
    **dict.fromkeys(
        "DefaultGPUSchedule InferFragment InjectPermutedLayout LowerAutoCopy "
        "SplitHostDevice InjectPTXAsyncCopy "
        "LowerDeviceKernelLaunch LowerDeviceStorageAccessInfo AnnotateDeviceRegions "
        "LowerWarpMemory LiftThreadBinding DecorateDeviceScope InjectPTXLDG32 LowerAsyncDMA "
        "LowerVtcmAlloc ManifestSharedMemoryLocalStage TransformMmaBufferLayout VerifyMemory "
        "VerifyVTCMLimit".split(),
        "code generation for GPUs",
    ),
    **dict.fromkeys(
        "BF16ComputeLegalize BF16StorageLegalize CombineContextCall CommonSubexprElimTIR "
        "ExtractPrimFuncConstants FP8ComputeLegalize FP8StorageLegalize InjectRollingBuffer "
        "LegalizePackedCalls RewriteUnsafeSelect "
        "InstrumentBoundCheckers InstrumentProfileIntrinsics LowerCustomDatatypes "
        "LowerIntrin LowerTVMBuiltin MakePackedAPI MakeUnpackedAPI "
        "PointerValueTypeRewrite ReduceBranchingThroughOvercompute RemoveStoreUndef "
        "RenormalizeSplitPattern "
        "UseAssumeToReduceBranches".split(),
        "more passes over TensorIR",
    ),
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES, planned=_PLANNED)
