"""Loads and stores of 7 or 14 lanes, which are not a power of two: rows of small images.

LLVM splits an access of 14 lanes into three, of 8, 4 and 2. With AVX-512 it is one access of 16
lanes under a mask, which does not touch the memory of the last two.
"""

from __future__ import annotations

from weft.codegen.llvm.convert import mangled
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import element_bytes, llvm_type, with_lanes
from weft.support.dtype import DataType


def fits(em: Emitter, scope: str, dtype: DataType) -> bool:
    """Whether an access of type ``dtype`` is best one under a mask.

    Not where the memory (scope ``local``) should become registers: LLVM would leave it in memory.
    """
    lanes = dtype.lanes
    return (
        em.context.masked
        and scope != "local"
        and dtype.bits in (32, 64)
        and lanes & (lanes - 1) > 0
        and lanes * dtype.bits < em.context.vector_bits
    )


def load(em: Emitter, pointer: str, dtype: DataType) -> str:
    """The vector of type ``dtype`` at a pointer."""
    whole = _whole(dtype)
    kind = llvm_type(whole)
    place = (f"ptr align {element_bytes(dtype)}", pointer)
    name = f"llvm.masked.load.{mangled(whole)}.p0"
    value = em.b.call(name, kind, [place, _flags(dtype), (kind, "poison")])
    return _resized(em, value, whole, dtype)


def store(em: Emitter, pointer: str, operand: str, dtype: DataType) -> None:
    """Store a vector of type ``dtype`` at a pointer."""
    whole = _whole(dtype)
    value = (llvm_type(whole), _resized(em, operand, dtype, whole))
    place = (f"ptr align {element_bytes(dtype)}", pointer)
    name = f"llvm.masked.store.{mangled(whole)}.p0"
    em.b.call(name, "void", [value, place, _flags(dtype)])


def _whole(dtype: DataType) -> DataType:
    """The next longer vector type whose lanes are a power of two: 14 → 16."""
    return dtype.with_lanes(1 << dtype.lanes.bit_length())


def _flags(dtype: DataType) -> tuple[str, str]:
    """The type and the value of a mask of the longer vector: true in the lanes of ``dtype``."""
    lanes = _whole(dtype).lanes
    flags = ", ".join([f"i1 {int(lane < dtype.lanes)}" for lane in range(lanes)])
    return with_lanes("i1", lanes), f"<{flags}>"


def _resized(em: Emitter, value: str, old: DataType, new: DataType) -> str:
    """A vector of type ``old`` as one of type ``new``: cut, or with undefined lanes at its end."""
    order = ", ".join(
        [f"i32 {lane}" if lane < old.lanes else "i32 poison" for lane in range(new.lanes)]
    )
    kind = llvm_type(old)
    mask = f"<{new.lanes} x i32> <{order}>"
    return em.b.op(f"shufflevector {kind} {value}, {kind} poison, {mask}")
