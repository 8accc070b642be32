"""Dot products of four bytes on 64-bit Arm, as tensor intrinsics: plain NEON, and its extension.

Each computes ``C[i] += sum of A[k] * B[i, k] over four k`` for four ``i``, so that B fills one
vector of 16 bytes. All are exact, since a sum wraps around as int32 does.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.backends.cpu.tensor_intrin.dot_product import dot_product_desc
from weft.script import tir as T
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin

BYTES: Final = 4
"""How many products one dot product adds up."""
ROWS: Final = 4
"""How many dot products one vector has."""


def _dot_impl(operand: str, result: str, instruction: str) -> PrimFunc:
    """The four dot products by one ``sdot`` or ``udot``, of the extension ``dotprod``."""
    sums, packed = f"{result}x{ROWS}", f"{operand}x{ROWS * BYTES}"

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (BYTES,), operand, offset_factor=1)
        B = T.match_buffer(b, (ROWS, BYTES), operand, offset_factor=1)
        C = T.match_buffer(c, (ROWS,), result, offset_factor=1)
        with T.block("root"):
            T.reads(C[0:ROWS], A[0:BYTES], B[0:ROWS, 0:BYTES])
            T.writes(C[0:ROWS])
            B_flat = T.decl_buffer((ROWS * BYTES,), operand, data=B.data, elem_offset=B.elem_offset)
            four = T.reinterpret(result, A.vload([0], f"{operand}x{BYTES}"))
            C[T.ramp(0, 1, ROWS)] = T.call_llvm_pure_intrin(
                sums,
                instruction,
                T.uint32(3),
                C.vload([0], sums),
                T.reinterpret(packed, T.broadcast(four, ROWS)),
                B_flat.vload([0], packed),
            )

    return impl


def _products_impl() -> PrimFunc:
    """The four dot products of signed bytes by instructions that every such processor has.

    ``smull`` gives eight products as int16, ``saddlp`` their sums in pairs as int32, ``addp`` the
    sums of neighbouring pairs of two such vectors.
    """

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (BYTES,), "int8", offset_factor=1)
        B = T.match_buffer(b, (ROWS, BYTES), "int8", offset_factor=1)
        C = T.match_buffer(c, (ROWS,), "int32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:ROWS], A[0:BYTES], B[0:ROWS, 0:BYTES])
            T.writes(C[0:ROWS])
            B_flat = T.decl_buffer((ROWS * BYTES,), "int8", data=B.data, elem_offset=B.elem_offset)
            four = T.reinterpret("int32", A.vload([0], "int8x4"))
            twice = T.reinterpret("int8x8", T.broadcast(four, 2))
            first = T.call_llvm_pure_intrin(
                "int16x8",
                "llvm.aarch64.neon.smull.v8i16",
                T.uint32(2),
                twice,
                B_flat.vload([0], "int8x8"),
            )
            last = T.call_llvm_pure_intrin(
                "int16x8",
                "llvm.aarch64.neon.smull.v8i16",
                T.uint32(2),
                twice,
                B_flat.vload([8], "int8x8"),
            )
            C[T.ramp(0, 1, ROWS)] = C[T.ramp(0, 1, ROWS)] + T.call_llvm_pure_intrin(
                "int32x4",
                "llvm.aarch64.neon.addp.v4i32",
                T.uint32(2),
                T.call_llvm_pure_intrin(
                    "int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", T.uint32(1), first
                ),
                T.call_llvm_pure_intrin(
                    "int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", T.uint32(1), last
                ),
            )

    return impl


def _products() -> tuple[PrimFunc, PrimFunc]:
    return dot_product_desc(ROWS, BYTES, "int8", "int8"), _products_impl()


def _dot(operand: str, result: str, instruction: str) -> tuple[PrimFunc, PrimFunc]:
    description = dot_product_desc(ROWS, BYTES, operand, operand, result=result)
    return description, _dot_impl(operand, result, instruction)


ARM_DOT_4x4_i8_NEON_INTRIN: Final = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN: Final = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN: Final = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN: Final = "dot_4x4_u8u8i32_hdot"

_SDOT, _UDOT = "llvm.aarch64.neon.sdot.v4i32.v16i8", "llvm.aarch64.neon.udot.v4i32.v16i8"
TensorIntrin.register_maker(ARM_DOT_4x4_i8_NEON_INTRIN, _products)
TensorIntrin.register_maker(ARM_DOT_4x4_i8_SDOT_INTRIN, partial(_dot, "int8", "int32", _SDOT))
TensorIntrin.register_maker(ARM_DOT_4x4_u8_UDOT_INTRIN, partial(_dot, "uint8", "uint32", _UDOT))
TensorIntrin.register_maker(ARM_DOT_4x4_u8_HDOT_INTRIN, partial(_dot, "uint8", "int32", _UDOT))
