"""Dot products on vectors of 128 bytes of Hexagon's HVX: ``vrmpy`` of bytes, ``vdmpy`` of int16.

Schedules can use the intrinsics; weft has no code generation for these processors. ``vdmpy``
saturates its sums, where what it stands for wraps around.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.backends.cpu.tensor_intrin.dot_product import dot_product_desc
from weft.script import tir as T
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin

LANES: Final = 32
"""How many sums of 32 bits one vector has."""


def _dot(
    left: str, right: str, steps: int, instruction: str, is_vector_first: bool
) -> tuple[PrimFunc, PrimFunc]:
    """Description and implementation; ``is_vector_first``: B stands before A, which is a scalar.

    Else A is broadcast, and stands before B.
    """
    sums, size = f"int32x{LANES}", LANES * steps

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (steps,), left, offset_factor=1)
        B = T.match_buffer(b, (LANES, steps), right, offset_factor=1)
        C = T.match_buffer(c, (LANES,), "int32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:LANES], A[0:steps], B[0:LANES, 0:steps])
            T.writes(C[0:LANES])
            B_flat = T.decl_buffer((size,), right, data=B.data, elem_offset=B.elem_offset)
            few = T.reinterpret("int32", A.vload([0], f"{left}x{steps}"))
            many = T.reinterpret(sums, B_flat.vload([0], f"{right}x{size}"))
            C[T.ramp(0, 1, LANES)] = T.call_llvm_pure_intrin(
                sums,
                instruction,
                T.uint32(3),
                C.vload([0], sums),
                many if is_vector_first else T.broadcast(few, LANES),
                few if is_vector_first else many,
            )

    return dot_product_desc(LANES, steps, left, right), impl


VRMPY_u8u8i32_INTRIN: Final = "dot_32x4_u8u8i32_vrmpy"
VRMPY_u8i8i32_INTRIN: Final = "dot_32x4_u8i8i32_vrmpy"
VDMPY_i16i16i32_INTRIN: Final = "dot_product_32x2_i16i16i32_vdmpy"

TensorIntrin.register_maker(
    VRMPY_u8u8i32_INTRIN,
    partial(_dot, "uint8", "uint8", 4, "llvm.hexagon.V6.vrmpyub.acc.128B", True),
)
TensorIntrin.register_maker(
    VRMPY_u8i8i32_INTRIN,
    partial(_dot, "uint8", "int8", 4, "llvm.hexagon.V6.vrmpybusv.acc.128B", False),
)
TensorIntrin.register_maker(
    VDMPY_i16i16i32_INTRIN,
    partial(_dot, "int16", "int16", 2, "llvm.hexagon.V6.vdmpyhvsat.acc.128B", False),
)
