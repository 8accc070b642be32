"""For LoopPartition: the conditions in a loop that hold for a known range of its variable."""

from __future__ import annotations

from dataclasses import dataclass

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjuncts
from weft.arith.data import may_change
from weft.arith.int_set import IntervalSet, neg_inf, pos_inf
from weft.arith.linear import detect_linear_equation
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.tir.expr import EQ, NE, OPPOSITE, And, Call, CompareExpr, Let, Var, is_call
from weft.tir.stmt import AttrStmt, For, ForKind, IfThenElse, LetStmt, Stmt
from weft.tir.transform.condition_range import comparisons, is_plain, surely


@dataclass(frozen=True)
class Settings:
    """The options of LoopPartition, in the order of ``loop_partition.OPTIONS``, and ``guarded``."""

    constant: bool = False
    """Loops with constant bounds are cut, too."""
    keep_unit: bool = False
    """A part with one iteration stays a loop."""
    unroll_hinted: bool = False
    """A hinted loop is unrolled if no cut is found."""
    guarded: bool = False
    """Set by ``partition_guarded``: every branch is considered, not only those in ``T.likely``;
    the growth of the code is bounded; parallel loops get a branch in their body and no cut."""


@dataclass
class ConditionRange:
    """A comparison and the values of the loop variable for which it is certainly true and false.

    None stands for unknown. For ``i * 7 + j < 100`` with ``j`` in [0, 7): ``true`` ends at
    ``i`` = 13 and ``false`` begins at ``i`` = 15.
    """

    condition: PrimExpr
    true: IntervalSet | None
    false: IntervalSet | None


class ConditionFinder(Visitor):
    """Collects the conditions in the body of ``var``'s loop whose range of ``var`` is known.

    A condition counts as true for a value of ``var`` if it holds for all iterations of inner loops.
    """

    def __init__(self, var: Var, settings: Settings, hinted: bool, analyzer: Analyzer) -> None:
        self.var, self.settings, self.hinted = var, settings, hinted
        self.analyzer = analyzer
        self.inner: dict[Var, IntervalSet] = {}
        self.local: set[int] = set()
        self.around: dict[Var, For] = {}
        """Those of the inner loops that run other loops."""
        self.found: list[ConditionRange] = []
        self.seen = False
        self.points = False
        """Whether ``==`` and ``!=`` are considered, too. Set where the body is a single branch."""

    def visit_For(self, loop: For) -> None:
        if may_change(loop.min) or may_change(loop.extent):
            return
        mentioned = collect([loop.min, loop.extent], Var)
        if any(var is self.var or var in self.inner for var in mentioned):
            return
        if is_around_loops(loop):
            self.around[loop.loop_var] = loop
        is_local = any(id(var) in self.local for var in mentioned)
        everything = IntervalSet(neg_inf(), pos_inf())
        self.inner[loop.loop_var] = everything if is_local else span_of(loop.min, loop.extent)
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        self.visit(loop.body)
        del self.inner[loop.loop_var]

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        if attr.attr_key in ("thread_extent", "virtual_thread"):
            zero = fold.const(attr.value.dtype, 0)
            self.inner[attr.node.var] = span_of(zero, attr.value)
        self.visit(attr.body)

    def visit_Let(self, let: Let | LetStmt) -> None:
        self.local.add(id(let.var))
        self.visit_default(let)

    visit_LetStmt = visit_Let

    def visit_Call(self, call: Call) -> None:
        if is_call(call, "ignore_loop_partition"):
            return
        if is_call(call, "likely"):
            self.consider(call.args[0])
        elif self.settings.guarded and is_call(call, "if_then_else"):
            self.consider(call.args[0])
            self.visit(call.args[1:])
        else:
            self.visit_default(call)

    def visit_IfThenElse(self, stmt: IfThenElse) -> None:
        if self.settings.guarded:
            self.consider(stmt.condition)
        else:
            self.visit(stmt.condition)
        self.visit(stmt.then_case)
        self.visit(stmt.else_case)

    def visit_CompareExpr(self, expr: CompareExpr) -> None:
        if self.hinted:
            self.consider(expr)
        else:
            self.visit_default(expr)

    def consider(self, condition: PrimExpr) -> None:
        """Add each comparison of a condition to ``found`` with the ranges where it is known."""
        parts = [part for part in comparisons(condition) if not self.decided(part)]
        if self.settings.guarded and isinstance(condition, And) and self.never(condition):
            return  # the simplifier removes the whole branch
        for part in parts:
            if any(id(var) in self.local for var in collect(part, Var)):
                continue
            if self.settings.guarded and type(part) in (EQ, NE) and not self.points:
                continue
            if self.settings.guarded and self.is_for_inner_loop(part):
                continue
            self.seen = True
            true = self.where(part)
            opposite = OPPOSITE.get(type(part))
            false = None if opposite is None else self.where(opposite(part.a, part.b))
            if true is not None or false is not None:
                self.found.append(ConditionRange(part, true, false))

    def decided(self, part: PrimExpr) -> bool:
        """Whether a comparison has one value for the whole loop: then no cut makes it simpler."""
        return self.settings.guarded and isinstance(self.analyzer.simplify(part), IntImm)

    def is_for_inner_loop(self, part: PrimExpr) -> bool:
        """Whether a comparison is about a window that one inner loop moves: ``2 <= var + step``.

        A cut of that loop decides it in all parts, while several iterations of the outer loop would
        be undecided. The inner loop runs other loops, so bounds that depend on ``var`` cost little.
        """
        inner = {var for var in collect(part, Var) if var in self.inner}
        if len(inner) != 1 or not inner <= set(self.around) or not isinstance(part, CompareExpr):
            return False
        [loop] = [self.around[var] for var in inner]
        factors = detect_linear_equation(part.a - part.b, [self.var, loop.loop_var])
        known = [item.value for item in (*factors[:2], loop.extent) if isinstance(item, IntImm)]
        return len(known) == 3 and abs(known[0]) < abs(known[1]) * known[2]

    def never(self, condition: And) -> bool:
        """Whether a part of a conjunction is proved false."""
        for part in conjuncts(condition):
            if is_plain(part) and getattr(self.analyzer.simplify(part), "value", 1) == 0:
                return True
        return False

    def where(self, condition: PrimExpr) -> IntervalSet | None:
        """The values of the loop variable for which the condition certainly holds, or None."""
        return surely(condition, self.var, self.inner, self.analyzer)


def is_around_loops(loop: For) -> bool:
    """Whether a loop runs other loops of several iterations: its own bounds may cost something."""
    inner = [item for item in collect(loop.body, For) if item.kind is ForKind.SERIAL]
    sizes = [item.extent.value if isinstance(item.extent, IntImm) else 2 for item in inner]
    return loop.kind is ForKind.SERIAL and max(sizes, default=1) > 1


def is_single_branch(stmt: Stmt) -> bool:
    """Whether a statement is one ``if`` without ``else``, directly or inside of loops."""
    while isinstance(stmt, (For, AttrStmt)):
        stmt = stmt.body
    return isinstance(stmt, IfThenElse) and stmt.else_case is None


def span_of(low: PrimExpr, extent: PrimExpr) -> IntervalSet:
    """The interval [low, low + extent - 1]."""
    last = fold.sub(fold.add(low, extent), fold.const(low.dtype, 1))
    return IntervalSet(low, last)
