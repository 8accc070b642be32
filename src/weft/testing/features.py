"""What a test needs: ``@requires_llvm``, ``@requires_package("torch")`` and so on.

A test whose need is not met is skipped, with the reason.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, TypeVar, overload

import pytest

from weft.support.errors import IRValueError
from weft.target.host import host_features
from weft.testing.targets import can_run, kind_of, test_targets

SUPPORT: Final = ("compile-and-run", "compile-only", "optional")
"""What a test may need of a feature; ``optional`` marks it and never skips."""

Check = Callable[[], bool | str]
"""Returns True, or False, or a text that says why not."""

_BUILT_WITH: Final = frozenset({"USE_LLVM"})
"""TVM's build options that count as on; all others are off."""


Test = TypeVar("Test", bound=Callable[..., object])


class Feature:
    """Something that a machine may have; an instance is a decorator of tests.

    ``@feature`` and ``@feature()`` do the same; ``feature.marks()`` is the list of pytest marks:
    one with the feature's name (``-m cuda`` chooses by it; the plugin registers it), and one that
    skips the test, with the reason, for each need that is not met. A feature has all the needs of
    its parents.
    """

    _all_features: ClassVar[dict[str, Feature]] = {}

    def __init__(
        self,
        name: str,
        long_name: str | None = None,
        cmake_flag: str | None = None,
        target_kind_enabled: str | None = None,
        compile_time_check: Check | None = None,
        target_kind_hardware: str | None = None,
        run_time_check: Check | None = None,
        parent_features: str | Sequence[str] | None = None,
    ) -> None:
        self.name, self.long_name = name, long_name or name
        self.cmake_flag = cmake_flag
        self.target_kind_enabled = target_kind_enabled
        self.target_kind_hardware = target_kind_hardware
        self.compile_time_check, self.run_time_check = compile_time_check, run_time_check
        parents = [parent_features] if isinstance(parent_features, str) else parent_features
        self.parent_features = list(parents or ())
        Feature._all_features[name] = self

    @staticmethod
    def all() -> list[Feature]:
        """Every feature, those of users included."""
        return list(Feature._all_features.values())

    def lineage(self) -> list[Feature]:
        """The parents, theirs first, and the feature itself."""
        ancestors: list[Feature] = []
        for name in self.parent_features:
            ancestors += Feature._all_features[name].lineage()
        return [*ancestors, self]

    def compile_reasons(self) -> list[str]:
        """Why code for this feature, leaving its parents aside, cannot be compiled here."""
        reasons = _failed(self.compile_time_check, f"weft cannot compile for {self.long_name}")
        if self.cmake_flag is not None and self.cmake_flag not in _BUILT_WITH:
            reasons.append(f"weft has no {self.long_name} support ({self.cmake_flag})")
        kind = self.target_kind_enabled
        if kind is not None and kind.split()[0] not in [kind_of(t) for t in test_targets()]:
            reasons.append(f"{kind} is not among the targets that tests run on (TVM_TEST_TARGETS)")
        return reasons

    def run_reasons(self) -> list[str]:
        """Why code that uses this feature cannot be run here."""
        reasons = _failed(self.run_time_check, f"this machine has no {self.long_name}")
        kind = self.target_kind_hardware
        if kind is not None and not can_run(kind):
            reasons.append(f"this machine has no {self.long_name} that weft can use")
        return reasons

    def marks(self, support_required: str = "compile-and-run") -> list[pytest.MarkDecorator]:
        """The pytest marks of a test that needs the feature."""
        if support_required not in SUPPORT:
            raise IRValueError(
                f"support_required: expected one of {', '.join(SUPPORT)}, got {support_required!r}"
            )
        reasons: list[str] = []
        for feature in reversed(self.lineage()):
            if support_required == "compile-and-run":
                reasons += feature.run_reasons()
            if support_required != "optional":
                reasons += feature.compile_reasons()
        skips = [pytest.mark.skipif(True, reason=reason) for reason in dict.fromkeys(reasons)]
        return [*skips, *[_mark(item.name) for item in self.lineage()]]

    @overload
    def __call__(self, func: Test, *, support_required: str = "compile-and-run") -> Test: ...
    @overload
    def __call__(
        self, func: None = None, *, support_required: str = "compile-and-run"
    ) -> Callable[[Test], Test]: ...
    def __call__(
        self, func: Test | None = None, *, support_required: str = "compile-and-run"
    ) -> Test | Callable[[Test], Test]:
        """Mark a test."""
        marks = self.marks(support_required)

        def decorate(test: Test) -> Test:
            for mark in marks:
                test = mark(test)
            return test

        return decorate if func is None else decorate(func)

    @classmethod
    def require(
        cls, name: str, support_required: str = "compile-and-run"
    ) -> Callable[[Test], Test]:
        """The decorator of tests that need the feature of that name."""
        if name not in cls._all_features:
            known = ", ".join(sorted(cls._all_features))
            raise IRValueError(f"Feature.require: expected one of {known}, got {name!r}")
        return cls._all_features[name](support_required=support_required)


def _mark(name: str) -> pytest.MarkDecorator:
    """The mark of that name, without pytest's warning if no plugin has registered it."""
    return pytest.MarkDecorator(pytest.Mark(name, (), {}, _ispytest=True), _ispytest=True)


def _failed(check: Check | None, otherwise: str) -> list[str]:
    answer = True if check is None else check()
    if isinstance(answer, str):
        return [answer]
    return [] if answer else [otherwise]


def _machine(*names: str) -> Check:
    return lambda: platform.machine().lower() in names


def _cpu_has(*features: str) -> Check:
    def available() -> bool:
        known = host_features()
        return all(known.get(name, False) for name in features)

    return available


def _any_gpu() -> bool:
    return any(can_run(kind) for kind in ("cuda", "rocm", "opencl", "metal", "vulkan"))


def _never() -> bool:
    return False


def _library(name: str, long_name: str, flag: str, parent: str | None = None) -> Feature:
    return Feature(name, long_name, cmake_flag=flag, parent_features=parent)


def _device(name: str, long_name: str, flag: str | None = None) -> Feature:
    return Feature(
        name,
        long_name,
        flag,
        target_kind_enabled=name,
        target_kind_hardware=name,
        parent_features="gpu",
    )


requires_llvm: Final = Feature(
    "llvm", "LLVM", "USE_LLVM", target_kind_enabled="llvm", target_kind_hardware="llvm"
)
requires_x86: Final = Feature("x86", "x86 processor", run_time_check=_machine("x86_64", "amd64"))
requires_x86_avx512: Final = Feature(
    "x86_avx512",
    "AVX-512",
    run_time_check=_cpu_has("avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512f"),
)
requires_x86_vnni: Final = Feature(
    "x86_vnni", "VNNI", run_time_check=lambda: _cpu_has("avx512vnni")() or _cpu_has("avxvnni")()
)
requires_x86_amx: Final = Feature("x86_amx", "AMX", run_time_check=_cpu_has("amx-int8"))
requires_aarch64: Final = Feature(
    "AArch64", "AArch64 processor", run_time_check=_machine("aarch64", "arm64")
)
requires_arm_dot: Final = Feature(
    "arm_dot", "Arm dot product instructions", run_time_check=_cpu_has("dotprod")
)
requires_arm_fp16: Final = Feature(
    "arm_fp16", "Arm float16 instructions", run_time_check=_cpu_has("fullfp16")
)
requires_aarch64_sve: Final = Feature("arm_sve", "Arm SVE", run_time_check=_cpu_has("sve"))
requires_aarch64_sme: Final = Feature("arm_sme", "Arm SME", run_time_check=_cpu_has("sme"))
requires_aprofile_aem_fvp: Final = Feature(
    "aprofile-aem-fvp",
    "Arm AEM simulator",
    compile_time_check=lambda: shutil.which("FVP_Base_RevC-2xAEMvA") is not None,
)
requires_gpu: Final = Feature("gpu", "GPU that weft can use", run_time_check=_any_gpu)
requires_multi_gpu: Final = Feature("multi_gpu", "second GPU", run_time_check=_never)
requires_cuda: Final = _device("cuda", "CUDA", "USE_CUDA")
requires_nvptx: Final = _device("nvptx", "NVPTX")
requires_rocm: Final = _device("rocm", "ROCm", "USE_ROCM")
requires_metal: Final = _device("metal", "Metal", "USE_METAL")
requires_opencl: Final = _device("opencl", "OpenCL", "USE_OPENCL")
requires_vulkan: Final = _device("vulkan", "Vulkan", "USE_VULKAN")
requires_tensorcore: Final = Feature(
    "tensorcore", "tensor core", run_time_check=_never, parent_features="cuda"
)
requires_matrixcore: Final = Feature(
    "matrixcore", "matrix core", run_time_check=_never, parent_features="rocm"
)
requires_cudagraph: Final = Feature(
    "cudagraph", "CUDA graph", compile_time_check=_never, parent_features="cuda"
)
requires_cublas: Final = _library("cublas", "cuBLAS", "USE_CUBLAS", "cuda")
requires_cudnn: Final = _library("cudnn", "cuDNN", "USE_CUDNN", "cuda")
requires_nccl: Final = _library("nccl", "NCCL", "USE_NCCL", "cuda")
requires_hipblas: Final = _library("hipblas", "hipBLAS", "USE_HIPBLAS", "rocm")
requires_cutlass: Final = _library("cutlass", "CUTLASS", "USE_CUTLASS")
requires_openclml: Final = _library("OpenCLML", "OpenCLML", "USE_CLML")
requires_adreno_opencl: Final = Feature(
    "adreno_opencl", "Adreno GPU", run_time_check=_never, parent_features="opencl"
)
requires_cblas: Final = _library("cblas", "CBLAS", "USE_CBLAS")
requires_libtorch: Final = _library("libtorch", "LibTorch", "USE_LIBTORCH")
requires_mrvl: Final = _library("mrvl", "Marvell", "USE_MRVL")
requires_hexagon: Final = _library("hexagon", "Hexagon", "USE_HEXAGON")
requires_nnapi: Final = _library("NNAPI", "NNAPI", "USE_NNAPI_CODEGEN")
requires_rpc: Final = _library("rpc", "RPC", "USE_RPC")


def uses_gpu(function: Test) -> Test:
    """Mark a test that uses a GPU where there is one."""
    return requires_gpu(function, support_required="optional")


def uses_multi_gpu(function: Test) -> Test:
    """Mark a test that uses several GPUs where they are there."""
    return requires_multi_gpu(function, support_required="optional")


SKIP_SLOW_TESTS: Final = os.environ.get("SKIP_SLOW_TESTS", "").lower() in ("true", "1", "yes")
IS_IN_CI: Final = os.environ.get("CI", "") == "true"


def slow(function: Test) -> Test:
    """Mark a test that takes long; ``SKIP_SLOW_TESTS=1`` in the environment skips it."""
    marked: Test = pytest.mark.skipif(SKIP_SLOW_TESTS, reason="SKIP_SLOW_TESTS is set")(function)
    return marked


def requires_package(*packages: str) -> pytest.MarkDecorator:
    """Skip a test where a Python package cannot be imported."""
    missing = [name for name in packages if not _importable(name)]
    reason = f"needs the Python package {', '.join(missing)}"
    return pytest.mark.skipif(bool(missing), reason=reason)


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def requires_llvm_minimum_version(major_version: int) -> Callable[[Test], Test]:
    """Skip a test that needs a newer LLVM than llvmlite carries."""
    import llvmlite.binding  # noqa: PLC0415 - loads LLVM, which most tests' collection can spare

    version = llvmlite.binding.llvm_version_info[0]
    mark = pytest.mark.skipif(
        version < major_version, reason=f"needs LLVM {major_version}, this is LLVM {version}"
    )
    return lambda test: mark(requires_llvm(test))


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, exact: bool = False
) -> pytest.MarkDecorator:
    """Skip a test of a CUDA device of that compute capability."""
    return pytest.mark.skip(reason=f"needs CUDA compute {major_version}.{minor_version}")


def requires_nvcc_version(
    major_version: int, minor_version: int = 0, release_version: int = 0
) -> pytest.MarkDecorator:
    """Skip a test of that CUDA compiler."""
    return pytest.mark.skip(reason=f"needs nvcc {major_version}.{minor_version}")


def skip_if_32bit(reason: str) -> pytest.MarkDecorator:
    """Skip a test on a 32-bit Python."""
    return pytest.mark.skipif(sys.maxsize <= 2**32, reason=reason)


def skip_if_wheel_test(function: Test) -> Test:
    """Skip a test where ``WHEEL_TEST`` is set in the environment."""
    wheel = os.environ.get("WHEEL_TEST", "").lower() in ("true", "1", "yes")
    marked: Test = pytest.mark.skipif(wheel, reason="WHEEL_TEST is set")(function)
    return marked


def skip_if_no_reference_system(function: Test) -> Test:
    """Skip a test of Arm's reference system."""
    marked: Test = pytest.mark.skip(reason="needs the Corstone reference system")(function)
    return marked


def is_ampere_or_newer() -> bool:
    """Whether the GPU is an NVIDIA Ampere or newer one; weft generates no GPU code."""
    return False
