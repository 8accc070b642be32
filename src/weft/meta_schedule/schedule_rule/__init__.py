"""Rules of design spaces: each rewrites a block in one or more ways."""

from weft.meta_schedule.schedule_rule.add_rfactor import AddRFactor
from weft.meta_schedule.schedule_rule.apply_custom_rule import ApplyCustomRule
from weft.meta_schedule.schedule_rule.auto_bind import AutoBind
from weft.meta_schedule.schedule_rule.auto_inline import AutoInline, InlineConstantScalars
from weft.meta_schedule.schedule_rule.base import PyScheduleRule, ScheduleRule
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

__all__ = [
    "AddRFactor",
    "ApplyCustomRule",
    "AutoBind",
    "AutoInline",
    "CrossThreadReduction",
    "InlineConstantScalars",
    "MultiLevelTiling",
    "MultiLevelTilingTensorCore",
    "MultiLevelTilingWideVector",
    "MultiLevelTilingWithIntrin",
    "ParallelizeVectorizeUnroll",
    "PyScheduleRule",
    "RandomComputeLocation",
    "ReuseType",
    "ScheduleRule",
]
create = ScheduleRule.create
