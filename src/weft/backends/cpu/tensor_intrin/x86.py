"""Dot products of four bytes on x86, as tensor intrinsics: AVX2, AVX-512BW, AVX-512 VNNI.

Each computes ``C[i] += sum of A[k] * B[i, k] over four k`` for unsigned A and signed B, where B
fills one machine vector. All are exact. (TVM's AVX-512 form multiplies and adds pairs in int16,
which saturates: 255 * 127 + 255 * 127 gives 32767 there.)
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


def _by_vnni(sums: PrimExpr, four: PrimExpr, b: Buffer) -> Any:
    """The sixteen dot products by one ``vpdpbusd``."""
    left, right = T.broadcast(four, 16), T.reinterpret("int32x16", b.vload([0], "int8x64"))
    return T.call_llvm_pure_intrin(
        "int32x16", "llvm.x86.avx512.vpdpbusd.512", T.uint32(3), sums, left, right
    )


def _by_pairs(rows: int, multiply_add: str, sums: PrimExpr, four: PrimExpr, b: Buffer) -> Any:
    """The dot products by two ``vpmaddwd``: of the even bytes as int16, and of the odd ones."""
    halves = 2 * rows
    signed = f"int16x{halves}"
    eight = T.broadcast(T.int16(8), halves)
    left = T.reinterpret(f"uint16x{halves}", T.broadcast(four, rows))
    right = T.reinterpret(signed, b.vload([0], f"int8x{4 * rows}"))
    even = (
        T.bitwise_and(left, T.broadcast(T.uint16(255), halves)),
        T.shift_right(T.shift_left(right, eight), eight),
    )
    odd = (
        T.shift_right(left, T.broadcast(T.uint16(8), halves)),
        T.shift_right(right, eight),
    )
    products = [
        T.call_llvm_pure_intrin(
            f"int32x{rows}", multiply_add, T.uint32(2), T.reinterpret(signed, a), numbers
        )
        for a, numbers in (even, odd)
    ]
    return sums + (products[0] + products[1])


VNNI_DOT_16x4_INTRIN: Final = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN: Final = "dot_16x4_avx512"
AVX2_DOT_8x4_INTRIN: Final = "dot_8x4_avx2"

for _name, _rows, _add in (
    (VNNI_DOT_16x4_INTRIN, 16, _by_vnni),
    (AVX512_DOT_16x4_INTRIN, 16, partial(_by_pairs, 16, "llvm.x86.avx512.pmaddw.d.512")),
    (AVX2_DOT_8x4_INTRIN, 8, partial(_by_pairs, 8, "llvm.x86.avx2.pmadd.wd")),
):
    register_dot_product(_name, _rows, BYTES, "uint8", "int8", _add)
