"""Loops of TVMScript: ``T.serial``, ``T.parallel``, ``T.grid`` and the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.expr import ExprLike, Range, RangeLike, as_prim_expr
from weft.script.ir_builder.base import as_attributes
from weft.script.ir_builder.tir_frame import ForFrame
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op as tir_op
from weft.tir.access import extent_between
from weft.tir.stmt import ForKind


def _loop(
    start: ExprLike,
    stop: ExprLike | None,
    kind: ForKind,
    annotations: Mapping[str, object] | None,
    thread: str | None = None,
) -> ForFrame:
    first, last = (None, start) if stop is None else (start, stop)
    end = as_prim_expr(last)
    if not end.dtype.is_integral or end.dtype.lanes != 1:
        raise IRTypeError(f"a loop needs integer bounds, got {end.dtype}: {last!r}")
    begin = as_prim_expr(tir_op.const(0, end.dtype) if first is None else first)
    dtype = max(begin.dtype, end.dtype, key=lambda item: item.bits)
    begin, end = tir_op.cast(dtype, begin), tir_op.cast(dtype, end)
    extent = end if first is None else extent_between(begin, end)
    dom = Range.from_min_extent(begin, extent)
    given = as_attributes("annotations", annotations) if annotations else None
    return ForFrame([dom], kind, given, thread)


def serial(
    start: ExprLike,
    stop: ExprLike | None = None,
    *,
    annotations: Mapping[str, object] | None = None,
) -> ForFrame:
    """Loop in order over [0, start) or [start, stop): ``for i in T.serial(8)``, as ``range``
    does.

    Args:
        start: the extent if it stands alone, else the first value.
        stop: the value after the last.
        annotations: what passes look up on the loop, by name.
    """
    return _loop(start, stop, ForKind.SERIAL, annotations)


def parallel(
    start: ExprLike,
    stop: ExprLike | None = None,
    *,
    annotations: Mapping[str, object] | None = None,
) -> ForFrame:
    """Loop over a range whose iterations threads of the CPU share: ``for i in T.parallel(8)``.

    Arguments as those of ``T.serial``.
    """
    return _loop(start, stop, ForKind.PARALLEL, annotations)


def vectorized(
    start: ExprLike,
    stop: ExprLike | None = None,
    *,
    annotations: Mapping[str, object] | None = None,
) -> ForFrame:
    """Loop over a constant range that becomes lanes of vector instructions:
    ``T.vectorized(8)``.

    Arguments as those of ``T.serial``.
    """
    return _loop(start, stop, ForKind.VECTORIZED, annotations)


def unroll(
    start: ExprLike,
    stop: ExprLike | None = None,
    *,
    annotations: Mapping[str, object] | None = None,
) -> ForFrame:
    """Loop over a constant range whose iterations are written out in sequence: ``T.unroll(4)``.

    Arguments as those of ``T.serial``.
    """
    return _loop(start, stop, ForKind.UNROLLED, annotations)


def thread_binding(
    start: ExprLike,
    stop: ExprLike | None = None,
    thread: str | None = None,
    *,
    annotations: Mapping[str, object] | None = None,
) -> ForFrame:
    """Loop over a range of which each thread of a tag takes one value.

    Args:
        start: the extent if it stands alone, else the first value.
        stop: the value after the last.
        thread: the tag, such as ``blockIdx.x`` or ``threadIdx.x``.
        annotations: what passes look up on the loop, by name.

    >>> from weft.script import tir as T
    >>> @T.prim_func(private=True)
    ... def copy(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    ...     for i in T.thread_binding(64, thread="threadIdx.x"):
    ...         B[i] = A[i]
    """
    if thread is None:
        if not isinstance(stop, str):
            raise IRValueError("T.thread_binding: expected thread=, such as 'threadIdx.x'")
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise IRTypeError(f"T.thread_binding: expected a tag as thread=, got {thread!r}")
    return _loop(start, stop, ForKind.THREAD_BINDING, annotations, thread)


def grid(*extents: RangeLike | Sequence[RangeLike]) -> ForFrame:
    """Nest serial loops, one for each extent: ``for i, j in T.grid(4, 8)``.

    Args:
        extents: the extent of each loop, or its pair (begin, end).
    """
    if not extents:
        raise IRValueError("T.grid: expected at least one extent")
    first = extents[0]
    flat: Sequence[Any] = first if isinstance(first, list | tuple) else extents
    return ForFrame([_grid_range(item) for item in flat], ForKind.SERIAL)


def _grid_range(item: RangeLike) -> Range:
    if isinstance(item, Range):
        return item
    rng = Range(*item) if isinstance(item, list | tuple) else Range(item)
    for bound in (rng.min, rng.extent):
        if not bound.dtype.is_integral or bound.dtype.lanes != 1:
            raise IRTypeError(f"a loop needs integer bounds, got {bound.dtype}: {item!r}")
    return rng
