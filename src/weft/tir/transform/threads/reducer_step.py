"""One step of a reducer as statements, to which reductions over threads are lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.expr import PrimExpr
from weft.ir.functor import substitute
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import CommReducer, Var
from weft.tir.stmt import BufferStore, LetStmt, Stmt, seq


def loads(buffers: Sequence[Buffer], place: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The same element of each buffer."""
    return [BufferLoad(buffer, place) for buffer in buffers]


def combination(
    reducer: CommReducer,
    buffers: Sequence[Buffer],
    place: Sequence[PrimExpr],
    left: Sequence[PrimExpr],
    right: Sequence[PrimExpr],
) -> Stmt:
    """``buffers[place] = reducer(left, right)``, all values read before any is written."""
    mapping: dict[Any, Any] = {}
    lets: list[tuple[Var, PrimExpr]] = []
    for var, value in zip([*reducer.lhs, *reducer.rhs], [*left, *right], strict=True):
        mapping[var] = Var(var.name, var.dtype)
        lets.append((mapping[var], value))
    results = zip(buffers, reducer.result, strict=True)
    body = seq(*[BufferStore(buffer, substitute(r, mapping), place) for buffer, r in results])
    for var, value in reversed(lets):
        body = LetStmt(var, value, body)
    return body
