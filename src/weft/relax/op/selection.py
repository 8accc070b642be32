"""Choosing, ordering, searching and counting: where, sort, topk, searchsorted, unique, ..."""

from __future__ import annotations

import numpy as np

from weft import topi
from weft.ir.expr import IntImm, RelaxExpr
from weft.ir.traits import Trait
from weft.relax.expr import Call, Constant, Expr, PrimValue, RelaxLike, const
from weft.relax.ir.shape_arith import differ, same_dims, simplified
from weft.relax.op.create import full_like
from weft.relax.op.definition import Dtype, Prim, Replacements, match_scalars, operator
from weft.relax.op.infer import (
    VOID,
    Dims,
    axis_of,
    broadcast_infos,
    check_float,
    check_rank,
    common_dtype,
    common_vdevice,
    dims_of,
    fail,
    int64,
    result,
    same_along_axis,
    show_dims,
    tensor,
    with_dtype,
)
from weft.relax.op.lowering import Builder, scalar_or_tensor
from weft.relax.op.reference import selection as reference
from weft.relax.op.reference.rule import in_float64, wide
from weft.relax.op.requirements import Required
from weft.relax.struct_info import PrimStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.te.tensor import Tensor
from weft.tir.op import min as tir_min
from weft.topi.histogram import histogram as topi_histogram


def infer_where(call: Call) -> TensorStructInfo:
    """The broadcast of the condition and both tensors."""
    infos = []
    for arg in call.args:
        info = arg.struct_info
        if not isinstance(info, TensorStructInfo | PrimStructInfo):
            raise IRTypeError(f"relax.where: expected tensors, got {info}")
        infos.append(info)
    if infos[0].dtype not in (VOID, "bool"):
        raise IRTypeError(f"relax.where: condition: expected booleans, got {infos[0].dtype}")
    return broadcast_infos(call, infos, common_dtype(call, infos[1:]))


def _lower_where(bb: Builder, call: Call) -> RelaxExpr:
    operands = [scalar_or_tensor(arg) for arg in call.args[1:]]
    if all(not isinstance(item, Expr) for item in operands):
        operands = list(call.args[1:])
    return bb.call_te(topi.where, call.args[0], *operands)


@operator(
    "relax.where",
    infer_where,
    legalize=_lower_where,
    numpy=lambda condition, x, y: np.where(condition, wide(x), wide(y)),
    traits=Trait.ELEMENTWISE | Trait.FOLLOWS,
)
def where(condition: Expr, x1: Expr, x2: Expr) -> Replacements:
    """x1 where the condition holds, else x2."""
    lhs, rhs = match_scalars(x1, x2)
    return {"x1": lhs, "x2": rhs}


def masked_fill(x: Expr, mask: Expr, value: RelaxLike) -> Expr:
    """x with ``value`` where the mask holds: ``where`` over a tensor of the value."""
    given = getattr(getattr(value, "struct_info", None), "dtype", None)
    return where(mask, full_like(x, value, given), x)


def infer_fma(call: Call) -> TensorStructInfo:
    """As the inputs, which must have the same shape."""
    infos = [tensor(call, index) for index in range(3)]
    dtype, vdevice = common_dtype(call, infos), common_vdevice(infos)
    ranks = {info.ndim for info in infos} - {-1}
    known = [dims for dims in map(dims_of, infos) if dims is not None]
    for dims in known[1:]:
        if len(dims) != len(known[0]) or any(map(differ, dims, known[0])):
            fail(call, f"expected one shape, got {show_dims(known[0])} and {show_dims(dims)}")
    if len(ranks) > 1:
        fail(call, f"expected tensors of one rank, got the ranks {sorted(ranks)}")
    if len(known) == len(infos) and all(same_dims(known[0], dims) for dims in known):
        return result(known[0], dtype, vdevice=vdevice)
    return result(None, dtype, next(iter(ranks), -1), vdevice)


@operator(
    "relax.ewise_fma",
    infer_fma,
    te=lambda x, y, z: topi.add(topi.multiply(x, y), z),
    kernel="fma",
    numpy=in_float64(lambda x, y, z: x * y + z),
    traits=Trait.ELEMENTWISE,
)
def ewise_fma(x1: Expr, x2: Expr, x3: Expr) -> None:
    """x1 * x2 + x3."""


def infer_astype(call: Call) -> TensorStructInfo:
    """The input with another dtype."""
    return with_dtype(tensor(call, 0), call.attrs["dtype"])


def _lower_astype(bb: Builder, call: Call) -> RelaxExpr:
    """Convert a scalar constant now, unless it is a float outside of the integer type's range."""
    source, target = call.args[0], str(call.attrs["dtype"])
    if isinstance(source, Constant) and source.data.ndim == 0:
        value, kind = source.data.numpy(), DataType(target)
        with np.errstate(all="ignore"):
            converted = value.astype(kind.numpy)
        truncated = DataType(source.struct_info.dtype).is_float and kind.is_integral
        if not truncated or abs(float(converted) - float(value)) < 1:
            return const(converted, target)
    return bb.call_te(topi.cast, source, target)


@operator(
    "relax.astype",
    infer_astype,
    legalize=_lower_astype,
    numpy=reference.astype,
    traits=Trait.ELEMENTWISE,
)
def astype(x: Expr, dtype: Dtype) -> None:
    """The values converted to another data type."""


@operator("relax.wrap_param", infer_astype, numpy=reference.astype)
def wrap_param(data: Expr, dtype: Dtype = "float32") -> None:
    """A parameter converted to a dtype: the mark of a cast that mixed precision has inserted."""


def infer_argsort(call: Call) -> TensorStructInfo:
    """Indices of the input's shape."""
    return with_dtype(same_along_axis(call), call.attrs["dtype"])


@operator(
    "relax.sort",
    same_along_axis,
    te=lambda x, axis, descending: topi.sort(x, axis, not descending),
    numpy=reference.sort,
    traits=Trait.ALONG_AXIS,
)
def sort(x: Expr, axis: int = -1, descending: bool = False) -> None:
    """The values in order along an axis."""


def _argsort(data: Tensor, axis: int, descending: bool, dtype: str) -> Tensor:
    return topi.argsort(data, axis=axis, is_ascend=not descending, dtype=str(dtype))


@operator(
    "relax.argsort",
    infer_argsort,
    te=_argsort,
    kernel="argsort",
    numpy=reference.argsort,
    traits=Trait.ALONG_AXIS,
)
def argsort(data: Expr, axis: int = -1, descending: bool = False, dtype: Dtype = "int32") -> None:
    """The indices that put the values in order along an axis."""


def infer_topk(call: Call) -> StructInfo:
    """Values, indices or both, with k along the axis."""
    info = tensor(call, 0)
    axis, k = axis_of(call, call.attrs["axis"], info.ndim), call.attrs["k"]
    dims = dims_of(info)
    kept = None if dims is None else [*dims]
    if kept is not None and k > 0:
        kept[axis] = simplified(tir_min(int64(k), kept[axis]))
    values = result(kept, info.dtype, info.ndim, info.vdevice)
    indices = result(kept, call.attrs["dtype"], info.ndim, info.vdevice)
    answers: dict[str, StructInfo] = {
        "values": values,
        "indices": indices,
        "both": TupleStructInfo([values, indices]),
    }
    if call.attrs["ret_type"] not in answers:
        known = ", ".join(answers)
        fail(call, f"ret_type: expected {known}, got {call.attrs['ret_type']!r}")
    return answers[call.attrs["ret_type"]]


def _topk(
    data: Tensor, k: int, axis: int, ret_type: str, largest: bool, dtype: str
) -> Tensor | list[Tensor]:
    return topi.topk(data, k, axis, ret_type, not largest, str(dtype))


@operator("relax.topk", infer_topk, te=_topk, kernel="topk", numpy=reference.topk)
def topk(
    data: Expr,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: Dtype = "int32",
) -> None:
    """The k largest (or smallest) values along an axis and their indices."""


def infer_bucketize(call: Call) -> TensorStructInfo:
    """Indices of the input's shape."""
    check_rank(call, 1, 1)
    return with_dtype(tensor(call, 0), "int32" if call.attrs["out_int32"] else "int64")


def _bucketize(values: Tensor, boundaries: Tensor, out_int32: bool, right: bool) -> Tensor:
    return topi.searchsorted(boundaries, values, right, "int32" if out_int32 else "int64")


@operator(
    "relax.bucketize", infer_bucketize, te=_bucketize, kernel="bucketize", numpy=reference.bucketize
)
def bucketize(
    input_tensor: Expr, boundaries: Expr, out_int32: bool = False, right: bool = False
) -> None:
    """The bucket of each value between sorted boundaries."""


def infer_searchsorted(call: Call) -> TensorStructInfo:
    """Indices of the values' shape; a sequence with rows must have a row for each row of values."""
    sequence, values = tensor(call, 0), tensor(call, 1)
    common_dtype(call, [sequence, values])
    if sequence.ndim == 0:
        fail(call, "sorted_sequence: expected at least 1 dimension, got 0")
    rows = _rows_of_values(sequence, values)
    if sequence.ndim > 1 and values.ndim not in (-1, sequence.ndim):
        fail(call, f"values: expected {sequence.ndim} dimensions, got {values.ndim}")
    if rows is not None and any(map(differ, rows, dims_of(sequence) or ())):
        fail(call, f"sorted_sequence: expected the rows {show_dims(rows)}, got {sequence}")
    return with_dtype(values, "int32" if call.attrs["out_int32"] else "int64")


def _rows_of_values(sequence: TensorStructInfo, values: TensorStructInfo) -> Dims:
    """The shape that sequences need to have a row for each row of values; None for a vector."""
    whole, wanted = dims_of(sequence), dims_of(values)
    if whole is None or wanted is None or len(whole) != len(wanted) or len(whole) < 2:
        return None
    return [*wanted[:-1], whole[-1]]


def _same_rows(call: Call) -> Required:
    rows = _rows_of_values(tensor(call, 0), tensor(call, 1))
    return {} if rows is None else {0: rows}


def _searchsorted(sequence: Tensor, values: Tensor, out_int32: bool, right: bool) -> Tensor:
    return topi.searchsorted(sequence, values, right, "int32" if out_int32 else "int64")


@operator(
    "relax.searchsorted",
    infer_searchsorted,
    te=_searchsorted,
    kernel="searchsorted",
    requires=_same_rows,
    numpy=reference.searchsorted,
)
def searchsorted(
    sorted_sequence: Expr, values: Expr, out_int32: bool = False, right: bool = False
) -> None:
    """The number of elements of a sorted row that are less than each value (``right``: or equal).

    The sequence is one row for all values, or has one row for each row of values.
    """


def infer_histogram(call: Call) -> TensorStructInfo:
    """A count for each part, in the type of the data."""
    info = check_rank(call, 0, 1)
    ends = [check_rank(call, index, 0) for index in (1, 2)]
    check_float(call, info)
    dtype = common_dtype(call, [info, *ends])
    if call.attrs["bins"] < 1:
        fail(call, f"bins: expected 1 or more, got {call.attrs['bins']}")
    return result([int64(call.attrs["bins"])], dtype, vdevice=info.vdevice)


@operator(
    "relax.histogram", infer_histogram, te=topi_histogram, numpy=in_float64(reference.histogram)
)
def histogram(x: Expr, low: Expr, high: Expr, bins: int) -> None:
    """The number of elements of a row in each of ``bins`` equal parts of [low, high].

    If low equals high, the interval is [low - 1, high + 1]. Elements outside are not counted. The
    counts have the type of the data.
    """


def infer_nonzero(call: Call) -> TensorStructInfo:
    """(rank, number of non-zero elements)."""
    info = tensor(call, 0)
    return result(None, "int64", 2, info.vdevice)


@operator("relax.nonzero", infer_nonzero, packed="relax.run.nonzero", numpy=reference.nonzero)
def nonzero(x: Expr) -> None:
    """The indices of elements that are not zero, one column each."""


def _constant(call: Call, index: int) -> int:
    """The constant value of a flag or of an axis: the result's struct info depends on it."""
    names = ("x", "sorted", "return_index", "return_inverse", "return_counts", "axis")
    arg = call.args[index]
    if not isinstance(arg, PrimValue) or not isinstance(arg.value, IntImm):
        raise IRTypeError(
            f"{call.op.name}: {names[index]}: expected a constant known when compiling (a bool, an "
            f"int or a PrimValue of one), got {arg}"
        )
    return arg.value.value


def infer_unique(call: Call) -> StructInfo:
    """The unique values and the index tensors asked for; their sizes are known at run time only."""
    info = tensor(call, 0)
    flags = [_constant(call, index) for index in (2, 3, 4)]
    has_axis = len(call.args) > 5
    if has_axis and isinstance(call.args[5], PrimValue) and info.ndim >= 0:
        axis_of(call, _constant(call, 5), info.ndim)
    shape = [1] if info.ndim == 0 else None
    rank = info.ndim if has_axis and shape is None else 1
    parts = [result(shape, info.dtype, rank, info.vdevice)]
    parts += [result(shape, "int64", 1, info.vdevice) for flag in flags if flag]
    return parts[0] if len(parts) == 1 else TupleStructInfo(parts)


@operator("relax.unique", infer_unique, packed="relax.run.unique", numpy=reference.unique)
def unique(
    x: Expr,
    sorted: Prim = True,  # noqa: A002 - TVM's name
    return_index: Prim = False,
    return_inverse: Prim = False,
    return_counts: Prim = False,
    axis: Prim | None = None,
) -> None:
    """The distinct values."""
