"""``relax.op.distributed``, printed ``R.dist``: how tensors lie on a mesh of devices.

The operators parse and deduce on plain tensors; a mesh and a placement are attributes that
nothing interprets yet (tensors of distributed struct info are no part of weft).
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import GlobalVar
from weft.ir.op import Op
from weft.relax.expr import Call, Expr
from weft.relax.op.base import as_sinfo_args, infer_from_args, inline_tuple
from weft.relax.op.ccl import infer_parts
from weft.relax.op.definition import FUNCTIONS, as_shape, operator
from weft.relax.op.infer import same_as_input
from weft.relax.struct_info import TupleStructInfo
from weft.support.errors import IRTypeError


@operator("relax.dist.annotate_sharding", same_as_input)
def annotate_sharding(
    input: Expr,  # noqa: A002 - TVM's name
    device_mesh: Any, placement: Any,
) -> Any:  # fmt: skip
    """The tensor, marked with how it shall lie on a mesh."""


@operator("relax.dist.redistribute", same_as_input)
def redistribute(
    input: Expr,  # noqa: A002 - TVM's name
    device_mesh: Any, placement: Any,
) -> Any:  # fmt: skip
    """The tensor, moved to another placement."""


@operator("relax.dist.redistribute_replica_to_shard", infer_parts)
def redistribute_replica_to_shard(
    input: Expr,  # noqa: A002 - TVM's name
    num_workers: int, axis: int,
) -> Any:  # fmt: skip
    """This worker's equal part along an axis of a tensor that every worker has."""


def call_tir_local_view(gvar: Any, args: Any, out_sinfo: Any, tir_vars: Any = None) -> Call:
    """A call_tir whose PrimFunc computes the local part of a distributed tensor."""
    if not isinstance(gvar, GlobalVar):
        raise IRTypeError(
            f"call_tir_local_view: expected a GlobalVar, got {type(gvar).__name__}"
        )
    operands = [gvar, inline_tuple(args)]
    if tir_vars is not None:
        operands.append(as_shape(tir_vars))
    infos = as_sinfo_args(out_sinfo, "call_tir_local_view")
    made = infos if len(infos) == 1 else [TupleStructInfo(infos)]
    return Call(Op.get("relax.dist.call_tir_local_view"), operands, None, made)


Op.register(
    "relax.dist.call_tir_local_view", infer_struct_info=infer_from_args,
    function=call_tir_local_view, pure=True, params=("func", "args", "tir_vars"), attrs=(),
)  # fmt: skip
FUNCTIONS["dist.call_tir_local_view"] = call_tir_local_view
