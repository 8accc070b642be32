"""dp4a: four products of bytes added to a 32-bit number, an instruction of many processors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin


def get_dp4a_intrin(dtype_a: str, dtype_b: str, dtype_c: str) -> tuple[PrimFunc, PrimFunc]:
    """Description and implementation (``__dp4a``) for these types of operands and sum."""
    if dtype_c == "uint32" and not dtype_a == dtype_b == "uint8":
        raise IRValueError(f"dp4a: a uint32 sum is of uint8, got {dtype_a} and {dtype_b}")

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), dtype_a, offset_factor=1, align=4, scope="shared")
        B = T.match_buffer(b, (4,), dtype_b, offset_factor=1, align=4, scope="shared")
        C = T.match_buffer(c, (1,), dtype_c, offset_factor=1, align=4, scope="local")
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for i in range(4):
                with T.block("update"):
                    vi = T.axis.reduce(4, i)
                    C[0] = C[0] + T.cast(A[vi], dtype_c) * T.cast(B[vi], dtype_c)

    def product(left: PrimExpr, right: PrimExpr) -> Any:
        return T.call_pure_extern(dtype_c, "__dp4a", left, right, T.cast(0, dtype_c))

    return desc, dp4a_impl(dtype_a, dtype_b, dtype_c, product)


def dp4a_impl(
    dtype_a: str, dtype_b: str, dtype_c: str, product: Callable[[PrimExpr, PrimExpr], Any]
) -> PrimFunc:
    """The implementation by ``product`` of four numbers of A and of B."""

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), dtype_a, offset_factor=1, align=4, scope="shared")
        B = T.match_buffer(b, (4,), dtype_b, offset_factor=1, align=4, scope="shared")
        C = T.match_buffer(c, (1,), dtype_c, offset_factor=1, align=4, scope="local")
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = C[0] + product(A.vload([0], f"{dtype_a}x4"), B.vload([0], f"{dtype_b}x4"))

    return impl


DP4A_S8S8S32_INTRIN: Final = "dp4a_s8s8s32"
DP4A_U8S8S32_INTRIN: Final = "dp4a_u8s8s32"
DP4A_S8U8S32_INTRIN: Final = "dp4a_s8u8s32"
DP4A_U8U8U32_INTRIN: Final = "dp4a_u8u8u32"

for _name, _types in {
    DP4A_S8S8S32_INTRIN: ("int8", "int8", "int32"),
    DP4A_U8S8S32_INTRIN: ("uint8", "int8", "int32"),
    DP4A_S8U8S32_INTRIN: ("int8", "uint8", "int32"),
    DP4A_U8U8U32_INTRIN: ("uint8", "uint8", "uint32"),
}.items():
    TensorIntrin.register_maker(_name, partial(get_dp4a_intrin, *_types))
