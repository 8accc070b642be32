"""StartWithFirst: a maximum that starts from minus infinity starts with its first operand instead.

The maximum of minus infinity and any number, or NaN, is that operand; the same holds for minima and
infinity. Runs after loops are unrolled, on statements that follow each other. It touches only
memory that the function allocates, which no argument can overlap. Before::

    s[0] = T.float32("-inf")
    s[0] = T.max(s[0], x[0])

After: ``s[0] = x[0]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.arith.deep_equal import all_deep_equal
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Broadcast, Call, Max, Min, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, BufferStore, SeqStmt, Stmt, seq, stmt_list
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

_WORST: Final[dict[type, float]] = {Max: -math.inf, Min: math.inf}
"""Operation -> its neutral element."""


@dataclass(frozen=True)
class _Start:
    """A store of an infinity that nothing has read yet; ``at`` is its position in the sequence."""

    store: BufferStore
    value: float
    at: int


class _Starts(StmtMutator):
    def __init__(self, own: set[Var]) -> None:
        super().__init__()
        self.own = own

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        inner: Stmt = self.visit_default(stmt)
        items: list[Stmt | None] = []
        waiting: list[_Start] = []
        for item in stmt_list(inner):
            start = next((earlier for earlier in waiting if _goes_on(item, earlier)), None)
            if start is not None and isinstance(item, BufferStore):
                items[start.at] = None
                waiting.remove(start)
                item = item.with_(value=_operand(item))
            waiting = [earlier for earlier in waiting if not _touches(item, earlier.store)]
            if isinstance(item, BufferStore) and item.buffer.data in self.own:
                value = _infinity(item.value)
                if value is not None and item.predicate is None:
                    waiting.append(_Start(item, value, len(items)))
            items.append(item)
        return seq(*items) if None in items else inner


def _infinity(value: PrimExpr) -> float | None:
    """The value of an infinite constant, or of a vector of such; None for other expressions."""
    plain = value.value if isinstance(value, Broadcast) else value
    return plain.value if isinstance(plain, FloatImm) and math.isinf(plain.value) else None


def _goes_on(item: Stmt, start: _Start) -> bool:
    """Whether a statement combines its first operand with the infinity that was stored."""
    if not isinstance(item, BufferStore) or item.predicate is not None:
        return False
    store = start.store
    if item.buffer is not store.buffer or not all_deep_equal(item.indices, store.indices):
        return False
    if _WORST.get(type(item.value)) != start.value:
        return False
    operand = _operand(item)
    return operand is not item.value and not _touches(operand, start.store)


def _operand(store: BufferStore) -> PrimExpr:
    """The operand that a maximum combines with the element it is stored to.

    The whole value, if it does not read that element.
    """
    value = store.value
    assert isinstance(value, (Max, Min))
    for held, other in ((value.a, value.b), (value.b, value.a)):
        if isinstance(held, BufferLoad) and held.buffer is store.buffer:
            if held.predicate is None and all_deep_equal(held.indices, store.indices):
                return other
    return value


def _touches(node: Any, start: BufferStore) -> bool:
    """Whether a part of a program may read or write the element of a store."""
    if any(start.buffer.data in call.args for call in collect(node, Call)):
        return True
    accesses: list[Any] = [*collect(node, BufferLoad), *collect(node, BufferStore)]
    return any(
        access.buffer.data is start.buffer.data
        and (access.buffer is not start.buffer or not _apart(access.indices, start.indices))
        for access in accesses
    )


def _apart(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two lists of indices are known to differ: in one position, by their constants."""
    return any(
        isinstance(left, IntImm) and isinstance(right, IntImm) and left.value != right.value
        for left, right in zip(a, b, strict=True)
    )


def start_with_first(func: PrimFunc) -> PrimFunc:
    """Remove the infinities that unrolled maxima and minima of a function start from."""
    own = {item.buffer_var for item in collect(func.body, Allocate)}
    stores = [store for store in collect(func.body, BufferStore) if store.buffer.data in own]
    if all(_infinity(store.value) is None for store in stores):
        return func
    return rewrite_body(func, _Starts(own))


StartWithFirst = define_pass("StartWithFirst", start_with_first)
