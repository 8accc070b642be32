"""Dot products of four bytes on 64-bit Arm, as tensor intrinsics: plain NEON, and its extension.

Each computes ``C[i] += sum of A[k] * B[i, k] over four k`` for four ``i``, so that B fills one
vector of 16 bytes. All are exact, since a sum wraps around as int32 does.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from weft.backends.cpu.tensor_intrin.dot_product import register_dot_product
from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.tir.buffer import Buffer

BYTES: Final = 4
"""How many products one dot product adds up."""
ROWS: Final = 4
"""How many dot products one vector has."""


def _by_extension(
    operand: str, result: str, instruction: str, sums: PrimExpr, four: PrimExpr, b: Buffer
) -> Any:
    """The four dot products by one ``sdot`` or ``udot``, of the extension ``dotprod``."""
    packed = f"{operand}x{ROWS * BYTES}"
    left = T.reinterpret(packed, T.broadcast(four, ROWS))
    kind = f"{result}x{ROWS}"
    return T.call_llvm_pure_intrin(kind, instruction, T.uint32(3), sums, left, b.vload([0], packed))


def _by_products(sums: PrimExpr, four: PrimExpr, b: Buffer) -> Any:
    """The four dot products of signed bytes by instructions that every such processor has.

    ``smull`` gives eight products as int16, ``saddlp`` their sums in pairs as int32, ``addp`` the
    sums of neighbouring pairs of two such vectors.
    """
    twice = T.reinterpret("int8x8", T.broadcast(four, 2))
    products = [
        T.call_llvm_pure_intrin(
            "int16x8", "llvm.aarch64.neon.smull.v8i16", T.uint32(2), twice, b.vload([at], "int8x8")
        )
        for at in (0, 8)
    ]
    pairs = [
        T.call_llvm_pure_intrin(
            "int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", T.uint32(1), product
        )
        for product in products
    ]
    return sums + T.call_llvm_pure_intrin(
        "int32x4", "llvm.aarch64.neon.addp.v4i32", T.uint32(2), *pairs
    )


ARM_DOT_4x4_i8_NEON_INTRIN: Final = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN: Final = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN: Final = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN: Final = "dot_4x4_u8u8i32_hdot"

_SDOT, _UDOT = "llvm.aarch64.neon.sdot.v4i32.v16i8", "llvm.aarch64.neon.udot.v4i32.v16i8"
register_dot_product(ARM_DOT_4x4_i8_NEON_INTRIN, ROWS, BYTES, "int8", "int8", _by_products)
for _name, _operand, _result, _instruction in (
    (ARM_DOT_4x4_i8_SDOT_INTRIN, "int8", "int32", _SDOT),
    (ARM_DOT_4x4_u8_UDOT_INTRIN, "uint8", "uint32", _UDOT),
    (ARM_DOT_4x4_u8_HDOT_INTRIN, "uint8", "int32", _UDOT),
):
    _add = partial(_by_extension, _operand, _result, _instruction)
    register_dot_product(_name, ROWS, BYTES, _operand, _operand, _add, _result)
