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
    "Feature IS_IN_CI SKIP_SLOW_TESTS is_ampere_or_newer requires_aarch64 requires_aarch64_sme "
    "requires_aarch64_sve requires_adreno_opencl requires_aprofile_aem_fvp requires_arm_dot "
    "requires_arm_fp16 requires_cblas requires_cublas requires_cuda "
    "requires_cuda_compute_version requires_cudagraph requires_cudnn requires_cutlass "
    "requires_gpu requires_hexagon requires_hipblas requires_libtorch requires_llvm "
    "requires_llvm_minimum_version requires_matrixcore requires_metal requires_mrvl "
    "requires_multi_gpu requires_nccl requires_nnapi requires_nvcc_version requires_nvptx "
    "requires_opencl requires_openclml requires_package requires_rocm requires_rpc "
    "requires_tensorcore requires_vulkan requires_x86 requires_x86_amx requires_x86_avx512 "
    "requires_x86_vnni skip_if_32bit skip_if_no_reference_system skip_if_wheel_test slow "
    "uses_gpu uses_multi_gpu"
)
_FIXTURES = "fixture main parameter parameters skip_parameterizations xfail_parameterizations"
_NUMERIC = "assert_allclose assert_prim_expr_equal check_numerical_grads"
_TARGETS = (
    "DEFAULT_TEST_TARGETS device_enabled enabled_targets exclude_targets known_failing_targets "
    "parametrize_targets"
)
NAMES: Final = {
    **dict.fromkeys(_FEATURES.split(), "weft.testing.features"),
    **dict.fromkeys(_FIXTURES.split(), "weft.testing.fixtures"),
    **dict.fromkeys(_NUMERIC.split(), "weft.testing.numeric"),
    **dict.fromkeys(
        "check_bool_expr_is_true check_int_constraints_trans_consistency".split(),
        "weft.testing.constraints",
    ),
    **dict.fromkeys(_TARGETS.split(), "weft.testing.targets"),
    **dict.fromkeys(
        "echo get_dtype_range identity_after nop strtobool terminate_self".split(),
        "weft.testing.values",
    ),
    "CompareBeforeAfter": "weft.testing.compare",
}
PLANNED: Final = {
    "local_run": "export of libraries",
    "rpc_run": "remote procedure calls",
    "install_request_hook": "downloads in tests",
    "fetch_model_from_url": "downloads in tests",
}
__getattr__, __dir__ = module_getattr(
    __name__,
    NAMES,
    ("compare", "features", "fixtures", "numeric", "plugin", "schedules", "targets", "values"),
    PLANNED,
)
