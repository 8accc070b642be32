"""The rewrite simplifier: bottom up, the rules of ``rule_tables`` at every node.

Comparisons that bounds, remainders or known differences decide are decided before any rule. A rule
does not apply to arithmetic on data that may wrap (``BoundAnalyzer.may_wrap``), nor if a constant
of its result would not fit the type.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Protocol, TypeVar

from weft.arith import choices, fold
from weft.arith.call_rules import call_rule
from weft.arith.const_int_bound import NEG_INF, POS_INF, Bound, BoundAnalyzer
from weft.arith.data import has_data
from weft.arith.deep_equal import BINARY, contains_deep_equal, expr_deep_equal
from weft.arith.extensions import Extension, product_and_sum_range
from weft.arith.facts import Facts, is_index
from weft.arith.fold import BUILDERS, ConstantOverflow
from weft.arith.rule import Matcher, Simplifier, shape_of
from weft.arith.rule_tables import compiled_rules
from weft.arith.vector_rules import vector_rule
from weft.ir.expr import FloatImm, IntImm, PrimExpr, StringImm, integer_range
from weft.ir.functor import contains
from weft.ir.node import Array
from weft.support.dtype import DataType
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    BinaryExpr,
    Call,
    Cast,
    Let,
    Max,
    Min,
    Not,
    Or,
    Reduce,
    Select,
    SizeVar,
    Sub,
    Var,
    is_call,
)

_DEPTH: Final = 12
_LEAVES: Final = frozenset({IntImm, FloatImm, StringImm, Var, SizeVar})
_SWAPPED: Final = {GT: LT, GE: LE}
_VARIABLES: Final = frozenset({Var, SizeVar})
_ORDERED: Final = frozenset({EQ, NE, LT, LE, GT, GE, Min, Max})
_CONSTANT_RIGHT: Final = frozenset({EQ, NE, Min, Max})
Visit = Callable[[PrimExpr], PrimExpr]
Build = Callable[[PrimExpr, PrimExpr], PrimExpr]
E = TypeVar("E", bound=PrimExpr)
_matchers: Final[dict[tuple[Any, ...], tuple[tuple[str, Matcher], ...]]] = {}


def _find_matchers(key: tuple[Any, ...]) -> tuple[tuple[str, Matcher], ...]:
    """The matchers that may match operands of these shapes, in the order of the rows."""
    root, *shapes = key
    matchers = []
    for compiled in compiled_rules().get(root, ()):
        if compiled.fits(shapes):
            matchers.append((compiled.rule.name, compiled.function))
    result = _matchers[key] = tuple(matchers)
    return result


class Differences(Protocol):
    """What the rewrite simplifier asks about differences."""

    busy: int
    """How many such questions are being answered right now, one inside of the other."""

    def range(self, a: PrimExpr, b: PrimExpr) -> tuple[int, int]:
        """Inclusive bounds of ``a - b``."""

    def never_zero(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether the remainders of both expressions show that they differ."""


@dataclass(slots=True)
class RewriteSimplifierStats:
    """Counts of what the rewrite simplifier has done; the names are TVM's."""

    nodes_visited: int = 0
    constraints_entered: int = 0
    rewrites_attempted: int = 0
    rewrites_performed: int = 0
    max_recursive_depth: int = 0
    num_recursive_rewrites: int = 0


class RewriteSimplifier(Simplifier):
    """Simplifies under the facts of an Analyzer; ``visit`` is the entry.

    ``hits`` counts, by rule name, how often each rule applied; ``enter`` opens a scope in which a
    condition holds (the Analyzer provides it).
    """

    def __init__(self, facts: Facts, bounds: BoundAnalyzer) -> None:
        self.facts = facts
        self.bounds = bounds
        self.differences: Differences
        self.enter: Callable[[PrimExpr], AbstractContextManager[None]]
        self.depth = 0
        self.hits: dict[str, int] = {}
        self.stats = RewriteSimplifierStats()
        self.enable(Extension.NoExtensions)

    def enable(self, extensions: Extension) -> None:
        """Choose the extensions: what is done beyond the rules that always apply."""
        self.extensions = extensions
        self.joined_branches = bool(extensions & Extension.ApplyConstraintsToBooleanBranches)
        self.compares_products = bool(extensions & Extension.ComparisonOfProductAndSum)

    def range_of(self, expr: PrimExpr) -> tuple[int, int]:
        if type(expr) is Sub and is_index(expr.dtype):
            return self.differences.range(expr.a, expr.b)
        return self.bounds.bound(expr)

    def divides(self, expr: PrimExpr, factor: int) -> bool:
        return self.bounds.modular.divides(expr, factor)

    def visit(self, expr: PrimExpr) -> PrimExpr:
        """The simplified expression; ``expr`` itself where nothing applies."""
        kind = type(expr)
        if kind in _VARIABLES and isinstance(expr, Var):
            self.facts.seen.add(expr)
            return self.facts.values.get(expr, expr)
        if kind in _LEAVES:
            return expr
        memoised = self.facts.rewrite_memo.get(id(expr))
        if memoised is not None:
            return memoised[1]
        self.stats.nodes_visited += 1
        result = self.apply(self.rebuild(expr, self.visit))
        self.facts.rewrite_memo[id(expr)] = expr, result
        return result

    def rebuild(self, expr: PrimExpr, visit: Visit) -> PrimExpr:
        """``expr`` with visited operands; constants fold."""
        rebuild = _REBUILD.get(type(expr))
        return self.rebuild_children(expr, visit) if rebuild is None else rebuild(self, expr, visit)

    def rebuild_binary(self, expr: BinaryExpr, visit: Visit) -> PrimExpr:
        a, b = visit(expr.a), visit(expr.b)
        if a is expr.a and b is expr.b and not (type(a) is IntImm and type(b) is IntImm):
            return expr
        if not a.dtype.is_integral:
            return expr.with_(a=a, b=b)
        return self.fitting(BUILDERS[type(expr)], expr, a, b)

    def rebuild_logical(self, expr: And | Or, visit: Visit) -> PrimExpr:
        """Rebuild ``and`` and ``or`` with their operands nested on the left."""
        nested = _left_nested(expr) if type(expr.b) is type(expr) else expr
        if type(nested.a) is IntImm or type(nested.b) is IntImm:
            return visit(BUILDERS[type(nested)](nested.a, nested.b))
        if self.joined_branches:
            return self.rebuild_branches(nested, visit)
        return self.rebuild_binary(nested, visit)

    def rebuild_not(self, expr: Not, visit: Visit) -> PrimExpr:
        operand = visit(expr.a)
        return expr if operand is expr.a and type(operand) is not IntImm else fold.not_(operand)

    def rebuild_branches(self, expr: And | Or, visit: Visit) -> PrimExpr:
        """Rebuild ``and`` and ``or``; each branch is simplified where the other does not decide."""
        is_and = type(expr) is And
        a, b = expr.a, expr.b
        with choices.scope(self.enter, b if is_and else fold.not_(b), expr):
            a = visit(a)
        with choices.scope(self.enter, a if is_and else fold.not_(a), expr):
            b = visit(b)
        if a is expr.a and b is expr.b:
            return expr
        return fold.and_(a, b) if is_and else fold.or_(a, b)

    def fitting(self, build: Build, expr: BinaryExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        try:
            return build(a, b)
        except ConstantOverflow:
            return expr.with_(a=a, b=b)

    def rebuild_children(self, expr: E, visit: Visit) -> E:
        changes: dict[str, Any] = {}
        for name in expr.CHILDREN:
            old = getattr(expr, name)
            if isinstance(old, tuple):
                items = []
                for item in old:
                    items.append(visit(item) if isinstance(item, PrimExpr) else item)
                if any(new is not item for new, item in zip(items, old, strict=True)):
                    changes[name] = Array(items)
            elif isinstance(old, PrimExpr) and not (isinstance(expr, Let) and name == "var"):
                new = visit(old)
                if new is not old:
                    changes[name] = new
        if isinstance(expr, Reduce):
            changes.pop("axis", None)
        return expr.with_(**changes) if changes else expr

    def rebuild_select(self, expr: Select, visit: Visit) -> PrimExpr:
        condition = visit(expr.condition)
        if type(condition) is IntImm:
            return visit(expr.true_value if condition.value else expr.false_value)
        values = expr.true_value, expr.false_value
        true_value, false_value = choices.arms(self.enter, condition, expr, values, visit)
        return expr.with_(condition=condition, true_value=true_value, false_value=false_value)

    def rebuild_call(self, expr: Call, visit: Visit) -> PrimExpr:
        name = getattr(expr.op, "name", "")
        if name != "tir.if_then_else":
            rebuilt = self.rebuild_children(expr, visit)
            if name == "tir.likely" and type(rebuilt.args[0]) is IntImm:
                return rebuilt.args[0]
            result = call_rule(rebuilt, name, self)
            return rebuilt if result is None else result
        condition = visit(expr.args[0])
        if type(condition) is IntImm:
            return visit(expr.args[1] if condition.value else expr.args[2])
        plain = _without_likely(condition)
        true_value, false_value = choices.arms(self.enter, plain, expr, expr.args[1:], visit)
        if expr_deep_equal(true_value, false_value):
            return true_value
        parts = (condition, true_value, false_value)
        if all(new is old for new, old in zip(parts, expr.args, strict=True)):
            return expr
        return expr.with_(args=Array(parts))

    def apply(self, expr: PrimExpr, visit: Visit | None = None) -> PrimExpr:
        """One round of rules on a node whose operands are simplified.

        The result of a rule is simplified by ``visit`` (by default, this simplifier's).
        """
        kind = type(expr)
        if kind in _LEAVES or id(expr) in self.facts.settled:
            return expr
        visit = visit or self.visit
        if expr.dtype.lanes != 1 or expr.dtype.is_scalable:
            vector = vector_rule(expr, self)
            return expr if vector is None else visit(vector)
        if kind in _ORDERED:
            result = self.apply_ordered(expr, visit)
        elif type(expr) is Cast:
            return _cast(expr)
        else:
            rewritten = self.first_rule(expr, visit)
            if rewritten is not None:
                result = rewritten
            else:
                result = self.literal(expr) if expr.dtype.is_bool else expr
        if result is expr and self.depth <= _DEPTH and not self.differences.busy:
            self.facts.settled[id(expr)] = expr
        return result

    def apply_ordered(self, expr: Any, visit: Visit) -> PrimExpr:
        """Simplify a comparison, minimum or maximum by the difference of its sides, or by rules."""
        kind: type[PrimExpr] = type(expr)
        a: PrimExpr = expr.a
        b: PrimExpr = expr.b
        ordered: PrimExpr = expr
        if kind in _SWAPPED:
            kind, a, b = _SWAPPED[kind], b, a
            ordered = BUILDERS[kind](a, b)
        elif kind in _CONSTANT_RIGHT and type(a) is IntImm and type(b) is not IntImm:
            a, b = b, a
            ordered = kind(a, b)
        if type(ordered) is IntImm:
            return ordered
        if not is_index(a.dtype) or self.bounds.may_wrap(a) or self.bounds.may_wrap(b):
            return self.apply_to_wrapping(kind, a, b, ordered)
        decided = self.decide(kind, a, b)
        if decided is not None:
            return decided
        if kind is LE:  # the rules are written for b < a
            opposite = self.first_rule(fold.lt(b, a), visit)
            return self.literal(ordered) if opposite is None else visit(fold.not_(opposite))
        rewritten = self.first_rule(ordered, visit)
        if rewritten is not None:
            return rewritten
        return ordered if kind in (Min, Max) else self.literal(ordered)

    def apply_to_wrapping(
        self, kind: type[PrimExpr], a: PrimExpr, b: PrimExpr, ordered: PrimExpr
    ) -> PrimExpr:
        """As ``apply_ordered``, of sides that may wrap: only the bounds of each side decide.

        Those are the bounds of the type wherever a result may leave it. No rule applies, since
        ``a < b`` says nothing of the sign of ``a - b`` here.
        """
        if a.dtype.is_integral:
            distance = _distance(self.bounds.bound(a), self.bounds.bound(b))
            if expr_deep_equal(a, b) and not contains(a, Call):  # a call may have another result
                distance = 0, 0
            decided = _decided(kind, a, b, distance)
            if decided is not None:
                return decided
        return ordered if kind in (Min, Max) else self.literal(ordered)

    def decide(self, kind: type, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
        """The result, if the bounds or remainders of ``a - b`` determine it; else None."""
        low, high = self.differences.range(a, b)
        if self.compares_products and low <= 0 <= high:
            low, high = product_and_sum_range(a, b, self.bounds.bound)
        decided = _decided(kind, a, b, (low, high))
        if decided is None and kind in (EQ, NE) and self.differences.never_zero(a, b):
            return fold.truth(kind is NE)
        return decided

    def first_rule(self, expr: Any, visit: Visit) -> PrimExpr | None:
        """The simplified result of the first rule that matches, or None."""
        kind = type(expr)
        if kind in BINARY:
            key: tuple[Any, ...] = (kind, shape_of(expr.a), shape_of(expr.b))
        elif kind is Not:
            key = (kind, shape_of(expr.a))
        elif kind is Select:
            key = (kind, type(expr.condition), type(expr.true_value), type(expr.false_value))
        else:
            return None
        matchers = _matchers.get(key)
        if matchers is None:
            matchers = _find_matchers(key)
        if not matchers or self.depth > _DEPTH:
            return None
        data = has_data(expr)
        if data and self.bounds.may_wrap(expr):
            return None
        stats = self.stats
        for position, (name, matcher) in enumerate(matchers):
            try:
                result = matcher(expr, self)
            except ConstantOverflow:
                continue
            if result is None or (data and self.bounds.may_wrap(result)):
                continue
            self.hits[name] = self.hits.get(name, 0) + 1
            stats.rewrites_attempted += position + 1
            stats.rewrites_performed += 1
            self.depth += 1
            stats.num_recursive_rewrites += 1
            stats.max_recursive_depth = max(stats.max_recursive_depth, self.depth)
            result = visit(result)
            self.depth -= 1
            return result
        stats.rewrites_attempted += len(matchers)
        return None

    def literal(self, expr: PrimExpr) -> PrimExpr:
        """``expr``; a constant if it, or its negation, is a known condition."""
        if not self.facts.literals:
            return expr
        for known in self.facts.literals:
            if expr_deep_equal(known, expr):
                return fold.TRUE
        negations = (_negation(expr), Not(expr)) if type(expr) in (And, Or) else (_negation(expr),)
        for negated in negations:
            for known in self.facts.literals:
                if expr_deep_equal(known, negated):
                    return fold.FALSE
        return self.narrowed(expr) if type(expr) is LE or type(expr) is NE else expr

    def narrowed(self, expr: LE | NE) -> PrimExpr:
        """A comparison made stronger by a known one: ``a <= b`` is ``a == b`` if ``b <= a``."""
        a, b = expr.a, expr.b
        if type(expr) is NE:
            for low, high in ((a, b), (b, a)):
                if self._is_known(LE(low, high)):
                    return LT(low, high)
            return expr
        if self._is_known(LE(b, a)):
            return EQ(a, b)
        if self._is_known(NE(a, b)) or self._is_known(NE(b, a)):
            return LT(a, b)
        return expr

    def _is_known(self, expr: PrimExpr) -> bool:
        return contains_deep_equal(self.facts.literals, expr)


def _negation(expr: Any) -> PrimExpr:
    kind = type(expr)
    if kind is And:
        return Or(_negation(expr.a), _negation(expr.b))
    if kind is Or:
        return And(_negation(expr.a), _negation(expr.b))
    if kind is LT:
        return LE(expr.b, expr.a)
    if kind is LE:
        return LT(expr.b, expr.a)
    if kind is EQ:
        return NE(expr.a, expr.b)
    if kind is NE:
        return EQ(expr.a, expr.b)
    return expr.a if kind is Not else Not(expr)


def _left_nested(expr: And | Or) -> And | Or:
    """``p and (q and r)`` as ``(p and q) and r``; the same for ``or``."""
    kind = type(expr)
    waiting: list[PrimExpr] = [expr]
    parts: list[PrimExpr] = []
    while waiting:
        part = waiting.pop()
        if type(part) is kind:
            waiting += [part.b, part.a]
        else:
            parts.append(part)
    result = kind(parts[0], parts[1])
    for part in parts[2:]:
        result = kind(result, part)
    return result


def _distance(a: Bound, b: Bound) -> Bound:
    """Bounds of ``a - b``, computed without wrapping; infinite where an end of them is."""
    low = NEG_INF if a[0] <= NEG_INF or b[1] >= POS_INF else a[0] - b[1]
    return low, POS_INF if a[1] >= POS_INF or b[0] <= NEG_INF else a[1] - b[0]


def _decided(kind: type, a: PrimExpr, b: PrimExpr, distance: Bound) -> PrimExpr | None:
    """The comparison, minimum or maximum of sides that are so far apart; None where it is open."""
    low, high = distance
    if kind is LT:
        return _known(high < 0, low >= 0)
    if kind is LE:
        return _known(high <= 0, low > 0)
    if kind is Min or kind is Max:
        smaller = a if high <= 0 else b if low >= 0 else None
        if smaller is None or kind is Min:
            return smaller
        return b if smaller is a else a
    never, always = high < 0 or low > 0, low == high == 0
    return _known(always, never) if kind is EQ else _known(never, always)


def _known(yes: bool, no: bool) -> IntImm | None:
    return fold.TRUE if yes else fold.FALSE if no else None


def _without_likely(expr: PrimExpr) -> PrimExpr:
    if is_call(expr, "likely"):
        return expr.args[0]
    return expr


def _cast(expr: Cast) -> PrimExpr:
    """Simplify a cast of a constant, to the same type, or of a cast that only widens."""
    value, dtype = expr.value, expr.dtype
    if value.dtype is dtype:
        return value
    if type(value) is IntImm and dtype.is_integral and dtype.lanes == 1:
        if dtype.is_bool:
            return fold.truth(value.value != 0)
        low, high = integer_range(dtype)
        return fold.const(dtype, (value.value - low) % (high - low + 1) + low)
    if type(value) is IntImm and dtype.is_float and dtype.lanes == 1:
        exact = 1 << (53 if dtype.bits >= 32 else 8)  # rounded once, as the program would
        return FloatImm(dtype, value.value) if abs(value.value) <= exact else expr
    if type(value) is FloatImm and dtype.is_int and dtype.lanes == 1 and isfinite(value.value):
        low, high = integer_range(dtype)
        return fold.const(dtype, int(value.value)) if low <= value.value <= high else expr
    if type(value) is Cast and _contains(value.dtype, value.value.dtype):
        return _cast(Cast(dtype, value.value))
    return expr


def _contains(wide: DataType, narrow: DataType) -> bool:
    """Whether the integer type ``wide`` has every value of ``narrow``."""
    if not (wide.is_integral and narrow.is_integral):
        return False
    wide_low, wide_high = integer_range(wide.element)
    low, high = integer_range(narrow.element)
    return wide_low <= low and high <= wide_high


_REBUILD: Final[dict[type[PrimExpr], Callable[[RewriteSimplifier, Any, Visit], PrimExpr]]] = {
    **dict.fromkeys(BINARY, RewriteSimplifier.rebuild_binary),
    And: RewriteSimplifier.rebuild_logical,
    Or: RewriteSimplifier.rebuild_logical,
    Not: RewriteSimplifier.rebuild_not,
    Select: RewriteSimplifier.rebuild_select,
    Call: RewriteSimplifier.rebuild_call,
}
"""Class -> how its operands are rebuilt; other classes by ``rebuild_children``."""
