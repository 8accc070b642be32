"""The annotations by which rules, postprocessors and mutators speak to each other (TVM's names)."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import FloatImm, IntImm, StringImm
from weft.tir.stmt import Block, For

TILING_STRUCTURE: Final = "meta_schedule.tiling_structure"
"""Of a block that was tiled: the structure, such as "SSRSRS"."""
COOPERATIVE_FETCH: Final = "meta_schedule.cooperative_fetch"
"""Of a block that copies to shared memory: the elements that a thread copies at once."""
FEWEST_THREADS: Final = "meta_schedule.thread_extent_low_inclusive"
MOST_THREADS: Final = "meta_schedule.thread_extent_high_inclusive"
"""Of a tiled block: how many threads may run it."""
RANDOM_PRODUCER: Final = "meta_schedule.random_compute_producer"
"""Of a block whose producer is to be placed too when the block is."""
PARALLEL: Final = "meta_schedule.parallel"
VECTORIZE: Final = "meta_schedule.vectorize"
UNROLL_EXPLICIT: Final = "meta_schedule.unroll_explicit"
UNROLL_IMPLICIT: Final = "meta_schedule.unroll_implicit"
"""Of the root block: what ``RewriteParallelVectorizeUnroll`` does to the blocks inside."""
TENSORIZE: Final = "meta_schedule.auto_tensorize"
TENSORIZE_INIT: Final = "meta_schedule.auto_tensorize_init"
"""Of a block that an intrinsic is to replace, and its init."""
LAYOUT_REWRITE: Final = "meta_schedule.layout_rewrite_preproc"
"""Of a block that only brings a weight into another layout."""
INLINE_RULE: Final = "meta_schedule.inline_rule"
WRITE_CACHE_LEVEL: Final = "meta_schedule.write_cache_level"
LAYOUT_FREE: Final = "layout_free_placeholders"
SCHEDULE_RULE: Final = "schedule_rule"
"""Of a block that a rule of the user's schedules: the name of the rule."""
WARP_EXECUTION: Final = "warp_execution"


def annotation(stmt: Block | For, key: str) -> object:
    """The plain value of an annotation; None where there is none."""
    value = stmt.annotations.get(key)
    return value.value if isinstance(value, (IntImm, FloatImm, StringImm)) else value
