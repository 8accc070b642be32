"""``relax.distributed``: tensors that are spread over a mesh of devices.

Graphs of such tensors can be built, printed and parsed, and their struct info is inferred. They
cannot be executed yet: building one raises an error that says so.
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
