"""The tensor intrinsics of ``weft.backends.cpu.tensor_intrin.x86`` under TVM's name."""

from weft.support.facade import module_getattr
from weft.tir.tensor_intrinsic import TensorIntrin

_PARTS = {
    "dot_product_16x4_u8i8i32_desc": ("dot_16x4_vnni", "desc"),
    "dot_product_16x4_u8i8i32_vnni": ("dot_16x4_vnni", "impl"),
    "dot_product_16x4_u8i8i32_avx512": ("dot_16x4_avx512", "impl"),
}
"""Functions of intrinsics under TVM's names: which intrinsic, and which of its two functions."""
_NAMES = dict.fromkeys(
    (
        "AVX2_DOT_8x4_INTRIN", "AVX512_DOT_16x4_INTRIN", "VNNI_DOT_16x4_INTRIN", "dot_product_desc",
    ),
    "weft.backends.cpu.tensor_intrin.x86",
)  # fmt: skip
_public, __dir__ = module_getattr(__name__, _NAMES)


def __getattr__(name: str) -> object:
    if name not in _PARTS:
        return _public(name)
    _public("dot_product_desc")  # imports the intrinsics, which registers them
    intrinsic, part = _PARTS[name]
    return getattr(TensorIntrin.get(intrinsic), part)
