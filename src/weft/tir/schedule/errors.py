"""Failures of schedule primitives: the numbers, the place at fault underlined, one suggestion.

Each failure is a small subclass of ``ScheduleFailure``, next to the primitive that raises it. The
text is put together when it is read, so that a search that tries a thousand schedules computes the
reason alone. It has at most ten lines: what is wrong, up to six lines of the function, what to do.
"""

from __future__ import annotations

from typing import ClassVar

from weft.support import slots
from weft.support.errors import ScheduleError
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, For

SHOWN_LINES = 6


class ScheduleFailure(ScheduleError):
    """A primitive does not apply.

    ``reason`` says what is wrong, with the numbers; ``at`` are the loops and blocks at fault;
    ``hint`` is one suggestion (a class may have one for all its cases).
    """

    hint: ClassVar[str] = ""

    def __init__(
        self,
        state: ScheduleState,
        reason: str,
        at: StmtSRef | tuple[StmtSRef, ...] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = type(self).hint if hint is None else hint
        self.call = state.current_call
        self.level = "detail"
        places = () if at is None else at if isinstance(at, tuple) else (at,)
        self.places = tuple([place.stmt for place in places if place.stmt is not None])
        self.name, self.function = "", None
        if self.places:
            live = next(place for place in places if place.stmt is not None)
            var, self.function = state.function_of(live)
            self.name = var.name_hint

    def __str__(self) -> str:
        lines = [f"{self.call}: {self.reason}" if self.call else self.reason]
        if self.level == "detail":
            lines += self._shown()
        if self.advice and self.level != "none":
            lines.append(f"hint: {self.advice}")
        return "\n".join(lines)

    def _shown(self) -> list[str]:
        """The lines of the function that are at fault, each underlined."""
        if self.function is None:
            return []
        text: str = slots.text.get().underlined_heads(self.function, self.places)
        return [f"in {self.name}:", *text.split("\n")[:SHOWN_LINES]] if text else []


class ExpiredReferenceError(ScheduleError):
    """A BlockRV or LoopRV whose loop or block an earlier call consumed."""


class BlockNotFoundError(ScheduleFailure):
    """There is no block of that name, or more than one."""


class RootBlockError(ScheduleFailure):
    """The primitive does not work on the root block."""


class NotStagePipelineError(ScheduleFailure):
    """The scope is no stage pipeline (defined in weft.tir.schedule.flags)."""


class NotAffineBindingError(ScheduleFailure):
    """The values of a block's axes are no affine map of its loops."""


class IncompleteBlockError(ScheduleFailure):
    """The block is no complete block (defined in weft.tir.schedule.flags)."""


class NotReductionBlockError(ScheduleFailure):
    """The block is no reduction block (defined in weft.tir.schedule.flags)."""


class NotCompleteOrReductionBlockError(ScheduleFailure):
    """The block is neither a complete nor a reduction block."""


class NotCompactDataflowError(ScheduleFailure):
    """A block below the loop is neither complete nor a reduction there."""


class OutputBlockError(ScheduleFailure):
    """The block writes a result of the function, which cannot be moved or dropped."""


class BufferIndexError(ScheduleFailure):
    """The block reads or writes fewer buffers than the index asks for."""


def name_of(sref: StmtSRef) -> str:
    """How a message calls a loop or block: ``loop i`` or ``block C``."""
    stmt = sref.stmt
    if isinstance(stmt, For):
        return f"loop {stmt.loop_var.name}"
    return f"block {stmt.name_hint}" if isinstance(stmt, Block) else "an expired reference"
