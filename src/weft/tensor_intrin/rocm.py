"""Dot products of four signed bytes on AMD's GPUs: ``sdot4``, as ``dp4a`` elsewhere.

Schedules can use the intrinsic; weft has no code generation for these GPUs.
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.tensor_intrin.dot_product_common import dp4a_impl, get_dp4a_intrin
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin


def _sdot4() -> tuple[PrimFunc, PrimFunc]:
    def product(left: PrimExpr, right: PrimExpr) -> Any:
        packed = [T.reinterpret("int32", four) for four in (left, right)]
        return T.call_llvm_pure_intrin(
            "int32", "llvm.amdgcn.sdot4", T.uint32(4), *packed, T.int32(0), T.bool(True)
        )

    description, _ = get_dp4a_intrin("int8", "int8", "int32")
    return description, dp4a_impl("int8", "int8", "int32", product)


AMDGPU_SDOT4_INTRIN: Final = "sdot4"

TensorIntrin.register_maker(AMDGPU_SDOT4_INTRIN, _sdot4)
