"""LoopPartition: cut a loop at the values of its variable where a condition in it changes.

``for i, j in T.grid(15, 7): if i*7 + j < 100: S`` becomes ``for i, j in T.grid(14, 7): S`` and
``for j in range(2): S``, without any condition. As in TVM, the conditions considered are those in
``T.likely``, and in loops with ``pragma_loop_partition_hint`` every comparison. Loops with constant
bounds are cut only with a hint or with the option ``partition_const_loop``.

The lowering pipeline runs ``partition_guarded``, which shares this code with other rules:

- Every branch and every ``T.if_then_else`` is considered.
- A parallel loop is not cut; its body becomes a branch on the loop variable. So does that of a tile
  which begins where a let says (ShiftTiles).
- A loop is left alone if its hint is 0, or if VectorizeLoop will mask its lanes.
- The growth of the code is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.data import may_change
from weft.arith.int_set import IntervalSet, neg_inf, pos_inf
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.ir.transform import PassContext
from weft.support.errors import PassError
from weft.tir import op
from weft.tir.constant import is_const_int
from weft.tir.expr import EQ, GE, GT, LE, LT, Call, Min, Select, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
)
from weft.tir.stmt_functor import redefined
from weft.tir.transform.condition_range import are_large, is_empty, meet
from weft.tir.transform.decided_condition import DecidedConditions
from weft.tir.transform.lower_opaque_block import pragma_loop
from weft.tir.transform.partition_conditions import (
    ConditionFinder,
    ConditionRange,
    Settings,
    is_single_branch,
    span_of,
)
from weft.tir.transform.prim_func_pass import (
    StmtMutator,
    define_pass,
    rewrite_body,
)
from weft.tir.transform.simplify import simplify
from weft.tir.transform.vectorize_loop import has_masked_form

HINT: Final = "pragma_loop_partition_hint"
OPTIONS: Final = (
    "partition_const_loop", "no_unroll_loop_with_extent_one",
    "unroll_loop_with_partition_hint_no_interval",
)  # fmt: skip
GROWTH: Final = 96
"""Stores that ``partition_guarded`` may add to a function by copying loop bodies."""
BOUND_NODES: Final = 24
"""``partition_guarded`` makes no cut whose two bounds together have more nodes than this."""


class _Decide(DecidedConditions):
    """Replaces the given conditions, compared by identity, by ``value``."""

    def __init__(self, conditions: list[PrimExpr], value: bool) -> None:
        super().__init__(value)
        self.chosen = {id(condition) for condition in conditions}

    def is_decided(self, expr: PrimExpr) -> bool:
        return id(expr) in self.chosen


@dataclass
class _Cut:
    """How a loop over [low, high) is cut: into [low, begin), [begin, end) and [end, high).

    In the middle part, ``conditions`` have the value ``value``. ``before`` and ``after`` say
    whether the first and the last part exist; ``again_before`` and ``again_after``, whether those
    are partitioned again.
    """

    begin: PrimExpr
    end: PrimExpr
    conditions: list[PrimExpr]
    value: bool
    before: bool
    after: bool
    again_before: bool = True
    again_after: bool = True
    opposite_before: list[PrimExpr] = field(default_factory=list)
    """Conditions that have the other value in all of the first part."""
    opposite_after: list[PrimExpr] = field(default_factory=list)
    """Conditions that have the other value in all of the last part."""

    def gives_vectors(self, loop: For) -> bool:
        """Whether a loop, which a condition for each lane would make scalar, becomes vectors."""
        bounds = (loop.min, self.begin, self.end)
        return loop.kind is ForKind.VECTORIZED and all(isinstance(x, IntImm) for x in bounds)


class _Partition(StmtMutator):
    """Cuts loops; ``hinted`` and ``whole`` hold the variables of loops whose hint is 1 and 0."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.analyzer = Analyzer()
        self.hinted: set[int] = set()
        self.whole: set[int] = set()
        self.around: list[For] = []
        """The loops around the statement, the innermost last."""
        self.growth = GROWTH

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == HINT:
            var = pragma_loop(attr)
            if getattr(attr.value, "value", 0):
                self.hinted.add(id(var))
            else:
                self.whole.add(id(var))
            return self.visit(attr.body)
        if attr.attr_key == "thread_extent":
            self.analyzer.bind(attr.node.var, Range.from_min_extent(0, attr.value), True)
        return self.visit_default(attr)

    def visit_While(self, stmt: While) -> Stmt:
        return stmt.with_(body=self.visit(stmt.body))

    def visit_For(self, loop: For) -> Stmt:
        loop = self.unhinted(loop)
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        if self.is_candidate(loop):
            done = self.partitioned(loop)
            if done is not None:
                return done
        self.around.append(loop)
        body = self.visit(loop.body)
        self.around.pop()
        return loop.with_(body=body)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        """A tile that begins where a let says gets a branch: does it lie inside with all it reads?

        ``for v in range(8): if 1 <= b + v: S`` becomes ``if 1 <= b: for v in range(8): S`` and
        else what it was, for ``b = T.min(i * 8, w - 8)`` in a loop over ``i``. So do the rows that
        loops around stand for, but not windows of rows, which other loops move.
        """
        if not self.settings.guarded or not self.begins_tile(let):
            return self.visit_default(let)
        body, tests = let.body, []
        for var in (let.var, *[loop.loop_var for loop in reversed(self.around)]):
            finder = ConditionFinder(var, self.settings, False, self.analyzer)
            finder.visit(body)
            everywhere = IntervalSet(neg_inf(), pos_inf())
            inside, conditions = self.agreed(finder.found, everywhere, True, False)
            if inside is None or are_large([inside.min_value, inside.max_value], BOUND_NODES):
                continue
            tests += bounds_of(var, inside)
            body = _Decide(conditions, True).visit(body)
        self.growth -= len(collect(let.body, (BufferStore, Evaluate))) if tests else 0
        if not tests or self.growth < 0:
            return self.visit_default(let)
        outside = self.visit(redefined(let.body))
        return let.with_(body=IfThenElse(op.all(*tests), self.visit(body), outside))

    def begins_tile(self, let: LetStmt) -> bool:
        """Whether a variable is where the tiles of the loop around begin, the first one at 0.

        The last one may begin earlier, so that it ends where the axis does (ShiftTiles).
        """
        if not self.around or not isinstance(let.value, Min):
            return False
        first = {self.around[-1].loop_var: self.around[-1].min}
        sides = let.value.a, let.value.b
        return any(is_const_int(self.analyzer.simplify(substitute(s, first)), 0) for s in sides)

    def unhinted(self, loop: For) -> For:
        """The loop without its hint; its variable is added to ``hinted`` or ``whole``."""
        if HINT not in loop.annotations:
            return loop
        if getattr(loop.annotations[HINT], "value", loop.annotations[HINT]):
            self.hinted.add(id(loop.loop_var))
        else:
            self.whole.add(id(loop.loop_var))
        rest = {key: value for key, value in loop.annotations.items() if key != HINT}
        return loop.with_(annotations=type(loop.annotations)(rest))

    def is_candidate(self, loop: For) -> bool:
        """Whether the hints and settings allow this loop to be cut."""
        if id(loop.loop_var) in self.hinted:
            return True
        if loop.kind is ForKind.THREAD_BINDING and not self.settings.guarded:
            return False
        if self.settings.guarded:
            if loop.kind is ForKind.VECTORIZED and has_masked_form(loop, self.analyzer):
                return False
            return loop.kind is not ForKind.UNROLLED and id(loop.loop_var) not in self.whole
        constant = isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm)
        if constant and not self.settings.constant:
            return False
        return not [c for c in collect(loop.body, Call) if is_call(c, "tvm_thread_allreduce")]

    def partitioned(self, loop: For) -> Stmt | None:
        """The statement that replaces the loop, or None if no cut is found or it is too large."""
        if may_change(loop.min) or may_change(loop.extent):
            return None  # the first part might store to what the bounds of the next ones read
        hinted = id(loop.loop_var) in self.hinted
        finder = ConditionFinder(loop.loop_var, self.settings, hinted, self.analyzer)
        finder.points = is_single_branch(loop.body)
        finder.visit(loop.body)
        cut = self.cut(loop, finder.found, hinted)
        if cut is None:
            if finder.seen and hinted and self.settings.unroll_hinted:
                return loop.with_(kind=ForKind.UNROLLED, body=self.visit(loop.body))
            return None
        if self.settings.guarded:
            copies = int(cut.before) + int(cut.after)
            self.growth -= copies * len(collect(loop.body, (BufferStore, Evaluate)))
            if self.growth < 0 and not cut.gives_vectors(loop):
                return None
        if loop.kind in (ForKind.PARALLEL, ForKind.THREAD_BINDING):
            return self.branched(loop, cut)
        return self.split(loop, cut)

    # Where to cut

    def cut(self, loop: For, tests: list[ConditionRange], hinted: bool) -> _Cut | None:
        """A cut whose middle part has conditions true, else one that has them false, else None."""
        whole = span_of(loop.min, loop.extent)
        for value in (True, False):
            middle, conditions = self.agreed(tests, whole, value, hinted)
            if middle is not None:
                cut = self.within(loop, middle, conditions, value)
                if cut is not None:
                    self.decide_outside(cut, tests, middle)
                return cut
        return None

    def decide_outside(self, cut: _Cut, tests: list[ConditionRange], middle: IntervalSet) -> None:
        """Add the conditions that have the other value in the first and last part to the cut.

        For the first part it suffices that the other value holds from minus infinity up to the
        middle, because the part is within the loop's range anyway; likewise for the last.
        """
        prove = self.analyzer.can_prove
        for item in tests:
            other = item.false if cut.value else item.true
            if other is None:
                continue
            unit = fold.const(cut.begin.dtype, 1)
            if middle.min_value is not neg_inf() and other.min_value is neg_inf():
                last = fold.sub(middle.min_value, unit)
                if other.max_value is pos_inf() or prove(LE(last, other.max_value)):
                    cut.opposite_before.append(item.condition)
            if middle.max_value is not pos_inf() and other.max_value is pos_inf():
                first = fold.add(middle.max_value, unit)
                if other.min_value is neg_inf() or prove(GE(first, other.min_value)):
                    cut.opposite_after.append(item.condition)

    def agreed(
        self, tests: list[ConditionRange], whole: IntervalSet, value: bool, hinted: bool
    ) -> tuple[IntervalSet | None, list[PrimExpr]]:
        """An interval in which conditions have ``value``, and the list of those conditions.

        If there is no interval for all of them, a hinted or guarded loop gets one for as many as
        are compatible, taken in order; else the interval is None.
        """
        known = [(item.condition, item.true if value else item.false) for item in tests]
        usable = [
            (condition, where)
            for condition, where in known
            if where is not None
            and not is_empty(meet([where, whole], self.analyzer), self.analyzer)
        ]
        if not usable:
            return None, []
        middle = meet([where for _, where in usable], self.analyzer)
        if not is_empty(meet([middle, whole], self.analyzer), self.analyzer):
            return middle, [condition for condition, _ in usable]
        if not (hinted or self.settings.guarded):
            return None, []
        middle, conditions = usable[0][1], [usable[0][0]]
        for condition, where in usable[1:]:
            both = meet([middle, where, whole], self.analyzer)
            if not is_empty(both, self.analyzer):
                middle = meet([middle, where], self.analyzer)
                conditions.append(condition)
        return middle, conditions

    def within(
        self, loop: For, middle: IntervalSet, conditions: list[PrimExpr], value: bool
    ) -> _Cut | None:
        """The cut of the loop's range by an interval.

        None if the middle would be empty, if the parts might overlap, or, with ``guarded``, if the
        bounds are large expressions.
        """
        prove, simple = self.analyzer.can_prove, self.analyzer.simplify
        begin = low = loop.min
        stop = end = simple(fold.add(loop.min, loop.extent))
        unit = fold.const(low.dtype, 1)
        cut = _Cut(begin, end, conditions, value, False, False)
        if middle.min_value is not neg_inf():
            begin = simple(middle.min_value)
            size = simple(fold.sub(begin, low))
            if not prove(GT(size, fold.const(low.dtype, 0))):
                begin = simple(fold.max_(begin, low))
                cut.again_before = False
            if not prove(LE(begin, stop)):  # the middle may lie behind the loop's range
                begin = simple(fold.min_(begin, stop))
                if not prove(GE(begin, low)):  # stop is less than low if the extent is negative
                    begin = simple(fold.max_(begin, low))
            cut.before = not prove(LE(size, fold.const(low.dtype, 0)))
        if middle.max_value is not pos_inf():
            end = simple(fold.add(middle.max_value, unit))
            size = simple(fold.sub(stop, end))
            if not prove(GT(size, fold.const(low.dtype, 0))):
                end = simple(fold.min_(end, stop))
                cut.again_after = False
            if not prove(GE(end, low)):  # the middle may lie before the loop's range
                end = simple(fold.max_(end, low))
            cut.after = not prove(LE(size, fold.const(low.dtype, 0)))
        cut.begin, cut.end = begin if cut.before else low, end if cut.after else stop
        if cut.before and cut.after and not prove(LE(cut.begin, cut.end)):
            return None  # the parts might overlap
        if self.settings.guarded and are_large([cut.begin, cut.end], BOUND_NODES):
            return None  # computing such bounds would cost more than testing the condition
        return None if prove(GE(cut.begin, cut.end)) else cut

    # The parts

    def split(self, loop: For, cut: _Cut) -> Stmt:
        """Up to three loops in a row; each is partitioned again for the conditions left in it."""
        parts: list[Stmt] = []
        low, stop = loop.min, fold.add(loop.min, loop.extent)
        if cut.before:
            outside = _Decide(cut.opposite_before, not cut.value).visit(loop.body)
            part = self.part(loop, low, cut.begin, outside, True)
            parts.append(self.visit(part) if cut.again_before else part)
        body = _Decide(cut.conditions, cut.value).visit(loop.body)
        fresh = bool(parts)
        part = self.part(loop, cut.begin, cut.end, body, fresh)
        parts.append(self.visit(part))
        if cut.after:
            outside = _Decide(cut.opposite_after, not cut.value).visit(loop.body)
            part = self.part(loop, cut.end, stop, outside, True)
            parts.append(self.visit(part) if cut.again_after else part)
        return seq(*parts)

    def part(self, loop: For, low: PrimExpr, end: PrimExpr, body: Stmt, copied: bool) -> Stmt:
        """The loop over [low, end), with a variable that counts from 0.

        ``copied`` says that the body also occurs in another part: it gets new variables. A part
        of one iteration becomes the body itself unless ``keep_unit`` is set.
        """
        extent = self.analyzer.simplify(fold.sub(end, low))
        if copied:
            body = redefined(body)
        var = Var(loop.loop_var.name, loop.loop_var.type_annotation) if copied else loop.loop_var
        if id(loop.loop_var) in self.hinted:
            self.hinted.add(id(var))
        begin = self.analyzer.simplify(low)
        zero = fold.const(var.dtype, 0)
        if self.is_unit(extent) and not self.settings.keep_unit and not loop.annotations:
            return substitute(body, {loop.loop_var: begin})
        value = var if getattr(begin, "value", None) == 0 else op.add(var, begin)
        if value is not loop.loop_var:
            body = substitute(body, {loop.loop_var: value})
        return For(var, zero, extent, loop.kind, body, loop.thread_binding, loop.annotations)

    def branched(self, loop: For, cut: _Cut) -> Stmt:
        """The loop over its whole range, with a branch in it: the middle, and the rest."""
        conditions: list[PrimExpr] = []
        if cut.before:
            conditions.append(GE(loop.loop_var, cut.begin))
        if cut.after:
            conditions.append(LT(loop.loop_var, cut.end))
        inside: Stmt = self.visit(_Decide(cut.conditions, cut.value).visit(loop.body))
        if not conditions:
            return loop.with_(body=inside)
        test = conditions[0] if len(conditions) == 1 else op.all(*conditions)
        outside = redefined(loop.body)
        last = fold.sub(fold.add(loop.min, loop.extent), cut.end)
        if cut.after and not cut.before and self.is_unit(last):
            outside = substitute(outside, {loop.loop_var: cut.end})
        with self.analyzer.constraint_scope(op.logical_not(test)):
            outside = self.visit(outside)
        return loop.with_(body=IfThenElse(test, inside, outside))

    def is_unit(self, extent: PrimExpr) -> bool:
        return self.analyzer.can_prove(EQ(extent, fold.const(extent.dtype, 1)))


def bounds_of(var: Var, inside: IntervalSet) -> list[PrimExpr]:
    """The tests that a variable lies in an interval."""
    low, high = inside.min_value, inside.max_value
    at_least = [] if low is neg_inf() else [GE(var, low)]
    return [*at_least, *([] if high is pos_inf() else [LE(var, high)])]


class _Forget(StmtMutator):
    """Replaces ``T.likely(x)`` and ``T.ignore_loop_partition(x)`` by ``x``."""

    def visit_Call(self, call: Call) -> PrimExpr:
        if is_call(call, "likely", "ignore_loop_partition"):
            return self.visit(call.args[0])
        return self.visit_default(call)


def _has_conditions(func: PrimFunc) -> bool:
    candidates = collect(func.body, (IfThenElse, Select, Call))
    return any(not isinstance(item, Call) or is_call(item, "if_then_else") for item in candidates)


def partition_guarded(func: PrimFunc) -> PrimFunc:
    """The function with its loops cut at the values where a branch in them starts or ends."""
    if not _has_conditions(func):
        return func
    plain = rewrite_body(func, _Forget())
    done = rewrite_body(plain, _Partition(Settings(constant=True, guarded=True)))
    return simplify(done) if done is not plain else func


def loop_partition(func: PrimFunc) -> PrimFunc:
    """The function with its loops cut at the conditions in ``T.likely``.

    Loops with a hint are cut at all comparisons.
    """
    given = PassContext.current().config.get("tir.LoopPartition", {})
    unknown = sorted(set(given) - set(OPTIONS))
    if unknown:
        raise PassError(
            f"tir.LoopPartition: there is no option {unknown[0]!r}; there are: {', '.join(OPTIONS)}"
        )
    settings = Settings(*[bool(given.get(name, False)) for name in OPTIONS])
    return rewrite_body(rewrite_body(func, _Partition(settings)), _Forget())


LoopPartition = define_pass("LoopPartition", loop_partition)


PartitionGuardedLoops = define_pass("PartitionGuardedLoops", partition_guarded)
