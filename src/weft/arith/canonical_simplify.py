"""The canonical simplifier: linear arithmetic on sums of splits (see ``linear_form``).

It flattens sums, merges equal terms, and takes constants through ``//`` and ``%``:
``(i*8 + j) // 8`` becomes ``i`` where j lies in [0, 8), and ``x//4*4 + x%4`` becomes ``x``.
What is not linear goes to the rewrite rules, its operands in canonical form. Follows TVM's
CanonicalSimplifier, with floor semantics proved case by case.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any, Final

from weft.arith import fold
from weft.arith.const_int_bound import BoundAnalyzer, clamp
from weft.arith.data import has_data
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.facts import Facts, is_index
from weft.arith.linear_form import Form, Split, Sum
from weft.arith.rewrite_simplify import RewriteSimplifier
from weft.ir.expr import IntImm, PrimExpr, integer_range
from weft.ir.node import Node
from weft.tir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    BinaryExpr,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Mod,
    Mul,
    Sub,
    Var,
)


def _normal(value: Form) -> PrimExpr:
    return value.build() if type(value) is Split or type(value) is Sum else value


def as_sum(value: Form) -> Sum:
    """The form of an expression, Split or Sum as a Sum."""
    if type(value) is Sum:
        return value
    if type(value) is Split:
        return Sum(value.index.dtype, (value,)) if value.scale else Sum(value.index.dtype)
    if type(value) is IntImm:
        return Sum(value.dtype, (), value.value)
    return Sum(value.dtype, (Split(value),))


def _as_split(value: Form) -> Split:
    if type(value) is Split:
        return value
    if type(value) is Sum:
        if value.base == 0 and len(value.splits) == 1:
            return value.splits[0]
        value = value.build()
    return Split(value)


class CanonicalSimplifier:
    """Simplifies under the facts of an Analyzer; ``simplify`` is the entry."""

    def __init__(self, facts: Facts, bounds: BoundAnalyzer, rewriter: RewriteSimplifier) -> None:
        self.facts = facts
        self.bounds = bounds
        self.rewriter = rewriter

    def simplify(self, expr: PrimExpr) -> PrimExpr:
        """The canonical form; ``expr`` itself where it already is."""
        form = self.mutate(expr)
        if type(form) is not Split and type(form) is not Sum:
            return expr if expr_deep_equal(form, expr) else form
        result = form.build()
        if expr_deep_equal(result, expr):
            result = expr
        self.note(result, form)
        return result

    def note(self, expr: PrimExpr, form: Split | Sum) -> None:
        """Remember the form of an expression; no rewrite rule changes a sum of scaled variables.

        If ``x`` was joined from ``x // 8 * 8 + x % 8``, that sum is not remembered as its form,
        since its terms are computed from the form of ``x`` themselves.
        """
        splits = form.splits if isinstance(form, Sum) else (form,)
        is_part = any(split.index is expr for split in splits)
        if is_part and (len(splits) > 1 or splits[0].lower != 1 or splits[0].upper is not None):
            return
        self.facts.canonical_memo[id(expr)] = expr, form
        for split in splits:
            if type(split.index) is not Var or split.lower != 1 or split.upper is not None:
                return
        if type(expr) is not IntImm:
            self.facts.rewrite_memo[id(expr)] = expr, expr

    def mutate(self, expr: PrimExpr) -> Form:
        """The form as an expression, a Split or a Sum."""
        kind = type(expr)
        if kind is IntImm:
            return expr
        memoised = self.facts.canonical_memo.get(id(expr))
        if memoised is not None:
            return memoised[1]
        handler = _HANDLERS.get(kind)
        node: Any = expr  # a Cast, or an operator with operands
        if handler is not None and is_index(expr.dtype if kind is Cast else node.a.dtype):
            result = handler(self, expr)
        else:
            result = self.other(expr)
        self.facts.canonical_memo[id(expr)] = expr, result
        return result

    def other(self, expr: PrimExpr) -> Form:
        """The form of an expression that is not linear: its operands in canonical form, and then
        one round of rewrite rules.
        """
        if isinstance(expr, Var):
            return self.rewriter.visit(expr)
        rebuilt = self.rewriter.rebuild(expr, self.simplify)
        if type(rebuilt) in _LINEAR and type(expr) not in _LINEAR:
            return self.mutate(rebuilt)
        return self.applied(rebuilt)

    def applied(self, expr: PrimExpr) -> Form:
        """The form of an expression with canonical operands after one round of rewrite rules."""
        result = self.rewriter.apply(expr, self.simplify)
        if result is expr or type(result) not in _LINEAR:
            return result
        return self.mutate(result)

    def visit_add(self, expr: Add) -> Form:
        return self.total(expr, 1)

    def visit_sub(self, expr: Sub) -> Form:
        return self.total(expr, -1)

    def total(self, expr: Add | Sub, sign: int) -> Form:
        """a + sign * b as one sum; a long sum of data stays a single term.

        Flattening it would make each of many steps ``x = f(x) + x`` contain the terms of all steps
        before it.
        """
        a, b = as_sum(self.mutate(expr.a)), as_sum(self.mutate(expr.b))
        if len(a.splits) + len(b.splits) > _MAX_TERMS and has_data(expr):
            return self.rebuilt(expr, a.build(), b.build())
        return a.plus(b, sign)

    def visit_mul(self, expr: Mul) -> Form:
        a, b = self.mutate(expr.a), self.mutate(expr.b)
        if type(a) is Sum and not a.splits:
            a = a.build()
        if type(b) is Sum and not b.splits:
            b = b.build()
        if type(a) is IntImm:
            a, b = b, a
        if type(b) is IntImm:
            if type(a) is IntImm:
                return fold.mul(a, b)
            if b.value == 0:
                return b
            if type(a) is not Sum:  # a single term keeps its factor: x * -1 does not become 0 - x
                split = _as_split(a)
                return split.scaled(split.scale * b.value)
            return a.times(b.value)
        return self.rebuilt(expr, _normal(a), _normal(b))

    def rebuilt(self, expr: BinaryExpr, a: PrimExpr, b: PrimExpr) -> Form:
        """The form of ``expr`` with new operands, after the rewrite rules; constants fold."""
        if type(a) is IntImm and type(b) is IntImm:
            return self.applied(fold.BUILDERS[type(expr)](a, b))
        if a is not expr.a or b is not expr.b:
            if expr_deep_equal(a, expr.a) and expr_deep_equal(b, expr.b):
                return self.applied(expr)
            return self.applied(fold.BUILDERS[type(expr)](a, b))
        return self.applied(expr)

    def visit_floordiv(self, expr: FloorDiv) -> Form:
        a, by = self.mutate(expr.a), self.divisor(expr.b)
        if by is None or self.bounds.may_wrap(expr.a):
            return self.rebuilt(expr, _normal(a), self.simplify(expr.b))
        if type(a) is IntImm:
            return fold.const(expr.dtype, a.value // by)
        if by == 1:
            return a
        if type(a) is not Sum:
            low, high = self.bounds.bound(_normal(a))
            if low // by == high // by:
                return fold.const(expr.dtype, low // by)
            return self.divide(_as_split(a), by, floor=True)
        return self.quotient(a, by)

    def quotient(self, total: Sum, by: int) -> Sum:
        """``total // by``, term by term as far as that is exact."""
        inside, outside = total.separate(by)
        quotient = inside.divided(by)
        if not outside.splits:
            return quotient.plus(Sum(total.dtype, (), outside.base // by))
        low, high = self.sum_bound(outside)
        if low // by == high // by:  # the quotient of the rest is a constant
            return quotient.plus(Sum(total.dtype, (), low // by))
        factor, coarse, _ = self.coarse_part(outside, by)
        if factor > 1:
            return quotient.plus(self.quotient(coarse, by // factor))
        return quotient.plus(as_sum(self.divide(_as_split(outside), by, floor=True)))

    def coarse_part(self, total: Sum, by: int) -> tuple[int, Sum, Sum]:
        """``(factor, coarse, fine)``: ``total`` is ``coarse * factor + fine``, the factor divides
        ``by``, and 0 <= fine < factor. So only the coarse part decides about ``total // by``.

        ``x*96 + y*16 + z`` and 64, with z in [0, 16), give ``(16, x*6 + y, z)``. The factor is 1
        where there is no such part of several terms; one term is left to ``divide``.
        """
        factor = by
        for split in sorted(total.splits, key=lambda item: -abs(item.scale)):
            factor = gcd(factor, split.scale)
            if factor == 1:
                break
            coarse, fine = total.separate(factor)
            if len(coarse.splits) > 1 and self.sum_within(fine, factor):
                return factor, coarse.divided(factor), fine
        return 1, total, Sum(total.dtype)

    def visit_floormod(self, expr: FloorMod) -> Form:
        a, by = self.mutate(expr.a), self.divisor(expr.b)
        if by is None or self.bounds.may_wrap(expr.a):
            return self.rebuilt(expr, _normal(a), self.simplify(expr.b))
        if type(a) is IntImm:
            return fold.const(expr.dtype, a.value % by)
        if by == 1:
            return fold.const(expr.dtype, 0)
        if type(a) is Sum:
            _, outside = a.separate(by)
            if not outside.splits:
                return fold.const(expr.dtype, outside.base % by)
            if self.sum_within(outside, by):
                return outside
            a = Sum(outside.dtype, outside.splits, outside.base % by)
            if a.base != outside.base and self.sum_within(a, by):
                return a
            factor, coarse, fine = self.coarse_part(a, by)
            if factor > 1:
                rest = self.remainder(_as_split(coarse), by // factor, floor=True)
                return as_sum(rest).times(factor).plus(fine)
        elif self.within(_normal(a), by):
            return a
        return self.remainder(_as_split(a), by, floor=True)

    def visit_truncdiv(self, expr: Div) -> Form:
        a, by = self.mutate(expr.a), self.divisor(expr.b)
        if by is None or self.bounds.may_wrap(expr.a):
            return self.rebuilt(expr, _normal(a), self.simplify(expr.b))
        if by == 1:
            return a
        value = _normal(a)
        if self.bounds.bound(value)[0] >= 0:
            return self.mutate(fold.floordiv(value, expr.b))
        if type(a) is Sum and a.separate(by)[1] == Sum(a.dtype):
            return a.divided(by)
        return self.rebuilt(expr, value, self.simplify(expr.b))

    def visit_truncmod(self, expr: Mod) -> Form:
        a, by = self.mutate(expr.a), self.divisor(expr.b)
        if by is None or self.bounds.may_wrap(expr.a):
            return self.rebuilt(expr, _normal(a), self.simplify(expr.b))
        value = _normal(a)
        if self.bounds.bound(value)[0] >= 0:
            return self.mutate(fold.floormod(value, expr.b))
        if type(a) is Sum and a.separate(by)[1] == Sum(a.dtype):
            return fold.const(expr.dtype, 0)
        return self.rebuilt(expr, value, self.simplify(expr.b))

    def divisor(self, expr: PrimExpr) -> int | None:
        """The divisor if it is a positive constant."""
        value = _normal(self.mutate(expr))
        return value.value if type(value) is IntImm and value.value > 0 else None

    def within(self, expr: PrimExpr, limit: int) -> bool:
        """Whether 0 <= expr < limit."""
        low, high = self.bounds.bound(expr)
        return 0 <= low and high < limit

    def sum_within(self, total: Sum, limit: int) -> bool:
        """Whether 0 <= total < limit."""
        low, high = self.sum_bound(total)
        return 0 <= low and high < limit

    def sum_bound(self, total: Sum) -> tuple[int, int]:
        """The bound of ``total.build()``, without building it where that makes no difference."""
        splits = total.merged()
        low = high = total.base
        for split in splits:
            if self.facts.expr_bounds or has_data(split.index):
                return self.bounds.bound(total.build())
            plain = split.lower == 1 and split.upper is None
            bottom, top = self.bounds.bound(split.index if plain else split.unit())
            if split.scale < 0:
                bottom, top = top, bottom
            low += bottom * split.scale
            high += top * split.scale
        return clamp(low, high)

    def divide(self, split: Split, by: int, floor: bool) -> Form:
        """``split // by`` as one split."""
        if not (split.floor is floor or split.is_plain):
            split = Split(split.build())
        scale, lower, upper = split.scale, split.lower, split.upper
        if scale % by == 0:
            return split.scaled(scale // by)
        if scale > 0 and by % scale == 0:
            lower *= by // scale
            if upper is None or upper % lower == 0:
                return self.plain(Split(split.index, lower, upper, 1, floor))
            if upper <= lower:
                return fold.const(split.index.dtype, 0)
            modulo = fold.floormod if floor else fold.truncmod
            index = modulo(split.index, fold.const(split.index.dtype, upper))
            return Split(index, lower, None, 1, floor)
        return Split(split.build(), by, None, 1, floor)

    def plain(self, split: Split) -> Form:
        """The split without a remainder that changes nothing; 0 if its bounds say so."""
        low, high = self.bounds.bound(split.index)
        if low >= 0:
            if high < split.lower:
                return fold.const(split.index.dtype, 0)
            if split.upper is not None and high < split.upper:
                return Split(split.index, split.lower, None, split.scale, split.floor)
        return split

    def remainder(self, split: Split, by: int, floor: bool) -> Form:
        """``split % by`` as one split."""
        if not (split.floor is floor or split.is_plain):
            split = Split(split.build())
        scale, lower, upper = split.scale, split.lower, split.upper
        if scale % by == 0:
            return fold.const(split.index.dtype, 0)
        if scale > 0 and by % scale == 0:
            new_upper = lower * (by // scale)
            if upper is None:
                index = self.reduced(split.index, new_upper) if floor else split.index
                return self.plain(Split(index, lower, new_upper, scale, floor))
            if upper % new_upper == 0:
                # With the smaller remainder the index itself may become simpler.
                modulo = fold.floormod if floor else fold.truncmod
                inner = self.mutate(modulo(split.index, fold.const(split.index.dtype, new_upper)))
                if lower != 1:
                    inner = self.divide(_as_split(inner), lower, floor)
                return as_sum(inner).times(scale)
            if new_upper % upper == 0:
                return split
        return Split(split.build(), 1, by, 1, floor)

    def reduced(self, index: PrimExpr, upper: int) -> PrimExpr:
        """The index without multiples of ``upper``, which keeps ``index % upper``.

        ``x * 8 + y + 5`` and 4 give ``y + 1``.
        """
        total = as_sum(self.mutate(index))
        if not total.splits or self.bounds.may_wrap(index):
            return index
        _, rest = total.separate(upper)
        splits = rest.splits or total.splits
        if 0 <= total.base < upper and len(splits) == len(total.splits):
            return index
        smaller = Sum(total.dtype, splits, total.base % upper).build()
        return index if self.bounds.may_wrap(smaller) else smaller

    def visit_less(self, expr: LT) -> Form:
        """``x*8 + y < 16`` becomes ``x < 2`` where y lies in [0, 8)."""
        if self.bounds.may_wrap(expr.a) or self.bounds.may_wrap(expr.b):
            return self.other(expr)
        difference = as_sum(self.mutate(expr.a)).plus(as_sum(self.mutate(expr.b)), -1)
        if not difference.splits:
            return fold.truth(difference.base < 0)
        smaller = self.without_factor(difference)
        while smaller is not difference:
            difference, smaller = smaller, self.without_factor(smaller)
        return self.compare_with_zero(difference, expr)

    def without_factor(self, difference: Sum) -> Sum:
        """``difference < 0`` divided by the common factor of most terms, if the rest of the terms
        is smaller than that factor.
        """
        factor = abs(difference.base)
        wide = False
        for split in difference.splits:
            if abs(split.scale) > 1:
                wide = True
                factor = gcd(factor, split.scale)
        if not wide or factor <= 1:
            return difference
        inside, outside = difference.separate(factor)
        if outside.splits and not self.sum_within(outside, factor):
            return difference
        return inside.divided(factor)

    def visit_greater(self, expr: GT) -> Form:
        return self.mutate(LT(expr.b, expr.a))

    def visit_less_equal(self, expr: LE | GE) -> Form:
        """``a <= b``, simplified as ``not (b < a)``."""
        a, b = (expr.a, expr.b) if type(expr) is LE else (expr.b, expr.a)
        opposite = self.mutate(LT(b, a))
        if type(opposite) is not LT:
            return self.simplify(fold.not_(_normal(opposite)))
        same = opposite.a is b and opposite.b is a and type(expr) is LE
        comparison = expr if same else LE(opposite.b, opposite.a)
        result = self.rewriter.literal(comparison)
        if result is comparison and id(opposite) in self.facts.settled:
            self.facts.settled[id(comparison)] = comparison  # the rules for ``b < a`` were applied
        return result

    def compare_with_zero(self, total: Sum, expr: LT) -> Form:
        """``total < 0`` with positive terms moved to the left and negative ones to the right."""
        base = total.base
        left = tuple(split for split in total.splits if split.scale > 0)
        right = tuple(split.scaled(-split.scale) for split in total.splits if split.scale < 0)
        to_left = bool(right) and (base > 0 or not left)
        lhs = Sum(total.dtype, left, base if to_left else 0).build()
        rhs = Sum(total.dtype, right, 0 if to_left else -base).build()
        low, high = integer_range(total.dtype)
        if not (low <= base <= high and low <= -base <= high):
            return self.other(expr)
        if self.bounds.may_wrap(lhs) or self.bounds.may_wrap(rhs):
            return self.rewriter.apply(expr, self.simplify)
        if expr_deep_equal(lhs, expr.a) and expr_deep_equal(rhs, expr.b):
            return self.rewriter.apply(expr, self.simplify)
        if len(left) > 1:
            self.note(lhs, Sum(total.dtype, left, base if to_left else 0))
        if len(right) > 1:
            self.note(rhs, Sum(total.dtype, right, 0 if to_left else -base))
        return self.rewriter.apply(fold.lt(lhs, rhs), self.simplify)

    def visit_cast(self, expr: Cast) -> Form:
        """A widening cast goes into a sum that does not overflow its own type."""
        value = expr.value
        if not (is_index(value.dtype) and expr.dtype.bits >= value.dtype.bits):
            return self.other(expr)
        inner = self.mutate(value)
        if expr.dtype is value.dtype:
            return inner
        if type(inner) is not Sum or not _fits(self.bounds, inner):
            return self.other(expr)
        splits = tuple(
            Split(Cast(expr.dtype, split.index), split.lower, split.upper, split.scale, split.floor)
            for split in inner.splits
        )
        return Sum(expr.dtype, splits, inner.base)


def _fits(bounds: BoundAnalyzer, total: Sum) -> bool:
    """Whether the bounds of a sum show that it does not overflow; false for data that wraps."""
    whole = total.build()
    if bounds.may_wrap(whole):
        return False
    low, high = bounds.bound(whole)
    type_low, type_high = integer_range(total.dtype)
    return type_low <= low and high <= type_high


_MAX_TERMS: Final = 8
_LINEAR: Final = frozenset({Add, Sub, Mul, FloorDiv, FloorMod})
_HANDLERS: Final[dict[type[Node], Callable[[CanonicalSimplifier, Any], Form]]] = {
    Add: CanonicalSimplifier.visit_add,
    Sub: CanonicalSimplifier.visit_sub,
    Mul: CanonicalSimplifier.visit_mul,
    FloorDiv: CanonicalSimplifier.visit_floordiv,
    FloorMod: CanonicalSimplifier.visit_floormod,
    Div: CanonicalSimplifier.visit_truncdiv,
    Mod: CanonicalSimplifier.visit_truncmod,
    LT: CanonicalSimplifier.visit_less,
    GT: CanonicalSimplifier.visit_greater,
    LE: CanonicalSimplifier.visit_less_equal,
    GE: CanonicalSimplifier.visit_less_equal,
    Cast: CanonicalSimplifier.visit_cast,
}
