"""The least and the largest value of integer expressions: what can overflow, what is never 0.

With ``0 <= i <= 9``, ``i * 4 + 1`` is within (1, 37). It is found in one walk over the expression
from the intervals of its variables, with less effort and less precision than ``weft.arith``. The
interval is that of the value after it has wrapped to its type, so it holds in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from weft.ir.expr import IntImm, PrimExpr, integer_range
from weft.ir.node import Node
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.expr import is_call

Interval = tuple[int, int]
"""The least and the largest value."""
_MOST_FACTORS: Final = 16
"""The most factors of a product that is taken apart: shapes have fewer."""


def factors_of(expr: PrimExpr) -> tuple[int, list[e.Var]] | None:
    """The constant and the variables of a product: ``n * 4 * t`` gives 4 and ``n, t``.

    None for other expressions, and for products of more than ``_MOST_FACTORS`` factors: one whose
    parts are shared, as in ``y = y * y`` again and again, may have a billion.
    """
    constant, variables = 1, []
    waiting, count = [expr], 0
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, IntImm):
            constant *= part.value
        elif isinstance(part, e.Var):
            variables.append(part)
        elif isinstance(part, e.Mul) and count < _MOST_FACTORS:
            waiting += [part.b, part.a]
        else:
            return None
    return constant, variables


class Ranges:
    """The intervals of expressions, given those of the variables that were bound so far."""

    def __init__(self) -> None:
        self.variables: dict[int, Interval] = {}
        self._memo: dict[int, tuple[Node, Interval]] = {}
        self._tested: dict[int, e.Var] = {}
        """Variables (by ``id``) whose value was tested not to be 0."""
        self._products: list[tuple[Counter[int], int]] = []
        """Variables (by ``id``) of which none is negative, and what their product is at most."""

    def bind_product(self, variables: Sequence[e.Var], most: int) -> None:
        """Note that a product of variables, of which none is negative, is at most ``most``."""
        self._products.append((Counter(map(id, variables)), most))
        self._memo.clear()

    def bind(self, var: e.Var, interval: Interval) -> None:
        """Set the interval of a variable.

        If it had another one before, all that was computed from that is forgotten.
        """
        if self.variables.get(id(var), interval) != interval:
            self._memo.clear()
        self.variables[id(var)] = interval

    def positive_factors(self, product: PrimExpr) -> AbstractContextManager[None]:
        """Within the block a product is at least 1, and so is each of its variables.

        Nothing is known of the variables if one factor may be negative.
        """
        factors = factors_of(product)
        if factors is None or factors[0] <= 0 or any(self.of(var)[0] < 0 for var in factors[1]):
            return nullcontext()
        return self._narrowed([(var, (1, self.of(var)[1])) for var in factors[1]])

    def where(self, condition: PrimExpr, holds: bool = True) -> AbstractContextManager[None]:
        """Within the block a condition holds (or does not), which may compare variables."""
        limits = list(_limits(condition, holds))
        return self._narrowed(limits) if limits else nullcontext()

    @contextmanager
    def _narrowed(self, limits: Sequence[tuple[e.Var, Interval]]) -> Iterator[None]:
        """Within the block variables lie within these intervals, too."""
        outer = [(var, self.of(var)) for var, _ in limits]
        for var, (low, high) in limits:
            known = self.of(var)
            self.bind(var, (max(low, known[0]), min(high, known[1])))
        try:
            yield
        finally:
            for var, interval in outer:
                self.bind(var, interval)

    def define(self, var: e.Var, value: PrimExpr) -> None:
        """Set the interval of a variable to that of its value, an integer expression."""
        self.bind(var, self.of(value))
        if _is_tested(self, value):
            self._tested[id(var)] = var

    def of(self, expr: PrimExpr) -> Interval:
        """The least and the largest value that ``expr`` can take, in any lane."""
        if isinstance(expr, IntImm):
            return expr.value, expr.value
        known = self._memo.get(id(expr))
        if known is not None:
            return known[1]
        interval = self._compute(expr)
        self._memo[id(expr)] = (expr, interval)
        return interval

    def _compute(self, expr: PrimExpr) -> Interval:
        dtype = expr.dtype
        if not dtype.is_integral:
            return -(1 << 63), (1 << 64) - 1
        full = integer_range(dtype)
        if isinstance(expr, e.Var):
            return self.variables.get(id(expr), full)
        rule = _RULES.get(type(expr))
        exact = None if rule is None else rule(self, expr)
        if exact is None or exact[0] < full[0] or exact[1] > full[1]:
            return full
        return exact

    def largest_product(self, expr: PrimExpr) -> int | None:
        """What a product is at most, by what is known of a product with more factors.

        Of ``n * t * t`` follows ``n * t``, which is 0 if ``t`` is, and no larger else; and where
        ``n`` is at least 1, ``t``.
        """
        factors = factors_of(expr)
        if not self._products or factors is None or factors[0] < 0:
            return None
        own = Counter(map(id, factors[1]))
        tops = [
            most
            for whole, most in self._products
            if own <= whole and all(self._is_positive(key) for key in whole.keys() - own.keys())
        ]
        return min(tops) * factors[0] if tops else None

    def _is_positive(self, variable: int) -> bool:
        """Whether the variable of that ``id`` is at least 1."""
        interval = self.variables.get(variable)
        return interval is not None and interval[0] >= 1

    def exact(self, expr: PrimExpr) -> Interval | None:
        """The interval of an Add, Sub or Mul if it cannot wrap, else None."""
        rule = _RULES.get(type(expr))
        exact = None if rule is None else rule(self, expr)
        low, high = integer_range(expr.dtype)
        return exact if exact is not None and low <= exact[0] and exact[1] <= high else None

    def nonzero(self, expr: PrimExpr) -> bool:
        """Whether the value is never 0."""
        low, high = self.of(expr)
        return low > 0 or high < 0 or _is_tested(self, expr)


def _limits(condition: PrimExpr, holds: bool) -> Iterator[tuple[e.Var, Interval]]:
    """The intervals of variables that a condition compares with constants, where it holds or not.

    ``n >= 14 and m < 4`` gives n (14, largest) and m (smallest, 3).
    """
    if isinstance(condition, e.And if holds else e.Or):
        yield from _limits(condition.a, holds)
        yield from _limits(condition.b, holds)
        return
    if not isinstance(condition, e.CompareExpr):
        return
    kind, var, limit = type(condition), condition.a, condition.b
    if isinstance(var, IntImm):
        kind, var, limit = e.SWAPPED[kind], limit, var
    interval = _INTERVALS.get(kind if holds else e.OPPOSITE[kind])
    if interval is None or not isinstance(var, e.Var) or not isinstance(limit, IntImm):
        return
    if var.dtype.is_integral and var.dtype.lanes == 1:
        yield var, interval(limit.value, *integer_range(var.dtype))


_INTERVALS: Final[dict[type, Callable[[int, int, int], Interval]]] = {
    e.LT: lambda limit, least, _: (least, limit - 1),
    e.LE: lambda limit, least, _: (least, limit),
    e.GT: lambda limit, _, largest: (limit + 1, largest),
    e.GE: lambda limit, _, largest: (limit, largest),
    e.EQ: lambda limit, _least, _largest: (limit, limit),
}
"""How a variable is compared with a limit -> its values, given those of its type."""


def _is_tested(ranges: Ranges, expr: PrimExpr) -> bool:
    """Whether a test has made sure that ``expr`` is not 0.

    It has where it is ``T.checked(b, b != 0, ...)``, a Select of two such values, or a variable
    that was defined as one.
    """
    if isinstance(expr, e.Var):
        return id(expr) in ranges._tested
    if isinstance(expr, e.Select):
        return ranges.nonzero(expr.true_value) and ranges.nonzero(expr.false_value)
    if not is_call(expr, "checked"):
        return False
    condition = expr.args[1]
    if not isinstance(condition, e.NE) or condition.a is not expr.args[0]:
        return False
    return ranges.of(condition.b) == (0, 0)


def _add(ranges: Ranges, expr: e.Add) -> Interval:
    (a, b), (c, d) = ranges.of(expr.a), ranges.of(expr.b)
    return a + c, b + d


def _sub(ranges: Ranges, expr: e.Sub) -> Interval:
    (a, b), (c, d) = ranges.of(expr.a), ranges.of(expr.b)
    return a - d, b - c


def _corners(compute: Callable[[int, int], int], x: Interval, y: Interval) -> Interval:
    values = [compute(i, j) for i in x for j in y]
    return min(values), max(values)


def _mul(ranges: Ranges, expr: e.Mul) -> Interval:
    low, high = _corners(lambda x, y: x * y, ranges.of(expr.a), ranges.of(expr.b))
    if high <= integer_range(expr.dtype)[1]:
        return low, high
    most = ranges.largest_product(expr)
    return (low, high) if most is None else (0, most)


def _floordiv(ranges: Ranges, expr: e.FloorDiv) -> Interval | None:
    y = ranges.of(expr.b)
    return _corners(lambda i, j: i // j, ranges.of(expr.a), y) if y[0] > 0 else None


def _div(ranges: Ranges, expr: e.Div) -> Interval | None:
    x, y = ranges.of(expr.a), ranges.of(expr.b)
    return _corners(lambda i, j: i // j, x, y) if y[0] > 0 and x[0] >= 0 else None


def _floormod(ranges: Ranges, expr: e.FloorMod) -> Interval | None:
    x, y = ranges.of(expr.a), ranges.of(expr.b)
    if y[0] <= 0:
        return None
    if y[0] == y[1] and x[0] // y[0] == x[1] // y[0]:
        return x[0] % y[0], x[1] % y[0]
    return 0, min(y[1] - 1, x[1]) if x[0] >= 0 else y[1] - 1


def _mod(ranges: Ranges, expr: e.Mod) -> Interval | None:
    x, y = ranges.of(expr.a), ranges.of(expr.b)
    if y[0] <= 0:
        return None
    return (0 if x[0] >= 0 else 1 - y[1]), min(y[1] - 1, x[1]) if x[0] >= 0 else y[1] - 1


def _min(ranges: Ranges, expr: e.Min) -> Interval:
    (a, b), (c, d) = ranges.of(expr.a), ranges.of(expr.b)
    return min(a, c), min(b, d)


def _max(ranges: Ranges, expr: e.Max) -> Interval:
    (a, b), (c, d) = ranges.of(expr.a), ranges.of(expr.b)
    return max(a, c), max(b, d)


def _either(ranges: Ranges, yes: PrimExpr, no: PrimExpr) -> Interval:
    (a, b), (c, d) = ranges.of(yes), ranges.of(no)
    return min(a, c), max(b, d)


def _ramp(ranges: Ranges, expr: e.Ramp) -> Interval:
    (a, b), (c, d) = ranges.of(expr.base), ranges.of(expr.stride)
    last = expr.dtype.lanes - 1
    return a + min(0, c * last), b + max(0, d * last)


def _let(ranges: Ranges, expr: e.Let) -> Interval | None:
    if expr.value.dtype.is_integral:
        ranges.define(expr.var, expr.value)
    return ranges.of(expr.body)


def _call(ranges: Ranges, expr: e.Call) -> Interval | None:
    if not isinstance(expr.op, Op):
        return None
    name = expr.op.name
    if name == "tir.if_then_else":
        return _either(ranges, expr.args[1], expr.args[2])
    if name in ("tir.likely", "tir.checked"):
        return ranges.of(expr.args[0])
    if name in ("tir.bitwise_and", "tir.shift_right") and expr.args:
        x, y = ranges.of(expr.args[0]), ranges.of(expr.args[1])
        if name == "tir.bitwise_and" and y[0] >= 0:
            return 0, y[1]
        if name == "tir.shift_right" and 0 <= y[0] and y[1] < 64:
            return _corners(lambda i, j: i >> j, x, y)
    return None


_RULES: Final[dict[type, Callable[[Ranges, Any], Interval | None]]] = {
    e.Add: _add, e.Sub: _sub, e.Mul: _mul, e.FloorDiv: _floordiv, e.FloorMod: _floormod,
    e.Div: _div, e.Mod: _mod, e.Min: _min, e.Max: _max,
    e.Select: lambda ranges, expr: _either(ranges, expr.true_value, expr.false_value),
    e.Cast: lambda ranges, expr: ranges.of(expr.value) if expr.value.dtype.is_integral else None,
    e.Broadcast: lambda ranges, expr: ranges.of(expr.value),
    e.Ramp: _ramp, e.Let: _let, e.Call: _call,
}  # fmt: skip
"""Class of an expression -> the interval of its value before it wraps; None where none is known."""


def size_range(dtype: DataType) -> Interval:
    """The interval of a symbol that is an extent, a stride or an offset of an argument."""
    return 0, integer_range(dtype)[1]
