"""Integer solutions of linear equations and inequalities (TVM's ``arith.int_solver``).

``solve_linear_equations`` replaces the variables by as many new ones as the equations leave free;
``solve_linear_inequalities`` finds ranges of the variables, each in terms of the later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.facts import is_index
from weft.arith.int_constraints import (
    IntConstraints,
    IntConstraintsTransform,
    IntGroupBounds,
    unsolvable,
)
from weft.arith.int_inequalities import deskewed, solved_ranges
from weft.arith.int_set import eval_set
from weft.arith.linear import detect_linear_equation
from weft.arith.smith import Diagonalized
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import substitute
from weft.support.errors import IRTypeError
from weft.support.recursion import deep_recursion
from weft.tir.expr import EQ, LE, LT, Var

__all__ = [
    "IntConstraints", "IntConstraintsTransform", "IntGroupBounds", "solve_linear_equations",
    "solve_linear_inequalities",
]  # fmt: skip

Relations = Sequence[PrimExpr] | IntConstraints


def _system(
    relations: Relations,
    variables: Sequence[Var] | None,
    ranges: Mapping[Var, Range] | None,
    caller: str,
) -> IntConstraints:
    if not isinstance(relations, IntConstraints):
        return IntConstraints(variables, ranges, relations)
    if variables is not None or ranges is not None:
        raise IRTypeError(f"{caller}: IntConstraints hold variables and ranges; give them alone")
    return relations


@deep_recursion
def solve_linear_equations(
    equations: Relations,
    variables: Sequence[Var] | None = None,
    ranges: Mapping[Var, Range] | None = None,
) -> IntConstraintsTransform:
    """Solve linear equations for the integer values of ``variables``.

    The result's ``dst`` has one new variable per degree of freedom, with ranges where these can be
    inferred; its relations hold what ranges cannot say (bounds of the old variables, conditions
    for a solution to exist, relations that are no linear equations). ``src_to_dst`` gives the old
    variables. Equations without solution give no variables and the relation False.
    """
    system = _system(equations, variables, ranges, "solve_linear_equations")
    analyzer = analyzer_of(system.ranges)
    matrix, values, rest = _matrix(system, analyzer)
    form = Diagonalized(matrix, len(system.variables))
    values = [_combined(row, values, analyzer) for row in form.left]
    relations = _solvable(form, values, analyzer)
    if relations is None:
        return IntConstraintsTransform(system, unsolvable(), {}, {})
    fresh, inner = _parameters(system, form, values, analyzer)
    to_new = {
        var: _combined(row, inner, analyzer, var)
        for var, row in zip(system.variables, form.basis, strict=True)
    }
    new_ranges = _inferred(fresh, system)
    relations += _bounds(system, to_new, analyzer_of(new_ranges))
    relations += [substitute(relation, to_new) for relation in rest]
    solution = IntConstraints(list(fresh), new_ranges, relations)
    return IntConstraintsTransform(system, solution, to_new, fresh)


def _matrix(
    system: IntConstraints, analyzer: Analyzer
) -> tuple[list[list[int]], list[PrimExpr], list[PrimExpr]]:
    """(coefficients, right-hand sides) of the linear equations, and the other relations."""
    matrix: list[list[int]] = []
    values: list[PrimExpr] = []
    rest: list[PrimExpr] = []
    for relation in system.relations:
        row: Sequence[PrimExpr] = ()
        if isinstance(relation, EQ) and is_index(relation.a.dtype) and system.variables:
            difference = analyzer.simplify(fold.sub(relation.a, relation.b))
            row = detect_linear_equation(difference, system.variables)
        coefficients = [item.value for item in row[:-1] if isinstance(item, IntImm)]
        if row and len(coefficients) == len(row) - 1:
            matrix.append(coefficients)
            values.append(fold.sub(fold.const(row[-1].dtype, 0), row[-1]))
        else:
            rest.append(relation)
    return matrix, values, rest


def _combined(
    factors: Sequence[int],
    values: Sequence[PrimExpr],
    analyzer: Analyzer,
    like: PrimExpr | None = None,
) -> PrimExpr:
    """``sum(factor * value)``, simplified."""
    total = None if like is None else fold.const(like.dtype, 0)
    for factor, value in zip(factors, values, strict=True):
        if factor:
            term = fold.mul(value, fold.const(value.dtype, factor))
            total = term if total is None else fold.add(total, term)
    if total is None:
        total = fold.const(values[0].dtype, 0)
    return analyzer.simplify(total)


def _solvable(
    form: Diagonalized, values: Sequence[PrimExpr], analyzer: Analyzer
) -> list[PrimExpr] | None:
    """What must hold for a solution to exist; None where it cannot."""
    conditions: list[PrimExpr] = []
    for index, value in enumerate(values):
        by, zero = abs(form.entry(index)), fold.const(value.dtype, 0)
        if by == 1:
            continue
        rest = value if by == 0 else fold.floormod(value, fold.const(value.dtype, by))
        condition = analyzer.simplify(EQ(rest, zero))
        if not isinstance(condition, IntImm):
            conditions.append(condition)
        elif not condition.value:
            return None
    return conditions


def _parameters(
    system: IntConstraints, form: Diagonalized, values: Sequence[PrimExpr], analyzer: Analyzer
) -> tuple[dict[Var, PrimExpr], list[PrimExpr]]:
    """(each new variable in terms of the old ones, the values of all inner variables)."""
    fresh: dict[Var, PrimExpr] = {}
    inner: list[PrimExpr] = []
    for index in range(len(system.variables)):
        by = form.entry(index)
        if by:
            value = values[index]
            if by < 0:
                value = fold.sub(fold.const(value.dtype, 0), value)
            inner.append(analyzer.simplify(fold.floordiv(value, fold.const(value.dtype, abs(by)))))
            continue
        old = _combined(form.inverse[index], system.variables, analyzer)
        suffix = f"_{old.name}" if isinstance(old, Var) else ""
        parameter = Var(f"n{len(fresh)}{suffix}", old.dtype)
        fresh[parameter] = old
        inner.append(parameter)
    return fresh, inner


def _inferred(fresh: Mapping[Var, PrimExpr], system: IntConstraints) -> dict[Var, Range]:
    """Ranges of parameters (as given) and of new variables, where these are bounded."""
    solved = set(system.variables)
    ranges = {var: rng for var, rng in system.ranges.items() if var not in solved}
    for var, old in fresh.items():
        values = eval_set(old, system.ranges)
        if values.is_bounded:
            ranges[var] = values.cover_range(Range(0, 0), Analyzer())
    return ranges


def _bounds(
    system: IntConstraints, to_new: Mapping[Var, PrimExpr], analyzer: Analyzer
) -> list[PrimExpr]:
    """The ranges of the old variables as conditions on the new ones."""
    conditions: list[PrimExpr] = []
    for var in system.variables:
        rng = system.ranges.get(var)
        if rng is None or not is_index(var.dtype):  # of other types no variable is replaced
            continue
        value = to_new[var]
        for condition in (LE(rng.min, value), LT(value, fold.add(rng.min, rng.extent))):
            simple = analyzer.simplify(condition)
            if not (isinstance(simple, IntImm) and simple.value):
                conditions.append(simple)
    return conditions


@deep_recursion
def solve_linear_inequalities(
    equations: Relations,
    variables: Sequence[Var] | None = None,
    ranges: Mapping[Var, Range] | None = None,
    deskew_range: bool = False,
) -> IntConstraints | IntConstraintsTransform:
    """Ranges of ``variables`` that linear inequalities (and equations) imply.

    The ranges of a variable may mention those that come later. Relations that no Range says stay
    relations; inequalities without solution give the relation False. With ``deskew_range`` new
    variables start at zero, and the result is the transform to these.
    """
    system = _system(equations, variables, ranges, "solve_linear_inequalities")
    return deskewed(system) if deskew_range else solved_ranges(system)
