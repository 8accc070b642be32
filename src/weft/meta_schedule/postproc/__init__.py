"""Postprocessors: they finish a schedule before it is built, or refuse it."""

from weft.meta_schedule.postproc.base import Postproc, PyPostproc
from weft.meta_schedule.postproc.disallow_async_strided_mem_copy import (
    DisallowAsyncStridedMemCopy,
)
from weft.meta_schedule.postproc.disallow_dynamic_loop import DisallowDynamicLoop
from weft.meta_schedule.postproc.rewrite_cooperative_fetch import RewriteCooperativeFetch
from weft.meta_schedule.postproc.rewrite_layout import RewriteLayout
from weft.meta_schedule.postproc.rewrite_parallel_vectorize_unroll import (
    RewriteParallelVectorizeUnroll,
)
from weft.meta_schedule.postproc.rewrite_reduction_block import RewriteReductionBlock
from weft.meta_schedule.postproc.rewrite_tensorize import RewriteTensorize
from weft.meta_schedule.postproc.rewrite_unbound_block import RewriteUnboundBlock
from weft.meta_schedule.postproc.verify_gpu_code import VerifyGPUCode
from weft.meta_schedule.postproc.verify_vtcm_limit import VerifyVTCMLimit

__all__ = [
    "DisallowAsyncStridedMemCopy",
    "DisallowDynamicLoop",
    "Postproc",
    "PyPostproc",
    "RewriteCooperativeFetch",
    "RewriteLayout",
    "RewriteParallelVectorizeUnroll",
    "RewriteReductionBlock",
    "RewriteTensorize",
    "RewriteUnboundBlock",
    "VerifyGPUCode",
    "VerifyVTCMLimit",
]
create = Postproc.create
