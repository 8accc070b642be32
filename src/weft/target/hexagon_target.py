"""Targets of Hexagon by the version of the processor."""

from __future__ import annotations

from typing import Final

from weft.support.errors import IRValueError
from weft.target.target import Target

_MEGABYTE: Final = 2**20
_VERSIONS: Final = {
    "v65": _MEGABYTE // 4, "v66": _MEGABYTE // 4, "v67": 0, "v67t": 0, "v68": 4 * _MEGABYTE,
    "v69": 8 * _MEGABYTE, "v71": 0, "v73": 8 * _MEGABYTE, "v75": 8 * _MEGABYTE,
}  # fmt: skip
"""Version -> the bytes of its fast memory (VTCM); 0 where there is no limit to keep."""


def hexagon(
    cpu_ver: str = "v68", *, num_cores: int = 4, vtcm_capacity: int | None = None
) -> Target:
    """The target of a Hexagon processor, for schedules; weft generates no code for it.

    Args:
        cpu_ver: the version, such as "v68".
        num_cores: the threads that use its vectors.
        vtcm_capacity: the bytes of its fast memory; None for what the version has, 0 for no limit.

    >>> hexagon("v68", vtcm_capacity=1024).attrs["vtcm-capacity"]
    1024
    """
    if cpu_ver not in _VERSIONS:
        raise IRValueError(f"hexagon: expected one of {', '.join(_VERSIONS)}, got {cpu_ver!r}")
    capacity = _VERSIONS[cpu_ver] if vtcm_capacity is None else vtcm_capacity
    return Target(
        {
            "kind": "hexagon",
            "mtriple": "hexagon",
            "mcpu": f"hexagon{cpu_ver}",
            "mattr": [f"+hvx{cpu_ver}", "+hvx-length128b"],
            "num-cores": num_cores,
            "vtcm-capacity": capacity,
        }
    )
