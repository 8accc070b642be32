"""Products of int16 pairs of x86: ``vpmaddwd`` (SSE2, AVX2, AVX-512BW) and ``vpdpwssd`` (VNNI).

Each computes ``C[i] += A[0] * B[i, 0] + A[1] * B[i, 1]`` in int32: one machine vector of B, packed
two steps of a reduction at a time, against a pair of A. Both instructions wrap as int32 does, so
they are exact modulo 2**32 for all int16, and exact for products of 8-bit integers (Intel's
Intrinsics Guide; the packing is that of FBGEMM, Khudia et al., 2021).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.script import tir as T
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin

PAIR: Final = 2
"""Steps of the reduction that one product takes."""


def pair_product_desc(lanes: int) -> PrimFunc:
    """Each of ``lanes`` int32 sums takes in the products of two int16."""

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (PAIR,), "int16", offset_factor=1)
        B = T.match_buffer(b, (lanes, PAIR), "int16", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")
        with T.block("root"):
            T.reads(C[0:lanes], A[0:PAIR], B[0:lanes, 0:PAIR])
            T.writes(C[0:lanes])
            for i, k in T.grid(lanes, PAIR):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")

    return desc


def _accumulated(lanes: int, instruction: str) -> PrimFunc:
    """One instruction that multiplies and adds to the sums."""
    wide, packed, numbers = f"int32x{lanes}", f"int16x{2 * lanes}", 2 * lanes

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (PAIR,), "int16", offset_factor=1)
        B = T.match_buffer(b, (lanes, PAIR), "int16", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")
        with T.block("root"):
            T.reads(C[0:lanes], A[0:PAIR], B[0:lanes, 0:PAIR])
            T.writes(C[0:lanes])
            B_flat = T.decl_buffer((numbers,), "int16", data=B.data, elem_offset=B.elem_offset)
            pair = T.reinterpret("int32", A.vload([0], "int16x2"))
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                wide, instruction, T.uint32(3), C.vload([0], wide),
                T.broadcast(pair, lanes), T.reinterpret(wide, B_flat.vload([0], packed)),
            )  # fmt: skip

    return impl


def _added(lanes: int, instruction: str) -> PrimFunc:
    """One instruction that multiplies and adds pairs, one that adds to the sums."""
    wide, packed, numbers = f"int32x{lanes}", f"int16x{2 * lanes}", 2 * lanes

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (PAIR,), "int16", offset_factor=1)
        B = T.match_buffer(b, (lanes, PAIR), "int16", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")
        with T.block("root"):
            T.reads(C[0:lanes], A[0:PAIR], B[0:lanes, 0:PAIR])
            T.writes(C[0:lanes])
            B_flat = T.decl_buffer((numbers,), "int16", data=B.data, elem_offset=B.elem_offset)
            pair = T.reinterpret("int32", A.vload([0], "int16x2"))
            C[T.ramp(0, 1, lanes)] = C.vload([0], wide) + T.call_llvm_pure_intrin(
                wide, instruction, T.uint32(2),
                T.reinterpret(packed, T.broadcast(pair, lanes)), B_flat.vload([0], packed),
            )  # fmt: skip

    return impl


def _both(lanes: int, accumulates: bool, instruction: str) -> tuple[PrimFunc, PrimFunc]:
    make = _accumulated if accumulates else _added
    return pair_product_desc(lanes), make(lanes, instruction)


def pair_product_intrin(lanes: int, instruction: str) -> str:
    """The name of the tensor intrinsic for ``vpmaddwd`` or ``vpdpwssd`` on 4, 8 or 16 sums.

    >>> pair_product_intrin(8, "vpmaddwd")
    'dot_8x2_vpmaddwd'
    """
    return f"dot_{lanes}x{PAIR}_{instruction}"


_INTRINSICS: Final = (
    (4, "vpmaddwd", "llvm.x86.sse2.pmadd.wd"),
    (8, "vpmaddwd", "llvm.x86.avx2.pmadd.wd"),
    (16, "vpmaddwd", "llvm.x86.avx512.pmaddw.d.512"),
    (4, "vpdpwssd", "llvm.x86.avx512.vpdpwssd.128"),
    (8, "vpdpwssd", "llvm.x86.avx512.vpdpwssd.256"),
    (16, "vpdpwssd", "llvm.x86.avx512.vpdpwssd.512"),
)
for _lanes, _instruction, _name in _INTRINSICS:
    TensorIntrin.register_maker(
        pair_product_intrin(_lanes, _instruction),
        partial(_both, _lanes, _instruction == "vpdpwssd", _name),
    )
