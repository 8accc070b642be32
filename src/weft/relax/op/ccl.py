"""``relax.op.ccl``: collective communication between workers.

They are lowered to calls of registered functions (``runtime.disco.*``); weft has none of these: a
program that runs on several workers must register them.
"""

from __future__ import annotations

from weft import topi
from weft.ir.expr import IntImm, RelaxExpr
from weft.relax.expr import Call, Expr, PrimValue, ShapeExpr
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.base import call_dps_packed
from weft.relax.op.definition import operator
from weft.relax.op.infer import axis_of, dims_of, fail, result, same_as_input, show_dim, tensor
from weft.relax.op.lowering import Builder, dims
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.tir.op import floordiv

REDUCTIONS = ("sum", "prod", "min", "max", "avg")
"""The reductions of allreduce; the position of each is its code in TVM's runtime."""


def infer_allreduce(call: Call) -> TensorStructInfo:
    """As the input."""
    if call.attrs["op_type"] not in REDUCTIONS:
        fail(call, f"op_type: expected {', '.join(REDUCTIONS)}, got {call.attrs['op_type']!r}")
    return tensor(call, 0)


def _check_workers(call: Call) -> int:
    count: int = call.attrs["num_workers"]
    if count < 1:
        fail(call, f"num_workers: expected 1 or more, got {count}")
    return count


def infer_allgather(call: Call) -> TensorStructInfo:
    """The first extent times the number of workers."""
    info, count = tensor(call, 0), _check_workers(call)
    dims = dims_of(info)
    if info.ndim == 0:
        fail(call, "x: expected at least 1 dimension, got 0")
    if dims is None:
        return info if count == 1 else result(None, info.dtype, info.ndim, info.vdevice)
    return result([simplified(dims[0] * count), *dims[1:]], info.dtype, vdevice=info.vdevice)


def infer_parts(call: Call) -> TensorStructInfo:
    """The extent of the axis divided by the number of workers."""
    info, count = tensor(call, 0), _check_workers(call)
    axis = axis_of(call, call.attrs["axis"], info.ndim)
    dims = dims_of(info)
    if dims is None:
        return result(None, info.dtype, info.ndim, info.vdevice)
    extent = constant_value(dims[axis])
    if extent is not None and extent % count:
        fail(
            call,
            f"axis {axis} of {show_dim(dims[axis])} elements does not divide into "
            f"{count} equal parts",
        )
    extents = [*dims]
    extents[axis] = simplified(floordiv(dims[axis], count))
    return result(extents, info.dtype, vdevice=info.vdevice)


def _flag(value: bool) -> PrimValue:
    return PrimValue(IntImm(DataType("bool"), int(value)))


def _allreduce(_: Builder, call: Call) -> Call:
    code = ShapeExpr([REDUCTIONS.index(call.attrs["op_type"])])
    operands = [call.args[0], code, _flag(call.attrs["in_group"])]
    return call_dps_packed("runtime.disco.allreduce", operands, call.struct_info)


def _allgather(_: Builder, call: Call) -> Call:
    operands = [call.args[0], _flag(call.attrs["in_group"])]
    return call_dps_packed("runtime.disco.allgather", operands, call.struct_info)


def _broadcast(_: Builder, call: Call) -> Call:
    operands = [call.args[0], _flag(False)]
    return call_dps_packed("runtime.disco.broadcast_from_worker0", operands, call.struct_info)


def _scatter(bb: Builder, call: Call) -> RelaxExpr:
    """Each part must be contiguous: split the axis, and move its outer half to the front."""
    shape, count = dims(call.args[0]), call.attrs["num_workers"]
    axis = call.attrs["axis"] % len(shape)
    split = [*shape[:axis], count, floordiv(shape[axis], count), *shape[axis + 1 :]]
    parts = bb.emit_te(topi.reshape, call.args[0], split)
    if axis:
        order = [axis, *range(axis), *range(axis + 1, len(split))]
        parts = bb.emit_te(topi.transpose, parts, order)
    operands = [parts, _flag(False)]
    return call_dps_packed("runtime.disco.scatter_from_worker0", operands, call.struct_info)


@operator("relax.ccl.allreduce", infer_allreduce, legalize=_allreduce)
def allreduce(x: Expr, op_type: str = "sum", in_group: bool = True) -> None:
    """The tensors of all workers (or of the group) combined: sum, prod, min, max or avg."""


@operator("relax.ccl.allgather", infer_allgather, legalize=_allgather)
def allgather(x: Expr, num_workers: int, in_group: bool = True) -> None:
    """The tensors of all workers (or of the group) joined along the first axis."""


@operator("relax.ccl.broadcast_from_worker0", same_as_input, legalize=_broadcast)
def broadcast_from_worker0(x: Expr) -> None:
    """The tensor of worker 0, on every worker."""


@operator("relax.ccl.scatter_from_worker0", infer_parts, legalize=_scatter)
def scatter_from_worker0(x: Expr, num_workers: int, axis: int = 0) -> None:
    """One of the equal parts of worker 0's tensor along an axis, for each worker."""
