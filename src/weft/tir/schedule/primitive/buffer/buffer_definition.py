"""Where a buffer is defined, whether its layout may change, and the change of its definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.functor import collect
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.schedule import rewrite, tree
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.cache_access import accesses
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block


class SubregionBufferError(ScheduleFailure):
    """The buffer is no parameter of the function and allocated by no block around."""


class LayoutAccessError(ScheduleFailure):
    """The buffer is accessed in a way that cannot be given another layout."""


class LostSymbolError(ScheduleFailure):
    """No parameter would tell the function the value of a symbol that it uses."""


def axis_text(items: Sequence[object]) -> str:
    """Extents or positions as a list."""
    return f"[{', '.join([str(item) for item in items])}]"


def defining_block(state: ScheduleState, sref: StmtSRef, buffer: Buffer) -> StmtSRef:
    """The block that allocates the buffer; the root block for a parameter of the function."""
    item: StmtSRef | None = sref
    root = sref
    while item is not None:
        root = item
        if isinstance(item.stmt, Block):
            if any(mine is buffer for mine in item.stmt.alloc_buffers):
                return item
            if any(match.buffer is buffer for match in item.stmt.match_buffers):
                raise SubregionBufferError(
                    state,
                    f"{buffer.name} is a view that match_buffer defines",
                    item,
                    "transform the buffer that it is a view of",
                )
        item = item.parent
    if any(mine is buffer for mine in state.function_of(sref)[1].buffer_map.values()):
        return root
    raise SubregionBufferError(
        state,
        f"{buffer.name} is no parameter and allocated by no block around {name_of(sref)}",
        sref,
    )


def check_rewritable(state: ScheduleState, scope: StmtSRef, buffer: Buffer) -> None:
    """Every use of the buffer is a load or store with one index for each axis."""
    uses = accesses(tree.block_of(scope), buffer)
    others = list(state.function_of(scope)[1].buffer_map.values())
    alias = uses.other or next(
        (mine for mine in others if mine.data is buffer.data and mine is not buffer), None
    )
    reason = hint = None
    if uses.pointer:
        reason = f"there are pointers into {buffer.name}"
    elif uses.matched:
        reason = f"{buffer.name} has a view, {uses.matched[0].name}, made by match_buffer"
        hint = "transform the buffer before the block with the view is made"
    elif alias is not None:
        reason = f"the memory of {buffer.name} is also accessed as {alias.name}"
    elif buffer.strides:
        reason = f"{buffer.name} has strides {axis_text(buffer.strides)}"
    elif any(i.dtype.lanes != 1 for indices in uses.indices for i in indices):
        reason = f"{buffer.name} is accessed with vectors of indices"
    if reason is not None:
        raise LayoutAccessError(state, f"{reason}: the layout cannot change", scope, hint)


def replace_buffer(
    state: ScheduleState,
    scope: StmtSRef,
    old: Buffer,
    new: Buffer,
    new_scope: Block,
    reuse: rewrite.Reuse,
) -> None:
    """Put the rewritten scope in place, and the new buffer among the parameters."""
    var, func = state.function_of(scope)
    if any(mine is old for mine in func.buffer_map.values()):
        buffers = {p: new if mine is old else mine for p, mine in func.buffer_map.items()}
        _check_symbols(state, scope, old, func.params, buffers)
        state.set_function(var, func.with_(buffer_map=buffers))
    state.replace(scope, new_scope, reuse)


def _check_symbols(
    state: ScheduleState,
    scope: StmtSRef,
    old: Buffer,
    params: Sequence[Var],
    buffers: Mapping[Var, Buffer],
) -> None:
    """Every symbol of the old shape is still a parameter, or an extent of a parameter."""
    known = set(params)
    for buffer in buffers.values():
        fields = [*buffer.shape, *buffer.strides, buffer.elem_offset]
        known.update([item for item in fields if isinstance(item, Var)])
    for symbol in collect(list(old.shape), Var):
        if symbol not in known:
            raise LostSymbolError(
                state,
                f"{symbol.name} is known from the shape of {old.name} only, which would "
                "become an expression of it",
                scope,
                f"make {symbol.name} a parameter, or an extent of another buffer",
            )
