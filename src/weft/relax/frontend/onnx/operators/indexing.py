"""Elements by index: the Gather and Scatter families, slices, splits, choices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.known import settle
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Dim, Value, as_prim, plain_dim
from weft.relax.ir.shape_arith import simplified
from weft.tir import op as tir


def from_start(context: Context, indices: Value, extent: Dim) -> Expr:
    """Indices of which negative ones count from the end, as ones that count from the start."""
    if indices.constant is not None and isinstance(extent, int):
        numbers = indices.constant.astype("int64")
        return context.constant(np.where(numbers < 0, numbers + extent, numbers)).expr
    wide = indices.expr
    if indices.dtype != "int64":
        wide = context.emit(op.astype(wide, "int64"))
    moved = context.emit(op.add(wide, context.dim_expr(extent)))
    zero = context.constant(0, "int64").expr
    return context.emit(op.where(context.emit(op.less(wide, zero)), moved, wide))


@converter("Gather")
def gather(context: Context, x: Value, indices: Value, *, axis: int = 0) -> Expr:
    """The slices of x along an axis that indices choose; an index outside is a fault."""
    place = context.axis(x, axis)
    where = from_start(context, indices, context.shape(x, "data")[place])
    return context.emit(op.take(x.expr, where, place))


@converter("GatherElements", since=11)
def gather_elements(context: Context, x: Value, indices: Value, *, axis: int = 0) -> Expr:
    """One element of x for each index along an axis."""
    place = context.axis(x, axis)
    where = from_start(context, indices, context.shape(x, "data")[place])
    return context.emit(op.gather_elements(x.expr, where, place))


@converter("GatherND", since=11)
def gather_nd(context: Context, x: Value, indices: Value, *, batch_dims: int = 0) -> Expr:
    """The slices of x at index vectors, which lie along the last axis."""
    where = _vectors_from_start(context, x, indices, batch_dims)
    return context.emit(op.gather_nd(x.expr, where, batch_dims))


def _vectors_from_start(context: Context, x: Value, indices: Value, batch: int) -> Expr:
    width = context.extent(indices, -1, "indices")
    extents = context.shape(x, "data")[batch : batch + width]
    wide = indices.expr
    if indices.dtype != "int64":
        wide = context.emit(op.astype(wide, "int64"))
    zero = context.constant(0, "int64").expr
    moved = context.emit(op.add(wide, context.shape_value(extents).expr))
    return context.emit(op.where(context.emit(op.less(wide, zero)), moved, wide))


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _reduction(context: Context, name: str) -> str:
    if name not in _REDUCTIONS:
        context.fail(f"reduction: expected one of {', '.join(_REDUCTIONS)}, got {name!r}")
    return _REDUCTIONS[name]


@converter("ScatterElements", "Scatter", since=9)
def scatter_elements(
    context: Context,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Expr:
    """x with updates written (or added, ...) at indices along an axis."""
    place = context.axis(x, axis)
    where = from_start(context, indices, context.shape(x, "data")[place])
    how = _reduction(context, reduction)
    return context.emit(op.scatter_elements(x.expr, where, updates.expr, place, how))


@converter("ScatterND", since=11)
def scatter_nd(
    context: Context, x: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Expr:
    """x with updates written (or added, ...) at index vectors."""
    where = _vectors_from_start(context, x, indices, 0)
    how = _reduction(context, reduction)
    return context.emit(op.scatter_nd(x.expr, where, updates.expr, how))


@converter("TensorScatter", since=24)
def tensor_scatter(
    context: Context,
    cache: Value,
    update: Value,
    indices: Value | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Expr:
    """The cache with, in each batch, the update written from its index on; round, if circular."""
    place, emit = context.axis(cache, axis), context.emit
    shape = context.shape(update, "update")
    along: list[Dim] = [1] * len(shape)
    along[place] = shape[place]
    places = emit(op.reshape(emit(op.arange(as_prim(shape[place]), dtype="int64")), along))
    if indices is not None:
        starts = indices.expr
        if indices.dtype != "int64":
            starts = emit(op.astype(starts, "int64"))
        batches = [context.shape(indices, "write_indices")[0], *[1] * (len(shape) - 1)]
        places = emit(op.add(emit(op.reshape(starts, batches)), places))
    if mode == "circular":
        size = context.shape(cache, "past_cache")[place]
        places = emit(op.floor_mod(places, context.dim_expr(size)))
    places = emit(op.broadcast_to(places, shape))
    return emit(op.scatter_elements(cache.expr, places, update.expr, place))


@converter("Slice")
def slice_attributes(
    context: Context,
    x: Value,
    *,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
) -> Expr:
    """Until opset 9 the bounds are attributes."""
    chosen = list(range(len(starts))) if axes is None else list(axes)
    return _sliced(context, x, (list(starts), list(ends)), chosen, [1] * len(chosen))


@converter("Slice", since=10)
def slice_inputs(
    context: Context,
    x: Value,
    starts: Value,
    ends: Value,
    axes: Value | None = None,
    steps: Value | None = None,
) -> Expr:
    """The part ``start:end:step`` along axes; bounds that only the data decides are symbols."""
    starts, ends = _of_one_length(context, starts, ends, axes, steps)
    first, last = context.dims(starts, "starts"), context.dims(ends, "ends")
    chosen = context.ints(axes, "axes")
    strides = context.ints(steps, "steps")
    chosen = list(range(len(first))) if chosen is None else chosen
    strides = [1] * len(first) if strides is None else strides
    return _sliced(context, x, (first, last), chosen, strides)


def _of_one_length(
    context: Context, starts: Value, ends: Value, *others: Value | None
) -> list[Value]:
    """Starts and ends, of as many elements as any of the inputs is known to have."""
    given = [value for value in (starts, ends, *others) if value is not None]
    extents = [dims[0] for value in given if len(dims := value.shape or []) == 1]
    counts = [extent for extent in extents if isinstance(extent, int)]
    return [
        context.value(context.matched(value.expr, counts[:1]))
        if counts and value.rank == 1 and value.shape not in (None, counts[:1])
        else value
        for value in (starts, ends)
    ]


def _sliced(
    context: Context,
    x: Value,
    bounds: tuple[list[Dim], list[Dim]],
    axes: list[int],
    steps: list[int],
) -> Expr:
    if not axes:
        return x.expr
    places = [context.axis(x, axis) for axis in axes]
    limit = 2**62
    first, last = ([_limited(dim, limit) for dim in group] for group in bounds)
    shape = context.shape(x, "data")
    for index, step in enumerate(steps):
        extent, end = shape[places[index]], last[index]
        if step > 0 and isinstance(end, int) and end >= _TO_THE_END:
            last[index] = extent
        if step < 0 and isinstance(last[index], int):
            # an end before the first element: beyond every negative index
            if isinstance(extent, int):
                last[index] = max(last[index], -extent - 1)
            elif last[index] <= -_TO_THE_END:
                last[index] = -extent - 1
    return context.emit(op.strided_slice(x.expr, places, first, last, steps))


_TO_THE_END = 2**31 - 1
"""ONNX's text says that an end of INT_MAX means the last element, whatever the extent is."""


def _limited(dim: Dim, limit: int) -> Dim:
    return max(min(dim, limit), -limit) if isinstance(dim, int) else dim


@converter("Split", ignores=["num_outputs"])
def split_attribute(
    context: Context,
    x: Value,
    sizes: Value | None = None,
    *,
    axis: int = 0,
    split: Sequence[int] | None = None,
) -> list[Expr] | list[Value]:
    """Until opset 12 the sizes are an attribute (an input in opset 1)."""
    return _split(context, x, axis, list(split) if split else _part_sizes(context, sizes))


@converter("Split", since=13)
def split_input(
    context: Context,
    x: Value,
    split: Value | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
) -> list[Expr] | list[Value]:
    """Parts of given sizes, or equal ones (the last may be smaller), one for each output."""
    return _split(context, x, axis, _part_sizes(context, split), num_outputs)


def _part_sizes(context: Context, sizes: Value | None) -> list[Dim] | None:
    return None if sizes is None else context.sizes(sizes, "split")


def _split(
    context: Context, x: Value, axis: int, sizes: Sequence[Dim] | None, count: int | None = None
) -> list[Expr] | list[Value]:
    place = context.axis(x, axis)
    outputs = len(context.node.output)
    if count not in (None, outputs):
        context.fail(f"num_outputs: expected {outputs}, as the node has so many, got {count}")
    if sizes is not None:
        check_sizes(context, x, place, sizes)
        if len(sizes) != outputs:
            context.fail(f"split: expected {outputs} sizes, got {len(sizes)}")
    else:
        sizes = _equal_parts(context.shape(x, "input")[place], outputs)
    ends = list(itertools.accumulate(sizes))
    numbers = [end for end in ends if isinstance(end, int)]
    if x.known is not None and len(numbers) == len(ends):
        parts = np.split(x.known, numbers[:-1], place)
        return [context.constant(settle(part), elem=x.elem) for part in parts]
    return [
        context.emit(op.strided_slice(x.expr, [place], [end - size], [end], assume_inbound=True))
        for size, end in zip(sizes, ends, strict=True)
    ]


def _equal_parts(extent: Dim, count: int) -> list[Dim]:
    """Equal sizes that make up an extent; the last ones may be smaller."""
    if isinstance(extent, int):
        part = -(-extent // count)
        return [max(min(part, extent - part * index), 0) for index in range(count)]
    size = tir.floordiv(extent + (count - 1), count)
    left = [tir.max(tir.min(size, extent - size * index), 0) for index in range(count)]
    return [simplified(dim) for dim in left]


def check_sizes(context: Context, x: Value, axis: int, sizes: Sequence[Dim]) -> None:
    """Raise OnnxNodeError unless sizes of parts make up the axis, where they are known."""
    numbers = [size for size in sizes if isinstance(size, int)]
    if any(size < 0 for size in numbers):
        context.fail(f"split: expected sizes of at least 0, got {list(sizes)}")
    extent = context.shape(x, "input")[axis]
    if isinstance(extent, int) and len(numbers) == len(sizes) and sum(numbers) != extent:
        context.fail(f"split: expected sizes that add up to {extent}, got {list(sizes)}")


@converter("Compress", since=9)
def compress(context: Context, x: Value, condition: Value, *, axis: int | None = None) -> Expr:
    """The slices where the condition holds; how many there are is decided by the data."""
    data = x.expr
    if axis is None:
        data = context.emit(op.reshape(data, [-1]))
        place = 0
    else:
        place = context.axis(x, axis)
    places = context.apply("NonZero", [condition], {})
    where = context.emit(op.reshape(places.expr, [context.shape(places, "condition")[1]]))
    return context.emit(op.take(data, where, place))


@converter("NonZero", since=9)
def nonzero(context: Context, x: Value) -> Expr:
    """The indices of elements that are not zero, a column each; their number is a new symbol."""
    data = x.expr
    rank = context.rank(x, "X")
    if rank == 0:
        data, rank = context.emit(op.reshape(data, [1])), 1
    places = context.builder.emit(op.nonzero(data))
    return context.matched(places, [rank, context.new_dim("nonzero")])


@converter("OneHot", since=9)
def one_hot(
    context: Context, indices: Value, depth: Value, values: Value, *, axis: int = -1
) -> Expr:
    """A vector of two values for each index, whose place has the second one."""
    count = context.sizes(depth, "depth")[0]
    place, emit = context.axis(indices, axis, 1), context.emit
    where = emit(op.expand_dims(from_start(context, indices, count), place))
    numbers = emit(op.arange(as_prim(count), dtype="int64"))
    rank = context.rank(indices, "indices") + 1
    along = [count if other == place else 1 for other in range(rank)]
    chosen = emit(op.equal(where, emit(op.reshape(numbers, along))))
    off, on = [
        emit(op.take(values.expr, context.constant(side, "int64").expr, 0)) for side in range(2)
    ]
    return emit(op.where(chosen, on, off))


@converter("TopK")
def topk_attribute(context: Context, x: Value, *, k: int, axis: int = -1) -> list[Expr]:
    """Until opset 9 k is an attribute."""
    return _topk(context, x, k, (axis, True))


@converter("TopK", since=10, ignores=["sorted"])
def topk(context: Context, x: Value, k: Value, *, axis: int = -1, largest: int = 1) -> list[Expr]:
    """The k largest (or smallest) along an axis, in order, and their indices."""
    return _topk(context, x, context.sizes(k, "K")[0], (axis, bool(largest)))


def _topk(context: Context, x: Value, k: Dim, options: tuple[int, bool]) -> list[Expr]:
    axis, largest = options
    place = context.axis(x, axis)
    shape = context.shape(x, "X")
    extent = shape[place]
    if not isinstance(k, int):  # all of them in order, of which the first k stay
        both = context.emit(op.topk(x.expr, -1, place, "both", largest, "int64"))
        return [
            context.emit(op.strided_slice(context.emit(both[index]), [place], [0], [k]))
            for index in range(2)
        ]
    if k < 0 or (isinstance(extent, int) and k > extent):
        context.fail(f"K: expected 0 to {extent}, got {k}")
    if k == 0:
        dims = [*shape[:place], 0, *shape[place + 1 :]]
        return [context.emit(op.zeros(dims, dtype)) for dtype in (x.dtype, "int64")]
    both = context.emit(op.topk(x.expr, k, place, "both", largest, "int64"))
    return [context.emit(both[0]), context.emit(both[1])]


@converter("Trilu", since=14)
def trilu(context: Context, x: Value, k: Value | None = None, *, upper: int = 1) -> Expr:
    """The upper or lower triangle of matrices, zeros elsewhere."""
    offset = 0 if k is None else int(context.array(k, "k").ravel()[0])
    if x.dtype == "bool":
        small = context.emit(op.astype(x.expr, "uint8"))
        triangle = context.emit((op.triu if upper else op.tril)(small, offset))
        return context.emit(op.astype(triangle, "bool"))
    return context.emit((op.triu if upper else op.tril)(x.expr, offset))


@converter("ReverseSequence", since=10)
def reverse_sequence(
    context: Context, x: Value, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0
) -> Expr:
    """Each batch with its first elements, as many as its length, in reverse order."""
    return context.emit(op.reverse_sequence(x.expr, lengths.expr, time_axis, batch_axis))


@converter("EyeLike", since=9)
def eye_like(context: Context, x: Value, *, dtype: int | None = None, k: int = 0) -> Expr:
    """Ones on a diagonal of a matrix of x's shape."""
    rows, columns = context.shape(x, "input")
    kind = x.dtype if dtype is None else context.storage(dtype)
    return context.emit(op.eye(rows, columns, k, kind))


@converter("Unique", since=11)
def unique(context: Context, x: Value, *, axis: int | None = None, sorted: int = 1) -> list[Expr]:
    """The distinct values (or slices), where each stands first, which each is, and how often."""
    data = x.expr if axis is not None else context.emit(op.reshape(x.expr, [-1]))
    place = 0 if axis is None else context.axis(x, axis)
    whole = context.emit(op.unique(data, bool(sorted), True, True, True, place))
    shape = context.value(data).shape or []
    count, symbol = shape[place], context.new_dim("unique")
    results = [context.builder.emit(whole[index]) for index in range(4)]
    dims = [[*shape[:place], symbol, *shape[place + 1 :]], [symbol], [count], [symbol]]
    return [
        context.matched(item, size, None if index == 0 else "int64")
        for index, (item, size) in enumerate(zip(results, dims, strict=True))
    ]


@converter("Range", since=11)
def arange(context: Context, start: Value, limit: Value, delta: Value) -> Expr:
    """Numbers from start to limit in steps of delta; how many is decided by the data."""
    if delta.constant is not None and not delta.constant.any():
        context.fail("delta: expected a step that is not 0")
    parts = [context.emit(op.reshape(value.expr, [])) for value in (start, limit, delta)]
    size = _known_count(start, limit, delta)
    if size is None:
        size = _computed_count(context, parts)
    places = context.emit(op.arange(as_prim(size), dtype="int64"))
    if start.dtype != "int64":
        places = context.emit(op.astype(places, start.dtype))
    return context.emit(op.add(parts[0], context.emit(op.multiply(places, parts[2]))))


def _known_count(start: Value, limit: Value, delta: Value) -> Dim | None:
    """How many numbers there are where the bounds are numbers or dimensions, of a known step."""
    if start.known is None or limit.known is None or delta.constant is None:
        return None
    step = delta.constant.item()
    if not isinstance(step, int):
        return None
    first, last = start.known.item(), limit.known.item()
    if step < 0:
        first, last, step = last, first, -step
    return plain_dim(simplified(tir.max(tir.floordiv(as_prim(last - first) + (step - 1), step), 0)))


def _computed_count(context: Context, parts: list[Expr]) -> Dim:
    """How many numbers there are, as the program computes it."""
    emit = context.emit
    wide = [emit(op.astype(part, "float64")) for part in parts]
    span = emit(op.divide(emit(op.subtract(wide[1], wide[0])), wide[2]))
    rounded = emit(op.maximum(emit(op.ceil(span)), context.constant(0.0).expr))
    return context.sizes(context.value(emit(op.astype(rounded, "int64"))), "range")[0]
