"""Dot products of x86: ``vpmaddwd`` and ``vpmaddubsw`` (SSE, AVX2, AVX-512BW), ``vpdpwssd`` and
``vpdpbusd`` (VNNI).

Each computes ``C[i] += sum of A[k] * B[i, k] over k`` in int32, where ``k`` has two values of int16
or four bytes, unsigned in A and signed in B. B fills one machine vector, the numbers of one sum
next to each other; the two or four numbers of A are repeated for each sum. The sums wrap as int32
does, so they are exact modulo 2**32 (Intel's Intrinsics Guide; the packing is that of FBGEMM,
Khudia et al., 2021).

``vpmaddubsw`` is an exception: it adds the first two products, and the last two, in int16, and cuts
off what int16 does not hold. ``vpmaddwd`` by ones then adds the two. So it is for values of B with
which that never happens (``exact_byte_pairs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from weft.backends.cpu.tensor_intrin.dot_product import dot_product_desc
from weft.script import tir as T
from weft.target.machine import Machine
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin

_WIDE: Final = 512


@dataclass(frozen=True)
class Dot:
    """An instruction: how many steps of the reduction it takes, and the data types of A and B."""

    instruction: str
    steps: int
    left: str
    right: str
    accumulates: bool
    """Whether it adds the products to the sums; if not, a second instruction does."""
    is_cut_off: bool = False
    """Whether it is exact only if int16 holds each sum of two neighbouring products."""

    @property
    def registers(self) -> int:
        """Registers beside sums and operands: products that wait to be added, and ones."""
        return self.instructions - 1

    @property
    def instructions(self) -> int:
        """How many instructions multiply and add to the sums."""
        return 1 if self.accumulates else 3 if self.is_cut_off else 2

    def cost(self, machine: Machine) -> float:
        """How many times as long they take as a multiply-add.

        Processors start three instructions on vectors of 256 bits in a cycle, two of which
        multiply, and two on vectors of 512 bits.
        """
        if self.accumulates:
            return 1.0
        return self.instructions * machine.fma_ports / (3 if machine.vector_bits < _WIDE else 2)

    def intrin(self, lanes: int) -> str:
        """The name of the tensor intrinsic that computes ``lanes`` sums.

        >>> DOTS["vpmaddwd"].intrin(8)
        'dot_8x2_vpmaddwd'
        """
        return f"dot_{lanes}x{self.steps}_{self.instruction}"


DOTS: Final = {
    dot.instruction: dot
    for dot in (
        Dot("vpmaddwd", 2, "int16", "int16", accumulates=False),
        Dot("vpdpwssd", 2, "int16", "int16", accumulates=True),
        Dot("vpdpbusd", 4, "uint8", "int8", accumulates=True),
        Dot("vpmaddubsw", 4, "uint8", "int8", accumulates=False, is_cut_off=True),
    )
}


def dot_product_sum(lanes: int, dot: Dot, name: str, total: Any, left: Any, right: Any) -> Any:
    """The expression of ``total`` plus the dot products, by the LLVM intrinsic ``name``.

    ``left`` has the numbers of A, packed into one int32 and repeated for each sum; ``right`` has
    those of B.
    """
    wide = f"int32x{lanes}"
    if dot.accumulates:
        return T.call_llvm_pure_intrin(
            wide, name, T.uint32(3), total, left, T.reinterpret(wide, right)
        )
    left = T.reinterpret(f"{dot.left}x{lanes * dot.steps}", left)
    if not dot.is_cut_off:
        return total + T.call_llvm_pure_intrin(wide, name, T.uint32(2), left, right)
    pairs = T.call_llvm_pure_intrin(f"int16x{2 * lanes}", name, T.uint32(2), left, right)
    ones, add = T.broadcast(T.int16(1), 2 * lanes), INTRINSICS["vpmaddwd", lanes]
    return total + T.call_llvm_pure_intrin(wide, add, T.uint32(2), pairs, ones)


def _impl(lanes: int, dot: Dot, name: str) -> PrimFunc:
    steps, number = dot.steps, dot.steps * lanes

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (steps,), dot.left, offset_factor=1)
        B = T.match_buffer(b, (lanes, steps), dot.right, offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")
        with T.block("root"):
            T.reads(C[0:lanes], A[0:steps], B[0:lanes, 0:steps])
            T.writes(C[0:lanes])
            B_flat = T.decl_buffer((number,), dot.right, data=B.data, elem_offset=B.elem_offset)
            packed = T.reinterpret("int32", A.vload([0], f"{dot.left}x{steps}"))
            C[T.ramp(0, 1, lanes)] = dot_product_sum(
                lanes,
                dot,
                name,
                C.vload([0], f"int32x{lanes}"),
                T.broadcast(packed, lanes),
                B_flat.vload([0], f"{dot.right}x{number}"),
            )

    return impl


def _both(lanes: int, dot: Dot, name: str) -> tuple[PrimFunc, PrimFunc]:
    desc = dot_product_desc(lanes, dot.steps, dot.left, dot.right, "local")
    return desc, _impl(lanes, dot, name)


INTRINSICS: Final = {
    ("vpmaddwd", 4): "llvm.x86.sse2.pmadd.wd",
    ("vpmaddwd", 8): "llvm.x86.avx2.pmadd.wd",
    ("vpmaddwd", 16): "llvm.x86.avx512.pmaddw.d.512",
    ("vpmaddubsw", 4): "llvm.x86.ssse3.pmadd.ub.sw.128",
    ("vpmaddubsw", 8): "llvm.x86.avx2.pmadd.ub.sw",
    ("vpmaddubsw", 16): "llvm.x86.avx512.pmaddubs.w.512",
    **{
        (name, bits // 32): f"llvm.x86.avx512.{name}.{bits}"
        for name in ("vpdpwssd", "vpdpbusd") for bits in (128, 256, 512)
    },
}  # fmt: skip
"""(instruction, lanes) -> LLVM's name of it."""

for (_instruction, _lanes), _name in INTRINSICS.items():
    _dot = DOTS[_instruction]
    TensorIntrin.register_maker(_dot.intrin(_lanes), partial(_both, _lanes, _dot, _name))
