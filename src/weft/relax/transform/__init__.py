"""Graph passes: ``relax.transform.<name>``."""

from weft.ir.transform import PassContext, Sequential
from weft.relax.transform.fusion.annotate_tir_op_pattern import AnnotateTIROpPattern
from weft.relax.transform.fusion.fuse_ops import FuseOps
from weft.relax.transform.fusion.fuse_ops_by_pattern import (
    FuseOpsByPattern,
    FusionPattern,
    PatternCheckContext,
)
from weft.relax.transform.fusion.fuse_tir import FuseTIR
from weft.relax.transform.fusion.merge_composite_functions import MergeCompositeFunctions
from weft.relax.transform.fusion.run_codegen import RunCodegen
from weft.relax.transform.graph.adjust_matmul_order import AdjustMatmulOrder
from weft.relax.transform.graph.attach_global_symbol import AttachGlobalSymbol
from weft.relax.transform.graph.bind import BindParams, BindSymbolicVars
from weft.relax.transform.graph.canonicalize_bindings import CanonicalizeBindings
from weft.relax.transform.graph.combine_parallel_matmul import CombineParallelMatmul
from weft.relax.transform.graph.convert_to_dataflow import ConvertToDataflow
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.graph.decompose_ops import DecomposeOpsForInference
from weft.relax.transform.graph.eliminate_common_subexpr import EliminateCommonSubexpr
from weft.relax.transform.graph.expand_matmul import ExpandMatmulOfSum, ReorderTakeAfterMatmul
from weft.relax.transform.graph.expand_tuple_arguments import ExpandTupleArguments
from weft.relax.transform.graph.fold_batch_norm_to_conv2d import FoldBatchnormToConv2D
from weft.relax.transform.graph.fold_constant import FoldConstant
from weft.relax.transform.graph.hoist_loop_invariants import HoistLoopInvariants
from weft.relax.transform.graph.inline_private_functions import InlinePrivateFunctions
from weft.relax.transform.graph.lambda_lift import LambdaLift
from weft.relax.transform.graph.normalize import Normalize
from weft.relax.transform.graph.normalize_global_var import NormalizeGlobalVar
from weft.relax.transform.graph.remove_redundant_reshape import RemoveRedundantReshape
from weft.relax.transform.graph.remove_unused_outputs import RemoveUnusedOutputs
from weft.relax.transform.graph.remove_unused_parameters import RemoveUnusedParameters
from weft.relax.transform.graph.reorder_permute_dims import ReorderPermuteDimsAfterConcat
from weft.relax.transform.graph.to_mixed_precision import ToMixedPrecision
from weft.relax.transform.graph.topological_sort import TopologicalSort
from weft.relax.transform.graph.update_param_struct_info import UpdateParamStructInfo
from weft.relax.transform.host.compute_prim_value import ComputePrimValue
from weft.relax.transform.host.purity import RemovePurityChecking, ToNonDataflow
from weft.relax.transform.host.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.relax.transform.host.vm_builtin_lower import LowerRuntimeBuiltin, VMBuiltinLower
from weft.relax.transform.host.vm_shape_lower import VMShapeLower
from weft.relax.transform.layout.alter_op_impl import AlterOpImpl
from weft.relax.transform.layout.attach_attr_layout_free_buffers import AttachAttrLayoutFreeBuffers
from weft.relax.transform.layout.convert_layout import ConvertLayout
from weft.relax.transform.layout.specialize_prim_func_based_on_call_site import (
    SpecializePrimFuncBasedOnCallSite,
)
from weft.relax.transform.layout.split_layout_rewrite_preproc import SplitLayoutRewritePreproc
from weft.relax.transform.legalize import register_legalize
from weft.relax.transform.legalize.legalize_ops import LegalizeOps
from weft.relax.transform.memory.assign_offsets import AssignOffsets
from weft.relax.transform.memory.call_tir_rewrite import CallTIRRewrite
from weft.relax.transform.memory.dataflow_use_inplace_calls import DataflowUseInplaceCalls
from weft.relax.transform.memory.kill_after_last_use import KillAfterLastUse
from weft.relax.transform.memory.lower_alloc_tensor import LowerAllocTensor
from weft.relax.transform.memory.static_plan_block_memory import StaticPlanBlockMemory
from weft.relax.transform.passes import dataflowblock_pass, function_pass
from weft.relax.transform.weights.bundle_model_params import BundleModelParams
from weft.relax.transform.weights.lazy_params import LazyGetInput, LazySetOutput
from weft.relax.transform.weights.lazy_transform_params import LazyTransformParams
from weft.relax.transform.weights.lift_transform_params import LiftTransformParams
from weft.support.facade import module_getattr

__all__ = [
    "AdjustMatmulOrder",
    "AlterOpImpl",
    "AnnotateTIROpPattern",
    "AssignOffsets",
    "AttachAttrLayoutFreeBuffers",
    "AttachGlobalSymbol",
    "BindParams",
    "BindSymbolicVars",
    "BundleModelParams",
    "CallTIRRewrite",
    "CanonicalizeBindings",
    "CombineParallelMatmul",
    "ComputePrimValue",
    "ConvertLayout",
    "ConvertToDataflow",
    "DataflowUseInplaceCalls",
    "DeadCodeElimination",
    "DecomposeOpsForInference",
    "EliminateCommonSubexpr",
    "ExpandMatmulOfSum",
    "ExpandTupleArguments",
    "FoldBatchnormToConv2D",
    "FoldConstant",
    "FuseOps",
    "FuseOpsByPattern",
    "FuseTIR",
    "FusionPattern",
    "InlinePrivateFunctions",
    "KillAfterLastUse",
    "HoistLoopInvariants",
    "LambdaLift",
    "LazyGetInput",
    "LazySetOutput",
    "LazyTransformParams",
    "LegalizeOps",
    "LiftTransformParams",
    "LowerAllocTensor",
    "LowerRuntimeBuiltin",
    "MergeCompositeFunctions",
    "Normalize",
    "NormalizeGlobalVar",
    "PassContext",
    "PatternCheckContext",
    "RemovePurityChecking",
    "RemoveRedundantReshape",
    "RemoveUnusedOutputs",
    "RemoveUnusedParameters",
    "ReorderPermuteDimsAfterConcat",
    "ReorderTakeAfterMatmul",
    "RewriteDataflowReshape",
    "RunCodegen",
    "Sequential",
    "SpecializePrimFuncBasedOnCallSite",
    "SplitLayoutRewritePreproc",
    "StaticPlanBlockMemory",
    "ToMixedPrecision",
    "ToNonDataflow",
    "TopologicalSort",
    "UpdateParamStructInfo",
    "VMBuiltinLower",
    "VMShapeLower",
    "dataflowblock_pass",
    "function_pass",
    "register_legalize",
]

_PLANNED = dict.fromkeys(
    "AllocateWorkspace DecomposeOpsForTraining "
    "FewShotTuning "
    "FuseTransposeMatmul Gradient IPCAllReduceRewrite "
    "LowerGPUIPCAllocStorage "
    "OptimizeLayoutTransform RealizeVDevice "
    "RewriteCUDAGraph "
    "SplitCallTIRByPattern "
    "UpdateVDevice".split(),
    "more passes over graphs",
)
_PLANNED["AttachExternModules"] = "C++ sources linked into models"
_LATER = {
    "MetaScheduleApplyDatabase": "weft.meta_schedule.apply_database",
    "MetaScheduleTuneIRMod": "weft.meta_schedule.tune_passes",
    "MetaScheduleTuneTIR": "weft.meta_schedule.tune_passes",
}
"""Passes of a package that imports this one."""
__getattr__, _ = module_getattr(__name__, _LATER, planned=_PLANNED)
