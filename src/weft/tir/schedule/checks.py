"""The questions of ``flags`` as checks: where the answer is no, an error says why.

With the state's ``enable_check`` off all of them pass, except the one for a root block.
"""

from __future__ import annotations

from typing import Final

from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.schedule import errors, flags, tree
from weft.tir.schedule.errors import name_of
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef


def scope_root(state: ScheduleState, sref: StmtSRef, *, stage_pipeline: bool = False) -> StmtSRef:
    """The block around ``sref``; with ``stage_pipeline`` it must be one."""
    scope = tree.scope_of(sref)
    if scope is None:
        raise errors.RootBlockError(state, f"{name_of(sref)} is the root block", sref)
    if stage_pipeline and state.enable_check:
        violation = flags.pipeline_violation(state, scope)
        if violation is not None:
            raise errors.NotStagePipelineError(
                state,
                f"{name_of(scope)} is no stage pipeline (condition {violation.number}): "
                f"{violation.reason}",
                tuple([state.sref_of(block) for block in violation.blocks]) or scope,
            )
    return scope


def check_complete_block(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> None:
    """The block is complete below ``scope``."""
    if not state.enable_check:
        return
    violation = flags.complete_violation(tree.block_of(sref), tree.stmt_of(scope))
    if violation is not None:
        raise errors.IncompleteBlockError(
            state, f"{name_of(sref)} is no complete block: {violation.reason}", sref
        )


def check_reduction_block(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> None:
    """The block is a reduction block below ``scope``."""
    if not state.enable_check:
        return
    violation = flags.reduction_violation(state, sref, tree.stmt_of(scope))
    if violation is not None:
        raise errors.NotReductionBlockError(
            state, f"{name_of(sref)} is no reduction block: {violation.reason}", sref
        )


def check_reduction_or_scan_block(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> None:
    """The block is a reduction block, or a scan, below ``scope``."""
    if flags.scan_violation(state, sref, tree.stmt_of(scope)) is not None:
        check_reduction_block(state, sref, scope)


def check_complete_or_reduction_block(
    state: ScheduleState, sref: StmtSRef, scope: StmtSRef
) -> None:
    """The block is a complete or a reduction block below ``scope``."""
    reason = _neither(state, sref, scope) if state.enable_check else None
    if reason is not None:
        raise errors.NotCompleteOrReductionBlockError(state, f"{name_of(sref)} {reason}", sref)


def _neither(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> str | None:
    complete = flags.complete_violation(tree.block_of(sref), tree.stmt_of(scope))
    if complete is None:
        return None
    reduction = flags.reduction_violation(state, sref, tree.stmt_of(scope))
    if reduction is None:
        return None
    return f"is no complete block ({complete.reason}) and no reduction block ({reduction.reason})"


def check_subtree_compact_dataflow(state: ScheduleState, subtree: StmtSRef) -> None:
    """Every block below a loop is complete, a reduction, a scan or a part of a decomposed one.

    So iterations of the loop that share no axis which accumulates are independent, as far as one
    block goes.
    """
    if not state.enable_check:
        return
    scope = tree.stmt_of(subtree)
    for realize in tree.child_realizes(scope):
        sref = state.sref_of(realize)
        reason = _neither(state, sref, subtree)
        if reason is None or flags.scan_violation(state, sref, scope) is None:
            continue
        if flags.decomposed_violation(state, sref, scope) is not None:
            raise errors.NotCompactDataflowError(
                state,
                f"below {name_of(subtree)}, {name_of(sref)} {reason}",
                (subtree, sref),
                BEFORE_DECOMPOSING if flags.is_update(realize.block) else None,
            )


BEFORE_DECOMPOSING: Final = (
    "do this before decompose_reduction, which keeps the kinds of loops: sch.parallel, "
    "sch.vectorize and sch.reorder first, then sch.decompose_reduction"
)


def check_affine_binding(state: ScheduleState, sref: StmtSRef) -> None:
    """The values of the block's axes are an affine map of its loops."""
    if state.enable_check and not flags.is_affine_binding(state, sref):
        values = ", ".join([str(value) for value in tree.realize_of(state, sref).iter_values])
        raise errors.NotAffineBindingError(
            state, f"the bindings of {name_of(sref)} are not affine in its loops: {values}", sref
        )


def check_not_output_block(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> None:
    """What the block writes is memory of the scope, not a result that others see."""
    allocated = {buffer.data for buffer in tree.block_of(scope).alloc_buffers}
    for region in tree.block_of(sref).writes:
        if region.buffer.data not in allocated:
            raise errors.OutputBlockError(
                state,
                f"{name_of(sref)} is an output block: it writes {region.buffer.name}, an output of "
                "the scope",
                sref,
            )


def nth_access(
    state: ScheduleState, sref: StmtSRef, index: int, *, write: bool
) -> tuple[Buffer, BufferRegion]:
    """The buffer, and its region, at a position of the block's reads or writes."""
    block = tree.block_of(sref)
    regions = block.writes if write else block.reads
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(regions):
        verb = "writes" if write else "reads"
        names = ", ".join([region.buffer.name for region in regions]) or "none"
        raise errors.BufferIndexError(
            state,
            f"{name_of(sref)} {verb} {len(regions)} buffers ({names}), got index {index}",
            sref,
        )
    return regions[index].buffer, regions[index]
