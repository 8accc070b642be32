"""The rules that TVM uses for each kind of target, and their parameters."""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.search_kinds import SearchKind
from weft.meta_schedule.schedule_rule.add_rfactor import AddRFactor
from weft.meta_schedule.schedule_rule.apply_custom_rule import ApplyCustomRule
from weft.meta_schedule.schedule_rule.auto_bind import AutoBind
from weft.meta_schedule.schedule_rule.auto_inline import AutoInline, InlineConstantScalars
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.schedule_rule.cross_thread_reduction import CrossThreadReduction
from weft.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling
from weft.meta_schedule.schedule_rule.multi_level_tiling_tensor_core import (
    MultiLevelTilingTensorCore,
)
from weft.meta_schedule.schedule_rule.multi_level_tiling_wide_vector import (
    MultiLevelTilingWideVector,
)
from weft.meta_schedule.schedule_rule.multi_level_tiling_with_intrin import (
    MultiLevelTilingWithIntrin,
)
from weft.meta_schedule.schedule_rule.parallel_vectorize_unroll import ParallelizeVectorizeUnroll
from weft.meta_schedule.schedule_rule.random_compute_location import RandomComputeLocation
from weft.meta_schedule.schedule_rule.reuse_type import ReuseType
from weft.tensor_intrin.cuda import get_wmma_intrin_group
from weft.tir.tensor_intrinsic import TensorIntrin

_RESULTS: Final = ReuseType("may", (1, 2), "global")
"""On CPUs: the tiles of a result may be computed in memory of their own."""
_CPU_TILES: Final = "SSRSRS"
_GPU_TILES: Final = "SSSRRSRS"


def _inline_cheap() -> ScheduleRule:
    """Inlining that neither computes costly things again nor changes the order of reading."""
    return AutoInline(
        into_producer=False,
        into_consumer=True,
        inline_const_tensor=True,
        disallow_if_then_else=True,
        require_injective=True,
        require_ordered=True,
        disallow_op=["tir.exp"],
    )


def _inline_all() -> ScheduleRule:
    return AutoInline(
        into_producer=True,
        into_consumer=True,
        inline_const_tensor=True,
        disallow_if_then_else=False,
        require_injective=False,
        require_ordered=False,
        disallow_op=[],
    )


def for_cpu(cpu: SearchKind) -> list[ScheduleRule]:
    """The rules of a CPU; blocks that compute as one of its intrinsics are tiled around it.

    Intrinsics that nobody has registered are left out.
    """
    return [
        ApplyCustomRule(),
        InlineConstantScalars(),
        _inline_cheap(),
        AddRFactor(max_jobs_per_core=cpu.jobs_per_core, max_innermost_factor=cpu.lanes),
        *[
            MultiLevelTilingWithIntrin(
                name, _CPU_TILES, max_innermost_factor=cpu.lanes, reuse_write=_RESULTS
            )
            for name in cpu.intrinsics
            if TensorIntrin.get(name, allow_missing=True) is not None
        ],
        MultiLevelTiling(_CPU_TILES, max_innermost_factor=cpu.lanes, reuse_write=_RESULTS),
        ParallelizeVectorizeUnroll(
            max_jobs_per_core=cpu.jobs_per_core,
            max_vectorize_extent=cpu.lanes,
            unroll_max_steps=cpu.unroll_steps,
            unroll_explicit=True,
        ),
        RandomComputeLocation(),
    ]


def for_gpu() -> list[ScheduleRule]:
    """The rules of GPUs."""
    return [
        ApplyCustomRule(),
        MultiLevelTiling(
            _GPU_TILES,
            tile_binds=["blockIdx.x", "vthread.x", "threadIdx.x"],
            max_innermost_factor=64,
            vector_load_lens=[1, 2, 3, 4, 8, 16],
            reuse_read=ReuseType("must", (4,), "shared"),
            reuse_write=ReuseType("must", (3,), "local"),
        ),
        InlineConstantScalars(),
        _inline_all(),
        CrossThreadReduction(thread_extents=[4, 8, 16, 32, 64, 128, 256, 512]),
        ParallelizeVectorizeUnroll(
            max_jobs_per_core=-1,
            max_vectorize_extent=-1,
            unroll_max_steps=[0, 16, 64, 512, 1024],
            unroll_explicit=True,
        ),
        AutoBind(max_threadblocks=256, thread_extents=[32, 64, 128, 256, 512, 1024]),
    ]


def for_tensor_cores() -> list[ScheduleRule]:
    """The rules of GPUs with tensor cores: products of float16, then those of all GPUs."""
    custom, *others = for_gpu()
    fragments = MultiLevelTilingTensorCore(
        [
            get_wmma_intrin_group("shared", "shared", "float16", dtype, is_transposed)
            for dtype in ("float16", "float32")
            for is_transposed in (False, True)
        ],
        _GPU_TILES,
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 3, 4, 8, 16],
        reuse_read=ReuseType("must", (4,), "shared"),
        reuse_write=ReuseType("must", (2,), "shared"),
    )
    return [custom, fragments, *others]


def for_hexagon() -> list[ScheduleRule]:
    """The rules of Hexagon's vectors of 1,024 bits."""
    return [
        ApplyCustomRule(),
        InlineConstantScalars(),
        _inline_cheap(),
        MultiLevelTilingWideVector(
            "SRSRS",
            vector_length_in_bits=1024,
            max_innermost_factor=128,
            reuse_write=_RESULTS,
        ),
        ParallelizeVectorizeUnroll(
            max_jobs_per_core=16,
            max_vectorize_extent=128,
            unroll_max_steps=[0, 16, 64, 512],
            unroll_explicit=True,
        ),
    ]
