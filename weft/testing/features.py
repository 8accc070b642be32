"""What a test needs of the machine: ``@requires_llvm``, ``@requires_package("torch")`` and so on.

A test whose need is not met is skipped, with the reason.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from weft.target.host import host_features


class Feature:
    """Something that a machine has or has not; an instance is a decorator of tests.

    ``@feature`` and ``@feature()`` do the same; ``feature.marks()`` is the list of pytest marks.
    """

    def __init__(self, name: str, available: Callable[[], bool], *marks: str) -> None:
        self.name, self.available, self.mark_names = name, available, marks

    def marks(self, support_required: str = "compile-and-run") -> list[Any]:
        """The pytest marks of a test that needs the feature."""
        named = [getattr(pytest.mark, name) for name in self.mark_names]
        if support_required == "optional":
            return named
        absent = not self.available()
        return [*named, pytest.mark.skipif(absent, reason=f"this machine has no {self.name}")]

    def __call__(self, function: Any = None, *, support_required: str = "compile-and-run") -> Any:
        """Mark a test."""
        if function is None:
            return lambda given: self(given, support_required=support_required)
        for mark in self.marks(support_required):
            function = mark(function)
        return function


def _never() -> bool:
    return False


def _always() -> bool:
    return True


def _machine(*names: str) -> Callable[[], bool]:
    return lambda: platform.machine().lower() in names


def _cpu_has(*features: str) -> Callable[[], bool]:
    def available() -> bool:
        known = host_features()
        return all(known.get(name, False) for name in features)

    return available


requires_llvm: Final = Feature("LLVM", _always)
requires_x86: Final = Feature("x86 processor", _machine("x86_64", "amd64"))
requires_x86_avx512: Final = Feature("AVX-512", _cpu_has("avx512f", "avx512bw", "avx512vl"))
requires_x86_vnni: Final = Feature("VNNI", _cpu_has("avx512vnni"))
requires_aarch64: Final = Feature("AArch64 processor", _machine("aarch64", "arm64"))
requires_arm_dot: Final = Feature("dot product instructions", _cpu_has("dotprod"))
requires_gpu: Final = Feature("GPU", _never, "gpu")
requires_cuda: Final = Feature("CUDA", _never, "gpu")
requires_rocm: Final = Feature("ROCm", _never, "gpu")
requires_metal: Final = Feature("Metal", _never, "gpu")
requires_opencl: Final = Feature("OpenCL", _never, "gpu")
requires_vulkan: Final = Feature("Vulkan", _never, "gpu")
requires_multi_gpu: Final = Feature("second GPU", _never, "gpu")
requires_tensorcore: Final = Feature("tensor core", _never, "gpu")
requires_matrixcore: Final = Feature("matrix core", _never, "gpu")
requires_cudagraph: Final = Feature("CUDA graph", _never, "gpu")
requires_cublas: Final = Feature("cuBLAS", _never, "gpu")
requires_cudnn: Final = Feature("cuDNN", _never, "gpu")
requires_cutlass: Final = Feature("CUTLASS", _never, "gpu")
requires_hipblas: Final = Feature("hipBLAS", _never, "gpu")
requires_nccl: Final = Feature("NCCL", _never, "gpu")
requires_adreno_opencl: Final = Feature("Adreno GPU", _never, "gpu")
requires_openclml: Final = Feature("OpenCLML", _never)
requires_cblas: Final = Feature("CBLAS", _never)
requires_hexagon: Final = Feature("Hexagon", _never)
requires_nnapi: Final = Feature("NNAPI", _never)
requires_rpc: Final = Feature("RPC", _never)


def uses_gpu(*args: Any) -> Any:
    """Mark a test that can use a GPU but does not need one."""
    return pytest.mark.gpu(*args)


def slow(function: Any) -> Any:
    """Mark a test that takes long; it is skipped, as TVM skips it by default."""
    return pytest.mark.skip(reason="slow test")(function)


def requires_package(*packages: str) -> Any:
    """Skip a test where a Python package cannot be imported."""
    missing = [name for name in packages if not _importable(name)]
    reason = f"needs the Python package {', '.join(missing)}"
    return pytest.mark.skipif(bool(missing), reason=reason)


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def requires_llvm_minimum_version(major_version: int) -> Any:
    """Skip a test that needs a newer LLVM than llvmlite carries."""
    import llvmlite.binding  # noqa: PLC0415 - loads LLVM, which most tests' collection can spare

    found = llvmlite.binding.llvm_version_info[0]
    return pytest.mark.skipif(
        found < major_version, reason=f"needs LLVM {major_version}, this is LLVM {found}"
    )


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, exact: bool = False
) -> Any:
    """Skip a test of a CUDA device of that compute capability."""
    return pytest.mark.skip(reason=f"needs CUDA compute {major_version}.{minor_version}")


def requires_nvcc_version(
    major_version: int, minor_version: int = 0, release_version: int = 0
) -> Any:
    """Skip a test of that CUDA compiler."""
    return pytest.mark.skip(reason=f"needs nvcc {major_version}.{minor_version}")


def skip_if_32bit(reason: str) -> Any:
    """Skip a test on a 32-bit Python."""
    return pytest.mark.skipif(sys.maxsize <= 2**32, reason=reason)


def skip_if_wheel_test(function: Any) -> Any:
    """TVM's mark of tests that its wheels leave out; weft runs them."""
    return function


def skip_if_no_reference_system(function: Any) -> Any:
    """Skip a test of Arm's reference system."""
    return pytest.mark.skip(reason="needs the Corstone reference system")(function)


def is_ampere_or_newer() -> bool:
    """Whether the GPU is an NVIDIA Ampere or newer one; weft generates no GPU code."""
    return False
