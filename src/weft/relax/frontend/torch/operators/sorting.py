"""Sorting, selection by rank, search in sorted rows, histograms, sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.expr import Extent, as_prim_expr
from weft.relax import op
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.frontend.torch.values import Operand
from weft.support.dtype import DataType
from weft.tir import op as tir_op

Pair = tuple[Expr, Expr]
"""Elements, and the places where they stood."""
Rank = Callable[[Context, Expr, int], Expr]
"""(context, rows, axis) -> for each row the index of the chosen element in sorted order."""


def _as_row(context: Context, tensor: Expr) -> Expr:
    """A tensor without dimensions as a row of one element."""
    if context.rank(tensor):
        return tensor
    return context.emit(op.reshape(tensor, [1]))


def _shaped(context: Context, pair: Pair, shape: Sequence[Extent]) -> Pair:
    values, places = [context.emit(op.reshape(item, shape)) for item in pair]
    return values, places


@converter("aten.sort.default")
def sort(context: Context, self: Expr, dim: int = -1, descending: bool = False) -> Pair:
    """The elements in order and where each stood; equal ones stay in the order that they had."""
    both = context.emit(op.topk(_as_row(context, self), 0, dim, "both", descending, "int64"))
    values, places = [context.emit(both[i]) for i in (0, 1)]
    pair = values, places
    return pair if context.rank(self) else _shaped(context, pair, [])


@converter("aten.sort.stable")
def sort_stable(
    context: Context,
    self: Expr,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
) -> Pair:
    """As ``sort``, which is stable."""
    return sort(context, self, dim, descending)


@converter("aten.argsort.default")
def argsort(context: Context, self: Expr, dim: int = -1, descending: bool = False) -> Expr:
    """The places of the elements in order."""
    return sort(context, self, dim, descending)[1]


@converter("aten.argsort.stable")
def argsort_stable(
    context: Context, self: Expr, stable: bool = True, dim: int = -1, descending: bool = False
) -> Expr:
    """As ``argsort``."""
    return sort(context, self, dim, descending)[1]


@converter("aten.msort.default")
def msort(context: Context, self: Expr) -> Expr:
    """The elements in order along the first dimension."""
    return sort(context, self, 0)[0]


@converter("aten.topk.default")
def topk(
    context: Context,
    self: Expr,
    k: Extent,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> Pair:
    """The k largest (or smallest) in order, and where they stand."""
    if isinstance(k, int) and k >= 1 and context.rank(self):
        both = context.emit(op.topk(self, k, dim, "both", largest, "int64"))
        return context.emit(both[0]), context.emit(both[1])
    values, places = sort(context, self, dim, largest)
    if context.rank(self) == 0:
        return values, places
    axis = dim % context.rank(self)
    first, where = [op.strided_slice(item, [axis], [0], [k], [1]) for item in (values, places)]
    return first, where


# By rank


def _by_rank(context: Context, self: Expr, dim: int, keepdim: bool, rank: Rank) -> Pair:
    """The element of a rank among those in order (NaN last), and where it stands."""
    row = _as_row(context, self)
    axis = dim % context.rank(row)
    chosen = rank(context, row, axis)
    both = context.emit(op.topk(row, 0, axis, "both", False, "int64"))
    value, place = [context.emit(op.gather_elements(both[i], chosen, axis)) for i in (0, 1)]
    if keepdim and context.rank(self):
        return value, place
    return context.emit(op.squeeze(value, [axis])), context.emit(op.squeeze(place, [axis]))


def _everywhere(context: Context, row: Expr, axis: int, value: Extent) -> Expr:
    """An int64 number for each row along an axis."""
    shape = context.dims(row)
    shape[axis] = 1
    number = context.operand(value, "int64")
    if isinstance(number, PrimValue):
        zeros = context.emit(op.zeros(shape, "int64"))
        return context.emit(op.add(zeros, number))
    return context.emit(op.full(shape, number, "int64"))


def _numbers(context: Context, row: Expr, axis: int) -> Expr:
    """How many elements of each row are not NaN."""
    if not DataType(context.dtype_of(row)).is_float:
        return _everywhere(context, row, axis, context.dims(row)[axis])
    is_number = context.emit(op.logical_not(context.emit(op.isnan(row))))
    return context.emit(op.sum(context.cast(is_number, "int64"), [axis], True))


def _median_rank(context: Context, row: Expr, axis: int) -> Expr:
    """The lower middle, or the first NaN."""
    count = context.dims(row)[axis]
    middle = _everywhere(context, row, axis, (count - 1) // 2)
    if not DataType(context.dtype_of(row)).is_float:
        return middle
    numbers = _numbers(context, row, axis)
    has_nan = context.emit(op.less(numbers, context.operand(count, "int64")))
    return context.emit(op.where(has_nan, numbers, middle))


def _nanmedian_rank(context: Context, row: Expr, axis: int) -> Expr:
    """The lower middle of the numbers."""
    numbers = _numbers(context, row, axis)
    below = context.emit(op.subtract(numbers, const(1, "int64")))
    least = context.emit(op.maximum(below, const(0, "int64")))
    return context.emit(op.right_shift(least, const(1, "int64")))


@converter("aten.kthvalue.default")
def kthvalue(
    context: Context, self: Expr, k: Extent | PrimValue, dim: int = -1, keepdim: bool = False
) -> Pair:
    """The k-th smallest element, counted from 1, and where it stands."""
    before = (k.value if isinstance(k, PrimValue) else k) - 1

    def rank(context: Context, row: Expr, axis: int) -> Expr:
        return _everywhere(context, row, axis, before)

    return _by_rank(context, self, dim, keepdim, rank)


@converter("aten.median.dim")
def median_dim(context: Context, self: Expr, dim: int, keepdim: bool = False) -> Pair:
    """The lower median and where it stands; NaN if there is one."""
    return _by_rank(context, self, dim, keepdim, _median_rank)


@converter("aten.nanmedian.dim")
def nanmedian_dim(context: Context, self: Expr, dim: int, keepdim: bool = False) -> Pair:
    """The lower median of the numbers and where it stands."""
    return _by_rank(context, self, dim, keepdim, _nanmedian_rank)


@converter("aten.median.default")
def median(context: Context, self: Expr) -> Expr:
    """The lower median of all elements."""
    return _by_rank(context, context.emit(op.flatten(self)), 0, False, _median_rank)[0]


@converter("aten.nanmedian.default")
def nanmedian(context: Context, self: Expr) -> Expr:
    """The lower median of all numbers."""
    return _by_rank(context, context.emit(op.flatten(self)), 0, False, _nanmedian_rank)[0]


@converter("aten.mode.default")
def mode(context: Context, self: Expr, dim: int = -1, keepdim: bool = False) -> Pair:
    """The most frequent element, the smallest of several, and its last place."""
    row = _as_row(context, self)
    axis = dim % context.rank(row)
    left = context.emit(op.expand_dims(row, axis))
    right = context.emit(op.expand_dims(row, axis + 1))
    same = context.cast(context.emit(op.equal(left, right)), "int64")
    counts = context.emit(op.sum(same, [axis + 1], False))
    often = context.emit(op.equal(counts, context.emit(op.max(counts, [axis], True))))
    highest = context.operand(_highest(context.dtype), context.dtype)
    if context.dtype == "bool":
        best = context.emit(op.logical_or(row, context.emit(op.logical_not(often))))
    else:
        best = context.emit(op.where(often, row, highest))
    value = context.emit(op.min(best, [axis], True))
    extent = context.dims(row)[axis]
    along = [extent if other == axis else 1 for other in range(context.rank(row))]
    numbers = context.emit(op.reshape(op.arange(extent, dtype="int64"), along))
    here = context.emit(op.equal(row, value))
    places = context.emit(op.where(here, numbers, const(0, "int64")))
    last = context.emit(op.max(places, [axis], True))
    return _shaped(context, (value, last), context.shape)


def _highest(dtype: str) -> float:
    if "float" in dtype:
        return float("inf")
    return True if dtype == "bool" else (1 << (DataType(dtype).bits - DataType(dtype).is_int)) - 1


# Search


@converter("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(
    context: Context,
    sorted_sequence: Expr,
    self: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Expr | None = None,
) -> Expr:
    """How many elements of each sorted row stand before a value (``right``: or equal it)."""
    if sorter is not None:
        sorted_sequence = context.emit(op.gather_elements(sorted_sequence, sorter, -1))
    after = right or side == "right"
    rows, values = context.promoted(sorted_sequence, self)
    return op.searchsorted(rows, values, context.dtype == "int32", after)


@converter("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(
    context: Context, self: Operand, boundaries: Expr, out_int32: bool = False, right: bool = False
) -> Expr:
    """The bucket of each value between sorted boundaries."""
    return searchsorted(context, boundaries, self, out_int32, right)


@converter("aten.isin.Tensor_Tensor", "aten.isin.Tensor_Scalar", "aten.isin.Scalar_Tensor")
def isin(
    context: Context,
    elements: Operand,
    test_elements: Operand,
    assume_unique: bool = False,
    invert: bool = False,
) -> Expr:
    """Whether elements are among others."""
    candidates, others = context.promoted(elements, test_elements)
    tests = context.emit(op.flatten(others)) if context.rank(others) else _as_row(context, others)
    same = context.emit(op.equal(context.emit(op.expand_dims(candidates, -1)), tests))
    is_among = context.emit(op.max(same, [-1]))
    return op.logical_not(is_among) if invert else is_among


@converter("aten.histc.default")
def histc(context: Context, self: Expr, bins: int = 100, min: float = 0, max: float = 0) -> Expr:
    """How many elements each of ``bins`` equal parts of [min, max] has; 0 and 0: of the data."""
    row = context.emit(op.flatten(self)) if context.rank(self) != 1 else self
    if min == 0 and max == 0 and context.dims(row) != [0]:
        low, high = context.emit(op.min(row)), context.emit(op.max(row))
    else:
        low, high = const(min, context.dtype), const(max, context.dtype)
    return op.histogram(row, low, high, bins)


@converter("aten._unique2.default")
def unique2(
    context: Context,
    self: Expr,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Expr]:
    """The distinct elements in order, the place of each element among them, and their counts."""
    return _unique(context, self, return_inverse, return_counts, None)


@converter("aten.unique_dim.default")
def unique_dim(
    context: Context,
    self: Expr,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Expr]:
    """The distinct slices along a dimension."""
    return _unique(context, self, return_inverse, return_counts, dim)


def _unique(
    context: Context, self: Expr, inverse: bool, counts: bool, dim: int | None
) -> list[Expr]:
    flags = [PrimValue(tir_op.const(flag, "bool")) for flag in (True, False, inverse, counts)]
    axis = [] if dim is None else [PrimValue(as_prim_expr(dim))]
    whole = context.emit(op.unique(self, *flags, *axis))
    if not (inverse or counts):
        results = [whole]
    else:
        results = [context.emit(whole[i]) for i in range(1 + inverse + counts)]
    parts = [results.pop(0)]
    for index, is_wanted in ((1, inverse), (2, counts)):
        shape, dtype = context.results[index]
        if not is_wanted:
            parts.append(op.zeros(shape, dtype))
        elif index == 1 and dim is None:
            parts.append(op.reshape(results.pop(0), shape))
        else:
            parts.append(results.pop(0))
    return parts
