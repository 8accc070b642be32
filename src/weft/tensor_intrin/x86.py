"""The tensor intrinsics of ``weft.backends.cpu.tensor_intrin.x86`` under TVM's name."""

from weft.support.facade import module_getattr

_NAMES = {
    **dict.fromkeys(
        (
            "AVX2_DOT_8x4_INTRIN", "AVX512_DOT_16x4_INTRIN", "VNNI_DOT_16x4_INTRIN",
        ),
        "weft.backends.cpu.tensor_intrin.x86",
    ),
    **dict.fromkeys(
        (
            "dot_product_16x4_u8i8i32_avx512", "dot_product_16x4_u8i8i32_desc",
            "dot_product_16x4_u8i8i32_vnni",
        ),
        "weft.backends.cpu.tensor_intrin.x86_functions",
    ),
    "dot_product_desc": "weft.backends.cpu.tensor_intrin.dot_product",
}  # fmt: skip
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
