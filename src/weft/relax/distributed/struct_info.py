"""Struct info of distributed tensors: which device of a mesh stores which part of a tensor.

A placement has one spec for each dimension of the mesh: ``S[0]`` (the devices along it store equal
parts of axis 0) or ``R`` (each of them stores the whole tensor).
"""

from __future__ import annotations

import enum
import re
from typing import Final

from weft.ir.node import Array, Node, node
from weft.relax.distributed.global_info import DeviceMesh
from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.support.errors import IRTypeError, IRValueError

_SPEC: Final = re.compile(r"R|S\[\s*(\d+)\s*\]")


class PlacementSpecKind(enum.IntEnum):
    """What the devices along one dimension of a mesh store; the names and numbers are TVM's."""

    kSharding = 0  # noqa: N815 - TVM's name
    """Each stores a part."""
    kReplica = 1  # noqa: N815 - TVM's name
    """Each stores the whole tensor."""


@node
class PlacementSpec(Node):
    """What the devices along one dimension of the mesh store. ``axis`` is -1 for a replica.

    Made by ``PlacementSpec.sharding(axis)`` and ``PlacementSpec.replica()``.
    """

    axis: int
    kind: PlacementSpecKind

    def _check_(self) -> None:
        self.axis, self.kind = int(self.axis), PlacementSpecKind(self.kind)
        if (self.kind is PlacementSpecKind.kReplica) != (self.axis == -1) or self.axis < -1:
            raise IRValueError(
                f"PlacementSpec: expected an axis from 0, or -1 for a replica, got {self.axis}"
            )

    @staticmethod
    def sharding(axis: int) -> PlacementSpec:
        """Equal parts of that axis of the tensor."""
        return PlacementSpec(axis, PlacementSpecKind.kSharding)

    @staticmethod
    def replica() -> PlacementSpec:
        """The whole tensor on each device."""
        return PlacementSpec(-1, PlacementSpecKind.kReplica)


@node
class Placement(Node):
    """One spec for each dimension of a mesh.

    >>> Placement.from_text("S[0], R").dim_specs[0].axis
    0
    """

    dim_specs: Array[PlacementSpec]

    def _check_(self) -> None:
        for spec in self.dim_specs:
            if not isinstance(spec, PlacementSpec):
                raise IRTypeError(
                    "Placement: expected PlacementSpec.sharding(axis) or PlacementSpec.replica(), "
                    f"got {type(spec).__name__}: {spec!r}"
                )

    @staticmethod
    def from_text(text: str) -> Placement:
        """The placement that ``"S[0], R"`` means; "" is that of a mesh without dimensions."""
        specs = []
        for part in text.split(",") if text.strip() else []:
            match = _SPEC.fullmatch(part.strip())
            if match is None:
                raise IRValueError(
                    f"Placement.from_text: expected S[axis] and R, such as 'S[0], R', got {text!r}"
                )
            axis = match[1]
            specs.append(
                PlacementSpec.replica() if axis is None else PlacementSpec.sharding(int(axis))
            )
        return Placement(specs)

    def to_text(self) -> str:
        """The text that ``from_text`` reads."""
        return ", ".join("R" if s.axis == -1 else f"S[{s.axis}]" for s in self.dim_specs)


@node
class DTensorStructInfo(StructInfo):
    """A distributed tensor: the info of the whole tensor, and its placement on a mesh of devices.

    Raises IRValueError if the placement has not one spec for each dimension of the mesh, or names
    an axis that the tensor does not have (or whose rank is unknown).
    """

    tensor_sinfo: TensorStructInfo
    device_mesh: DeviceMesh
    placement: Placement

    def _check_(self) -> None:
        for name, kind in (
            ("tensor_sinfo", TensorStructInfo),
            ("device_mesh", DeviceMesh),
            ("placement", Placement),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise IRTypeError(
                    f"DTensorStructInfo: {name}: expected a {kind.__name__}, got "
                    f"{type(value).__name__}: {value!r}"
                )
        mesh, specs = self.device_mesh.shape, self.placement.dim_specs
        if len(mesh) != len(specs):
            raise IRValueError(
                f"DTensorStructInfo: the mesh {tuple(mesh)} has {len(mesh)} dimensions, the "
                f"placement {self.placement.to_text()!r} has {len(specs)}"
            )
        for spec in specs:
            if spec.axis >= self.tensor_sinfo.ndim and spec.axis != -1:
                raise IRValueError(
                    f"DTensorStructInfo: the placement {self.placement.to_text()!r} shards axis "
                    f"{spec.axis} of {self.tensor_sinfo}"
                )


def replicated(info: TensorStructInfo, mesh: DeviceMesh) -> DTensorStructInfo:
    """The tensor stored whole on every device of the mesh."""
    return DTensorStructInfo(info, mesh, Placement([PlacementSpec.replica()] * len(mesh.shape)))
