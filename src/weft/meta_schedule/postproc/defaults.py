"""The postprocessors that TVM uses for each kind of target."""

from __future__ import annotations

from weft.backends.cpu.search_kinds import SearchKind
from weft.meta_schedule.postproc.base import Postproc
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


def for_cpu(cpu: SearchKind) -> list[Postproc]:
    """The postprocessors of CPUs; instructions for small integers are put in place."""
    tensorize = [RewriteTensorize(vectorize_init_loop=True)] if cpu.intrinsics else []
    return [*_loops(), *tensorize, RewriteLayout()]


def _loops() -> list[Postproc]:
    return [DisallowDynamicLoop(), RewriteParallelVectorizeUnroll(), RewriteReductionBlock()]


def for_gpu() -> list[Postproc]:
    """The postprocessors of GPUs."""
    return [
        DisallowDynamicLoop(),
        RewriteCooperativeFetch(),
        RewriteUnboundBlock(max_threadblocks=256),
        RewriteParallelVectorizeUnroll(),
        RewriteReductionBlock(),
        VerifyGPUCode(),
    ]


def for_tensor_cores() -> list[Postproc]:
    """The postprocessors of GPUs with tensor cores: the costly one comes after the checks."""
    return [*for_gpu(), RewriteTensorize(vectorize_init_loop=False)]


def for_hexagon() -> list[Postproc]:
    """The postprocessors of Hexagon."""
    return [*_loops(), RewriteLayout(), VerifyVTCMLimit()]
