"""Graph passes: ``relax.transform.<name>``."""

from weft.ir.transform import PassContext, Sequential
from weft.relax.transform.attach_global_symbol import AttachGlobalSymbol
from weft.relax.transform.bind import BindParams, BindSymbolicVars
from weft.relax.transform.canonicalize_bindings import CanonicalizeBindings
from weft.relax.transform.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.fold_constant import FoldConstant
from weft.relax.transform.fuse_tir import FuseTIR
from weft.relax.transform.legalize import register_legalize
from weft.relax.transform.legalize_ops import LegalizeOps
from weft.relax.transform.normalize import Normalize
from weft.relax.transform.passes import dataflowblock_pass, function_pass
from weft.relax.transform.purity import RemovePurityChecking, ToNonDataflow
from weft.support.facade import module_getattr

__all__ = [
    "AttachGlobalSymbol",
    "BindParams",
    "BindSymbolicVars",
    "CanonicalizeBindings",
    "DeadCodeElimination",
    "FoldConstant",
    "FuseTIR",
    "LegalizeOps",
    "Normalize",
    "PassContext",
    "RemovePurityChecking",
    "Sequential",
    "ToNonDataflow",
    "dataflowblock_pass",
    "function_pass",
    "register_legalize",
]

_PLANNED = dict.fromkeys(
    "AdjustMatmulOrder AllocateWorkspace AlterOpImpl AnnotateTIROpPattern "
    "AttachAttrLayoutFreeBuffers BundleModelParams CallTIRRewrite CombineParallelMatmul "
    "ComputePrimValue ConvertLayout ConvertToDataflow DataflowUseInplaceCalls "
    "DecomposeOpsForInference DecomposeOpsForTraining EliminateCommonSubexpr ExpandMatmulOfSum "
    "ExpandTupleArguments FewShotTuning FoldBatchnormToConv2D FuseOps FuseOpsByPattern "
    "FuseTransposeMatmul Gradient InlinePrivateFunctions IPCAllReduceRewrite KillAfterLastUse "
    "LambdaLift LazyGetInput LazySetOutput LazyTransformParams LiftTransformParams "
    "LowerAllocTensor LowerGPUIPCAllocStorage LowerRuntimeBuiltin MergeCompositeFunctions "
    "MetaScheduleApplyDatabase MetaScheduleTuneIRMod MetaScheduleTuneTIR NormalizeGlobalVar "
    "OptimizeLayoutTransform RealizeVDevice RemoveRedundantReshape RemoveUnusedOutputs "
    "RemoveUnusedParameters ReorderPermuteDimsAfterConcat ReorderTakeAfterMatmul RewriteCUDAGraph "
    "RewriteDataflowReshape RunCodegen SplitCallTIRByPattern SplitLayoutRewritePreproc "
    "StaticPlanBlockMemory ToMixedPrecision TopologicalSort UpdateParamStructInfo "
    "UpdateVDevice VMBuiltinLower VMShapeLower".split(),
    "more passes over graphs",
)
__getattr__, _ = module_getattr(__name__, {}, planned=_PLANNED)
