"""Counts of small integers and of runs of equal elements; the data tell how many there are."""

from __future__ import annotations

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.gathering import places_of, rows
from weft.relax.frontend.torch.operators.scattering import written
from weft.relax.frontend.torch.registry import converter
from weft.relax.struct_info import ShapeStructInfo
from weft.support.errors import UnsupportedError
from weft.tir.expr import Var


@converter("aten.bincount.default")
def bincount(context: Context, self: Expr, weights: Expr | None = None, minlength: int = 0) -> Expr:
    """How often (or with which weight) each integer from 0 to the highest one occurs."""
    dtype = context.dtype
    if context.dims(self) == [0]:
        return op.zeros([minlength], dtype)
    bins = context.cast(self, "int64")
    count = op.maximum(op.add(op.max(bins), const(1, "int64")), const(minlength, "int64"))
    shape = context.emit(op.tensor_to_shape(context.emit(op.reshape(count, [1]))))
    extent = Var("num_bins", "int64")
    context.builder.match_cast(shape, ShapeStructInfo([extent]))
    values = op.ones(context.dims(self), dtype) if weights is None else context.cast(weights, dtype)
    return _added_up(context, [extent], bins, values)


@converter("aten.repeat_interleave.Tensor")
def repeat_interleave(
    context: Context, repeats: Expr, *, output_size: Extent | None = None
) -> Expr:
    """The places 0, 1 ..., each as often as its element says; ``output_size`` is their sum."""
    counts = context.cast(repeats, "int64")
    ends = context.emit(op.cumsum(counts, 0))
    extent = output_size
    if extent is None:
        extent = Var("num_places", "int64")
        total = context.emit(op.reshape(op.sum(counts), [1]))
        shape = context.emit(op.tensor_to_shape(total))
        context.builder.match_cast(shape, ShapeStructInfo([extent]))
    places = context.emit(op.arange(0, extent, 1, "int64"))
    return context.cast(context.emit(op.searchsorted(ends, places, right=True)), context.dtype)


def _added_up(context: Context, shape: list[Extent], places: Expr, values: Expr) -> Expr:
    start = context.emit(op.zeros(shape, context.dtype_of(context.emit(values))))
    return written(start, places, values, 0, "add")


@converter("aten.unique_consecutive.default")
def unique_consecutive(
    context: Context,
    self: Expr,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Expr, Expr, Expr]:
    """The first element of each run of equal ones, the run of each element, and their lengths."""
    if dim is not None and context.rank(self) != 1:
        raise UnsupportedError(
            "unique_consecutive: expected dim=None or a tensor of one dimension, got "
            f"dim={dim} of {context.rank(self)}"
        )
    flat = context.emit(op.reshape(self, [-1]))
    (length,) = context.dims(flat)
    if isinstance(length, int) and length < 2:
        begins = context.emit(op.ones([length], "bool"))
    else:
        before = op.strided_slice(flat, [0], [0], [length - 1])
        changes = op.not_equal(op.strided_slice(flat, [0], [1], [length]), before)
        begins = context.emit(op.concat([op.ones([1], "bool"), changes], 0))
    (starts,) = rows(context, places_of(context, begins), 1)
    values = op.index_tensor(flat, [starts])
    begun = op.cumsum(context.cast(begins, "int64"), 0)
    runs = context.emit(op.subtract(begun, const(1, "int64")))
    # what was not asked for has no elements, but along a dimension torch gives it all the same
    inverse: Expr = op.zeros([0], "int64")
    counts: Expr = inverse
    if context.results[1][0] != [0]:
        inverse = op.reshape(runs, context.results[1][0])
    if context.results[2][0] != [0]:
        ones = op.ones([length], "int64")
        counts = _added_up(context, context.dims(starts), runs, ones)
    return values, inverse, counts
