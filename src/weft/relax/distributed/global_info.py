"""Device meshes: how the devices of a module are arranged. A kind of global info."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir.expr import IntImm, Range
from weft.ir.global_info import GlobalInfo
from weft.ir.node import Array, field, node
from weft.support.errors import IRTypeError, IRValueError
from weft.support.span import Span


@node
class DeviceMesh(GlobalInfo):
    """Devices as an array of some dimensions; ``device_ids`` are their numbers in row-major order.

    ``device_ids`` is a list of ints, or a Range of constants, which stays in ``device_range``.
    Two meshes of the same shape and numbers are structurally equal. Raises IRValueError if there
    are more or fewer numbers than places.

    >>> from weft.ir import Range
    >>> DeviceMesh((2, 2), Range(0, 4)).device_ids
    [0, 1, 2, 3]
    """

    shape: Array[int]
    device_ids: Array[int]
    device_range: Range | None = field(default=None, compare=False, visit=False)

    def __init__(
        self,
        shape: Sequence[int],
        device_ids: Sequence[int] | Range,
        device_range: Range | None = None,
        span: Span | None = None,
    ) -> None:
        if isinstance(device_ids, Range):
            device_range = device_ids
            device_ids = _numbers(device_ids)
        self.shape = Array([int(extent) for extent in shape])
        self.device_ids = Array([int(number) for number in device_ids])
        self.device_range, self.span = device_range, span
        self._cache, self._summary = None, 0
        places = math.prod(self.shape)
        if places != len(self.device_ids):
            raise IRValueError(
                f"DeviceMesh: a mesh of shape {tuple(self.shape)} has {places} devices, got "
                f"{len(self.device_ids)} device_ids"
            )


def _numbers(numbers: Range) -> list[int]:
    first, extent = numbers.min, numbers.extent
    if not isinstance(first, IntImm) or not isinstance(extent, IntImm):
        raise IRTypeError(f"DeviceMesh: expected a Range of constants, got {numbers}")
    return list(range(first.value, first.value + extent.value))


def device_mesh(shape: Sequence[int], device_ids: Sequence[int] | Range) -> DeviceMesh:
    """A device mesh: ``R.device_mesh((2, 2), I.Range(0, 4))``; see ``DeviceMesh``."""
    return DeviceMesh(shape, device_ids)
