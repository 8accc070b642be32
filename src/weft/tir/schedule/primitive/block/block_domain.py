"""Which instances of a block are needed at one iteration of a loop: a domain for each axis.

A block *provides* a region of a buffer per instance (what it writes, or, moved to its producers,
what it reads), and a region is *required* there. Where the provided point is a bijective affine map
of the axes, its inverse is evaluated over the required region; else each dimension is solved by its
form (``v``, ``v * e``, ``v // e``). A domain is an interval, which may hold more than is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.arith import interval
from weft.arith.analyzer import Analyzer
from weft.arith.int_set import eval_set
from weft.arith.interval import IntervalSet, IntSet, as_int_set
from weft.arith.iter_map import IterMapLevel, detect_iter_map, inverse_affine_iter_map
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import FloorDiv, FloorMod, IterVar, Mul, Var
from weft.tir.schedule.surgery import domains_of

Region = Sequence[IntervalSet]


class Unsolved(Exception):
    """The form of an index does not tell which instances are needed; the message says which."""


@dataclass(frozen=True)
class AxisDomain:
    """The values of an axis: those in ``dom`` that are in ``bound`` too (nothing: no limit)."""

    dom: IntervalSet
    bound: IntervalSet

    def union(self, other: AxisDomain, analyzer: Analyzer) -> AxisDomain:
        """The smallest that holds both."""
        return AxisDomain(
            interval.union([self.dom, other.dom], analyzer),
            interval.union([self.bound, other.bound], analyzer),
        )


NOTHING = IntSet.nothing()
UNKNOWN = AxisDomain(NOTHING, NOTHING)


def solve(
    axes: Sequence[IterVar],
    box: Sequence[Range],
    provided: Mapping[Buffer, Region],
    required: Mapping[Buffer, Region],
    analyzer: Analyzer,
) -> list[AxisDomain]:
    """The domain of each axis, inside of ``box``, so that what is required is provided."""
    domains = {axis.var: UNKNOWN for axis in axes}
    for buffer, regions in required.items():
        pairs = zip(provided[buffer], regions, strict=True)
        need = [_as(have.min_value.dtype, part) for have, part in pairs]
        solved = _by_inverse(axes, buffer, provided[buffer], need, analyzer)
        if solved is None:
            solved = _by_dimension(axes, buffer, provided[buffer], need, analyzer)
        for var, part in solved:
            domains[var] = domains[var].union(part, analyzer)
    result = []
    for axis, limits in zip(axes, box, strict=True):
        known = domains[axis.var]
        if not known.bound.is_bounded:
            known = AxisDomain(known.dom, NOTHING)
        limit = _as(axis.var.dtype, as_int_set(limits, analyzer))
        bound = limit
        if not known.bound.is_nothing():
            bound = interval.intersect([known.bound, limit], analyzer)
        result.append(_settled(AxisDomain(known.dom, bound), analyzer))
    return result


def _settled(given: AxisDomain, analyzer: Analyzer) -> AxisDomain:
    """The same domain, without ``bound`` if the intersection can be written as one interval."""
    if given.dom.is_nothing() or not given.dom.is_bounded:
        return AxisDomain(_simple(given.bound, analyzer), NOTHING)
    dom, bound = _simple(given.dom, analyzer), _simple(given.bound, analyzer)
    both = _simple(interval.intersect([dom, bound], analyzer), analyzer)
    if _same(dom, both, analyzer):
        return AxisDomain(dom, NOTHING)
    if _same(bound, both, analyzer):
        return AxisDomain(bound, NOTHING)
    if isinstance(both.min_value, IntImm) and isinstance(both.max_value, IntImm):
        return AxisDomain(both, NOTHING)
    return AxisDomain(dom, bound)


def _simple(given: IntervalSet, analyzer: Analyzer) -> IntervalSet:
    low, high = given.min_value, given.max_value
    if low is not interval.neg_inf() and low is not interval.pos_inf():
        low = analyzer.simplify(low)
    if high is not interval.neg_inf() and high is not interval.pos_inf():
        high = analyzer.simplify(high)
    return IntervalSet(low, high)


def _same(a: IntervalSet, b: IntervalSet, analyzer: Analyzer) -> bool:
    return analyzer.can_prove_equal(a.min_value, b.min_value) and analyzer.can_prove_equal(
        a.max_value, b.max_value
    )


def is_point(part: IntervalSet, analyzer: Analyzer) -> bool:
    """Whether an interval has one element."""
    return part.is_single_point() or analyzer.can_prove_equal(part.min_value, part.max_value)


# ---- all dimensions at once


def _by_inverse(
    axes: Sequence[IterVar], buffer: Buffer, provided: Region, required: Region, analyzer: Analyzer
) -> list[tuple[Var, AxisDomain]] | None:
    """Domains from the inverse of the provided point; None where it has none."""
    if not provided or not all(is_point(part, analyzer) for part in provided):
        return None
    iter_map = detect_iter_map(
        [part.min_value for part in provided],
        domains_of(axes),
        True,
        IterMapLevel.Bijective,
        simplify_trivial_iterators=False,
        analyzer=analyzer,
    )
    if not iter_map.indices:
        return None
    outputs = [Var(f"ph_{i}", part.min_value.dtype) for i, part in enumerate(provided)]
    try:
        inverse = inverse_affine_iter_map(iter_map.indices, outputs)
    except IRValueError:
        return None
    needed = dict(zip(outputs, required, strict=True))
    whole = {var: _whole(n, var.dtype) for var, n in zip(outputs, buffer.shape, strict=True)}
    return [
        (axis.var, AxisDomain(*[_image(value, sets, analyzer) for sets in (needed, whole)]))
        for axis in axes
        if (value := inverse.get(axis.var)) is not None
    ]


def _image(value: PrimExpr, sets: Mapping[Var, IntervalSet], analyzer: Analyzer) -> IntervalSet:
    return _simple(eval_set(value, sets, analyzer), analyzer)


def _whole(extent: PrimExpr, dtype: DataType | str) -> IntervalSet:
    zero = IntImm(dtype, 0)
    return IntervalSet(zero, op.max(op.cast(dtype, extent) - 1, zero))


def _as(dtype: DataType | str, part: IntervalSet) -> IntervalSet:
    """The interval with ends of a type; indices of one buffer may be of several."""
    low, high = part.min_value, part.max_value
    if low is not interval.neg_inf() and low is not interval.pos_inf():
        low = op.cast(dtype, low)
    if high is not interval.neg_inf() and high is not interval.pos_inf():
        high = op.cast(dtype, high)
    return IntervalSet(low, high)


# ---- each dimension by itself


def _by_dimension(
    axes: Sequence[IterVar], buffer: Buffer, provided: Region, required: Region, analyzer: Analyzer
) -> list[tuple[Var, AxisDomain]]:
    variables = {axis.var for axis in axes}
    domains = []
    for extent, have, need in zip(buffer.shape, provided, required, strict=True):
        if variables.isdisjoint(collect([have.min_value, have.max_value], Var)):
            continue  # it is the same for every instance
        if not need.is_bounded:
            continue  # any instance may be needed
        have, need = _simple(have, analyzer), _simple(need, analyzer)
        whole = _whole(extent, have.min_value.dtype)
        domains.append(_solve(variables, have, need, whole, analyzer))
    return domains


def _solve(
    variables: set[Var],
    have: IntervalSet,
    need: IntervalSet,
    whole: IntervalSet,
    analyzer: Analyzer,
) -> tuple[Var, AxisDomain]:
    """The axis in an index, and its domain."""
    index = have.min_value
    if is_point(have, analyzer):
        if isinstance(index, Var):
            return index, AxisDomain(need, whole)
        if isinstance(index, FloorDiv) and analyzer.can_prove_greater_equal(index.b, 1):
            need, whole = (_multiplied(part, index.b, analyzer) for part in (need, whole))
            return _solve(variables, IntervalSet(index.a, index.a), need, whole, analyzer)
        if isinstance(index, FloorMod):  # instances everywhere have any value of the remainder
            return _axis_below(variables, index.a), UNKNOWN
    if isinstance(index, Mul):
        for var, factor in ((index.a, index.b), (index.b, index.a)):
            if isinstance(var, Var) and var in variables and _divides(factor, have, analyzer):
                parts = [_divided(part, factor, analyzer) for part in (need, whole)]
                return var, AxisDomain(*parts)
    last = "" if is_point(have, analyzer) else f":{have.max_value} + 1"
    raise Unsolved(f"{index}{last}")


def _axis_below(variables: set[Var], expr: PrimExpr) -> Var:
    for var in collect(expr, Var):
        if var in variables:
            return var
    raise Unsolved(str(expr))


def _divides(factor: PrimExpr, have: IntervalSet, analyzer: Analyzer) -> bool:
    """Whether the parts of neighbouring instances, ``factor`` apart, do not overlap."""
    extent = have.max_value - have.min_value + 1
    return bool(
        analyzer.can_prove_greater_equal(factor, 1)
        and analyzer.can_prove(op.less_equal(extent, factor))
    )


def _divided(part: IntervalSet, factor: PrimExpr, analyzer: Analyzer) -> IntervalSet:
    low, high = (op.floordiv(end, factor) for end in (part.min_value, part.max_value))
    return _simple(IntervalSet(low, high), analyzer)


def _multiplied(part: IntervalSet, factor: PrimExpr, analyzer: Analyzer) -> IntervalSet:
    low, high = part.min_value * factor, part.max_value * factor + factor - 1
    return _simple(IntervalSet(low, high), analyzer)
