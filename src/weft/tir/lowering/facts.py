"""A walk over a function that knows at every place what holds there, and which lanes are wanted.

Passes of this package subclass ``FactMutator``. At each expression ``ranges`` holds the intervals
of the variables in scope, ``bounds`` the conditions that hold there, and ``wanted(lanes)`` is the
mask of the lanes of a vector whose values are used::

    for i in range(n):              # 0 <= i < n
        if i < m:                   # i < m
            A[i] = T.Select(c, x // y, 0)     # x // y: wanted where the lanes of c are true
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.node import expect
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer
from weft.tir.constant import is_const_int
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import fixed_data
from weft.tir.lowering.proofs import Bounds
from weft.tir.lowering.ranges import Interval, Ranges
from weft.tir.lowering.symbols import LARGEST_INT64_SIZE, element_counts, symbol_ranges
from weft.tir.transform.prim_func_pass import StmtMutator

RANGE: Final = "weft.range"
"""The annotation of a loop that runs over a part of its iterations: the interval of its variable,
``[least, largest]``, over all of them."""


def facts_of(func: PrimFunc) -> tuple[Ranges, Bounds]:
    """The intervals and conditions that hold where the body of a function begins."""
    ranges = Ranges()
    for var, interval in symbol_ranges(func):
        ranges.bind(var, interval)
    for symbols in element_counts(func):
        ranges.bind_product(symbols, LARGEST_INT64_SIZE)
    return ranges, Bounds(ranges, fixed_data(func))


class StatementFacts(StmtMutator):
    """A mutator that knows what holds at each statement, and so in all of its expressions."""

    def __init__(self, ranges: Ranges, bounds: Bounds) -> None:
        self.ranges, self.bounds = ranges, bounds

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        """The buffer as it is: passes that rewrite sizes do so by themselves."""
        return buffer

    def visit_For(self, loop: s.For) -> s.Stmt:
        """The loop with its body rewritten, in which its variable has an interval."""
        if self.ranges.of(loop.extent)[1] <= 0:
            return loop
        self.ranges.bind(loop.loop_var, loop_range(self.ranges, loop))
        scope = self.scope() if is_single(loop) else self.branch()
        with scope, self.ranges.positive_factors(loop.extent):
            self.bounds.enter_loop(loop.loop_var, loop.min, loop.extent)
            return loop.with_(body=self.visit(loop.body))

    def visit_Allocate(self, stmt: s.Allocate) -> s.Stmt:
        """The allocation with its body rewritten; extents are left as they are."""
        return stmt.with_(body=self.visit(stmt.body))

    def visit_LetStmt(self, stmt: s.LetStmt) -> s.Stmt:
        """The definition, in whose body the variable is known to be its value."""
        value = self.visit(stmt.value)
        with self.scope():
            self.define(stmt.var, stmt.value)
            return stmt.with_(value=value, body=self.visit(stmt.body))

    def visit_IfThenElse(self, stmt: s.IfThenElse) -> s.Stmt:
        """The statement; in its branches it is known whether the condition holds."""
        condition = self.visit(stmt.condition)
        with self.branch(), self.ranges.where(stmt.condition):
            self.bounds.assume(stmt.condition)
            then_case = self.visit(stmt.then_case)
        with self.branch(), self.ranges.where(stmt.condition, False):
            self.bounds.assume(stmt.condition, False)
            else_case = self.visit(stmt.else_case)
        return stmt.with_(condition=condition, then_case=then_case, else_case=else_case)

    def visit_While(self, stmt: s.While) -> s.Stmt:
        """The loop; in its body the condition is known to hold."""
        condition = self.visit(stmt.condition)
        with self.branch():
            self.bounds.assume(stmt.condition)
            return stmt.with_(condition=condition, body=self.visit(stmt.body))

    def visit_AssertStmt(self, stmt: s.AssertStmt) -> s.Stmt:
        """The assertion; in its body the condition is known to hold."""
        condition = self.visit(stmt.condition)
        with self.scope():
            self.bounds.assume(stmt.condition)
            return stmt.with_(condition=condition, body=self.visit(stmt.body))

    def visit_Evaluate(self, stmt: s.Evaluate) -> s.Stmt:
        """The statement; what a ``T.assume`` promises is known from here on."""
        value = self.visit(stmt.value)
        if is_call(stmt.value, "assume"):
            self.bounds.assume(stmt.value.args[0], promised=True)
        return stmt.with_(value=value)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A part of the program; what is noted inside is forgotten at its end."""
        mark = self.bounds.mark()
        try:
            yield
        finally:
            self.bounds.rewind(mark)

    def branch(self) -> AbstractContextManager[None]:
        """A scope whose code runs on a condition, or several times."""
        return self.scope()

    def define(self, var: e.Var, value: PrimExpr) -> None:
        """Note that an integer variable has that value from here on."""
        if var.dtype.is_integral and var.dtype.lanes == 1:
            self.ranges.define(var, value)
            self.bounds.define(var, value)


class FactMutator(StatementFacts):
    """A mutator that also knows what holds inside an expression: in an arm, its condition."""

    def __init__(self, ranges: Ranges, bounds: Bounds) -> None:
        super().__init__(ranges, bounds)
        self.masks: list[tuple[PrimExpr, int]] = []
        self._context: tuple[object, ...] = ()
        self._kept: list[object] = []

    def visit_Let(self, let: e.Let) -> PrimExpr:
        """The Let, in whose body the variable is known to be its value."""
        value = self.visit(let.value)
        self.define(let.var, let.value)
        return let.with_(value=value, body=self.visit(let.body))

    def visit_Select(self, select: e.Select) -> PrimExpr:
        """The Select; each arm is wanted where the condition chooses it."""
        condition = self.visit(select.condition)
        yes = self.arm(select.condition, condition, True, select.true_value)
        no = self.arm(select.condition, condition, False, select.false_value)
        return select.with_(condition=condition, true_value=yes, false_value=no)

    def visit_And(self, expr: e.And) -> PrimExpr:
        """``a and b``; the right side is wanted where the left one holds."""
        left = self.visit(expr.a)
        return expr.with_(a=left, b=self.arm(expr.a, left, True, expr.b))

    def visit_Or(self, expr: e.Or) -> PrimExpr:
        """``a or b``; the right side is wanted where the left one does not hold."""
        left = self.visit(expr.a)
        return expr.with_(a=left, b=self.arm(expr.a, left, False, expr.b))

    def visit_Call(self, call: e.Call) -> PrimExpr:
        """Any call; the arms of ``T.if_then_else`` are wanted where its condition chooses them."""
        if not is_call(call, "if_then_else"):
            return self.visit_default(call)
        given = call.args[0]
        condition = self.visit(given)
        yes = self.arm(given, condition, True, call.args[1])
        no = self.arm(given, condition, False, call.args[2])
        args = (condition, yes, no)
        if all(new is old for new, old in zip(args, call.args, strict=True)):
            return call
        return call.with_(args=args)

    def visit_Shuffle(self, shuffle: e.Shuffle) -> PrimExpr:
        """The Shuffle; a lane of its operands is wanted if it is picked for a wanted one."""
        outer = self.mask(len(shuffle.indices))
        if outer is None or not all(isinstance(index, IntImm) for index in shuffle.indices):
            return self.visit_default(shuffle)
        vectors, first = [], 0
        for vector in shuffle.vectors:
            places = range(first, first + vector.dtype.lanes)
            with self.masked(picked_mask(outer, shuffle.indices, places), vector.dtype.lanes):
                vectors.append(self.visit(vector))
            first += vector.dtype.lanes
        if all(new is old for new, old in zip(vectors, shuffle.vectors, strict=True)):
            return shuffle
        return shuffle.with_(vectors=vectors)

    def arm(self, given: PrimExpr, condition: PrimExpr, holds: bool, value: PrimExpr) -> PrimExpr:
        """The rewritten arm ``value`` of a choice, which is taken where the condition ``holds``.

        ``given`` is the condition as it was, ``condition`` what it was rewritten to.
        """
        if given.dtype.lanes == 1:
            with self.branch(), self._within((id(given), holds)):
                self.bounds.assume(given, holds)
                return self.visit(value)
        flag = condition if holds else e.Not(condition)
        before = self.mask(given.dtype.lanes)
        if before is not None:
            flag = e.And(flag, before)
        with self.masked(flag, given.dtype.lanes):
            return self.visit(value)

    # Masks.

    @contextmanager
    def masked(self, flag: PrimExpr, lanes: int) -> Iterator[None]:
        """A part in which vectors of ``lanes`` lanes are wanted where ``flag`` is true."""
        self.masks.append((flag, lanes))
        self._kept.append(flag)
        with self._within(id(flag)):
            yield
        self.masks.pop()

    @contextmanager
    def _within(self, what: object) -> Iterator[None]:
        outer, self._context = self._context, (*self._context, what)
        with self.apart(self._context):
            yield
        self._context = outer

    def mask(self, lanes: int) -> PrimExpr | None:
        """The mask of the wanted lanes of a vector with so many lanes; None where all are."""
        flag, known = self.masks[-1] if self.masks else (None, 0)
        return flag if known == lanes else None

    def wanted(self, lanes: int) -> PrimExpr | None:
        """As ``mask``; but a scalar is wanted where any lane of the vector around it is."""
        if lanes != 1 or not self.masks or self.masks[-1][1] == 1:
            return self.mask(lanes)
        flag, width = self.masks[-1]
        counts = e.Cast(f"int32x{width}", flag)
        return e.NE(e.Call("int32", "tir.reduce_lanes", [counts]), IntImm("int32", 0))


def is_single(loop: s.For) -> bool:
    """Whether a loop has one iteration."""
    return is_const_int(loop.extent, 1)


def loop_range(ranges: Ranges, loop: s.For) -> Interval:
    """The least and the largest value of a loop's variable."""
    known = loop.annotations.get(RANGE)
    if known is not None:
        return known[0].value, known[1].value
    low, size = ranges.of(loop.min), ranges.of(loop.extent)
    return low[0], max(low[0], low[1] + size[1] - 1)


def picked_mask(mask: PrimExpr, order: Sequence[PrimExpr], places: Sequence[int]) -> PrimExpr:
    """The mask of the lanes ``places`` of a Shuffle's operands that are wanted.

    ``order`` are the constant indices of the Shuffle, ``mask`` the wanted lanes of its result.

    >>> from weft.tir import Var
    >>> order = [IntImm("int32", 1), IntImm("int32", 0)]
    >>> picked_mask(Var("m", "boolx2"), order, [0])
    T.Shuffle([m], [1])
    """
    lanes: list[PrimExpr] = []
    for place in places:
        picks = [at for at, index in enumerate(order) if expect(index, IntImm).value == place]
        flags: list[PrimExpr] = [e.Shuffle([mask], [IntImm("int32", at)]) for at in picks]
        wanted: PrimExpr = flags[0] if flags else IntImm("bool", 0)
        for flag in flags[1:]:
            wanted = e.Or(wanted, flag)
        lanes.append(wanted)
    if len(lanes) == 1:
        return lanes[0]
    return e.Shuffle(lanes, [IntImm("int32", at) for at in range(len(lanes))])
