"""The table of known commutative reducers: how partial results combine, and their identities.

A reduction over part of its iterations gives a partial result; a commutative and associative
reducer can combine partial results in any order. rfactor depends on that, and looks the reducer up
here. The first rows are those of TVM's ``ReducerRegistry``. A reducer that ``te.comm_reducer`` has
built an expression with is added, for the dtypes of that expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from weft.ir.expr import ExprLike, PrimExpr, as_prim_expr
from weft.ir.structural import structural_equal, structural_hash
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op
from weft.tir.expr import CommReducer, Select, Var

Pair = Sequence[PrimExpr]
Combine = Callable[[Pair, Pair], Pair]
Identity = Callable[[Sequence[PrimExpr]], Sequence[PrimExpr | int]]


class ReducerRule(NamedTuple):
    """A reduction of ``size`` values at once, for any dtypes.

    ``identity`` is None if combining a value with itself gives that value (min, max, argmax):
    partial results may then start from the same value as the whole reduction.
    """

    size: int
    combine: Combine
    identity: Identity | None

    def instance(self, dtypes: Sequence[DataType], start: Sequence[PrimExpr]) -> CommReducer:
        """The reducer for these dtypes; ``start`` is its identity if the rule has none."""
        lhs = [Var(f"x{i}", dtype) for i, dtype in enumerate(dtypes)]
        rhs = [Var(f"y{i}", dtype) for i, dtype in enumerate(dtypes)]
        units = start if self.identity is None else self.identity(start)
        typed = [
            unit if isinstance(unit, PrimExpr) else op.const(unit, dtype)
            for unit, dtype in zip(units, dtypes, strict=True)
        ]
        result = [as_prim_expr(item) for item in self.combine(lhs, rhs)]
        return CommReducer(lhs, rhs, result, typed)


class KnownReducer(NamedTuple):
    """A reducer for certain dtypes; ``any_start`` if its rule needs no identity."""

    reducer: CommReducer
    any_start: bool


# ---- the table

Test = Callable[[ExprLike, ExprLike], PrimExpr]


def _keeps_left(better: Test) -> Combine:
    """The combiner of (index, value) pairs that takes the better value; the left one if equal."""

    def combine(x: Pair, y: Pair) -> list[PrimExpr]:
        return [
            op.select(better(x[1], y[1]), x[0], y[0]),
            op.select(better(x[1], y[1]), x[1], y[1]),
        ]

    return combine


_WORSE: Final[dict[Test, Test]] = {op.greater: op.less_equal, op.less: op.greater_equal}


def breaks_ties(better: Test, first: Test = op.less, *, nan: bool = False) -> Combine:
    """The combiner of (index, value) pairs that takes the better value.

    Of equal values, that with the index that is ``first``. With ``nan``, NaN is the best value.
    """

    def combine(x: Pair, y: Pair) -> list[PrimExpr]:
        wins, same = better(x[1], y[1]), op.equal(x[1], y[1])
        if nan:  # comparisons with NaN are false, so `not worse` makes a NaN on the left win
            mine, its = op.isnan(x[1]), op.isnan(y[1])
            not_worse = op.logical_not(_WORSE[better](x[1], y[1]))
            wins = op.logical_and(not_worse, op.logical_not(its))
            same = op.logical_or(same, op.logical_and(mine, its))
        left = op.logical_or(wins, op.logical_and(same, first(x[0], y[0])))
        return [op.select(left, x[0], y[0]), op.select(wins, x[1], y[1])]

    return combine


def _sums(x: Pair, y: Pair) -> list[PrimExpr]:
    return [a + b for a, b in zip(x, y, strict=True)]


def _zeros(start: Sequence[PrimExpr]) -> list[int]:
    return [0] * len(start)


RULES: Final[list[ReducerRule]] = [
    ReducerRule(1, _sums, _zeros),
    ReducerRule(1, lambda x, y: [x[0] * y[0]], lambda start: [1]),
    ReducerRule(1, lambda x, y: [op.minimum(x[0], y[0])], None),
    ReducerRule(1, lambda x, y: [op.maximum(x[0], y[0])], None),
    ReducerRule(2, _sums, _zeros),
    ReducerRule(2, _keeps_left(op.greater_equal), None),
    ReducerRule(2, breaks_ties(op.greater), None),
    ReducerRule(2, _keeps_left(op.less_equal), None),
    ReducerRule(2, breaks_ties(op.less), None),
    ReducerRule(1, lambda x, y: [Select(y[0] > x[0], y[0], x[0])], None),
]
"""Sum, product, min, max, two sums, argmax, argmin, in TVM's order; then max that ignores NaN."""

BOOLEAN_RULES: Final = (
    ReducerRule(1, lambda x, y: [op.logical_and(x[0], y[0])], None),
    ReducerRule(1, lambda x, y: [op.logical_or(x[0], y[0])], None),
)
FLOAT_PAIR_RULES: Final = tuple(
    [
        ReducerRule(2, breaks_ties(better, first, nan=nan), None)
        for better in (op.greater, op.less)
        for first, nan in ((op.less, True), (op.greater, True))
    ]
)
"""argmax and argmin as ``topi`` builds them: NaN counts as the best value."""
PAIR_RULES: Final = tuple(
    [ReducerRule(2, breaks_ties(better, op.greater), None) for better in (op.greater, op.less)]
)

_GIVEN: Final[dict[int, list[CommReducer]]] = {}
"""Structural hash -> reducers that programs have declared."""


def known_reducers(dtypes: Sequence[DataType], start: Sequence[PrimExpr]) -> Iterator[KnownReducer]:
    """Every known reducer for these dtypes; ``start`` are the initial values of the reduction."""
    for rule in [*RULES, *_rules_for(dtypes)]:
        if rule.size == len(dtypes):
            yield KnownReducer(rule.instance(dtypes, start), rule.identity is None)
    for same_hash in list(_GIVEN.values()):
        for reducer in same_hash:
            if [var.dtype for var in reducer.lhs] == list(dtypes):
                yield KnownReducer(reducer, any_start=False)


def has_reducer_of(size: int) -> bool:
    """Whether a known reducer reduces that many values at once, for some dtypes."""
    rules = [*RULES, *BOOLEAN_RULES, *FLOAT_PAIR_RULES, *PAIR_RULES]
    given = [reducer for same_hash in list(_GIVEN.values()) for reducer in same_hash]
    return size in {*(rule.size for rule in rules), *(len(item.lhs) for item in given)}


def _rules_for(dtypes: Sequence[DataType]) -> tuple[ReducerRule, ...]:
    last = dtypes[-1]
    if last.is_bool:
        return BOOLEAN_RULES
    return FLOAT_PAIR_RULES if last.is_float and len(dtypes) == 2 else PAIR_RULES


def declare_reducer(reducer: CommReducer) -> None:
    """Add a reducer to the table; its author promises that it is commutative and associative."""
    bucket = _GIVEN.setdefault(structural_hash(reducer), [])
    if not any(structural_equal(reducer, known) for known in bucket):
        bucket.append(reducer)


def register_reducer(n_buffers: int, combiner: Combine, identity: Identity) -> None:
    """Add a reducer of ``n_buffers`` values to the table, for all dtypes.

    ``combiner`` takes the values of both sides, as two lists, and returns the combined values;
    ``identity`` takes the initial values of a reduction (which show its dtypes) and returns the
    identities. The caller promises that the combiner is commutative and associative.
    TVM's ``tir.schedule.RegisterReducer``.

    Example:
        >>> register_reducer(1, lambda x, y: [x[0] ^ y[0]], lambda start: [0])  # doctest: +SKIP
    """
    if not isinstance(n_buffers, int) or n_buffers < 1:
        raise IRValueError(f"register_reducer: n_buffers: expected 1 or more, got {n_buffers!r}")
    if not callable(combiner) or not callable(identity):
        raise IRTypeError("register_reducer: combiner and identity must be functions")
    RULES.append(ReducerRule(n_buffers, combiner, identity))
