"""Reads and writes at indices that are data: gather, scatter, index_tensor, index_put.

Indices are integers; the compiled program checks that they are in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import topi
from weft.ir.expr import RelaxExpr
from weft.relax.expr import Call, Expr, PrimValue
from weft.relax.ir.shape_arith import broadcast, constant_value, differ
from weft.relax.op.definition import Exprs, Prim, Replacements, operator
from weft.relax.op.index import sliced_extent
from weft.relax.op.infer import (
    VOID,
    Dims,
    axis_of,
    broadcast_infos,
    common_dtype,
    dims_of,
    fail,
    integral,
    prim_arg,
    result,
    show_dims,
    tensor,
    tensors,
)
from weft.relax.op.lowering import Builder, dims
from weft.relax.op.reference import scatter as reference
from weft.relax.op.requirements import Required, same_shape
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.tir.op import is_const_int
from weft.topi import rearrangement


def check_same_rank(call: Call, indices: Sequence[int]) -> None:
    """Raise if the ranks of the arguments are known and differ."""
    ranks = {tensor(call, index).ndim for index in indices} - {-1}
    if len(ranks) > 1:
        infos = " and ".join([str(tensor(call, index)) for index in indices])
        fail(call, f"expected tensors of one rank, got {infos}")


def check_same_dims(call: Call, first: Dims, second: Dims, what: str) -> None:
    """Raise if two shapes are known and differ."""
    if first is None or second is None:
        return
    if len(first) != len(second) or any(differ(a, b) for a, b in zip(first, second, strict=True)):
        fail(call, f"{what}: expected the shape {show_dims(first)}, got {show_dims(second)}")


def infer_scatter_elements(call: Call) -> TensorStructInfo:
    """As the data; indices and updates must have the same shape."""
    info = tensor(call, 0)
    axis_of(call, call.attrs["axis"], info.ndim)
    indices, updates = integral(call, 1), tensor(call, 2)
    common_dtype(call, [info, updates])
    check_same_rank(call, (0, 1, 2))
    check_same_dims(call, dims_of(indices), dims_of(updates), "updates")
    return info


@operator(
    "relax.scatter_elements",
    infer_scatter_elements,
    te=topi.scatter_elements,
    requires=same_shape(1, 2),
    numpy=reference.scatter_elements,
)
def scatter_elements(
    data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update"
) -> None:
    """The data with updates written at indices along an axis."""


def infer_scatter_nd(call: Call) -> TensorStructInfo:
    """As the data; the updates must have the shape that the index vectors select."""
    info, updates = tensor(call, 0), tensor(call, 2)
    integral(call, 1)
    common_dtype(call, [info, updates])
    check_same_dims(call, chosen_dims(call, 0), dims_of(updates), "updates")
    return info


def _chosen(call: Call) -> Required:
    chosen = chosen_dims(call, 0)
    return {} if chosen is None else {2: list(chosen)}


@operator(
    "relax.scatter_nd",
    infer_scatter_nd,
    te=rearrangement.scatter_nd,
    requires=_chosen,
    numpy=reference.scatter_nd,
)
def scatter_nd(data: Expr, indices: Expr, updates: Expr, reduction: str = "update") -> None:
    """The data with updates written at index vectors."""


def infer_gather_elements(call: Call) -> TensorStructInfo:
    """The shape of the indices."""
    info, indices = tensor(call, 0), integral(call, 1)
    axis_of(call, call.attrs["axis"], info.ndim)
    check_same_rank(call, (0, 1))
    if indices.ndim == -1:
        return result(None, info.dtype, info.ndim, info.vdevice)
    return result(dims_of(indices), info.dtype, indices.ndim, info.vdevice)


@operator(
    "relax.gather_elements",
    infer_gather_elements,
    te=lambda data, indices, axis: topi.gather(data, axis, indices),
    numpy=reference.gather_elements,
)
def gather_elements(data: Expr, indices: Expr, axis: int = 0) -> None:
    """The elements that indices choose along an axis."""


def chosen_dims(call: Call, batch: int) -> Dims:
    """The shape that index vectors (argument 1) select from the data, or None."""
    info, indices = tensor(call, 0), tensor(call, 1)
    shape, dims = dims_of(indices), dims_of(info)
    if indices.ndim == 0:
        fail(call, "indices: expected index vectors along the last axis, got a scalar")
    if not 0 <= batch <= (indices.ndim - 1 if indices.ndim > 0 else batch):
        fail(call, f"batch_dims: {batch} does not fit the indices {indices}")
    width = None if shape is None else constant_value(shape[-1])
    if width is None:
        return None
    if info.ndim != -1 and batch + width > info.ndim:
        fail(call, f"index vectors of {width} after {batch} batch dimensions, data has {info.ndim}")
    return None if dims is None else [*(shape or ())[:-1], *dims[batch + width :]]


def infer_gather_nd(call: Call) -> TensorStructInfo:
    """The indices' dimensions without the last, then the data's that the vectors do not index."""
    info, indices = tensor(call, 0), integral(call, 1)
    batch, shape = call.attrs["batch_dims"], dims_of(indices)
    gathered = chosen_dims(call, batch)
    width = None if shape is None else constant_value(shape[-1])
    ndim = -1
    if gathered is None and width is not None and info.ndim != -1:
        ndim = indices.ndim - 1 + info.ndim - batch - width
    return result(gathered, info.dtype, ndim, info.vdevice)


def _batched(call: Call) -> Required:
    batch = call.attrs["batch_dims"]
    return {1: [*dims(call.args[0])[:batch], *dims(call.args[1])[batch:]]}


@operator(
    "relax.gather_nd",
    infer_gather_nd,
    te=rearrangement.gather_nd,
    requires=_batched,
    numpy=reference.gather_nd,
)
def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0) -> None:
    """The slices that index vectors choose."""


def _joint_index(call: Call) -> tuple[int, TensorStructInfo]:
    """The number of index tensors in argument 1, and the info of their broadcast."""
    infos = tensors(call, 1)
    if not infos:
        fail(call, "indices: expected at least one index tensor")
    for number, info in enumerate(infos):
        kind = DataType(info.dtype)
        if kind != VOID and (not kind.is_integral or kind.is_bool):
            raise IRTypeError(f"{call.op.name}: indices[{number}]: expected integers, got {kind}")
    data = tensor(call, 0)
    if data.ndim != -1 and len(infos) > data.ndim:
        fail(call, f"{len(infos)} index tensors for data of {data.ndim} dimensions")
    return len(infos), broadcast_infos(call, infos, "int64")


def _indexed(call: Call) -> TensorStructInfo:
    """The broadcast shape of the index tensors, then the axes of the data that none indexes."""
    data = tensor(call, 0)
    count, where = _joint_index(call)
    dims, shape = dims_of(data), dims_of(where)
    if dims is not None and shape is not None:
        return result([*shape, *dims[count:]], data.dtype, vdevice=data.vdevice)
    known = -1 not in (data.ndim, where.ndim)
    return result(None, data.dtype, where.ndim + data.ndim - count if known else -1, data.vdevice)


def as_index_tuple(indices: Any) -> Any:
    """The index tensors as a tuple; a single tensor becomes a tuple of one."""
    info = getattr(indices, "struct_info", None)
    return [indices] if isinstance(info, TensorStructInfo) else indices


@operator("relax.index_tensor", _indexed, te=topi.index_tensor, numpy=reference.index_tensor)
def index_tensor(data: Expr, indices: Exprs) -> Replacements:
    """``data[I0, I1, ...]``: index tensors that broadcast together, one for each leading axis.

    A negative index counts from the end, as in numpy.
    """
    return {"indices": as_index_tuple(indices)}


def infer_index_put(call: Call) -> TensorStructInfo:
    """As the data; the values must broadcast to the shape that the index tensors select."""
    data, values = tensor(call, 0), tensor(call, 2)
    common_dtype(call, [data, values])
    target = _indexed(call)
    chosen, given = dims_of(target), dims_of(values)
    if target.ndim != -1 and values.ndim > target.ndim:
        fail(call, f"values: {values.ndim} dimensions for {target.ndim} that the indices choose")
    if chosen is not None and given is not None:
        joint = broadcast(chosen, given)
        grown = (
            joint is not None
            and not isinstance(joint, str)
            and any(differ(a, b) for a, b in zip(joint, chosen, strict=True))
        )
        if isinstance(joint, str) or grown:
            fail(call, f"values: cannot broadcast {show_dims(given)} to {show_dims(chosen)}")
    return data


@operator("relax.index_put", infer_index_put, te=topi.index_put, numpy=reference.index_put)
def index_put(data: Expr, indices: Exprs, values: Expr, accumulate: bool = False) -> Replacements:
    """The data with values written (or added, if ``accumulate``) at ``data[I0, I1, ...]``.

    The values broadcast to the selected shape. If an index occurs several times, the last value
    counts, or all are added.
    """
    return {"indices": as_index_tuple(indices)}


def infer_slice_scatter(call: Call) -> TensorStructInfo:
    """As the input; src has the shape of the slice."""
    info, src = tensor(call, 0), tensor(call, 1)
    common_dtype(call, [info, src])
    check_same_rank(call, (0, 1))
    axis = axis_of(call, call.attrs["axis"], info.ndim)
    start, end, step = (prim_arg(call, index) for index in (2, 3, 4))
    stride = constant_value(step)
    if stride is not None and stride < 1:
        fail(call, f"step: expected 1 or more, got {step}")
    dims, given = dims_of(info), dims_of(src)
    if dims is not None and given is not None:
        count = sliced_extent(dims[axis], start, end, step, assume_inbound=False)
        if count is not None:
            check_same_dims(call, [*dims[:axis], count, *dims[axis + 1 :]], given, "src")
    return info


def _replaced(call: Call) -> Required:
    """src must have the shape of the slice that it replaces."""
    start, end, step = (getattr(arg, "value", None) for arg in call.args[2:5])
    if start is None or end is None or step is None or constant_value(step) is None:
        return {}
    shape = dims(call.args[0])
    axis = call.attrs["axis"]
    count = sliced_extent(shape[axis], start, end, step, assume_inbound=False)
    return {} if count is None else {1: [*shape[:axis], count, *shape[axis + 1 :]]}


def _lower_slice_scatter(bb: Builder, call: Call) -> RelaxExpr:
    data, src, *bounds = call.args
    values = [bound.value for bound in bounds if isinstance(bound, PrimValue)]
    if len(values) < 3 or not is_const_int(values[2]):
        return call
    start, end, step = values
    return bb.call_te(topi.slice_scatter, data, src, start, end, step, call.attrs["axis"])


@operator(
    "relax.slice_scatter",
    infer_slice_scatter,
    legalize=_lower_slice_scatter,
    requires=_replaced,
    numpy=reference.slice_scatter,
)
def slice_scatter(
    input_tensor: Expr, src: Expr, start: Prim, end: Prim, step: Prim = 1, axis: int = 0
) -> None:
    """The input with the slice ``start:end:step`` along an axis replaced by src."""


def infer_masked_scatter(call: Call) -> TensorStructInfo:
    """As the data; the mask, of booleans, has its shape."""
    info, mask, source = [tensor(call, index) for index in range(3)]
    common_dtype(call, [info, source])
    if mask.dtype not in ("bool", VOID):
        raise IRTypeError(f"{call.op.name}: mask: expected bool, got {mask.dtype}")
    check_same_dims(call, dims_of(info), dims_of(mask), "mask")
    return info


@operator(
    "relax.masked_scatter",
    infer_masked_scatter,
    legalize=lambda bb, call: bb.call_te(topi.masked_scatter, *call.args),
    requires=same_shape(0, 1),
    numpy=reference.masked_scatter,
)
def masked_scatter(data: Expr, mask: Expr, source: Expr) -> None:
    """The data with the elements of source, one after the other, where the mask holds.

    A call whose source has fewer elements than the mask has true places is an error.
    """
