"""Dot products of four signed bytes on AMD's GPUs: ``sdot4``, as ``dp4a`` elsewhere.

Schedules can use the intrinsic; weft has no code generation for these GPUs.
"""

from __future__ import annotations

from typing import Final

from weft.script import tir as T
from weft.tensor_intrin.dot_product_common import get_dp4a_intrin
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin


def _sdot4() -> tuple[PrimFunc, PrimFunc]:
    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), "int8", offset_factor=1, align=4, scope="shared")
        B = T.match_buffer(b, (4,), "int8", offset_factor=1, align=4, scope="shared")
        C = T.match_buffer(c, (1,), "int32", offset_factor=1, align=4, scope="local")
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = C[0] + T.call_llvm_pure_intrin(
                "int32",
                "llvm.amdgcn.sdot4",
                T.uint32(4),
                T.reinterpret("int32", A.vload([0], "int8x4")),
                T.reinterpret("int32", B.vload([0], "int8x4")),
                T.int32(0),
                T.bool(True),
            )

    return get_dp4a_intrin("int8", "int8", "int32")[0], impl


AMDGPU_SDOT4_INTRIN: Final = "sdot4"

TensorIntrin.register_maker(AMDGPU_SDOT4_INTRIN, _sdot4)
