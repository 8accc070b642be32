"""``weft.testing``: what tests of compiled programs need, under the names of ``tvm.testing``.

Numeric comparison needs numpy alone; what marks and parametrizes tests needs pytest, loaded when a
name of it is used. ``weft.testing.plugin`` is the pytest plugin (``-p weft.testing.plugin``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.support.facade import module_getattr

if TYPE_CHECKING:
    from weft.testing.compare import CompareBeforeAfter as CompareBeforeAfter
    from weft.testing.fixtures import fixture as fixture
    from weft.testing.fixtures import parameter as parameter
    from weft.testing.fixtures import parameters as parameters
    from weft.testing.numeric import assert_allclose as assert_allclose
    from weft.testing.numeric import assert_prim_expr_equal as assert_prim_expr_equal
    from weft.testing.targets import device_enabled as device_enabled
    from weft.testing.targets import enabled_targets as enabled_targets

_FEATURES = (
    "Feature requires_aarch64 requires_adreno_opencl requires_arm_dot requires_cblas "
    "requires_cublas requires_cuda requires_cuda_compute_version requires_cudagraph "
    "requires_cudnn requires_cutlass requires_gpu requires_hexagon requires_hipblas "
    "requires_llvm requires_llvm_minimum_version requires_matrixcore requires_metal "
    "requires_multi_gpu requires_nccl requires_nnapi requires_nvcc_version requires_opencl "
    "requires_openclml requires_package requires_rocm requires_rpc requires_tensorcore "
    "requires_vulkan requires_x86 requires_x86_avx512 requires_x86_vnni skip_if_32bit "
    "skip_if_no_reference_system skip_if_wheel_test slow uses_gpu "
)
NAMES: Final = {
    **dict.fromkeys(_FEATURES.split(), "weft.testing.features"),
    "CompareBeforeAfter": "weft.testing.compare",
    "assert_allclose": "weft.testing.numeric",
    "assert_prim_expr_equal": "weft.testing.numeric",
    "check_bool_expr_is_true": "weft.testing.numeric",
    "check_numerical_grads": "weft.testing.numeric",
    "device_enabled": "weft.testing.targets",
    "enabled_targets": "weft.testing.targets",
    "exclude_targets": "weft.testing.targets",
    "fixture": "weft.testing.fixtures",
    "is_ampere_or_newer": "weft.testing.features",
    "known_failing_targets": "weft.testing.targets",
    "main": "weft.testing.fixtures",
    "parameter": "weft.testing.fixtures",
    "parameters": "weft.testing.fixtures",
    "parametrize_targets": "weft.testing.targets",
}
__getattr__, __dir__ = module_getattr(
    __name__, NAMES, ("compare", "features", "fixtures", "generate", "numeric", "plugin", "targets")
)
