"""Indexing: take and slices."""

from __future__ import annotations

from weft import topi
from weft.ir.expr import Extent, IntImm, PrimExpr, RelaxExpr
from weft.ir.node import expect
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr, PrimValue, ShapeExpr, Tuple
from weft.relax.ir.shape_arith import constant_value, differ, simplified
from weft.relax.op.base import tensor_to_shape
from weft.relax.op.definition import Replacements, Shape, operator
from weft.relax.op.infer import (
    VOID,
    axes_of,
    axis_of,
    check_rank,
    constants,
    dims_of,
    fail,
    int64,
    integral,
    param_name,
    result,
    tensor,
)
from weft.relax.op.lowering import Builder, dims
from weft.relax.op.reference import index as reference
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.tir.expr import SizeVar, Var
from weft.tir.op import ceildiv, if_then_else
from weft.tir.op import max as tir_max
from weft.tir.op import min as tir_min
from weft.topi.extents import const_ints

TAKE_MODES = ("fast", "clip", "wrap", "nan")


def infer_take(call: Call) -> TensorStructInfo:
    """The input's shape with the axis replaced by the shape of the indices."""
    info = tensor(call, 0)
    where = call.args[1].struct_info
    if isinstance(where, PrimStructInfo):
        where = TensorStructInfo([], where.dtype)
    if not isinstance(where, TensorStructInfo):
        raise IRTypeError(f"relax.take: indices: expected a tensor, got {where}")
    if where.dtype != VOID and not DataType(where.dtype).is_integral:
        raise IRTypeError(f"relax.take: indices: expected integers, got {where.dtype}")
    if call.attrs["mode"] not in TAKE_MODES:
        fail(call, f"mode: expected {', '.join(TAKE_MODES)}, got {call.attrs['mode']!r}")
    axis = call.attrs["axis"]
    if axis is None:
        if info.ndim not in (-1, 1):
            fail(call, f"axis None needs a tensor of 1 dimension, got {info.ndim}")
        axis = 0
    axis = axis_of(call, axis, info.ndim)
    if -1 in (info.ndim, where.ndim):
        return result(None, info.dtype, -1, info.vdevice)
    dims, chosen = dims_of(info), dims_of(where)
    if dims is None or chosen is None:
        return result(None, info.dtype, info.ndim + where.ndim - 1, info.vdevice)
    return result([*dims[:axis], *chosen, *dims[axis + 1 :]], info.dtype, vdevice=info.vdevice)


@operator(
    "relax.take",
    infer_take,
    te=lambda x, indices, axis, mode: topi.take(x, indices, axis or 0, mode=mode),
    kernel="take",
    numpy=reference.take,
    traits=Trait.MOVES,
)
def take(x: Expr, indices: Expr, axis: int | None = None, mode: str = "fast") -> None:
    """The slices of x along ``axis`` that ``indices`` choose.

    ``mode`` says what an index outside of the axis does: "fast" raises an error when the program
    runs (also for a negative one), "clip" takes the first or last slice, "wrap" takes the index
    modulo the extent, "nan" gives NaN.
    """


def _tuple_values(call: Call, index: int) -> list[PrimExpr] | None:
    """The numbers in a tuple argument; None if it is a variable."""
    arg = call.args[index]
    if not isinstance(arg.struct_info, TupleStructInfo):
        raise IRTypeError(
            f"{call.op.name}: {param_name(call, index)}: expected a tuple of integers, got "
            f"{arg.struct_info}"
        )
    if not isinstance(arg, Tuple):
        return None
    return [expect(item, PrimValue).value for item in arg.fields]


def infer_strided_slice(call: Call) -> TensorStructInfo:
    """The extents between begin and end."""
    info = tensor(call, 0)
    axes, begin, end = (_tuple_values(call, index) for index in (1, 2, 3))
    strides = _tuple_values(call, 4) if len(call.args) > 4 else None
    dims = dims_of(info)
    counts = [len(item) for item in (axes, begin, end) if item is not None]
    if len(set(counts)) > 1:
        fail(call, f"axes, begin and end must be of one length, got {counts}")
    if axes is None or begin is None or end is None or dims is None:
        return result(None, info.dtype, info.ndim, info.vdevice)
    steps = strides or [int64(1)] * len(axes)
    if len(steps) != len(axes):
        fail(call, f"got {len(axes)} axes and {len(steps)} strides")
    if any(constant_value(step) == 0 for step in steps):
        fail(call, "strides: a stride must not be 0")
    chosen = axes_of(call, [constant_value(axis) or 0 for axis in axes], info.ndim, "axes")
    extents = list(dims)
    for axis, first, last, step in zip(chosen, begin, end, steps, strict=True):
        count = sliced_extent(dims[axis], first, last, step, call.attrs["assume_inbound"])
        if count is None:
            return result(None, info.dtype, info.ndim, info.vdevice)
        extents[axis] = count
    return result(extents, info.dtype, vdevice=info.vdevice)


def sliced_extent(
    extent: Extent, begin: Extent, end: Extent, step: Extent, assume_inbound: bool
) -> PrimExpr | None:
    """How many elements ``begin:end:step`` takes of ``extent``, as Python's slices do.

    None if the step is not known and may cut at either end.
    """
    stride = constant_value(step)
    size, first, last = constant_value(extent), constant_value(begin), constant_value(end)
    if None not in (stride, size, first, last):
        return int64(len(range(int(size or 0))[slice(first, last, stride)]))
    if assume_inbound:
        return simplified(ceildiv(end - begin, step))
    if stride is None:
        return None
    low, high = (_bound(value, extent, stride > 0) for value in (begin, end))
    distance = high - low if stride > 0 else low - high
    length = ceildiv(distance, int64(abs(stride)))
    ordered = (
        first is not None
        and last is not None
        and stride > 0
        and ((0 <= first <= last) or first <= last < 0)
    )
    return simplified(length if ordered else tir_max(length, int64(0)))


def _bound(value: Extent, extent: Extent, forward: bool) -> PrimExpr:
    """A begin or an end as an index from 0: negative ones count from the end, all are clamped."""
    low, high = (int64(0), extent) if forward else (int64(-1), extent - 1)
    constant = constant_value(value)
    if constant is None and not isinstance(value, SizeVar):
        value = if_then_else(value < 0, value + extent, value)
    elif constant is not None and constant < 0:
        return tir_max(extent + value, low)
    if constant == 0 and forward:
        return low
    return tir_min(value if constant is not None else tir_max(value, low), high)


def _strided_slice(bb: Builder, call: Call) -> RelaxExpr:
    axes = _numbers(call.args[1])
    begin, end = _numbers(call.args[2]), _numbers(call.args[3])
    strides = _numbers(call.args[4]) if len(call.args) > 4 else None
    if axes is None or begin is None or end is None:
        return call
    return bb.call_te(
        topi.strided_slice,
        call.args[0],
        begin,
        end,
        strides,
        const_ints(axes, "axes"),
        slice_mode="end",
        assume_inbound=call.attrs["assume_inbound"],
    )


def _numbers(arg: RelaxExpr) -> list[Extent] | None:
    if not isinstance(arg, Tuple):
        return None
    values = [item.value for item in arg.fields if isinstance(item, PrimValue)]
    if len(values) < len(arg.fields):
        return None
    return [v.value if isinstance(v, IntImm) else v for v in values]


def _as_tuple(values: Shape) -> Expr:
    if isinstance(values, Expr):
        return values
    items = [values] if isinstance(values, int | PrimExpr) else values
    return Tuple([v if isinstance(v, Expr) else PrimValue(v) for v in items])


@operator(
    "relax.strided_slice",
    infer_strided_slice,
    legalize=_strided_slice,
    numpy=reference.strided_slice,
    traits=Trait.MOVES,
)
def strided_slice(
    x: Expr,
    axes: Expr,
    begin: Expr,
    end: Expr,
    strides: Expr | None = None,
    assume_inbound: bool = False,
) -> Replacements:
    """The part ``begin:end:strides`` along some axes."""
    operands = {"axes": _as_tuple(axes), "begin": _as_tuple(begin), "end": _as_tuple(end)}
    if strides is not None:
        operands["strides"] = _as_tuple(strides)
    return operands


def _dynamic_strided_slice(bb: Builder, call: Call) -> RelaxExpr:
    """Compute the shape of the slice, name its extents by a match_cast, then take the slice."""
    rank = len(dims(call.args[0]))
    if rank == 0:
        return call.args[0]
    extents = bb.emit(bb.call_te(topi.shape_func_dynamic_strided_slice, *call.args))
    symbols = [Var(f"s{axis}", "int64") for axis in range(rank)]
    shape = bb.emit(tensor_to_shape(extents))
    bb.match_cast(shape, ShapeStructInfo(symbols))
    return bb.call_te(topi.dynamic_strided_slice, *call.args, ShapeExpr(symbols))


def infer_dynamic_strided_slice(call: Call) -> TensorStructInfo:
    """The rank of the input."""
    info = tensor(call, 0)
    for index in (1, 2, 3):
        where = integral(call, index)
        sizes = constants(dims_of(where))
        if where.ndim not in (-1, 1) or (sizes is not None and info.ndim not in (-1, sizes[0])):
            fail(call, f"argument {index}: expected ({info.ndim},) integers, got {where}")
    return result(None, info.dtype, info.ndim, info.vdevice)


@operator(
    "relax.dynamic_strided_slice",
    infer_dynamic_strided_slice,
    legalize=_dynamic_strided_slice,
    numpy=reference.dynamic_strided_slice,
    traits=Trait.MOVES,
)
def dynamic_strided_slice(x: Expr, begin: Expr, end: Expr, strides: Expr) -> None:
    """The part between begin and end, which are tensors."""


def infer_reverse_sequence(call: Call) -> TensorStructInfo:
    """As the data; there is a length for each batch."""
    info, lengths = tensor(call, 0), check_rank(call, 1, 1)
    integral(call, 1)
    axes = [axis_of(call, call.attrs[name], info.ndim, name) for name in ("seq_axis", "batch_axis")]
    if axes[0] == axes[1]:
        fail(call, f"seq_axis and batch_axis: expected two axes, got {axes[0]} twice")
    extents, count = dims_of(info), dims_of(lengths)
    if extents is not None and count is not None and differ(count[0], extents[axes[1]]):
        fail(call, f"lengths: expected {extents[axes[1]]} of them, got {count[0]}")
    return info


@operator(
    "relax.reverse_sequence",
    infer_reverse_sequence,
    te=topi.reverse_sequence,
    numpy=reference.reverse_sequence,
    requires=lambda call: {1: [dims(call.args[0])[call.attrs["batch_axis"]]]},
    traits=Trait.MOVES,
)
def reverse_sequence(data: Expr, lengths: Expr, seq_axis: int = 1, batch_axis: int = 0) -> None:
    """In each batch b, the first ``lengths[b]`` elements along ``seq_axis`` in reverse order."""
