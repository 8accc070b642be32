"""Rewrites index expressions to sums of digits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.facts import is_index
from weft.arith.iter_map.fuse import Fuser
from weft.arith.iter_map.integer import add, ceildiv, const_like, equal, floordiv, mul, sub
from weft.arith.iter_map.nodes import (
    IterMapExpr,
    IterMapLevel,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    as_sum,
    constant_sum,
    same_digit,
    scaled,
    whole,
)
from weft.arith.iter_map.padding import NotAffine, Padder
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.ir.node import Array
from weft.tir.constant import is_const_int
from weft.tir.expr import Add, BinaryExpr, FloorDiv, FloorMod, Mul, Sub, Var

_ROUNDS_OF_BASE: Final = 6
_FOLD: Final[dict[type[BinaryExpr], Callable[[PrimExpr, PrimExpr], PrimExpr]]] = {
    Add: fold.add, Sub: fold.sub, Mul: fold.mul, FloorDiv: fold.floordiv, FloorMod: fold.floormod
}  # fmt: skip


class Rewriter:
    """Rewrites expressions over loop variables; raises NotAffine for what is no map.

    With ``lenient``, such a part stays as it is and becomes part of the base.
    """

    def __init__(
        self,
        iters: Mapping[Var, Range],
        analyzer: Analyzer,
        level: IterMapLevel,
        simplify_trivial_iterators: bool,
        lenient: bool = False,
    ) -> None:
        self.analyzer = analyzer
        self.lenient = lenient
        self.fuser = Fuser(analyzer, level)
        self.padder = Padder(analyzer)
        self.input_marks: list[IterMark] = []
        self.iterators: dict[Var, PrimExpr] = {}
        for var, dom in iters.items():
            self.iterators[var] = self.iterator(var, dom, simplify_trivial_iterators)

    def iterator(self, var: Var, dom: Range, simplify_trivial: bool) -> PrimExpr:
        """The sum or split that replaces a loop variable."""
        if simplify_trivial and is_const_int(dom.extent, 1):
            return constant_sum(dom.min)
        if is_const_int(dom.min, 0):
            mark = IterMark(var, dom.extent)
            self.input_marks.append(mark)
            return whole(mark)
        mark = IterMark(sub(var, dom.min), dom.extent)
        self.input_marks.append(mark)
        return IterSumExpr(Array([whole(mark)]), dom.min)

    def index(self, expr: PrimExpr) -> IterSumExpr:
        """An index as a sum of one split and a base."""
        total = as_sum(self.rewrite(expr))
        if not total.args:
            return total
        fused = self.fuser.fuse(total)
        if fused is None:
            bounded = ", or a predicate bounds it with others" if self.fuser.constrained else ""
            raise NotAffine(f"the strides of {self.plain(total)} do not chain{bounded}")
        return fused

    def plain(self, expr: PrimExpr) -> PrimExpr:
        """The plain expression, for messages and bases."""
        return self.padder.plain.convert(expr)

    def unresolved(self, expr: PrimExpr, reason: str) -> PrimExpr:
        """Raise NotAffine for an expression; with ``lenient`` return it instead."""
        if self.lenient:
            return expr
        raise NotAffine(f"{expr}: {reason}") from None

    def rewrite(self, expr: PrimExpr) -> PrimExpr:
        """A sum or a split, or the expression itself where it has no loop variable."""
        if isinstance(expr, IntImm):
            return expr
        if isinstance(expr, Var):
            return self.iterators.get(expr, expr)
        if not isinstance(expr, (Add, Sub, Mul, FloorDiv, FloorMod)) or not is_index(expr.dtype):
            for var in collect(expr, Var):
                if var in self.iterators:
                    return self.unresolved(expr, f"not linear in {var.name}")
            return expr
        a, b = self.rewrite(expr.a), self.rewrite(expr.b)
        if not isinstance(a, IterMapExpr) and not isinstance(b, IterMapExpr):
            if a is expr.a and b is expr.b and type(a) is not IntImm:
                return expr
            return _FOLD[type(expr)](a, b)
        if isinstance(expr, (Add, Sub)):
            return self.sum(a, b, 1 if isinstance(expr, Add) else -1)
        if isinstance(expr, Mul):
            if not isinstance(b, IterMapExpr):
                return self.product(a, b)
            if not isinstance(a, IterMapExpr):
                return self.product(b, a)
            return self.unresolved(expr, "multiplies two loops")
        if isinstance(b, IterMapExpr):
            return self.unresolved(expr, "divides by a loop")
        try:
            return self.division(expr, a, b)
        except NotAffine as reason:
            return self.unresolved(expr, str(reason))

    def sum(self, a: PrimExpr, b: PrimExpr, sign: int) -> IterSumExpr:
        """a + b or a - b; equal digits are added up."""
        left, right = as_sum(a), as_sum(b)
        splits: list[IterSplitExpr] = list(left.args)
        for split in right.args:
            for position, mine in enumerate(splits):
                if same_digit(mine, split):
                    combine = add if sign > 0 else sub
                    splits[position] = scaled(split, combine(mine.scale, split.scale))
                    break
            else:
                zero = const_like(split.scale, 0)
                splits.append(split if sign > 0 else scaled(split, sub(zero, split.scale)))
        splits = [split for split in splits if not is_const_int(split.scale, 0)]
        base = add(left.base, right.base) if sign > 0 else sub(left.base, right.base)
        return IterSumExpr(Array(splits), base)

    def product(self, a: PrimExpr, factor: PrimExpr) -> PrimExpr:
        """A sum or split times an expression without loops."""
        if is_const_int(factor, 0):
            return const_like(a, 0)
        if isinstance(a, IterSplitExpr):
            return scaled(a, mul(a.scale, factor))
        total = as_sum(a)
        splits = [scaled(split, mul(split.scale, factor)) for split in total.args]
        return IterSumExpr(Array(splits), mul(total.base, factor))

    def division(self, expr: BinaryExpr, a: PrimExpr, divisor: PrimExpr) -> PrimExpr:
        """``a // divisor`` or ``a % divisor``; raises NotAffine."""
        total = as_sum(a)
        if not total.args:  # only loops of one value are left, or the others have cancelled out
            for var in collect(expr.a, Var):
                if as_sum(self.iterators.get(var, var)).args:
                    return _FOLD[type(expr)](total.base, divisor)
            return expr
        if len(total.args) > 1:
            fused = self.fuser.fuse(total)
            if fused is None:
                raise NotAffine("the strides of the dividend do not chain")
            total = fused
        quotient = type(expr) is FloorDiv
        if type(divisor) is IntImm and divisor.value <= 0:
            raise NotAffine(f"the divisor {divisor} is not positive")
        if is_const_int(divisor, 1):
            return total if quotient else const_like(total, 0)
        unscaled = self.without_scale(total, divisor)
        if unscaled is None:
            scale = total.args[0].scale
            raise NotAffine(
                f"the stride {scale} and the divisor {divisor} do not divide each other"
            )
        total, divisor, done = unscaled
        if done:
            return total if quotient else const_like(total, 0)
        (split,) = total.args
        if quotient:
            return self.quotient(scaled(split, const_like(split, 1)), total.base, divisor)
        return self.remainder(split, total.base, divisor)

    def without_scale(
        self, total: IterSumExpr, divisor: PrimExpr
    ) -> tuple[IterSumExpr, PrimExpr, bool] | None:
        """(sum, divisor, whether to stop) after cancelling the scale against the divisor.

        If the divisor cancels completely, the sum is the quotient and the third part is True. None
        if neither divides the other.
        """
        (split,), base = total.args, total.base
        scale = split.scale
        if is_const_int(scale, 1):
            return total, divisor, False
        divides = self.padder.divides
        if divides(divisor, scale) and divides(divisor, base):
            smaller = scaled(split, floordiv(scale, divisor))
            return IterSumExpr(Array([smaller]), floordiv(base, divisor)), divisor, True
        negative = type(scale) is IntImm and scale.value < 0
        if not negative and divides(scale, divisor) and divides(scale, base):
            reduced = IterSumExpr(Array([split]), floordiv(base, scale))
            return reduced, floordiv(divisor, scale), False
        return None

    def quotient(self, split: IterSplitExpr, base: PrimExpr, divisor: PrimExpr) -> PrimExpr:
        """``(split + base) // divisor`` of a split of scale 1."""
        simplify = self.analyzer.simplify
        padded, left = self.padder.pad(split, base, divisor)
        mark, lower, extent = padded.source, padded.lower_factor, padded.extent
        if self.padder.divides(divisor, extent):
            upper = simplify(floordiv(extent, divisor))
            result = IterSplitExpr(mark, mul(lower, divisor), upper, padded.scale)
        else:
            upper = simplify(ceildiv(extent, divisor))
            if not (is_const_int(lower, 1) and equal(self.analyzer, extent, mark.extent)):
                mark = self.padder.as_mark(padded).source
            result = IterSplitExpr(mark, divisor, upper, const_like(divisor, 1))
        rest = simplify(floordiv(sub(base, left), divisor), _ROUNDS_OF_BASE)
        return result if is_const_int(rest, 0) else IterSumExpr(Array([result]), rest)

    def remainder(self, split: IterSplitExpr, base: PrimExpr, divisor: PrimExpr) -> IterSplitExpr:
        """``(split + base) % divisor``, times the scale of the split."""
        scale = split.scale
        split, _ = self.padder.pad(scaled(split, const_like(split, 1)), base, divisor)
        if not self.padder.divides(divisor, split.extent) and not self.padder.is_top(split):
            split = self.padder.as_mark(split)
        return IterSplitExpr(split.source, split.lower_factor, divisor, scale)
