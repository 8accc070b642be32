"""A run of memory where a condition holds, else a constant: pixels around an image.

``T.if_then_else(0 <= y, x[y, j + 2, 0:16], 0)`` is a load from one of two addresses: that of the
pixel, or of a table in which every element is the constant. Pixels side by side that share the
condition share the choice, since constants are added to the address last, and each load remains the
operand of what uses it. Jumps would end the block of instructions that LLVM orders; lanes that a
mask leaves out cost hundreds of cycles where there is no memory.
"""

from __future__ import annotations

from typing import Any, Final

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
"""Elements of the table before and behind the address that is chosen."""
_LANES: Final = 64
"""The longest run."""


def value(em: Emitter, condition: Any, yes: Any, no: Any) -> str | None:
    """``yes`` where the scalar ``condition`` holds, else ``no``; None if it is no such choice."""
    if not _is_run(yes) or not _is_constant(no) or not all(map(_is_plain, yes.indices)):
        return None
    first, offset = _apart(yes)
    place, flag = memory.element_pointer(em, first), em.value(condition)
    chosen = em.b.op(f"select i1 {flag}, ptr {place}, ptr {_table(em, no)}")
    at = memory.step(em, chosen, yes.buffer.dtype, offset)
    return em.b.op(f"load {llvm_type(yes.dtype)}, ptr {at}, align {element_bytes(yes.dtype)}")


def _apart(load: Any) -> tuple[Any, int]:
    """The load without small constants in its place, and how many elements those are."""
    places, offset = [], 0
    size: int | None = 1
    for index, extent in zip(reversed(load.indices), reversed(load.buffer.shape), strict=True):
        first = (as_ramp(index) or (index, 0))[0]
        base, more = _without_constant(first)
        if size is not None and -_BEFORE <= offset + more * size <= _BEHIND:
            first, offset = base, offset + more * size
        places.append(first)
        size = size * extent.value if size is not None and isinstance(extent, IntImm) else None
    return load.with_(indices=places[::-1]), offset


def _without_constant(index: PrimExpr) -> tuple[PrimExpr, int]:
    if isinstance(index, e.Add | e.Sub) and isinstance(index.b, IntImm):
        return index.a, index.b.value if isinstance(index, e.Add) else -index.b.value
    return (IntImm(index.dtype, 0), index.value) if isinstance(index, IntImm) else (index, 0)


def _table(em: Emitter, constant: Any) -> str:
    """The address, ``_BEFORE`` elements behind its start, of a table of the constant."""
    kind = llvm_type(constant.dtype.element)
    element = em.value(constant.value)
    vector = f"<{_LANES} x {kind}>"
    parts = (_BEFORE + _BEHIND) // _LANES + 1
    each = ", ".join([f"{vector} {splat(kind, element, _LANES)}"] * parts)
    table = em.context.constant(f"[{parts} x {vector}] [{each}]")
    return f"getelementptr ({kind}, ptr {table}, i64 {_BEFORE})"


def _is_run(expr: Any) -> bool:
    """Whether the lanes lie side by side in memory that is no tile of registers."""
    if not isinstance(expr, BufferLoad) or expr.predicate is not None or expr.dtype.lanes == 1:
        return False
    ramp, buffer = as_ramp(expr.indices[-1]), expr.buffer
    is_run = ramp is not None and ramp[1] == 1 and index_lanes(expr.indices[:-1]) == 1
    is_plain = not buffer.strides and buffer.dtype.lanes == 1 and not buffer.dtype.is_bool
    return is_run and is_plain and buffer.scope() != "local" and expr.dtype.lanes <= _LANES


def _is_plain(index: PrimExpr) -> bool:
    """Whether an index may be computed where the condition does not hold: it reads nothing."""
    nodes = collect(index, (BufferLoad, e.Call, *DIVISIONS))
    return all(isinstance(node, DIVISIONS) and isinstance(node.b, IntImm) for node in nodes)


def _is_constant(expr: Any) -> bool:
    return isinstance(expr, e.Broadcast) and isinstance(expr.value, FloatImm | IntImm)
