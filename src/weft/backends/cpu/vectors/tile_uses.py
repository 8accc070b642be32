"""How the body of a loop over tiles uses the loop's variable and the elements of a tile.

``o * 8 + v`` is a place of an axis that is cut into tiles of eight; ``o * 16 + v * 2 + k`` has one,
too. ShiftTiles lets tiles begin elsewhere, which only places of the axis follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from weft.arith import fold
from weft.arith.conjunction import conjuncts
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.tir.buffer import BufferLoad
from weft.tir.expr import LE, LT, Add, Call, Mul, Var, is_call
from weft.tir.op import is_const_int
from weft.tir.stmt import Allocate, BufferStore, Evaluate, For, IfThenElse


@dataclass(frozen=True)
class Guard:
    """The condition ``outer * size + element < extent`` of an element of a tile.

    Simplified guards say ``<=``, or ``outer * size + element + 2 < n`` of an extent of ``n - 2``.
    """

    test: PrimExpr
    size: int
    element: Var
    extent: PrimExpr


def guard_of(test: PrimExpr, outer: Var) -> Guard | None:
    """The guard that a condition is, in tiles with the number ``outer``; None for other ones."""
    if not isinstance(test, (LT, LE)) or not isinstance(test.a, Add):
        return None
    place, more = test.a, -int(isinstance(test, LE))
    if isinstance(place.a, Add) and isinstance(place.b, IntImm):
        more += place.b.value
        place = place.a
    begin, element = place.a, place.b
    if not isinstance(begin, Mul) or begin.a is not outer or not isinstance(begin.b, IntImm):
        return None
    extent = fold.sub(test.b, fold.const(test.b.dtype, more))
    return Guard(test, begin.b.value, element, extent) if isinstance(element, Var) else None


@dataclass(frozen=True)
class TiledAxis:
    """An axis that is cut into tiles of ``size``: ``outer * size + element``."""

    outer: Var
    size: int
    elements: set[Var]

    def split(self, total: Add) -> tuple[Place | None, list[PrimExpr]]:
        """The place of the axis in a sum, and the other terms.

        Of ``o * 16 + v * 2 + k``, with tiles of 8, these are the place ``(o, 2, v)`` and ``[k]``.
        """
        terms = list(_terms(total))
        for first in terms:
            factor = _factor(first, self.outer)
            if factor is None or factor % self.size:
                continue
            times = factor // self.size
            for second in terms:
                element = _element(second, times)
                if element in self.elements:
                    rest = [term for term in terms if term is not first and term is not second]
                    return Place(times, second), rest
        return None, terms


class Place(NamedTuple):
    """``times * (outer * size + element)``; ``element`` is the term with the element, ``v * 2``."""

    times: int
    element: PrimExpr


def _terms(expr: PrimExpr) -> Iterator[PrimExpr]:
    if isinstance(expr, Add):
        yield from _terms(expr.a)
        yield from _terms(expr.b)
    else:
        yield expr


def _factor(term: PrimExpr, var: Var) -> int | None:
    """The number that a term multiplies ``var`` by; None for other terms."""
    if isinstance(term, Mul) and term.a is var and isinstance(term.b, IntImm):
        return term.b.value
    return None


def _element(term: PrimExpr, times: int) -> Var | None:
    """The variable that a term multiplies by ``times``; None for other terms."""
    if isinstance(term, Var):
        return term if times == 1 else None
    if isinstance(term, Mul) and isinstance(term.a, Var) and is_const_int(term.b, times):
        return term.a
    return None


class Uses(Visitor):
    """How the variables of an axis are used in the body of the loop over its tiles."""

    def __init__(self, axis: TiledAxis) -> None:
        self.axis, self.outer = axis, axis.outer
        self.others = False
        """Whether the loop's variable stands outside of places of the axis."""
        self.has_alone = False
        """Whether an element's does, other than as an index of own memory."""
        self.guards: list[Guard] = []
        self.loops: dict[Var, For] = {}
        self.own: set[Var] = set()
        self.read: set[Var] = set()
        self.written: set[Var] = set()
        self.written_unguarded: set[Var] = set()
        self.calls_out = False
        self._guarded = 0

    def visit_Add(self, total: Add) -> None:
        self.visit(self.axis.split(total)[1])

    def visit_Var(self, var: Var) -> None:
        self.others = self.others or var is self.outer
        self.has_alone = self.has_alone or var in self.axis.elements

    def visit_For(self, loop: For) -> None:
        self.loops[loop.loop_var] = loop
        self.visit([loop.min, loop.extent, loop.body])

    def visit_IfThenElse(self, stmt: IfThenElse) -> None:
        guards = [guard_of(test, self.outer) for test in conjuncts(stmt.condition)]
        known = [guard for guard in guards if guard is not None]
        self.guards += known
        self.visit(stmt.condition)
        self._guarded += len(known)
        self.visit(stmt.then_case)
        self._guarded -= len(known)
        if stmt.else_case is not None:
            self.visit(stmt.else_case)

    def visit_Allocate(self, stmt: Allocate) -> None:
        self.own.add(stmt.buffer_var)
        self.visit_default(stmt)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.read.add(load.buffer.data)
        self._index(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.written.add(store.buffer.data)
        if not self._guarded:
            self.written_unguarded.add(store.buffer.data)
        self.visit(store.value)
        self._index(store)

    def _index(self, access: BufferLoad | BufferStore) -> None:
        before = self.has_alone
        self.visit(access.indices)
        if access.buffer.data in self.own:
            self.has_alone = before

    def visit_Evaluate(self, stmt: Evaluate) -> None:
        self.calls_out = self.calls_out or not is_call(stmt.value, "prefetch")
        self.visit(stmt.value)

    def visit_Call(self, call: Call) -> None:
        memory = [arg for arg in call.args if isinstance(arg, PrimExpr) and arg.dtype.is_handle]
        self.calls_out = self.calls_out or bool(memory)
        self.visit_default(call)


def axis_of(loop: For) -> TiledAxis | None:
    """The axis whose tiles a loop runs over, by its guards; None if there are none."""
    tests = [test for stmt in collect(loop.body, IfThenElse) for test in conjuncts(stmt.condition)]
    guards = [guard for test in tests if (guard := guard_of(test, loop.loop_var)) is not None]
    if not guards:
        return None
    return TiledAxis(loop.loop_var, guards[0].size, {guard.element for guard in guards})
