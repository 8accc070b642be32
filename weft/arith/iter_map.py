"""Iteration maps: when indices are a one-to-one (quasi-affine) function of loops.

``detect_iter_map([i*4 + j], {i: [0, 8), j: [0, 4)})`` shows that the index runs once through
[0, 32). Every index becomes an ``IterSumExpr`` of ``IterSplitExpr``s, each a digit
``source // lower_factor % extent * scale`` of an ``IterMark``. Schedules ask it whether a block's
bindings are affine, and regions use it for exact bounds. Follows TVM's IterAffineMap; fused digits
are found by their scales, so terms may stand in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr
from weft.ir.functor import collect
from weft.ir.node import Array, Node, field, node
from weft.support.errors import IRTypeError
from weft.support.recursion import deep_recursion
from weft.tir.expr import LE, LT, Add, And, Call, FloorDiv, FloorMod, Mul, Sub, Var


class IterMapLevel(IntEnum):
    """How strict ``detect_iter_map`` is; the numbers are TVM's."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name: str | None) -> IterMapLevel:
        """The level of that name, in any case; None is ``NoCheck``."""
        names = {level.name.lower(): level for level in IterMapLevel}
        found = names.get((name or "nocheck").lower())
        if found is None:
            raise IRTypeError(f"expected one of {', '.join(sorted(names))}, got {name!r}")
        return found


def _level(level: IterMapLevel | str | int | None) -> IterMapLevel:
    if level is None or isinstance(level, str):
        return IterMapLevel.from_str(level)
    return IterMapLevel(level)


@node
class IterMark(Node):
    """A source (a loop variable, or a fused ``IterSumExpr``) that runs over [0, extent)."""

    source: PrimExpr
    extent: PrimExpr


class IterMapExpr(PrimExpr):
    """The base of expressions over marks."""


@node
class IterSplitExpr(IterMapExpr):
    """``source // lower_factor % extent * scale``."""

    source: IterMark
    lower_factor: PrimExpr
    extent: PrimExpr
    scale: PrimExpr

    def _check_(self) -> None:
        self.dtype = self.source.source.dtype


@node
class IterSumExpr(IterMapExpr):
    """The sum of splits and a base."""

    args: Array[IterSplitExpr]
    base: PrimExpr

    def _check_(self) -> None:
        self.dtype = self.base.dtype


@node
class IterMapResult(Node):
    """``indices`` (empty where the map is not one), and why not in ``errors``."""

    indices: Array[IterSumExpr]
    errors: Array[Any] = field(default=())
    padding_predicate: PrimExpr = field(default=fold.FALSE)


class _NotAffine(ArithmeticError):
    """The indices are no iteration map; the message says why."""


@dataclass(frozen=True, slots=True)
class _Digit:
    """A split of a mark, with its scale."""

    mark: IterMark
    lower: Any
    extent: Any
    scale: Any


_Linear = tuple[tuple[_Digit, ...], Any]


class _Rewriter:
    """Turns index expressions into sums of digits."""

    def __init__(self, iters: Mapping[Var, Range], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.marks = {var: IterMark(var, dom.extent) for var, dom in iters.items()}
        self.iters = iters
        self.fused: list[tuple[tuple[_Digit, ...], IterMark]] = []

    def same(self, a: Any, b: Any) -> bool:
        return self.analyzer.can_prove_equal(a, b)

    def rewrite(self, expr: Any) -> _Linear:
        """Digits and base of an expression; raises _NotAffine."""
        kind = type(expr)
        if isinstance(expr, Var) and expr in self.marks:
            mark = self.marks[expr]
            one = fold.const(expr.dtype, 1)
            return (_Digit(mark, one, mark.extent, one),), self.iters[expr].min
        if not any(var in self.marks for var in collect(expr, Var)):
            return (), expr
        if kind is Add or kind is Sub:
            return self.added(self.rewrite(expr.a), self.rewrite(expr.b), kind is Sub)
        if kind is Mul:
            return self.multiplied(expr)
        if kind is FloorDiv or kind is FloorMod:
            digits, base = self.rewrite(expr.a)
            if not digits or type(expr.b) is not IntImm or expr.b.value <= 0:
                raise _NotAffine(f"the divisor of {expr} is not a positive constant")
            return self.divided(digits, base, expr.b.value, kind is FloorDiv)
        raise _NotAffine(f"{expr} is not linear in the loops")

    def added(self, a: _Linear, b: _Linear, negate: bool) -> _Linear:
        build = fold.sub if negate else fold.add
        digits = list(a[0])
        for new in b[0]:
            scale = fold.sub(fold.const(new.scale.dtype, 0), new.scale) if negate else new.scale
            for position, old in enumerate(digits):
                if old.mark is new.mark and self.same_digit(old, new):
                    joined = self.analyzer.simplify(fold.add(old.scale, scale))
                    digits[position] = _Digit(old.mark, old.lower, old.extent, joined)
                    break
            else:
                digits.append(_Digit(new.mark, new.lower, new.extent, scale))
        kept = tuple(d for d in digits if not (type(d.scale) is IntImm and d.scale.value == 0))
        return kept, self.analyzer.simplify(build(a[1], b[1]))

    def same_digit(self, a: _Digit, b: _Digit) -> bool:
        return self.same(a.lower, b.lower) and self.same(a.extent, b.extent)

    def multiplied(self, expr: Any) -> _Linear:
        (digits, base), (others, factor) = self.rewrite(expr.a), self.rewrite(expr.b)
        if digits and others:
            raise _NotAffine(f"{expr} multiplies two loops")
        if others:
            digits, base, factor = others, factor, base
        scaled = tuple(
            _Digit(d.mark, d.lower, d.extent, self.analyzer.simplify(fold.mul(d.scale, factor)))
            for d in digits
        )
        return scaled, self.analyzer.simplify(fold.mul(base, factor))

    def fuse(self, digits: tuple[_Digit, ...]) -> _Digit:
        """One digit that stands for the sum: scales must chain, each the extent below."""
        digits = tuple(d for d in digits if not self.same(d.extent, fold.const(d.extent.dtype, 1)))
        if not digits:
            raise _NotAffine("no loop is left")
        if len(digits) == 1:
            return digits[0]
        ordered = self.chained(digits)
        scale = ordered[-1].scale
        key = tuple(
            _Digit(d.mark, d.lower, d.extent, self.quotient(d.scale, scale)) for d in ordered
        )
        mark = self.fused_mark(key)
        one = fold.const(scale.dtype, 1)
        return _Digit(mark, one, mark.extent, scale)

    def quotient(self, a: Any, b: Any) -> Any:
        return self.analyzer.simplify(fold.floordiv(a, b))

    def chained(self, digits: tuple[_Digit, ...]) -> list[_Digit]:
        """From the largest scale to the smallest."""
        constants = [d for d in digits if type(d.scale) is IntImm]
        if not constants:
            raise _NotAffine("no loop has a constant stride")
        current = min(constants, key=_scale_value)
        if current.scale.value <= 0:
            raise _NotAffine("a loop has a negative stride")
        ordered, rest = [current], [d for d in digits if d is not current]
        while rest:
            wanted = self.analyzer.simplify(fold.mul(current.scale, current.extent))
            following = [d for d in rest if self.same(d.scale, wanted)]
            if len(following) != 1:
                raise _NotAffine(f"no loop has the stride {wanted}, or several have it")
            current = following[0]
            rest = [d for d in rest if d is not current]
            ordered.append(current)
        return ordered[::-1]

    def fused_mark(self, key: tuple[_Digit, ...]) -> IterMark:
        """The mark of a fused sum: one object for equal sums."""
        for known, mark in self.fused:
            if len(known) == len(key) and all(
                a.mark is b.mark and self.same_digit(a, b) and self.same(a.scale, b.scale)
                for a, b in zip(known, key, strict=True)
            ):
                return mark
        extent = self.analyzer.simplify(fold.mul(key[0].scale, key[0].extent))
        total = _sum(key, fold.const(extent.dtype, 0))
        mark = IterMark(total, extent)
        self.fused.append((key, mark))
        return mark

    def constrain(self, condition: Any) -> None:
        """A conjunct ``sum < limit``: the fused sum runs over less than its loops."""
        if type(condition) not in (LT, LE):
            raise _NotAffine(f"the condition {condition} is not an upper bound")
        (digits, base), (others, limit) = self.rewrite(condition.a), self.rewrite(condition.b)
        if others or not digits:
            raise _NotAffine(f"the condition {condition} does not bound a sum of loops")
        digit = self.fuse(digits)
        if not self.same(digit.scale, fold.const(digit.scale.dtype, 1)):
            raise _NotAffine(f"the condition {condition} bounds a scaled sum")
        extent = fold.sub(limit, base)
        if type(condition) is LE:
            extent = fold.add(extent, fold.const(extent.dtype, 1))
        extent = self.analyzer.simplify(fold.min_(digit.extent, extent))
        for position, (key, mark) in enumerate(self.fused):
            if mark is digit.mark:
                self.fused[position] = key, IterMark(mark.source, extent)
                return
        if isinstance(digit.mark.source, Var):
            var = digit.mark.source
            self.marks[var] = IterMark(var, extent)

    def divided(self, digits: tuple[_Digit, ...], base: Any, by: int, quotient: bool) -> _Linear:
        """``(digits + base) // by`` or ``% by``."""
        zero = fold.const(base.dtype, 0)
        if not self.same(base, zero):
            if type(base) is not IntImm or base.value % by:
                raise _NotAffine(f"the offset {base} is no multiple of {by}")
        outer_base = fold.floordiv(base, fold.const(base.dtype, by)) if quotient else zero
        inside = tuple(d for d in digits if _divides(by, d.scale))
        if inside and len(inside) < len(digits):
            low = tuple(d for d in digits if not _divides(by, d.scale))
            if self.below(low, by):
                if not quotient:
                    return low, zero
                return tuple(_scaled_down(d, by) for d in inside), outer_base
        digit = self.fuse(digits)
        scale, extent, lower = digit.scale, digit.extent, digit.lower
        if type(scale) is not IntImm:
            raise _NotAffine("a loop with a symbolic stride is divided")
        if scale.value % by == 0:
            return ((_scaled_down(digit, by),), outer_base) if quotient else ((), zero)
        if by % scale.value:
            raise _NotAffine(f"the stride {scale} and the divisor {by} do not divide each other")
        step = by // scale.value
        if type(extent) is not IntImm:
            if not self.analyzer.modular_set(extent).base % step == 0 or (
                self.analyzer.modular_set(extent).coeff % step
            ):
                raise _NotAffine(f"the extent {extent} is not known to be a multiple of {step}")
        elif extent.value <= step:
            return ((), outer_base) if quotient else ((digit,), zero)
        elif extent.value % step:
            raise _NotAffine(f"the extent {extent} is no multiple of {step}")
        one = fold.const(scale.dtype, 1)
        width = fold.const(scale.dtype, step)
        if quotient:
            upper = self.analyzer.simplify(fold.floordiv(extent, width))
            return (_Digit(digit.mark, fold.mul(lower, width), upper, one),), outer_base
        return (_Digit(digit.mark, lower, width, scale),), zero

    def below(self, digits: tuple[_Digit, ...], by: int) -> bool:
        """Whether the sum of digits lies in [0, by)."""
        top = 0
        for digit in digits:
            if type(digit.scale) is not IntImm or type(digit.extent) is not IntImm:
                return False
            if digit.scale.value < 0:
                return False
            top += digit.scale.value * (digit.extent.value - 1)
        return top < by


def _scale_value(digit: _Digit) -> int:
    return int(digit.scale.value)


def _divides(by: int, scale: Any) -> bool:
    return type(scale) is IntImm and scale.value % by == 0


def _scaled_down(digit: _Digit, by: int) -> _Digit:
    scale = fold.const(digit.scale.dtype, digit.scale.value // by)
    return _Digit(digit.mark, digit.lower, digit.extent, scale)


def _sum(digits: Sequence[_Digit], base: Any) -> IterSumExpr:
    splits = [IterSplitExpr(d.mark, d.lower, d.extent, d.scale) for d in digits]
    return IterSumExpr(Array(splits), base)


def _used_digits(results: Sequence[_Linear]) -> dict[int, tuple[IterMark, list[_Digit]]]:
    """The digits of every mark, those inside fused marks included."""
    used: dict[int, tuple[IterMark, list[_Digit]]] = {}
    pending: list[_Digit] = [digit for digits, _ in results for digit in digits]
    opened: set[int] = set()
    while pending:
        digit = pending.pop()
        used.setdefault(id(digit.mark), (digit.mark, []))[1].append(digit)
        source = digit.mark.source
        if isinstance(source, IterSumExpr) and id(digit.mark) not in opened:
            opened.add(id(digit.mark))
            pending += [_Digit(s.source, s.lower_factor, s.extent, s.scale) for s in source.args]
    return used


class _Checker:
    """Checks that the digits of each mark do not overlap, and (bijective) cover it."""

    def __init__(self, rewriter: _Rewriter) -> None:
        self.rewriter = rewriter

    def check(self, results: Sequence[_Linear], level: IterMapLevel) -> None:
        used = _used_digits(results)
        for mark, digits in used.values():
            self.check_mark(mark, digits, level)
        if level is not IterMapLevel.Bijective:
            return
        for var, mark in self.rewriter.marks.items():
            one = fold.const(mark.extent.dtype, 1)
            if id(mark) not in used and not self.rewriter.same(mark.extent, one):
                raise _NotAffine(f"loop {var.name} is not used")

    def check_mark(self, mark: IterMark, digits: list[_Digit], level: IterMapLevel) -> None:
        rest = list(digits)
        same = self.rewriter.same
        expected: Any = fold.const(mark.extent.dtype, 1)
        while rest:
            found = [d for d in rest if same(d.lower, expected)]
            if not found:
                if level is IterMapLevel.Bijective:
                    raise _NotAffine(f"the digits of {mark.source} leave a gap")
                constants = [d for d in rest if type(d.lower) is IntImm]
                if len(constants) != len(rest) or type(expected) is not IntImm:
                    raise _NotAffine(f"the digits of {mark.source} cannot be ordered")
                found = [min(rest, key=_lower_value)]
                if found[0].lower.value % expected.value:
                    raise _NotAffine(f"the digits of {mark.source} overlap")
            digit = found[0]
            rest.remove(digit)
            expected = self.rewriter.analyzer.simplify(fold.mul(digit.lower, digit.extent))
        if level is IterMapLevel.Bijective and not same(expected, mark.extent):
            raise _NotAffine(f"the digits of {mark.source} do not cover it")


def _lower_value(digit: _Digit) -> int:
    return int(digit.lower.value)


def _conjuncts(predicate: Any) -> list[Any]:
    if type(predicate) is And:
        return _conjuncts(predicate.a) + _conjuncts(predicate.b)
    if isinstance(predicate, Call) and getattr(predicate.op, "name", "") == "tir.likely":
        return _conjuncts(predicate.args[0])
    return [] if type(predicate) is IntImm and predicate.value else [predicate]


@deep_recursion
def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[Var, Range],
    predicate: Any = True,
    check_level: IterMapLevel | str | int = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """The indices as sums of digits of the loops, if together they are one to one.

    ``predicate`` may bound fused loops from above (the tail of a split that does not divide).
    ``Bijective`` also demands that every loop is used up.
    """
    analyzer = Analyzer()
    for var, dom in input_iters.items():
        if simplify_trivial_iterators or not _is_one(dom.extent):
            analyzer.bind(var, dom)
    live = {v: d for v, d in input_iters.items() if not _is_one(analyzer.simplify(d.extent))}
    if not simplify_trivial_iterators:
        live = dict(input_iters)
    rewriter = _Rewriter(live, analyzer)
    try:
        for part in _conjuncts(as_prim_expr(predicate)):
            simple = analyzer.simplify(part)
            if not (type(simple) is IntImm and simple.value):
                rewriter.constrain(simple)
        results = [_index(rewriter, analyzer.simplify(as_prim_expr(i))) for i in indices]
        if check_level is not IterMapLevel.NoCheck:
            _Checker(rewriter).check(results, _level(check_level))
    except _NotAffine as reason:
        return IterMapResult(Array(), Array([str(reason)]))
    return IterMapResult(Array([_sum(digits, base) for digits, base in results]))


def _is_one(extent: Any) -> bool:
    return type(extent) is IntImm and extent.value == 1


def _index(rewriter: _Rewriter, index: Any) -> _Linear:
    digits, base = rewriter.rewrite(index)
    return ((rewriter.fuse(digits),) if len(digits) > 1 else digits), base


@deep_recursion
def normalize_iter_map_to_expr(expr: PrimExpr) -> Any:
    """The plain expression of an IterMapExpr."""
    return Analyzer().simplify(_to_expr(expr))


def _to_expr(expr: Any) -> Any:
    if isinstance(expr, IterSumExpr):
        total: Any = None
        for split in expr.args:
            term = _to_expr(split)
            total = term if total is None else fold.add(total, term)
        return expr.base if total is None else fold.add(total, expr.base)
    if not isinstance(expr, IterSplitExpr):
        return expr
    source = _to_expr(expr.source.source)
    covered = fold.mul(expr.lower_factor, expr.extent)
    digit = fold.floordiv(source, expr.lower_factor)
    if not Analyzer().can_prove_equal(covered, expr.source.extent):
        digit = fold.floormod(digit, expr.extent)
    return fold.mul(digit, expr.scale)


def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[Var, Range],
    predicate: Any = True,
    check_level: IterMapLevel | str | int = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> Array:
    """The indices, simplified through their iteration map where there is one."""
    found = detect_iter_map(
        indices, input_iters, predicate, check_level, simplify_trivial_iterators
    )
    if not found.indices:
        return Array([as_prim_expr(index) for index in indices])
    return Array([normalize_iter_map_to_expr(index) for index in found.indices])
