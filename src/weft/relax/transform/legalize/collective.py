"""Lowering of collective communication to registered functions of the runtime."""

from __future__ import annotations

from typing import Any

from weft import topi
from weft.ir.expr import IntImm
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, PrimValue, ShapeExpr
from weft.relax.op.base import call_dps_packed
from weft.relax.op.ccl import REDUCTIONS
from weft.relax.transform.legalize.rule import Rule, dims, table
from weft.support.dtype import DataType
from weft.tir.op import floordiv


def _flag(value: bool) -> PrimValue:
    return PrimValue(IntImm(DataType("bool"), int(value)))


def _allreduce(_: BlockBuilder, call: Call) -> Any:
    code = ShapeExpr([REDUCTIONS.index(call.attrs["op_type"])])
    operands = [call.args[0], code, _flag(call.attrs["in_group"])]
    return call_dps_packed("runtime.disco.allreduce", operands, call.struct_info)


def _allgather(_: BlockBuilder, call: Call) -> Any:
    operands = [call.args[0], _flag(call.attrs["in_group"])]
    return call_dps_packed("runtime.disco.allgather", operands, call.struct_info)


def _broadcast(_: BlockBuilder, call: Call) -> Any:
    operands = [call.args[0], _flag(False)]
    return call_dps_packed("runtime.disco.broadcast_from_worker0", operands, call.struct_info)


def _scatter(bb: BlockBuilder, call: Call) -> Any:
    """The parts have to be compact: the axis is split, and its outer part moved to the front."""
    shape, count = dims(call.args[0]), call.attrs["num_workers"]
    axis = call.attrs["axis"] % len(shape)
    split = [*shape[:axis], count, floordiv(shape[axis], count), *shape[axis + 1 :]]
    parts = bb.emit_te(topi.reshape, call.args[0], split)
    if axis:
        order = [axis, *range(axis), *range(axis + 1, len(split))]
        parts = bb.emit_te(topi.transpose, parts, order)
    operands = [parts, _flag(False)]
    return call_dps_packed("runtime.disco.scatter_from_worker0", operands, call.struct_info)


RULES: dict[str, Rule] = {
    "ccl.allreduce": _allreduce,
    "ccl.allgather": _allgather,
    "ccl.broadcast_from_worker0": _broadcast,
    "ccl.scatter_from_worker0": _scatter,
}
TABLE = table(RULES)
