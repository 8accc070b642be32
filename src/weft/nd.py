"""``weft.nd``: arrays and devices, under the name that programs of every year use."""

from weft.runtime.device import Device, cpu, cuda, device, metal, opencl, rocm, vulkan
from weft.runtime.ndarray import NDArray, array, empty, from_dlpack, numpyasarray

gpu = cuda

__all__ = [
    "Device", "NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "gpu", "metal",
    "numpyasarray", "opencl", "rocm", "vulkan",
]  # fmt: skip
