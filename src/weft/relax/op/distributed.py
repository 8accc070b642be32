"""``relax.op.distributed``, printed ``R.dist``: how tensors are spread over a mesh of devices.

Graphs with these operators can be built, printed and parsed, but not executed yet.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar
from weft.ir.op import Op
from weft.relax.distributed.global_info import DeviceMesh
from weft.relax.distributed.sharding import RULES
from weft.relax.distributed.struct_info import DTensorStructInfo, Placement, PlacementSpec
from weft.relax.expr import Call, Expr, RelaxLike, Var
from weft.relax.op.base import Extents, Infos, as_sinfo_args, infer_from_args, inline_tuple
from weft.relax.op.ccl import infer_parts
from weft.relax.op.definition import FUNCTIONS, Replacements, as_shape, operator
from weft.relax.op.infer import axis_of, fail, param_name
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.errors import IRTypeError, wrong_type


def _distributed(call: Call) -> DTensorStructInfo:
    info = call.args[0].struct_info
    if not isinstance(info, DTensorStructInfo):
        raise IRTypeError(
            f"{call.op.name}: {param_name(call, 0)}: expected a distributed tensor (R.DTensor),"
            f" got {info}"
        )
    return info


def _checked(call: Call, whole: TensorStructInfo) -> DTensorStructInfo:
    """The tensor with the mesh and the placement of the call's attributes."""
    return DTensorStructInfo(whole, call.attrs["device_mesh"], call.attrs["placement"])


def infer_annotated(call: Call) -> StructInfo:
    """The input's struct info; raises if the mesh and the placement do not fit it."""
    info = call.args[0].struct_info
    whole = info.tensor_sinfo if isinstance(info, DTensorStructInfo) else info
    if not isinstance(whole, TensorStructInfo):
        raise IRTypeError(f"{call.op.name}: input: expected a tensor, got {info}")
    _checked(call, whole)
    annotated: StructInfo = info
    return annotated


def infer_redistributed(call: Call) -> StructInfo:
    """The input with the mesh and the placement of the attributes."""
    return _checked(call, _distributed(call).tensor_sinfo)


def infer_sharded(call: Call) -> StructInfo:
    """The input, a replica on a one-dimensional mesh, sharded along the axis."""
    info = _distributed(call)
    whole, mesh = info.tensor_sinfo, info.device_mesh
    if len(mesh.shape) != 1 or info.placement.dim_specs[0].axis != -1:
        fail(call, f"input: expected a replica ('R') on a mesh of one dimension, got {info}")
    workers = call.attrs["num_workers"]
    if workers != mesh.shape[0]:
        fail(call, f"num_workers: expected {mesh.shape[0]}, as the mesh has, got {workers}")
    infer_parts(Call(call.op, [Var("whole", whole)], call.attrs))
    axis = axis_of(call, call.attrs["axis"], whole.ndim)
    return DTensorStructInfo(whole, mesh, Placement([PlacementSpec.sharding(axis)]))


def as_mesh(value: object) -> DeviceMesh:
    """A device mesh; names of meshes are for scripts, which have a module."""
    if not isinstance(value, DeviceMesh):
        raise IRTypeError(
            f"device_mesh: expected a relax.distributed.DeviceMesh, got {type(value).__name__}: "
            f"{value!r}"
        )
    return value


def as_placement(value: object) -> Placement:
    """A placement, or the placement that a text like ``"S[0], R"`` describes."""
    if not isinstance(value, Placement | str):
        raise IRTypeError(
            f"placement: expected a relax.distributed.Placement or a text such as 'S[0], R', got "
            f"{type(value).__name__}: {value!r}"
        )
    return Placement.from_text(value) if isinstance(value, str) else value


@operator("relax.dist.annotate_sharding", infer_annotated)
def annotate_sharding(
    input: Expr,  # noqa: A002 - TVM's name
    device_mesh: object,
    placement: object,
) -> Replacements:
    """The tensor, annotated with the mesh and the placement that it should get."""
    return {"device_mesh": as_mesh(device_mesh), "placement": as_placement(placement)}


@operator("relax.dist.redistribute", infer_redistributed)
def redistribute(
    input: Expr,  # noqa: A002 - TVM's name
    device_mesh: object,
    placement: object,
) -> Replacements:
    """The distributed tensor, moved to another placement."""
    return {"device_mesh": as_mesh(device_mesh), "placement": as_placement(placement)}


@operator("relax.dist.redistribute_replica_to_shard", infer_parts)
def redistribute_replica_to_shard(
    input: Expr,  # noqa: A002 - TVM's name
    num_workers: int,
    axis: int,
) -> None:
    """The part of a tensor that this worker keeps, of equal parts along an axis.

    Every worker has the whole tensor before. For a distributed tensor (a replica), the result is
    the same tensor, sharded along the axis.
    """


def call_tir_local_view(
    gvar: GlobalVar, args: RelaxLike, out_sinfo: Infos, tir_vars: Extents | None = None
) -> Call:
    """A call_tir whose PrimFunc computes the local part of a distributed tensor."""
    if not isinstance(gvar, GlobalVar):
        raise wrong_type("call_tir_local_view: expected a GlobalVar", gvar)
    operands = [gvar, inline_tuple(args)]
    if tir_vars is not None:
        operands.append(as_shape(tir_vars))
    infos = as_sinfo_args(out_sinfo, "call_tir_local_view")
    results = infos if len(infos) == 1 else [TupleStructInfo(infos)]
    return Call(Op.get("relax.dist.call_tir_local_view"), operands, None, results)


Op.register(
    "relax.dist.call_tir_local_view", infer_struct_info=infer_from_args,
    function=call_tir_local_view, pure=True, params=("func", "args", "tir_vars"), attrs=(),
)  # fmt: skip
FUNCTIONS["dist.call_tir_local_view"] = call_tir_local_view

RULES.update({
    "relax.dist.annotate_sharding": infer_annotated,
    "relax.dist.redistribute": infer_redistributed,
    "relax.dist.redistribute_replica_to_shard": infer_sharded,
})  # fmt: skip
