"""Distributed tensors as scripts write them: ``R.DTensor(...)``, ``R.dist.const``, ``"mesh[0]"``.

A device mesh may be written as its name in the module's global infos, a placement as a text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from weft.ir.expr import GlobalVar, PrimExpr
from weft.ir.node import expect
from weft.relax.distributed.global_info import DeviceMesh, device_mesh
from weft.relax.distributed.struct_info import DTensorStructInfo, Placement
from weft.relax.expr import Call, Constant, ExternFunc, RelaxLike, ShapeExpr
from weft.relax.op import base, distributed
from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.script.ir_builder.base import IRBuilder
from weft.script.ir_builder.relax_info import (
    Callee,
    Dims,
    InfoLike,
    Infos,
    StructInfoProxy,
    Tensor,
    TirVars,
    as_struct_info,
    made_or_open,
)
from weft.script.ir_builder.tir_value import TypeName
from weft.support.errors import IRTypeError, IRValueError, wrong_type

_LISTED: Final = re.compile(r"(\w+)\[(\d+)\]")


def find_mesh(mesh: DeviceMesh | str) -> DeviceMesh:
    """A mesh, or the one that ``"mesh[0]"`` names in the module's global infos."""
    if isinstance(mesh, DeviceMesh):
        return mesh
    if not isinstance(mesh, str):
        raise wrong_type("expected a device mesh or a text such as 'mesh[0]'", mesh)
    match = _LISTED.fullmatch(mesh)
    infos: Sequence[object] = ()
    if match and IRBuilder.is_in_scope():
        infos = IRBuilder.current().global_infos.get(match[1], ())
    if not match or int(match[2]) >= len(infos):
        raise IRValueError(
            f"the module has no device mesh {mesh!r}; write I.module_global_infos({{'mesh': "
            "[R.device_mesh(...)]}) in it, and 'mesh[0]' for the first"
        )
    info = infos[int(match[2])]
    if not isinstance(info, DeviceMesh):
        raise IRTypeError(f"{mesh!r} is a {type(info).__name__} of the module, no device mesh")
    return info


def find_placement(placement: Placement | str) -> Placement:
    """A placement, from itself or from its text."""
    return Placement.from_text(placement) if isinstance(placement, str) else placement


def DTensor(  # noqa: N802 - written R.DTensor
    shape: Dims | None = None,
    dtype: TypeName | None = None,
    device_mesh: DeviceMesh | str | None = None,
    placement: Placement | str = "",
    *,
    ndim: int = -1,
) -> StructInfo | StructInfoProxy:
    """A distributed tensor's struct info; without a mesh that of one device without dimensions."""
    whole = Tensor(shape, dtype, None, ndim)

    def make() -> DTensorStructInfo:
        mesh = DeviceMesh([], [0]) if device_mesh is None else find_mesh(device_mesh)
        info = expect(as_struct_info(whole), TensorStructInfo)
        return DTensorStructInfo(info, mesh, find_placement(placement))

    return made_or_open(make, whole, device_mesh)


def const(value: NDArray | npt.ArrayLike, struct_info: InfoLike) -> Constant:
    """A distributed constant with the dtype of the struct info."""
    info = as_struct_info(struct_info)
    if not isinstance(info, DTensorStructInfo):
        raise IRTypeError(f"R.dist.const: struct_info: expected an R.DTensor, got {info}")
    data = value.numpy() if isinstance(value, NDArray) else value
    return Constant(np.asarray(data, str(info.tensor_sinfo.dtype)), info)


def _infos(out_sinfo: Infos, what: str) -> list[DTensorStructInfo]:
    items = out_sinfo if isinstance(out_sinfo, list | tuple) else [out_sinfo]
    infos = [as_struct_info(item) for item in items]
    distributed = [info for info in infos if isinstance(info, DTensorStructInfo)]
    if len(distributed) != len(infos):
        raise IRTypeError(f"R.dist.{what}: out_sinfo: expected R.DTensor, got {infos}")
    return distributed


def call_tir(func: Callee, args: RelaxLike, out_sinfo: Infos, tir_vars: TirVars = None) -> Call:
    """A call of a PrimFunc, or of a registered function, that returns distributed tensors."""
    infos = _infos(out_sinfo, "call_tir")
    if isinstance(func, str | ExternFunc):
        return base.call_dps_packed(func, args, infos)
    return base.call_tir(func, args, infos, tir_vars)


def call_tir_local_view(
    func: GlobalVar,
    args: RelaxLike,
    out_sinfo: Infos,
    tir_vars: Sequence[PrimExpr | int] | ShapeExpr | None = None,
) -> Call:
    """A call of a PrimFunc on each device's parts of distributed tensors."""
    infos = _infos(out_sinfo, "call_tir_local_view")
    return distributed.call_tir_local_view(func, args, infos, tir_vars)


def annotate_sharding(
    value: RelaxLike, device_mesh: DeviceMesh | str, placement: Placement | str
) -> Call:
    """The tensor, annotated with the mesh and the placement that it shall have."""
    mesh = find_mesh(device_mesh)
    return distributed.annotate_sharding(value, mesh, find_placement(placement))


def redistribute(
    value: RelaxLike, device_mesh: DeviceMesh | str, placement: Placement | str
) -> Call:
    """The distributed tensor, moved to another placement."""
    mesh = find_mesh(device_mesh)
    return distributed.redistribute(value, mesh, find_placement(placement))


NAMES: Final[dict[str, object]] = {
    "DTensor": DTensor,
    "device_mesh": device_mesh,
    "dist.DTensor": DTensor,
    "dist.device_mesh": device_mesh,
    "dist.annotate_sharding": annotate_sharding,
    "dist.call_tir": call_tir,
    "dist.call_tir_local_view": call_tir_local_view,
    "dist.const": const,
    "dist.redistribute": redistribute,
}
"""Names of ``R``."""
