"""Whether a function holds a tile of sums in registers: then LLVM leaves its instructions in order.

::

    for k: C[0] = C[0] + a[k] * b[0, k]; ...; C[20] = C[20] + a[k] * b[20, k]

The sums take most of the registers of a processor. LLVM's scheduler of machine instructions moves
the loads of several such steps to the beginning of the loop, before registers are allocated, and
sums are spilled there (a convolution with many constants behind it: tests/backends/cpu/schedules,
test_default.py). A processor that runs instructions out of order needs no such help for loads.
With 16 registers, of which the sums leave four, LLVM's first order spills, and its scheduler mends
it. Long chains of element-wise functions gain by the scheduler, too.
"""

from __future__ import annotations

from typing import Final

from weft.ir.functor import collect
from weft.ir.structural import structural_equal
from weft.tir.buffer import BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, SeqStmt, Stmt

_LEAST: Final = 8
"""Sums in one block from which on they are a tile."""
_MANY: Final = 32
"""Registers for vectors from which on LLVM's first order of a tile needs no other memory."""


def is_best_in_order(func: PrimFunc, registers: int) -> bool:
    """Whether a function has a tile, in a processor with enough registers.

    A tile are statements that follow each other and add to eight elements of local memory or more.
    """
    return registers >= _MANY and any(
        sum([_accumulates(item) for item in block.seq]) >= _LEAST
        for block in collect(func.body, SeqStmt)
    )


def _accumulates(stmt: Stmt) -> bool:
    """Whether a statement is ``C[i] = f(C[i], ...)`` on local memory."""
    if not isinstance(stmt, BufferStore) or stmt.buffer.scope() != "local":
        return False
    return any(
        load.buffer is stmt.buffer and structural_equal(load.indices, stmt.indices)
        for load in collect(stmt.value, BufferLoad)
    )
