"""Devices: where an array lives and a function runs.

weft compiles for the CPU. Devices of other kinds can be named, printed and compared, so programs
that ask ``cuda(0).exist`` work. Data can be put on a device that has a ``DeviceAPI``
(weft.runtime.device_api): the CPU, and what plug-ins register; another one is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.runtime.device_api import DeviceAPI, find_device_api
from weft.support.errors import IRValueError, UnsupportedError, wrong_type

NAMES: Final = {
    1: "cpu", 2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm",
    12: "ext_dev", 14: "webgpu", 15: "hexagon",
}  # fmt: skip
_TYPES: Final = {
    "cpu": 1, "llvm": 1, "c": 1, "stackvm": 1, "test": 1, "hybrid": 1, "composite": 1,
    "cuda": 2, "gpu": 2, "nvptx": 2, "cl": 4, "opencl": 4, "vulkan": 7, "metal": 8, "vpi": 9,
    "rocm": 10, "ext_dev": 12, "webgpu": 14, "hexagon": 15,
}  # fmt: skip


class Device:
    """A device type (DLPack's number) and which one of that type.

    >>> print(Device(1, 0), Device(1, 0) == cpu())
    cpu:0 True
    """

    __slots__ = ("device_id", "device_type")

    kDLCPU: Final = 1
    kDLCUDA: Final = 2
    kDLOpenCL: Final = 4
    kDLVulkan: Final = 7
    kDLMetal: Final = 8
    kDLROCM: Final = 10

    device_id: int
    device_type: int

    def __init__(self, device_type: int, device_id: int = 0) -> None:
        if device_type not in NAMES:
            raise IRValueError(f"expected a device type of {sorted(NAMES)}, got {device_type}")
        if not isinstance(device_id, int) or device_id < 0:
            raise IRValueError(f"expected the number of a device, 0 or more, got {device_id!r}")
        self.device_type = device_type
        self.device_id = device_id

    @property
    def type(self) -> str:
        """The name of the device type: ``cpu``, ``cuda`` ..."""
        return NAMES[self.device_type]

    @property
    def index(self) -> int:
        """The number of the device, also called ``device_id``."""
        return self.device_id

    @property
    def exist(self) -> bool:
        """Whether arrays can live there: true for ``cpu(0)`` and the devices of plug-ins."""
        api = find_device_api(self.device_type)
        return api is not None and self.device_id < api.count()

    @property
    def max_threads_per_block(self) -> int | None:
        """A property of GPUs: None."""
        return None

    @property
    def warp_size(self) -> int | None:
        """A property of GPUs: None."""
        return None

    def sync(self, stream: object = None) -> None:
        """Wait until all work of the device has ended."""
        _, api = require_device(self)
        api.sync(self.device_id)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Device)
            and self.device_type == other.device_type
            and self.device_id == other.device_id
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __reduce__(self) -> tuple[Callable[[int, int], Device], tuple[int, int]]:
        return Device, (self.device_type, self.device_id)

    def __str__(self) -> str:
        return f"{self.type}:{self.device_id}"

    __repr__ = __str__


def device(dev_type: str | int | Device, dev_id: int | None = None) -> Device:
    """The device of that name (``"cpu"``, ``"llvm"``, ``"cuda:1"``) or DLPack number."""
    if isinstance(dev_type, Device):
        return dev_type
    if isinstance(dev_type, int):
        return Device(dev_type, dev_id or 0)
    if not isinstance(dev_type, str):
        raise wrong_type("expected a device name or number", dev_type)
    name, _, number = (dev_type.split(maxsplit=1) or [""])[0].partition(":")
    code = _TYPES.get(name)
    if code is None or (number and not (number.isascii() and number.isdecimal())):
        raise IRValueError(
            f"expected a device such as {', '.join(sorted(set(NAMES.values())))} or 'cpu:0', "
            f"got {dev_type!r}"
        )
    return Device(code, int(number or 0) if dev_id is None else dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The CPU."""
    return Device(1, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A CUDA device: it can be named, not used."""
    return Device(2, dev_id)


def opencl(dev_id: int = 0) -> Device:
    """An OpenCL device: it can be named, not used."""
    return Device(4, dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """A Vulkan device: it can be named, not used."""
    return Device(7, dev_id)


def metal(dev_id: int = 0) -> Device:
    """A Metal device: it can be named, not used."""
    return Device(8, dev_id)


def rocm(dev_id: int = 0) -> Device:
    """A ROCm device: it can be named, not used."""
    return Device(10, dev_id)


CPU: Final = Device(1, 0)
"""The device where every array of weft lives."""


def require_device(dev: Device | str | int | None) -> tuple[Device, DeviceAPI]:
    """``dev`` (None: the CPU) and what serves it; UnsupportedError where nothing does."""
    wanted = CPU if dev is None else device(dev)
    api = find_device_api(wanted.device_type)
    if api is None or wanted.device_id >= api.count():
        require_cpu(wanted)
        raise UnsupportedError(f"expected a device that this machine has, got {wanted}")
    return wanted, api


def require_cpu(dev: Device | str | int | None) -> Device:
    """``dev`` as a Device, ``cpu(0)`` for None; raise UnsupportedError for any other device."""
    if dev is None or dev is CPU:
        return CPU
    wanted = device(dev)
    if wanted.device_type != 1:
        raise UnsupportedError(
            f"expected a CPU device, got {wanted}: weft compiles for the CPU only; use weft.cpu()"
        )
    if wanted.device_id != 0:
        raise UnsupportedError(f"expected device cpu:0, the only one there is, got {wanted}")
    return wanted
