"""Conditions on integer variables checked at the points of their ranges.

Used by the tests of ``weft.arith``: a transform of constraints is right if both maps take
solutions to solutions. Points are columns of numpy arrays, so a million of them take a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.arith.int_constraints import IntConstraints, IntConstraintsTransform
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import substitute
from weft.support.errors import IRTypeError
from weft.tir import expr as nodes
from weft.tir.analysis.undefined_vars import undefined_vars
from weft.tir.expr import And, Var

Points = np.ndarray | np.generic
"""The values of an expression at every point; one value where it is a constant."""
_LIMIT: Final = 1 << 20
"""Up to this many points all are tried; of more, a sample of this size with a fixed seed."""
_FUNCTIONS: Final[dict[type, Callable[..., np.ndarray]]] = {
    nodes.Add: np.add, nodes.Sub: np.subtract, nodes.Mul: np.multiply, nodes.Min: np.minimum,
    nodes.Max: np.maximum, nodes.EQ: np.equal, nodes.NE: np.not_equal, nodes.LT: np.less,
    nodes.LE: np.less_equal, nodes.GT: np.greater, nodes.GE: np.greater_equal,
    nodes.And: np.logical_and, nodes.Or: np.logical_or,
}  # fmt: skip


def check_bool_expr_is_true(
    bool_expr: PrimExpr, vranges: Mapping[Var, Range], cond: PrimExpr | None = None
) -> None:
    """Raise AssertionError unless the expression holds at each point of the ranges (and ``cond``).

    Beyond a million points a fixed sample of these is tried.
    """
    given = IntImm("bool", 1) if cond is None else cond
    if isinstance(given, IntImm) and not given.value:
        return
    used = undefined_vars(And(bool_expr, given))
    variables = [var for var in used if var in vranges]
    bounds, given = _box(variables, vranges, given)
    points = _points(bounds)
    values = dict(zip(variables, points, strict=True))
    fails = np.logical_and(_value(given, values), np.logical_not(_value(bool_expr, values)))
    if np.any(fails):
        at = int(np.flatnonzero(fails)[0])
        where = ", ".join(f"{var} = {points[row][at]}" for row, var in enumerate(variables))
        raise AssertionError(f"{bool_expr} does not hold at {where}")


def _box(
    variables: Sequence[Var], vranges: Mapping[Var, Range], given: PrimExpr
) -> tuple[list[tuple[int, int]], PrimExpr]:
    """(begin and end of each variable, the condition); symbolic ends go into the condition."""
    analyzer = Analyzer()
    symbolic = [var for var in variables if not _is_constant(vranges[var])]
    for var in [*[var for var in variables if _is_constant(vranges[var])], *symbolic]:
        analyzer.bind(var, vranges[var])
    for var in symbolic:
        given = conjunction([*_inside(var, vranges[var]), given])
    bounds = []
    for var in variables:
        bound = analyzer.const_int_bound(var)
        bounds.append((bound.min_value, max(bound.max_value + 1, bound.min_value)))
    return bounds, given


def _is_constant(span: Range) -> bool:
    return isinstance(span.min, IntImm) and isinstance(span.extent, IntImm)


def _points(ends: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    sizes = [end - start for start, end in ends]
    total = math.prod(sizes)
    if total > _LIMIT:
        random = np.random.default_rng(0)
        return [random.integers(start, end, _LIMIT) for start, end in ends]
    flat, columns = np.arange(total), []
    for (start, _), size in zip(ends, sizes, strict=True):
        columns.append(start + (flat % size if size else flat))
        flat = flat // max(size, 1)
    return columns


def _value(expr: PrimExpr, values: Mapping[Var, Points]) -> Points:
    """The values of an integer or boolean expression at every point."""
    kind = type(expr)
    if isinstance(expr, IntImm):
        return np.bool_(expr.value) if expr.dtype.is_bool else np.int64(expr.value)
    if isinstance(expr, Var) and expr in values:
        return values[expr]
    if isinstance(expr, nodes.Not):
        return np.logical_not(_value(expr.a, values))
    if isinstance(expr, nodes.Select):
        parts = [expr.condition, expr.true_value, expr.false_value]
        return np.where(*[_value(part, values) for part in parts])
    if isinstance(expr, nodes.Cast) and expr.dtype.is_integral:
        return _value(expr.value, values)
    if isinstance(expr, nodes.BinaryExpr):
        a, b = _value(expr.a, values), _value(expr.b, values)
        return _divided(kind, a, b) if kind in _DIVISIONS else _FUNCTIONS[kind](a, b)
    raise IRTypeError(f"expected an integer expression of variables with ranges, got {expr}")


_DIVISIONS: Final = frozenset({nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod})


def _divided(kind: type, a: Points, b: Points) -> Points:
    """Quotients and remainders; division by zero, which may stand in a dead branch, gives 0."""
    safe = np.where(b == 0, 1, b)
    if kind is nodes.FloorDiv:
        quotient = a // safe
    elif kind is nodes.FloorMod:
        quotient = a % safe
    elif kind is nodes.Mod:
        quotient = np.fmod(a, safe)
    else:
        quotient = (a - np.fmod(a, safe)) // safe
    return np.where(b == 0, 0, quotient)


def check_int_constraints_trans_consistency(
    constraints_trans: IntConstraintsTransform, vranges: Mapping[Var, Range] | None = None
) -> None:
    """Raise AssertionError unless both maps of a transform take solutions to solutions.

    ``vranges`` holds the ranges of parameters.
    """
    source, target = constraints_trans.src, constraints_trans.dst
    to_target, to_source = constraints_trans.src_to_dst, constraints_trans.dst_to_src
    _check_one_way(source, target, to_target, to_source, vranges or {})
    _check_one_way(target, source, to_source, to_target, vranges or {})


def _check_one_way(
    source: IntConstraints,
    target: IntConstraints,
    forward: Mapping[Var, PrimExpr],
    back: Mapping[Var, PrimExpr],
    extra: Mapping[Var, Range],
) -> None:
    """What holds in ``source`` holds in ``target``, and back again gives the same values."""
    wanted: list[PrimExpr] = [
        nodes.EQ(var, substitute(forward[var], back)) for var in source.variables if var in forward
    ]
    for condition in [*_in_ranges(target), *target.relations]:
        wanted.append(substitute(condition, back))
    ranges = {**extra, **source.ranges}
    check_bool_expr_is_true(conjunction(wanted), ranges, conjunction(source.relations))


def _in_ranges(constraints: IntConstraints) -> list[PrimExpr]:
    conditions: list[PrimExpr] = []
    for var in constraints.variables:
        rng = constraints.ranges.get(var)
        if rng is not None:
            conditions += _inside(var, rng)
    return conditions


def _inside(var: Var, rng: Range) -> list[PrimExpr]:
    return [nodes.GE(var, rng.min), nodes.LT(var, rng.min + rng.extent)]


def conjunction(conditions: Sequence[PrimExpr]) -> PrimExpr:
    """All of the conditions; True if there are none."""
    result: PrimExpr = IntImm("bool", 1)
    for condition in conditions:
        result = (
            condition if isinstance(result, IntImm) and result.value else And(result, condition)
        )
    return result
