"""The tensor intrinsics of ``weft.backends.cpu.tensor_intrin.arm_cpu`` under TVM's name."""

from weft.support.facade import module_getattr

_NAMES = {
    **dict.fromkeys(
        (
            "ARM_DOT_4x4_i8_NEON_INTRIN", "ARM_DOT_4x4_i8_SDOT_INTRIN",
            "ARM_DOT_4x4_u8_HDOT_INTRIN", "ARM_DOT_4x4_u8_UDOT_INTRIN",
        ),
        "weft.backends.cpu.tensor_intrin.arm_cpu",
    ),
    **dict.fromkeys(
        (
            "DP4A_S8S8S32_INTRIN", "DP4A_S8U8S32_INTRIN", "DP4A_U8S8S32_INTRIN",
            "DP4A_U8U8U32_INTRIN",
        ),
        "weft.tensor_intrin.dot_product_common",
    ),
}  # fmt: skip
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
