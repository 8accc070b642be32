"""What a statement that accumulates becomes when the lanes of vectors accumulate in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.backends.cpu.vectors.lane_choice import Choice, choice_of
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import mentions, substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import Add, Var
from weft.tir.reduction_form import Reduction, read_update
from weft.tir.stmt import BufferStore, For, LetStmt, Stmt, seq


@dataclass(frozen=True)
class LaneUpdate:
    """One accumulation of a loop."""

    form: Reduction
    any_start: bool
    """Whether a value combined with itself stays the same, as in a maximum: then lanes start from
    what the result holds, although that is combined with them once more at the end."""
    lanes: tuple[Buffer, ...]
    """The buffers that the lanes accumulate in, one for each value of the reducer."""
    step: Sequence[PrimExpr]
    """What a lane becomes in one iteration: the reducer's result, or something simpler."""
    first: Callable[[PrimExpr], list[PrimExpr]] | None = None
    """For a choice (argmax), what a lane starts from: what its first iteration reads, which it then
    sees again."""
    origin: Var | None = None
    """For a choice, a variable for the first position of a vector. Each lane keeps this number
    instead of its own position, since it is the same for all lanes, and ``settle`` adds the lane's
    number at the end."""
    choice: Choice | None = None

    def start(self, place: PrimExpr) -> Stmt:
        """Initialize one lane."""
        values: list[Any] = self._nothing
        if self.first is not None:
            values = self.first(place)
        elif self.any_start:
            values = [BufferLoad(buffer, self.form.indices) for buffer in self.form.buffers]
        stores = zip(self.lanes, values, strict=True)
        return seq(*[BufferStore(buffer, value, [place]) for buffer, value in stores])

    def accumulate(self, place: PrimExpr, is_new: PrimExpr | None = None) -> Stmt:
        """Accumulate in one lane; the neutral element if ``is_new`` is false and it matters."""
        operands = self.form.operands
        if is_new is not None and not self.any_start and self.origin is None:
            pairs = zip(operands, self._nothing, strict=True)
            operands = [op.select(is_new, operand, nothing) for operand, nothing in pairs]
        return self._combine(self.lanes, [place], operands, self.step)

    def settle(self, place: PrimExpr) -> Stmt | None:
        """Add the lane's number to the position that a lane of a choice holds."""
        if self.origin is None:
            return None
        held = BufferLoad(self.lanes[0], [place])
        return BufferStore(self.lanes[0], op.add(held, place), [place])

    def fold(self, place: PrimExpr, other: PrimExpr) -> Stmt:
        """Combine one lane with another."""
        return self._combine(self.lanes, [place], [BufferLoad(b, [other]) for b in self.lanes])

    def finish(self, place: PrimExpr, results: Sequence[Buffer] | None = None) -> Stmt:
        """Combine the result with a lane, or with an element of ``results``."""
        operands = [BufferLoad(buffer, [place]) for buffer in results or self.lanes]
        return self._combine(self.form.buffers, self.form.indices, operands)

    @property
    def _nothing(self) -> list[Any]:
        """The neutral elements. That of float sums is -0.0, since -0.0 + 0.0 is 0.0; and LLVM
        removes additions of -0.0.
        """
        reducer = self.form.reducer
        pairs = zip(reducer.identity_element, reducer.result, strict=True)
        return [
            op.const(-0.0, value.dtype)
            if value.dtype.is_float and isinstance(result, Add)
            else value
            for value, result in pairs
        ]

    def _combine(
        self,
        buffers: Sequence[Buffer],
        indices: Sequence[Any],
        operands: Sequence[Any],
        result: Sequence[PrimExpr] | None = None,
    ) -> Stmt:
        reducer = self.form.reducer
        held = [BufferLoad(buffer, indices) for buffer in buffers]
        mapping: dict[Var, Any] = dict(zip(reducer.lhs, held, strict=True))
        mapping |= dict(zip(reducer.rhs, operands, strict=True))
        results = substitute(list(result or reducer.result), mapping)
        if len(buffers) == 1:
            return BufferStore(buffers[0], results[0], indices)
        lets = [Var(f"v_{buffer.name}", buffer.dtype) for buffer in buffers]
        pairs = zip(buffers, lets, strict=True)
        body: Stmt = seq(*[BufferStore(buffer, var, indices) for buffer, var in pairs])
        for var, value in reversed(list(zip(lets, results, strict=True))):
            body = LetStmt(var, value, body)
        return body


def update_of(loop: For, stmt: Stmt, size: int) -> LaneUpdate | None:
    """The accumulation that a statement of the loop does; None if it is another statement."""
    read = read_update(stmt)
    if read is None or mentions(read[0].indices, loop.loop_var):
        return None
    form, any_start = read
    lanes = tuple(
        [
            decl_buffer((size,), buffer.dtype, f"{buffer.name}_lanes", scope="local")
            for buffer in form.buffers
        ]
    )
    choice = choice_of(form.reducer)
    if choice is None or not _grows(form.operands[0], loop, size):
        return LaneUpdate(form, any_start, lanes, form.reducer.result)
    origin = Var("origin", loop.loop_var.dtype)
    place, value = form.operands
    form = form._replace(operands=[substitute(place, {loop.loop_var: origin}), value])

    def first(place: PrimExpr) -> list[PrimExpr]:
        at = {loop.loop_var: op.add(loop.min, place), origin: loop.min}
        return [substitute(operand, at) for operand in form.operands]

    return LaneUpdate(form, any_start, lanes, choice.step, first, origin, choice)


def _grows(place: PrimExpr, loop: For, size: int) -> bool:
    """Whether a position grows by one per iteration, and there is an iteration for each lane."""
    if not isinstance(loop.extent, IntImm) or loop.extent.value < size:
        return False
    rest = Analyzer().simplify(op.subtract(place, loop.loop_var))
    return not mentions(rest, loop.loop_var)
