"""``relax.distributed``: tensors that lie on a mesh of devices, as a graph says it.

Graphs of such tensors are built, deduced, printed and read; nothing executes them on several
devices yet, and building one is an error that says so.
"""

from weft.relax.distributed.global_info import DeviceMesh, device_mesh
from weft.relax.distributed.struct_info import (
    DTensorStructInfo,
    Placement,
    PlacementSpec,
    PlacementSpecKind,
)
from weft.support.facade import module_getattr

__all__ = [
    "DTensorStructInfo", "DeviceMesh", "Placement", "PlacementSpec", "PlacementSpecKind",
    "device_mesh",
]  # fmt: skip
__getattr__, __dir__ = module_getattr(__name__, {}, (), {"transform": "distributed execution"})
