"""Dot products on vectors of 128 bytes of Hexagon's HVX: ``vrmpy`` of bytes, ``vdmpy`` of int16.

Schedules can use the intrinsics; weft has no code generation for these processors. ``vdmpy``
saturates its sums, where what it stands for wraps around.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from weft.backends.cpu.tensor_intrin.dot_product import register_dot_product
from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.tir.buffer import Buffer

LANES: Final = 32
"""How many sums of 32 bits one vector has."""


def _by_instruction(
    instruction: str, kind: str, is_vector_first: bool, sums: PrimExpr, few: PrimExpr, b: Buffer
) -> Any:
    """The dot products by one instruction; ``kind`` is the vector type of all of B.

    ``is_vector_first``: B stands before A, a scalar. Else A is broadcast and stands before B.
    """
    many = T.reinterpret(f"int32x{LANES}", b.vload([0], kind))
    operands = (many, few) if is_vector_first else (T.broadcast(few, LANES), many)
    return T.call_llvm_pure_intrin(f"int32x{LANES}", instruction, T.uint32(3), sums, *operands)


VRMPY_u8u8i32_INTRIN: Final = "dot_32x4_u8u8i32_vrmpy"
VRMPY_u8i8i32_INTRIN: Final = "dot_32x4_u8i8i32_vrmpy"
VDMPY_i16i16i32_INTRIN: Final = "dot_product_32x2_i16i16i32_vdmpy"

for _name, _left, _right, _steps, _instruction, _is_vector_first in (
    (VRMPY_u8u8i32_INTRIN, "uint8", "uint8", 4, "llvm.hexagon.V6.vrmpyub.acc.128B", True),
    (VRMPY_u8i8i32_INTRIN, "uint8", "int8", 4, "llvm.hexagon.V6.vrmpybusv.acc.128B", False),
    (VDMPY_i16i16i32_INTRIN, "int16", "int16", 2, "llvm.hexagon.V6.vdmpyhvsat.acc.128B", False),
):
    _add = partial(_by_instruction, _instruction, f"{_right}x{LANES * _steps}", _is_vector_first)
    register_dot_product(_name, LANES, _steps, _left, _right, _add)
