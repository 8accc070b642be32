"""Writes at indices given by data; updates of one element combine, or the last one stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weft.ir.expr import PrimExpr, StringImm, as_prim_expr
from weft.support.errors import IRValueError
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import AssertStmt, Evaluate, Stmt
from weft.topi import tag
from weft.topi.extents import (
    Point,
    Shape,
    broadcast_indices,
    compute_ax,
    const_int,
    may_be_equal,
    normalize_axis,
    product,
    shape_text,
    unravel_index,
)
from weft.topi.indexing import from_end, joint_shape
from weft.topi.simplify import simplified
from weft.topi.transform import slice_window

Combine = Callable[[PrimExpr, PrimExpr], PrimExpr]
Emit = Callable[[IRBuilder, BufferVar, list[BufferVar]], None]
"""(builder, copy of the data, other tensors): emits the writes into the copy."""


def _replace(
    old: PrimExpr,
    new: PrimExpr,  # noqa: ARG001 - the signature of all combiners
) -> PrimExpr:
    return as_prim_expr(new)


_COMBINE: Final[dict[str, Combine]] = {
    "update": _replace, "add": op.add, "mul": op.multiply, "min": op.minimum, "max": op.maximum,
    "mean": op.add,
}  # fmt: skip


def _combiner(reduction: str, name: str) -> Combine:
    if reduction not in _COMBINE or reduction == "mean":
        raise IRValueError(
            f"{name}: expected the reduction update, add, mul, min or max, got {reduction!r}"
        )
    return _COMBINE[reduction]


def _scatter(data: Tensor, others: list[Tensor], emit: Emit, name: str) -> Tensor:
    """Copy data to the output, then let ``emit(ib, output, others)`` write into it."""
    size = simplified(as_prim_expr(product(data.shape)))

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, size, "i") as i:
            target[i] = source[i]
        emit(ib, target, [ib.buffer_ptr(buffer) for buffer in ins[1:]])
        return ib.get()

    inputs = [data, *others]
    reads = [decl_buffer(t.shape, t.dtype, t.op.name, data_alignment=8) for t in inputs]
    buffer = decl_buffer(data.shape, data.dtype, "out_buf", data_alignment=8)
    return extern(
        data.shape,
        inputs,
        body,
        name=name,
        dtype=[data.dtype],
        in_buffers=reads,
        out_buffers=[buffer],
        tag=name,
    )


def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update"
) -> Tensor:
    """``out[.., indices[p], ..] = updates[p]`` along ``axis`` for every index p of ``indices``.

    A negative index counts from the end.
    """
    place = normalize_axis(axis, data.ndim, "scatter_elements")
    combine = _combiner(reduction, "scatter_elements")
    pairs = zip(indices.shape, updates.shape, strict=False)
    if indices.ndim != updates.ndim or [1 for a, b in pairs if not may_be_equal(a, b)]:
        raise IRValueError(
            f"scatter_elements: indices {shape_text(indices.shape)} and updates "
            f"{shape_text(updates.shape)} differ in shape"
        )
    size = simplified(as_prim_expr(product(indices.shape)))

    def emit(ib: IRBuilder, target: BufferVar, others: list[BufferVar]) -> None:
        positions, values = others
        with ib.for_range(0, size, "p") as p:
            point = unravel_index(p, indices.shape)
            index = from_end(positions[tuple(point)], data.shape[place])
            where = (*point[:place], index, *point[place + 1 :])
            target[where] = combine(target[where], values[tuple(point)])

    return _scatter(data, [indices, updates], emit, "scatter_elements.generic")


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """``out[indices[:, p]] = updates[p]``: index tuples along the first axis of indices."""
    combine = _combiner(mode, "scatter_nd")
    width = const_int(indices.shape[0], "scatter_nd: the first extent of indices")
    if width > data.ndim:
        raise IRValueError(
            f"scatter_nd: index tuples of {width} exceed the {data.ndim} dimensions of the data"
        )
    outer = indices.ndim - 1
    chosen, rest = updates.shape[:outer], updates.shape[outer:]

    def emit(ib: IRBuilder, target: BufferVar, others: list[BufferVar]) -> None:
        positions, values = others

        def where(point: Point) -> list[PrimExpr]:
            return [
                from_end(positions[(number, *point)], data.shape[number]) for number in range(width)
            ]

        for place, point in _slices(ib, chosen, rest, where):
            target[tuple(place)] = combine(target[tuple(place)], values[tuple(point)])

    return _scatter(data, [indices, updates], emit, "scatter_nd.generic")


def _slices(
    ib: IRBuilder, outer: Shape, inner: Shape, where: Callable[[Point], list[PrimExpr]]
) -> Iterator[tuple[Point, Point]]:
    """Loops over slices, and over the elements of each: the element's place, and its point.

    ``where`` gives the place of a slice of the shape ``inner``, which is computed once.
    """
    size, length = [simplified(as_prim_expr(product(shape))) for shape in (outer, inner)]
    with ib.for_range(0, size, "p") as p:
        point = unravel_index(p, outer)
        place = [ib.let("place", index) for index in where(point)]
        with ib.for_range(0, length, "q") as q:
            rest = unravel_index(q, inner)
            yield (*place, *rest), (*point, *rest)


def index_put(
    data: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """``out[I0, I1, ...] = values`` (or ``+=``): index tensors and values broadcast together.

    The values are stored in order, so that of several for one element the last stays.
    """
    shape = joint_shape(data, indices, "index_put")
    chosen = [*shape, *data.shape[len(indices) :]]
    combine = op.add if accumulate else _replace

    def emit(ib: IRBuilder, target: BufferVar, others: list[BufferVar]) -> None:
        *positions, given = others

        def where(point: Point) -> list[PrimExpr]:
            tensors = zip(positions, indices, data.shape, strict=False)
            return [
                from_end(place[tuple(broadcast_indices(tensor.shape, shape, point))], extent)
                for place, tensor, extent in tensors
            ]

        for place, point in _slices(ib, shape, data.shape[len(indices) :], where):
            value = given[tuple(broadcast_indices(values.shape, chosen, point))]
            target[tuple(place)] = combine(target[tuple(place)], value)

    return _scatter(data, [*indices, values], emit, "index_put.generic")


def masked_scatter(data: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``data`` with the elements of ``source`` one after the other where ``mask`` holds.

    The mask has the shape of the data. A kernel whose source has fewer elements than the mask has
    true places stops with an error.
    """
    size = simplified(as_prim_expr(product(data.shape)))
    length = simplified(as_prim_expr(product(source.shape)))
    message = (
        "masked_scatter: expected at least as many elements in the source as the mask has true "
        "places, found fewer"
    )

    def emit(ib: IRBuilder, target: BufferVar, others: list[BufferVar]) -> None:
        holds, given = others
        taken = ib.allocate("int64", [1], "taken")
        taken[0] = op.const(0, "int64")
        with ib.for_range(0, size, "p") as p, ib.if_scope(holds[p]):
            enough = op.less(taken[0], op.cast("int64", length))
            ib.emit(AssertStmt(enough, StringImm(message), Evaluate(op.const(0))))
            target[p] = given[taken[0]]
            taken[0] = taken[0] + 1

    return _scatter(data, [mask, source], emit, "masked_scatter.generic")


def slice_scatter(
    data: Tensor, src: Tensor, start: PrimExpr, end: PrimExpr, step: int = 1, axis: int = 0
) -> Tensor:
    """``data`` with ``src`` at ``start:end:step`` along ``axis``; step is at least 1."""
    place = normalize_axis(axis, data.ndim, "slice_scatter")
    width = const_int(step, "slice_scatter: step")
    if width < 1:
        raise IRValueError(f"slice_scatter: expected a step of 1 or more, got {width}")
    low, count = slice_window(data.shape[place], start, end, (width, False))

    def element(*point: PrimExpr) -> PrimExpr:
        offset = op.subtract(point[place], low)
        number = op.floordiv(offset, width)
        inside = op.logical_and(op.greater_equal(offset, 0), op.less(number, count))
        if width > 1:
            inside = op.logical_and(inside, op.equal(op.floormod(offset, width), 0))
        source = src(*point[:place], number, *point[place + 1 :])
        return op.if_then_else(inside, source, data(*point))

    return compute_ax(data.shape, element, "T_slice_scatter", tag=tag.INJECTIVE)
