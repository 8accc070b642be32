"""Sorting along an axis by a stable merge sort written as loops; NaN is larger than any number.

For each row, indices are sorted in two scratch arrays of its length: O(n log n) comparisons. If
only a few first elements are needed they are found by insertion, which needs one comparison for
each element that is not among them. If more are needed, the last of them is found with a heap
(Williams, "Algorithm 232: Heapsort", 1964), and only what does not come after it is sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, overload

from weft.ir.expr import IntImm, PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te.operation import as_list, extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import Stmt
from weft.topi.creation import full
from weft.topi.extents import Point, const_int, is_const, normalize_axis, product, unravel_index
from weft.topi.simplify import simplified
from weft.topi.transform import strided_slice

Key = Callable[[PrimExpr], PrimExpr]
Order = Callable[[IRBuilder, PrimExpr, Key, bool], BufferVar]
"""Emits loops that find the first of the indices 0 .. count - 1 by key; returns their array."""

Kind = tuple[str, DataType]
""""values" or "indices", and their dtype."""

MOST_INSERTED: Final = 32
"""Up to this many first elements are found by insertion, more of them by selection."""
_PART: Final = 4
"""If more than one element of so many is needed, all are sorted."""


def _comes_before(first: PrimExpr, second: PrimExpr, ascending: bool) -> PrimExpr:
    """Whether ``first`` must come before ``second``; false if they are equal."""
    before = op.less(first, second) if ascending else op.greater(first, second)
    if not first.dtype.is_float:
        return before
    early, late = (second, first) if ascending else (first, second)
    only_one = op.logical_and(op.isnan(early), op.logical_not(op.isnan(late)))
    return op.logical_or(before, only_one)


def _merge_sort(ib: IRBuilder, count: PrimExpr, key: Key, ascending: bool) -> BufferVar:
    """Emit the sort of the indices 0 .. count - 1 by key; returns the array that holds them."""
    order = ib.allocate(count.dtype, [count], "order")
    scratch = ib.allocate(count.dtype, [count], "scratch")
    state = ib.allocate(count.dtype, [3], "state")
    with ib.for_range(0, count, "j") as j:
        order[j] = j
    width, left, right = state[0], state[1], state[2]
    state[0] = 1
    with ib.while_loop(op.less(width, count)):
        with ib.for_range(0, op.floordiv(count + width * 2 - 1, width * 2), "run") as run:
            low = ib.let("low", run * width * 2)
            middle = ib.let("middle", op.minimum(low + width, count))
            high = ib.let("high", op.minimum(low + width * 2, count))
            state[1] = low
            state[2] = middle
            with ib.for_range(0, high - low, "r") as r:
                swapped = _comes_before(key(order[right]), key(order[left]), ascending)
                keep = op.logical_or(op.greater_equal(right, high), op.logical_not(swapped))
                with ib.if_scope(op.logical_and(op.less(left, middle), keep)):
                    scratch[low + r] = order[left]
                    state[1] = left + 1
                with ib.else_scope():
                    scratch[low + r] = order[right]
                    state[2] = right + 1
        with ib.for_range(0, count, "j") as j:
            order[j] = scratch[j]
        state[0] = width * 2
    return order


def _insertion(wanted: int) -> Order:
    """The order that finds the first ``wanted`` elements by insertion."""

    def emit(ib: IRBuilder, count: PrimExpr, key: Key, ascending: bool) -> BufferVar:
        order = ib.allocate(count.dtype, [wanted], "order")
        state = ib.allocate(count.dtype, [1], "state")
        free = state[0]
        with ib.for_range(0, count, "j") as j:

            def precedes(other: PrimExpr, j: PrimExpr = j) -> PrimExpr:
                return _comes_before(key(j), key(order[other]), ascending)

            last = op.const(wanted - 1, count.dtype)
            room = op.less(j, wanted)
            with ib.if_scope(op.if_then_else(room, op.const(True), precedes(last))):
                state[0] = op.minimum(j, last)
                ahead = op.if_then_else(op.greater(free, 0), precedes(free - 1), op.const(False))
                with ib.while_loop(ahead):
                    order[free] = order[free - 1]
                    state[0] = free - 1
                order[free] = j
        return order

    return emit


def _selection(wanted: int) -> Order:
    """The order that sorts the first ``wanted`` elements only, or all if there are fewer."""

    def emit(ib: IRBuilder, count: PrimExpr, key: Key, ascending: bool) -> BufferVar:
        kept = op.minimum(wanted, count)
        chosen = ib.allocate(count.dtype, [wanted], "chosen")
        state = ib.allocate(count.dtype, [2], "place")

        def precedes(first: PrimExpr, second: PrimExpr) -> PrimExpr:
            before = _comes_before(key(first), key(second), ascending)
            after = _comes_before(key(second), key(first), ascending)
            return op.logical_or(before, op.logical_and(op.logical_not(after), first < second))

        _last_of_first(ib, chosen, state, (kept, count), precedes)
        state[1] = chosen[0]
        state[0] = 0
        with (
            ib.for_range(0, count, "j") as j,
            ib.if_scope(op.logical_not(precedes(state[1], j))),
        ):
            chosen[state[0]] = j
            state[0] = state[0] + 1
        order = _merge_sort(ib, kept, lambda i: key(chosen[i]), ascending)
        with ib.for_range(0, kept, "j") as j:
            order[j] = chosen[order[j]]
        return order

    return emit


def _last_of_first(
    ib: IRBuilder,
    heap: BufferVar,
    state: BufferVar,
    sizes: tuple[PrimExpr, PrimExpr],
    precedes: Callable[[PrimExpr, PrimExpr], PrimExpr],
) -> None:
    """Emit what puts the last one of the first ``size`` of ``count`` elements at ``heap[0]``.

    No element of the heap precedes those below it, at twice its place plus 1 and plus 2.
    """
    (size, count), (hole, child) = sizes, (state[0], state[1])

    def later_below(place: PrimExpr) -> PrimExpr:
        left, right = place * 2 + 1, place * 2 + 2
        is_right = op.if_then_else(right < size, precedes(heap[left], heap[right]), op.const(False))
        return op.if_then_else(is_right, right, left)

    def put(element: PrimExpr, place: PrimExpr) -> None:
        state[0] = place
        state[1] = later_below(hole)
        below = op.if_then_else(child < size, precedes(element, heap[child]), op.const(False))
        with ib.while_loop(below):
            heap[hole] = heap[child]
            state[0] = child
            state[1] = later_below(hole)
        heap[hole] = element

    with ib.for_range(0, size, "j") as j:
        heap[j] = j
    half = op.floordiv(size, 2)
    with ib.for_range(0, half, "j") as j:
        put(half - 1 - j, half - 1 - j)  # nothing has moved here yet
    with ib.for_range(0, count - size, "j") as j, ib.if_scope(precedes(size + j, heap[0])):
        put(size + j, op.const(0, size.dtype))


def _sorted_rows(
    data: Tensor, place: int, ascending: bool, kinds: list[Kind], wanted: int | None = None
) -> list[Tensor]:
    """Values and/or indices in order: ``kinds`` holds ("values", dtype), ("indices", dtype).

    All of them, or the first ``wanted`` if there are so many.
    """
    shape = data.shape
    by_part = _insertion if wanted is not None and wanted <= MOST_INSERTED else _selection
    emit = _merge_sort if wanted is None else by_part(wanted)
    along = shape[place] if wanted is None else simplified(op.minimum(wanted, shape[place]))
    sorted_shape = [*shape[:place], along, *shape[place + 1 :]]
    if [1 for extent in sorted_shape if is_const(extent, 0)]:
        return [full(sorted_shape, dtype, 0) for _, dtype in kinds]
    rows = [*shape[:place], *shape[place + 1 :]]
    row_count = simplified(as_prim_expr(product(rows)))
    count = shape[place]

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        source = ib.buffer_ptr(ins[0])
        targets = [ib.buffer_ptr(buffer) for buffer in outs]
        with ib.for_range(0, row_count, "row", kind="parallel") as row:
            point = [simplified(index) for index in unravel_index(row, rows)]

            def at(position: PrimExpr, point: Point = point) -> tuple[PrimExpr, ...]:
                return (*point[:place], position, *point[place:])

            order = emit(ib, count, lambda i: source[at(i)], ascending)
            with ib.for_range(0, sorted_shape[place], "j") as j:
                for target, (what, dtype) in zip(targets, kinds, strict=True):
                    picked = source[at(order[j])] if what == "values" else order[j]
                    target[at(j)] = op.cast(dtype, picked)
        return ib.get()

    reads = decl_buffer(shape, data.dtype, "data_buf", data_alignment=8)
    writes = [
        decl_buffer(sorted_shape, dtype, f"out_{what}", data_alignment=8) for what, dtype in kinds
    ]
    outputs = extern(
        [sorted_shape] * len(kinds), [data], body, name="sort_cpu",
        dtype=[dtype for _, dtype in kinds],
        in_buffers=[reads], out_buffers=writes, tag="sort_cpu",
    )  # fmt: skip
    return as_list(outputs)


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The elements in order along ``axis``."""
    place = normalize_axis(axis, data.ndim, "sort")
    return _sorted_rows(data, place, is_ascend, [("values", data.dtype)])[0]


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: str = "float32",
) -> Tensor:
    """The indices that put the elements in order; equal elements keep their order."""
    if valid_count is not None:
        raise IRValueError("argsort: valid_count is not supported; slice the data first")
    place = normalize_axis(axis, data.ndim, "argsort")
    return _sorted_rows(data, place, is_ascend, [("indices", DataType(dtype))])[0]


@overload
def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: Literal["both"] = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> list[Tensor]: ...
@overload
def topk(
    data: Tensor, k: int, axis: int, ret_type: str, is_ascend: bool = False, dtype: str = "int64"
) -> Tensor | list[Tensor]: ...
def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Tensor | list[Tensor]:
    """The k largest (smallest if ``is_ascend``) along ``axis``: ``[values, indices]`` or one.

    k < 1 means all.
    """
    choices = {"both": ("values", "indices"), "values": ("values",), "indices": ("indices",)}
    if ret_type not in choices:
        raise IRValueError(f"topk: expected both, values or indices, got {ret_type!r}")
    place = normalize_axis(axis, data.ndim, "topk")
    types = {"values": data.dtype, "indices": DataType(dtype)}
    kinds = [(what, types[what]) for what in choices[ret_type]]
    wanted = const_int(k, "topk: k")
    count = data.shape[place]
    most = count.value if isinstance(count, IntImm) else wanted * _PART
    few = 1 <= wanted <= (most if wanted <= MOST_INSERTED else most // _PART)
    results = _sorted_rows(data, place, is_ascend, kinds, wanted if few else None)
    if wanted >= 1 and not few:
        results = [strided_slice(r, [0], [wanted], axes=[place]) for r in results]
    return results if ret_type == "both" else results[0]
