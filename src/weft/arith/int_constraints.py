"""Constraints on integer variables, and the results of solving them.

The solvers of ``int_solver`` take an ``IntConstraints`` (variables, their ranges, relations). They
return another one, or an ``IntConstraintsTransform`` between the two. ``IntGroupBounds`` are the
bounds of one variable. The names are those of TVM's ``arith.int_solver``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.int_set import eval_set
from weft.arith.interval import pos_inf
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr
from weft.ir.functor import substitute
from weft.ir.node import Array, Map, Node, node
from weft.support.errors import IRTypeError, IRValueError
from weft.support.span import Span
from weft.tir.constant import is_const_int
from weft.tir.expr import EQ, GE, LE, Var


@node
class IntGroupBounds(Node):
    """Bounds of one variable v: ``lower <= coef * v <= upper`` and ``coef * v == equal``."""

    coef: PrimExpr
    lower: Array[PrimExpr]
    equal: Array[PrimExpr]
    upper: Array[PrimExpr]

    def _check_(self) -> None:
        if not self.coef.dtype.is_integral:
            raise IRTypeError(
                f"IntGroupBounds: expected an integer coefficient, got {self.coef.dtype}"
            )

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """The bounds that a Range states; a Range of one value is an equality."""
        unit = fold.const(rng.min.dtype, 1)
        return IntGroupBounds(unit, [], [], []).joined(rng)

    def joined(self, rng: Range) -> IntGroupBounds:
        """These bounds and those of a Range of the variable, the Range's first."""
        analyzer = Analyzer()
        first = analyzer.simplify(fold.mul(rng.min, self.coef))
        if is_const_int(rng.extent, 1):
            return self.with_(equal=Array([first, *self.equal]))
        last = fold.sub(fold.add(rng.min, rng.extent), fold.const(rng.min.dtype, 1))
        upper = analyzer.simplify(fold.mul(last, self.coef))
        return self.with_(lower=Array([first, *self.lower]), upper=Array([upper, *self.upper]))

    def conditions(self, var: Var) -> list[PrimExpr]:
        """The bounds as conditions on the variable."""
        value = fold.mul(var, self.coef)
        conditions: list[PrimExpr] = [EQ(value, end) for end in self.equal]
        conditions += [GE(value, end) for end in self.lower]
        conditions += [LE(value, end) for end in self.upper]
        return conditions

    def find_best_range(self, ranges: Mapping[Var, Range] | None = None) -> Range | None:
        """The narrowest Range that these bounds prove; None where an end is missing.

        ``ranges`` holds those of the variables that the bounds mention.
        """
        analyzer = analyzer_of(ranges or {})
        lowers, uppers = [*self.equal, *self.lower], [*self.equal, *self.upper]
        unit = is_const_int(self.coef, 1)
        step = fold.const(self.coef.dtype, 1)
        if unit and len(lowers) == len(uppers) == 1:
            low = analyzer.simplify(lowers[0])
            try:
                extent = fold.exact(fold.add, fold.exact(fold.sub, uppers[0], lowers[0]), step)
            except fold.ConstantOverflow:  # more values than the type can count
                return None
            return Range.from_min_extent(low, analyzer.simplify(extent))
        best: tuple[PrimExpr, PrimExpr] | None = None
        for low in lowers:
            first = analyzer.simplify(
                fold.floordiv(fold.add(low, fold.sub(self.coef, step)), self.coef)
            )
            for high in uppers:
                span = self._span(low, first, high, ranges or {}, analyzer)
                if span is not None and (best is None or _below(analyzer, span, best[1])):
                    best = first, span
        if best is None:
            return None
        return Range.from_min_extent(best[0], analyzer.simplify(fold.add(best[1], step)))

    def _span(
        self,
        low: PrimExpr,
        first: PrimExpr,
        high: PrimExpr,
        ranges: Mapping[Var, Range],
        analyzer: Analyzer,
    ) -> PrimExpr | None:
        """The largest distance of last and first value, or None where it has no bound."""
        best: PrimExpr | None = None
        for distance in (
            fold.floordiv(fold.sub(high, low), self.coef),
            fold.sub(fold.floordiv(high, self.coef), first),
        ):
            largest = eval_set(analyzer.simplify(distance), ranges, analyzer).max_value
            if largest is not pos_inf() and (best is None or _below(analyzer, largest, best)):
                best = analyzer.simplify(largest)
        return best


def _below(analyzer: Analyzer, a: PrimExpr, b: PrimExpr) -> bool:
    return analyzer.can_prove_less(fold.sub(a, b), 0)


@node
class IntConstraints(Node):
    """Variables, the ranges of some of them (and of parameters), and relations between them."""

    variables: Array[Var]
    ranges: Map[Var, Range]
    relations: Array[PrimExpr]

    def __init__(
        self,
        variables: Sequence[Var] | None,
        ranges: Mapping[Var, Range] | None,
        relations: Sequence[PrimExpr],
        span: Span | None = None,
    ) -> None:
        self.variables = Array(variables or ())
        self.ranges = Map(ranges or {})
        self.relations = Array([as_prim_expr(relation) for relation in relations])
        self.span, self._cache, self._summary = span, None, 0
        for var in self.variables:
            if not isinstance(var, Var) or not var.dtype.is_integral:
                raise IRTypeError(
                    f"IntConstraints: expected integer variables, got {var} "
                    f"({getattr(var, 'dtype', type(var).__name__)})"
                )
        if len(set(self.variables)) != len(self.variables):
            raise IRValueError("IntConstraints: a variable is given more than once")

    @property
    def is_contradiction(self) -> bool:
        """Whether a relation is the constant False."""
        for relation in self.relations:
            if isinstance(relation, IntImm) and not relation.value:
                return True
        return False


@node
class IntConstraintsTransform(Node):
    """Two equivalent sets of constraints and the maps between their variables."""

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: Map[Var, PrimExpr]
    dst_to_src: Map[Var, PrimExpr]

    def __add__(self, other: IntConstraintsTransform) -> IntConstraintsTransform:
        """This transform and then ``other``, whose ``src`` is this one's ``dst``."""
        if other.src is not self.dst:
            raise IRValueError("IntConstraintsTransform: the second's src is not the first's dst")
        before, after = analyzer_of(self.src.ranges), analyzer_of(other.dst.ranges)
        to_src = {
            var: before.simplify(substitute(value, self.dst_to_src))
            for var, value in other.dst_to_src.items()
        }
        to_dst = {
            var: after.simplify(substitute(value, other.src_to_dst))
            for var, value in self.src_to_dst.items()
        }
        return IntConstraintsTransform(self.src, other.dst, to_dst, to_src)


def unsolvable() -> IntConstraints:
    """The constraints that nothing satisfies."""
    return IntConstraints([], {}, [fold.FALSE])
