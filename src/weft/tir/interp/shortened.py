"""Cuts the loops of a large lowered PrimFunc short, so that the interpreter can run it.

``shortened`` cuts every loop to its first iterations: the same statements run, but fewer times. The
result is a different program, but interpreter and native code must agree on it, too. Later loops
may read memory that the cut loops no longer fill: it is 0 in the interpreter, and
``with_zeroed_memory`` makes it 0 in native code.

Example, cut to 2 iterations::

    for i in range(1000):        ->    for i in range(2):
        y[i] = x[i] + 1                    y[i] = x[i] + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp.limited import operations_of
from weft.tir.stmt import Allocate, BufferStore, DeclBuffer, For, ForKind, Stmt, While, seq
from weft.tir.transform.prim_func_pass import StmtMutator, rewrite_body

LIMITS: Final = (64, 32, 16, 8, 4, 2, 1)
"""The numbers of iterations to try, largest first."""


def shortened(
    func: PrimFunc, arguments: Sequence[object], most: int
) -> tuple[PrimFunc, int] | None:
    """The function with loops cut so that it executes at most ``most`` operations.

    Returns the function and the number of iterations; None if even one iteration of each loop is
    too much, or if there is a ``While``, whose number of iterations is not known.
    """
    if collect(func.body, While):
        return None
    for iterations in LIMITS:
        cut = rewrite_body(func, _Cut(iterations))
        if operations_of(cut, arguments) <= most:
            return cut, iterations
    return None


def with_zeroed_memory(func: PrimFunc) -> PrimFunc:
    """The function that sets all memory it allocates to 0 before it uses it."""
    return rewrite_body(func, _Zero())


class _Cut(StmtMutator):
    def __init__(self, iterations: int) -> None:
        super().__init__()
        self.iterations = iterations

    def visit_For(self, loop: For) -> Stmt:
        extent = loop.extent
        if isinstance(extent, IntImm):
            extent = IntImm(extent.dtype, min(extent.value, self.iterations))
        else:
            extent = op.min(extent, op.const(self.iterations, extent.dtype))
        return loop.with_(extent=extent, body=self.visit(loop.body))


class _Zero(StmtMutator):
    def visit_Allocate(self, stmt: Allocate) -> Stmt:
        body = self.visit(stmt.body)
        count: PrimExpr = op.const(1, "int64")
        for extent in stmt.extents:
            count = op.multiply(count, op.cast("int64", extent))
        memory = Buffer(
            data=stmt.buffer_var,
            dtype=stmt.dtype,
            shape=[count],
            strides=[],
            elem_offset=None,
            name="zeroed",
        )
        place = Var("at", "int64")
        zero = op.const(0, stmt.dtype)
        store = BufferStore(memory, zero, [place])
        fill = For(place, op.const(0, "int64"), count, ForKind.SERIAL, store)
        return stmt.with_(body=DeclBuffer(memory, seq(fill, body)))
