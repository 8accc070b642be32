"""Elements that lie side by side, or a constant where they lie outside of an image.

``T.if_then_else(0 <= y, x[y, j + 2, 0:16], 0)`` becomes one load, from one of two addresses: that
of the pixel, or that of a table whose every element is the constant::

    address = select 0 <= y, &x[y, j, 0], &zeros[128]
    value = load <16 x float>, address + 2 * 16

The constant 2 of the place is added after the choice. So the pixels ``j``, ``j + 1`` ... of a row
share one choice, and each load can be the operand of the instruction that uses it.

Two other ways are slower: a jump ends the block in which LLVM orders instructions, and a load under
a mask takes hundreds of cycles where the lanes that it leaves out lie in no memory.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from weft.codegen.llvm import memory
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import element_bytes, llvm_type, splat
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir import expr as e
from weft.tir.buffer import BufferLoad
from weft.tir.lanes import as_ramp
from weft.tir.lowering.access_tests import index_lanes
from weft.tir.lowering.faults import DIVISIONS

_BEFORE: Final = 128
_BEHIND: Final = 1024
"""How many elements the table has before and behind the address that is chosen."""
_LANES: Final = 64
"""The most lanes of such a load."""


def value(em: Emitter, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> str | None:
    """The operand of ``T.if_then_else(condition, yes, no)``; None if it has not that form."""
    if not _is_run(yes) or not _is_constant(no) or not all(map(_is_plain, yes.indices)):
        return None
    first, offset = _without_constants(yes)
    place, flag = memory.element_pointer(em, first), em.value(condition)
    chosen = em.b.op(f"select i1 {flag}, ptr {place}, ptr {_table(em, no)}")
    at = memory.step(em, chosen, yes.buffer.dtype, offset)
    return em.b.op(f"load {llvm_type(yes.dtype)}, ptr {at}, align {element_bytes(yes.dtype)}")


def _without_constants(load: BufferLoad) -> tuple[BufferLoad, int]:
    """A load without the small constants of its indices, and how many elements they skip.

    ``x[y, j + 2, 0:16]`` of a buffer with 16 channels → (``x[y, j, 0]``, 32).
    """
    places, offset = [], 0
    size: int | None = 1
    for index, extent in zip(reversed(load.indices), reversed(load.buffer.shape), strict=True):
        first = (as_ramp(index) or (index, 0))[0]
        base, more = _split_constant(first)
        if size is not None and -_BEFORE <= offset + more * size <= _BEHIND:
            first, offset = base, offset + more * size
        places.append(first)
        size = size * extent.value if size is not None and isinstance(extent, IntImm) else None
    return load.with_(indices=places[::-1]), offset


def _split_constant(index: PrimExpr) -> tuple[PrimExpr, int]:
    """An index and the constant added to it: ``j + 2`` → (``j``, 2)."""
    if isinstance(index, (e.Add, e.Sub)) and isinstance(index.b, IntImm):
        return index.a, index.b.value if isinstance(index, e.Add) else -index.b.value
    return (IntImm(index.dtype, 0), index.value) if isinstance(index, IntImm) else (index, 0)


def _table(em: Emitter, constant: e.Broadcast) -> str:
    """The address of element ``_BEFORE`` of a table whose every element is the constant."""
    kind = llvm_type(constant.dtype.element)
    element = em.value(constant.value)
    vector = f"<{_LANES} x {kind}>"
    parts = (_BEFORE + _BEHIND) // _LANES + 1
    each = ", ".join([f"{vector} {splat(kind, element, _LANES)}"] * parts)
    table = em.context.constant(f"[{parts} x {vector}] [{each}]")
    return f"getelementptr ({kind}, ptr {table}, i64 {_BEFORE})"


def _is_run(expr: PrimExpr) -> TypeGuard[BufferLoad]:
    """Whether it is a load of elements side by side, from memory that is not to be registers."""
    if not isinstance(expr, BufferLoad) or expr.predicate is not None or expr.dtype.lanes == 1:
        return False
    ramp, buffer = as_ramp(expr.indices[-1]), expr.buffer
    is_run = ramp is not None and ramp[1] == 1 and index_lanes(expr.indices[:-1]) == 1
    is_plain = not buffer.strides and buffer.dtype.lanes == 1 and not buffer.dtype.is_bool
    return is_run and is_plain and buffer.scope() != "local" and expr.dtype.lanes <= _LANES


def _is_plain(index: PrimExpr) -> bool:
    """Whether an index can be computed where the condition does not hold: it reads no memory, calls
    nothing, and divides by constants only.
    """
    nodes = collect(index, (BufferLoad, e.Call, *DIVISIONS))
    return all(isinstance(node, DIVISIONS) and isinstance(node.b, IntImm) for node in nodes)


def _is_constant(expr: PrimExpr) -> TypeGuard[e.Broadcast]:
    return isinstance(expr, e.Broadcast) and isinstance(expr.value, (FloatImm, IntImm))
