"""Dot products of four bytes on x86, as tensor intrinsics: AVX2, AVX-512BW, AVX-512 VNNI.

Each computes ``C[i] += sum of A[k] * B[i, k] over four k`` for unsigned A and signed B, where B
fills one machine vector. All are exact. (TVM's AVX-512 form multiplies and adds pairs in int16,
which saturates: 255 * 127 + 255 * 127 gives 32767 there.)
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


def _vnni_impl() -> PrimFunc:
    """The dot products by one ``vpdpbusd``."""

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
        B = T.match_buffer(b, (16, 4), "int8", offset_factor=1)
        C = T.match_buffer(c, (16,), "int32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:16], A[0:4], B[0:16, 0:4])
            T.writes(C[0:16])
            B_flat = T.decl_buffer((64,), "int8", data=B.data, elem_offset=B.elem_offset)
            four: T.int32 = T.reinterpret("int32", A.vload([0], "uint8x4"))
            C[T.ramp(0, 1, 16)] = T.call_llvm_pure_intrin(
                "int32x16",
                "llvm.x86.avx512.vpdpbusd.512",
                T.uint32(3),
                C.vload([0], "int32x16"),
                T.broadcast(four, 16),
                T.reinterpret("int32x16", B_flat.vload([0], "int8x64")),
            )

    return impl


def _pairs(rows: int, multiply_add: str) -> PrimFunc:
    """The dot products by two ``vpmaddwd``: of the even bytes as int16, and of the odd ones."""
    halves = 2 * rows
    wide, signed, unsigned = f"int32x{rows}", f"int16x{halves}", f"uint16x{halves}"
    packed = f"int8x{4 * rows}"

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (BYTES,), "uint8", offset_factor=1)
        B = T.match_buffer(b, (rows, BYTES), "int8", offset_factor=1)
        C = T.match_buffer(c, (rows,), "int32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:rows], A[0:BYTES], B[0:rows, 0:BYTES])
            T.writes(C[0:rows])
            B_flat = T.decl_buffer((4 * rows,), "int8", data=B.data, elem_offset=B.elem_offset)
            four = T.reinterpret("int32", A.vload([0], "uint8x4"))
            left = T.reinterpret(unsigned, T.broadcast(four, rows))
            right = T.reinterpret(signed, B_flat.vload([0], packed))
            even = T.call_llvm_pure_intrin(
                wide,
                multiply_add,
                T.uint32(2),
                T.reinterpret(signed, T.bitwise_and(left, T.broadcast(T.uint16(255), halves))),
                T.shift_right(
                    T.shift_left(right, T.broadcast(T.int16(8), halves)),
                    T.broadcast(T.int16(8), halves),
                ),
            )
            odd = T.call_llvm_pure_intrin(
                wide,
                multiply_add,
                T.uint32(2),
                T.reinterpret(signed, T.shift_right(left, T.broadcast(T.uint16(8), halves))),
                T.shift_right(right, T.broadcast(T.int16(8), halves)),
            )
            C[T.ramp(0, 1, rows)] = C[T.ramp(0, 1, rows)] + (even + odd)

    return impl


def _vnni() -> tuple[PrimFunc, PrimFunc]:
    return dot_product_desc(16), _vnni_impl()


def _multiply_add(rows: int, instruction: str) -> tuple[PrimFunc, PrimFunc]:
    return dot_product_desc(rows), _pairs(rows, instruction)


VNNI_DOT_16x4_INTRIN: Final = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN: Final = "dot_16x4_avx512"
AVX2_DOT_8x4_INTRIN: Final = "dot_8x4_avx2"

TensorIntrin.register_maker(VNNI_DOT_16x4_INTRIN, _vnni)
TensorIntrin.register_maker(
    AVX512_DOT_16x4_INTRIN, partial(_multiply_add, 16, "llvm.x86.avx512.pmaddw.d.512")
)
TensorIntrin.register_maker(
    AVX2_DOT_8x4_INTRIN, partial(_multiply_add, 8, "llvm.x86.avx2.pmadd.wd")
)
