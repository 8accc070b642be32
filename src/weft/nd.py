"""``weft.nd``: arrays and devices, under the name that programs of every year use."""

from typing import NoReturn

from weft.runtime.device import Device, cpu, cuda, device, metal, opencl, rocm, vulkan
from weft.runtime.ndarray import NDArray, array, empty, from_dlpack, numpyasarray
from weft.support.missing import MissingNameError

gpu = cuda

__all__ = [
    "Device", "NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "gpu", "metal",
    "numpyasarray", "opencl", "rocm", "vulkan",
]  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    """Raise the error for a name that is not here: it names the nearest."""
    raise MissingNameError(f"weft.nd has no name {name!r}", name, lambda: __all__, "nd.")
