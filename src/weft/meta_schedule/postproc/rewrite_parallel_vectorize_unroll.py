"""Acting on the marks that ``ParallelizeVectorizeUnroll`` has put on the root block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.meta_schedule.annotations import (
    PARALLEL,
    UNROLL_EXPLICIT,
    UNROLL_IMPLICIT,
    VECTORIZE,
    annotation,
)
from weft.meta_schedule.block_questions import (
    constant_extent,
    has_single_body,
    loops_around,
    reference,
)
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.contiguous_loops import contiguous_loops
from weft.meta_schedule.postproc.scheduled_functions import functions
from weft.tir.expr import IterType
from weft.tir.schedule import tree
from weft.tir.schedule.analysis.block_kinds import is_spatial, loop_kind, would_apply
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import BlockRealize, For, ForKind

_STEPS = "pragma_auto_unroll_max_step"
_MARKS = (PARALLEL, VECTORIZE, UNROLL_EXPLICIT, UNROLL_IMPLICIT)


class _Limits(NamedTuple):
    """The values of the marks; None where there is none."""

    parallel: int | None
    vectorize: int | None
    explicit: int | None
    implicit: int | None


class _Counts(NamedTuple):
    """How many loops are fused for threads, from outside, and for vectors, from inside."""

    parallel: int
    vectorize: int


class RewriteParallelVectorizeUnroll(Postproc):
    """Runs the loops of each block in parallel, in vectors and unrolled, as the root's marks say.

    Outer spatial loops are fused into one parallel loop, inner ones that go through memory
    element by element into one vector. Blocks that reduce get pragmas for unrolling. Loops whose
    iterations the schedule cannot show to be independent stay as they are.
    """

    def apply(self, sch: Schedule) -> bool:
        """Rewrite the loops and remove the marks; always True."""
        for var, func in list(functions(sch)):
            if not isinstance(func.body, BlockRealize):
                continue
            block = func.body.block
            limits = _Limits(*[_number(annotation(block, key)) for key in _MARKS])
            if not any(key in block.annotations for key in _MARKS):
                continue
            root = sch.get_block(block.name_hint, var.name_hint)
            for key in _MARKS:
                if key in block.annotations:
                    sch.unannotate(root, key)
            for child in sch.get_child_blocks(root):
                _rewrite(sch, child, limits)
        return True


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _rewrite(sch: Schedule, block: BlockRV, limits: _Limits) -> None:
    loops = sch.get_loops(block)
    if not loops:
        return
    counts = _counts(sch, block, limits)
    outermost = loops[0]
    if counts == (len(loops), len(loops)):
        assert limits.vectorize is not None
        outer, inner = sch.split(sch.fuse(*loops), [None, limits.vectorize])
        sch.parallel(outer)
        sch.vectorize(inner)
        outermost = outer if len(loops) > 1 else inner
    else:
        outermost = _fused(sch, loops[: max(counts.parallel, 0)], sch.parallel) or outermost
        inner_loops = loops[len(loops) - counts.vectorize :] if counts.vectorize > 0 else []
        vector = _fused(sch, inner_loops, sch.vectorize)
        if vector is not None and len(inner_loops) == len(loops):
            outermost = vector
    _unroll(sch, block, outermost, limits)


def _fused(sch: Schedule, loops: Sequence[LoopRV], run: Callable[[LoopRV], None]) -> LoopRV | None:
    """Fuse loops and run them in another way; None, and no change, where that is refused."""
    if not loops or not would_apply(sch, lambda: run(sch.fuse(*loops))):
        return None
    fused = sch.fuse(*loops)
    run(fused)
    return fused


def _unroll(sch: Schedule, block: BlockRV, loop: LoopRV, limits: _Limits) -> None:
    steps = limits.implicit if limits.explicit is None else limits.explicit
    if steps is None or steps <= 0 or is_spatial(sch.get(block)):
        return
    if _STEPS in sch.get(loop).annotations:  # several blocks share the loop
        return
    sch.annotate(loop, _STEPS, steps)
    sch.annotate(loop, "pragma_unroll_explicit", int(limits.explicit is not None))


def _counts(sch: Schedule, block: BlockRV, limits: _Limits) -> _Counts:
    """How many loops to fuse; vectors come before threads where both want one."""
    loops = loops_around(sch, block)
    realize = tree.realize_of(sch.state, reference(sch, block))
    contiguous = contiguous_loops(realize, loops)
    parallel = 0 if limits.parallel is None else _for_threads(loops, limits.parallel)
    vectorize = 0
    if limits.vectorize is not None:
        vectorize = _for_vectors(loops[len(loops) - contiguous :], limits.vectorize)
    if limits.parallel is None or limits.vectorize is None or parallel < 0 or vectorize < 0:
        return _Counts(parallel, vectorize)
    free = all(_is_free(loop) and has_single_body(loop) for loop in loops)
    if free and contiguous == len(loops):
        return _Counts(len(loops), len(loops))
    return _Counts(min(parallel, len(loops) - vectorize), vectorize)


def _is_free(loop: For) -> bool:
    """Whether a loop is spatial, of constant extent, and runs in no special way yet."""
    plain = loop.kind is ForKind.SERIAL and not loop.annotations
    return plain and constant_extent(loop) is not None and loop_kind(loop) == IterType.DataPar


def _for_threads(loops: Sequence[For], most: int) -> int:
    """How many outer loops give enough iterations; -1 if these are only one."""
    count, iterations = 0, 1
    for loop in loops:
        if not _is_free(loop):
            break
        count += 1
        iterations *= constant_extent(loop) or 1
        if iterations > most or not has_single_body(loop):
            break
    return -1 if iterations == 1 else count


def _for_vectors(loops: Sequence[For], most: int) -> int:
    """How many inner loops fit a vector; -1 if they have one element."""
    count, elements = 0, 1
    for loop in reversed(loops):
        if not _is_free(loop) or not has_single_body(loop):
            break
        elements *= constant_extent(loop) or 1
        if elements > most:
            break
        count += 1
    return -1 if elements == 1 else count
