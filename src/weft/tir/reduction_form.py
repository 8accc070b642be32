"""Recognises the reduction of a block: its updates, its initial values, and its known reducer.

A block may store each buffer of its reduction directly, through let variables, or in several
statements. All stored values must be computed from the buffers' contents before the block runs. It
corresponds to TVM's ``GetReducerAndCombinerLhsRhs``, which accepts only the form with lets.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import all_deep_equal, expr_deep_equal
from weft.ir.expr import PrimExpr
from weft.ir.functor import Mutator, collect, substitute
from weft.ir.node import Array, Node
from weft.support.errors import ScheduleError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import (
    SWAPPED,
    Add,
    And,
    CommReducer,
    Let,
    Max,
    Min,
    Mul,
    Or,
    Var,
)
from weft.tir.reducer import has_reducer_of, known_reducers
from weft.tir.stmt import Block, BufferStore, LetStmt, SeqStmt, Stmt

SYMMETRIC = (Add, Mul, Min, Max, And, Or)


class ReductionReadError(ScheduleError):
    """The init or body of a block has not the form of a reduction; the text says what it has."""


class NoKnownReducerError(ReductionReadError):
    """The block reduces, but by no known commutative reducer."""


class Reduction(NamedTuple):
    """``buffers[indices] = reducer(buffers[indices], operands)``, all of them at once."""

    buffers: list[Buffer]
    indices: Array[PrimExpr]
    reducer: CommReducer
    operands: list[PrimExpr]


def read_reduction(block: Block) -> Reduction:
    """The reduction that a block computes.

    Raises:
        ReductionReadError: its init or body has another form.
        NoKnownReducerError: it has the form, but no known reducer gives the stored values.
    """
    if block.init is None:
        raise ReductionReadError("it has no init")
    inits = _stores(block.init, "init")
    updates = _stores(block.body, "body")
    starts = _aligned(inits, updates)
    count = len(updates)
    for order in itertools.permutations(range(count)) if has_reducer_of(count) else ():
        recognised = _recognised([updates[i] for i in order], [starts[i] for i in order])
        if recognised is not None:
            return recognised[0]
    pairs = zip(starts, updates, strict=True)
    shown = ", ".join([f"{start} and {update.value}" for start, update in pairs])
    shown = shown if len(shown) <= 160 else shown[:157] + "..."
    raise NoKnownReducerError(f"starts and goes on as no known reducer: {shown}")


def read_update(stmt: Stmt) -> tuple[Reduction, bool] | None:
    """The reduction that a statement updates, whatever its initial value; None if it is none.

    The second result says whether combining a value with itself gives that value (as for max).
    """
    try:
        updates = _stores(stmt, "body")
    except ReductionReadError:
        return None
    first = updates[0].indices
    if not all(_same(first, update.indices, Analyzer()) for update in updates[1:]):
        return None
    count = len(updates)
    for start in (0, 1) if has_reducer_of(count) else ():
        starts = [op.const(start, update.buffer.dtype) for update in updates]
        for order in itertools.permutations(range(count)):
            recognised = _recognised([updates[i] for i in order], starts)
            if recognised is not None:
                return recognised
    return None


def _recognised(
    updates: list[BufferStore], starts: list[PrimExpr]
) -> tuple[Reduction, bool] | None:
    """The reduction, and whether any initial value is an identity; None if no reducer fits."""
    values = [update.value for update in updates]
    loads = [BufferLoad(update.buffer, update.indices) for update in updates]
    for known in known_reducers([update.buffer.dtype for update in updates], starts):
        reducer = known.reducer
        if not known.any_start and not all_deep_equal(reducer.identity_element, starts):
            continue
        operands = _operands(reducer, loads, values)
        if operands is not None and not _uses(operands, updates):
            buffers = [update.buffer for update in updates]
            return Reduction(buffers, updates[0].indices, reducer, operands), known.any_start
    return None


def _stores(stmt: Stmt, part: str) -> list[BufferStore]:
    """The stores of an init or a body, in order, with let variables replaced."""
    lets: dict[Var, PrimExpr] = {}
    while isinstance(stmt, LetStmt):
        lets[stmt.var] = substitute(stmt.value, lets)
        stmt = stmt.body
    items: list[BufferStore] = []
    stores: list[BufferStore] = []
    for item in stmt.seq if isinstance(stmt, SeqStmt) else [stmt]:
        if not isinstance(item, BufferStore) or item.predicate is not None:
            raise ReductionReadError(
                f"its {part} has a {type(item).__name__}, expected stores alone"
            )
        stored = [store.buffer for store in stores]
        if _loads_of([item.value, *item.indices], stored):
            raise ReductionReadError(f"its {part} reads {_names(stored)} after storing there")
        if any(item.buffer.data is buffer.data for buffer in stored):
            raise ReductionReadError(f"its {part} stores {item.buffer.name} twice")
        items.append(item)
        stores.append(substitute(item, lets) if lets else item)
    if lets and all(item.value in lets for item in items):  # in the order of the variables
        place: dict[PrimExpr, int] = {var: position for position, var in enumerate(lets)}
        stores = [stores[i] for i in sorted(range(len(items)), key=lambda i: place[items[i].value])]
    return [store.with_(value=without_lets(store.value)) for store in stores]


def _aligned(inits: list[BufferStore], updates: list[BufferStore]) -> list[PrimExpr]:
    """The initial value of each updated buffer; init and body must store the same elements."""
    if len(inits) != len(updates):
        raise ReductionReadError(
            f"its init stores {len(inits)} buffers and its body {len(updates)}"
        )
    first = updates[0]
    analyzer = Analyzer()
    for update in updates[1:]:
        if not _same(first.buffer.shape, update.buffer.shape, analyzer):
            raise ReductionReadError(
                f"{first.buffer.name} has shape {list(first.buffer.shape)} and "
                f"{update.buffer.name} {list(update.buffer.shape)}"
            )
        if not _same(first.indices, update.indices, analyzer):
            raise ReductionReadError(
                f"it updates {_element(first)} and {_element(update)}, other indices"
            )
    starts = []
    for update in updates:
        init = next((store for store in inits if store.buffer is update.buffer), None)
        if init is None:
            raise ReductionReadError(
                f"its body updates {update.buffer.name}, which its init does not set"
            )
        if not _same(init.indices, first.indices, analyzer):
            raise ReductionReadError(
                f"its init sets {_element(init)}, its body updates {_element(update)}"
            )
        if collect(init.value, (Var, BufferLoad)):
            raise ReductionReadError(
                f"{init.buffer.name} starts from {init.value}, which is no constant"
            )
        starts.append(init.value)
    return starts


class _LetInliner(Mutator):
    """Replaces let variables by their values."""

    def visit_Let(self, node: Let) -> PrimExpr:
        return self.visit(substitute(node.body, {node.var: node.value}))


def without_lets(expr: PrimExpr) -> PrimExpr:
    """The expression with its let variables replaced by their values."""
    return _LetInliner().visit(expr) if collect(expr, Let) else expr


def _element(store: BufferStore) -> str:
    return f"{store.buffer.name}[{', '.join([str(index) for index in store.indices])}]"


def _names(buffers: Sequence[Buffer]) -> str:
    return ", ".join([buffer.name for buffer in buffers])


def _loads_of(exprs: object, buffers: Sequence[Buffer]) -> bool:
    memories = {buffer.data for buffer in buffers}
    return any(load.buffer.data in memories for load in collect(exprs, BufferLoad))


def _uses(operands: Sequence[PrimExpr], updates: Sequence[BufferStore]) -> bool:
    return _loads_of(list(operands), [update.buffer for update in updates])


def _same(a: Sequence[PrimExpr], b: Sequence[PrimExpr], analyzer: Analyzer) -> bool:
    if len(a) != len(b):
        return False
    return all(
        expr_deep_equal(x, y) or analyzer.can_prove_equal(x, y) for x, y in zip(a, b, strict=True)
    )


# ---- matching


def _operands(
    reducer: CommReducer, loads: Sequence[PrimExpr], values: Sequence[PrimExpr]
) -> list[PrimExpr] | None:
    """The operands ``y`` with ``values == reducer(loads, y)``; None if there are none."""
    for pattern in _orders(reducer.result):
        bound: dict[Var, PrimExpr] = dict(zip(reducer.lhs, loads, strict=True))
        holes = {*reducer.lhs, *reducer.rhs}
        if all(_matches(p, v, bound, holes) for p, v in zip(pattern, values, strict=True)):
            if all(bound.get(var) is not None for var in reducer.rhs):
                return [bound[var] for var in reducer.rhs]
    return None


def _orders(result: Sequence[object]) -> Iterator[Sequence[object]]:
    """All variants of the result with the operands of symmetric operations exchanged."""
    return itertools.product(
        *[
            (part, part.with_(a=part.b, b=part.a)) if isinstance(part, SYMMETRIC) else (part,)
            for part in result
        ]
    )


def _matches(pattern: Any, value: Any, bound: dict[Var, PrimExpr], holes: set[Var]) -> bool:
    """Whether ``value`` matches the pattern; binds the variables ``holes`` of the pattern."""
    if isinstance(pattern, Var) and pattern in holes:
        known = bound.setdefault(pattern, value)
        return known is value or expr_deep_equal(known, value)
    if isinstance(pattern, tuple):
        if not isinstance(value, tuple) or len(pattern) != len(value):
            return False
        for mine, other in zip(pattern, value, strict=True):
            if not _matches(mine, other, bound, holes):
                return False
        return True
    if type(pattern) is not type(value):
        turned = SWAPPED.get(type(pattern))
        if turned is None or type(value) is not turned:
            return False
        pattern = turned(pattern.b, pattern.a)  # the simplifier turns a > b into b < a
    if not isinstance(pattern, PrimExpr) or not pattern.CHILDREN:
        return expr_deep_equal(pattern, value) if isinstance(pattern, Node) else pattern == value
    for name in pattern.INIT_FIELDS:
        if not _matches(getattr(pattern, name), getattr(value, name), bound, holes):
            return False
    return True
