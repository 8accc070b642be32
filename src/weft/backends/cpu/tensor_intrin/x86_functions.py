"""The functions of the intrinsics of ``x86`` under TVM's names; importing it parses them."""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.tensor_intrin.x86 import AVX512_DOT_16x4_INTRIN, VNNI_DOT_16x4_INTRIN
from weft.ir.node import expect
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin

_VNNI: Final = expect(TensorIntrin.get(VNNI_DOT_16x4_INTRIN), TensorIntrin)
_AVX512: Final = expect(TensorIntrin.get(AVX512_DOT_16x4_INTRIN), TensorIntrin)
dot_product_16x4_u8i8i32_desc: Final[PrimFunc] = _VNNI.desc
dot_product_16x4_u8i8i32_vnni: Final[PrimFunc] = _VNNI.impl
dot_product_16x4_u8i8i32_avx512: Final[PrimFunc] = _AVX512.impl
