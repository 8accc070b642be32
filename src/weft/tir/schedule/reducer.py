"""The reduction of a block of a schedule, with errors that show the block."""

from __future__ import annotations

from weft.tir.reduction_form import (
    NoKnownReducerError,
    Reduction,
    ReductionReadError,
    read_reduction,
)
from weft.tir.schedule import tree
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef


class ReductionFormError(ScheduleFailure):
    """The init or body of a reduction block has a form that is not understood."""


class UnknownReducerError(ScheduleFailure):
    """The block computes no known commutative reduction."""

    hint = (
        "known are sum, product, min, max, and, or, argmax, argmin, those made by te.comm_reducer "
        "and those given to tir.schedule.register_reducer"
    )


def reduction_of(state: ScheduleState, sref: StmtSRef) -> Reduction:
    """The reduction that a block computes; an error that says why it is none."""
    block = tree.block_of(sref)
    try:
        return read_reduction(block)
    except NoKnownReducerError as error:
        raise UnknownReducerError(state, f"{name_of(sref)} {error}", sref) from error
    except ReductionReadError as error:
        raise ReductionFormError(state, f"{name_of(sref)}: {error}", sref) from error
