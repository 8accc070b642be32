"""Constant bounds of integer expressions: the smallest and largest value they can take.

Follows TVM's ConstIntBound: 64-bit limits stand for infinity. Index arithmetic (int32, int64 of
variables) is taken not to overflow; arithmetic on *data* (buffer elements, results of calls) wraps,
so that its bound is that of its type where it could overflow (``may_wrap``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar, Final

from weft.arith.data import has_data
from weft.arith.deep_equal import BINARY, expr_deep_equal
from weft.arith.facts import Facts, is_index
from weft.arith.modular_set import ModularSetAnalyzer
from weft.ir.expr import IntImm, PrimExpr, integer_range
from weft.ir.node import NODE_TYPES, Node
from weft.support.dtype import DataType
from weft.tir.arithmetic import truncated_quotient
from weft.tir.expr import (
    Add,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    CompareExpr,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Ramp,
    Select,
    SizeVar,
    Sub,
    Var,
)

POS_INF: Final = (1 << 63) - 1
NEG_INF: Final = -POS_INF
_FAR: Final = 1 << 62
Bound = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ConstIntBound:
    """Inclusive bounds; ``POS_INF`` and ``NEG_INF`` stand for no bound."""

    min_value: int
    max_value: int

    POS_INF: ClassVar[int] = POS_INF
    NEG_INF: ClassVar[int] = NEG_INF

    def __repr__(self) -> str:
        return f"ConstIntBound[{_text(self.min_value)}, {_text(self.max_value)}]"


def _text(value: int) -> str:
    return {POS_INF: "pos_inf", NEG_INF: "neg_inf"}.get(value, str(value))


def type_bound(dtype: DataType) -> Bound:
    """What a value of the type can be; unbounded for 64-bit integers and for no integers."""
    if not dtype.is_integral or dtype.bits >= 64:
        return (0 if dtype.is_uint else NEG_INF), POS_INF
    return integer_range(dtype.element)


def clamp(low: int, high: int) -> Bound:
    """The bound, with ends beyond 2**62 replaced by infinity."""
    return (NEG_INF if low <= -_FAR else low), (POS_INF if high >= _FAR else high)


def _divide(value: int, by: int, floor: bool) -> int:
    """Division with infinities: infinity stays, by infinity is 0 (or -1 rounded down)."""
    if abs(value) >= _FAR:
        return POS_INF if (value > 0) == (by > 0) else NEG_INF
    if abs(by) >= _FAR:
        return -1 if floor and value and (value < 0) != (by < 0) else 0
    return value // by if floor else truncated_quotient(value, by)


def _division_bound(a: Bound, b: Bound, floor: bool) -> Bound:
    """The smallest and largest quotient of the ends; a divisor of zero is excluded."""
    divisors = [value for value in b if value]
    if b[0] < 0 < b[1] or b[0] == 0 or b[1] == 0:
        divisors += [value for value in (-1, 1) if b[0] <= value <= b[1]]
    if not divisors:
        return NEG_INF, POS_INF
    corners = [_divide(value, by, floor) for value in a for by in divisors]
    if a[0] < 0 < a[1]:
        corners.append(0)
    return min(corners), max(corners)


class BoundAnalyzer:
    """Computes bounds under the facts of an Analyzer."""

    def __init__(self, facts: Facts, modular: ModularSetAnalyzer) -> None:
        self.facts = facts
        self.modular = modular

    def bound(self, expr: PrimExpr) -> Bound:
        """Inclusive (min, max)."""
        if type(expr) is IntImm:
            return expr.value, expr.value
        memoised = self.facts.bound_memo.get(id(expr))
        if memoised is not None:
            return memoised[1]
        handler = _HANDLERS.get(type(expr))
        result = type_bound(expr.dtype) if handler is None else handler(self, expr)
        for known, low, high in self.facts.expr_bounds:
            if expr_deep_equal(known, expr):
                result = max(result[0], low), min(result[1], high)
        self.facts.bound_memo[id(expr)] = expr, result
        return result

    def may_wrap(self, expr: Any) -> bool:
        """Whether arithmetic on data inside ``expr`` may leave the range of its type."""
        if not has_data(expr):
            return False
        kind = type(expr)
        if kind in (Add, Sub, Mul):
            low, high = _arithmetic(self, expr)
            type_low, type_high = integer_range(expr.dtype.element)
            if low < type_low or high > type_high or low <= NEG_INF or high >= POS_INF:
                return True
        if kind in BINARY:
            return self.may_wrap(expr.a) or self.may_wrap(expr.b)
        if kind is Select:
            return self.may_wrap(expr.true_value) or self.may_wrap(expr.false_value)
        return False

    def visit_var(self, expr: Var) -> Bound:
        self.facts.seen.add(expr)
        known = self.facts.bounds.get(expr)
        if known is not None:
            return known
        low, high = type_bound(expr.dtype)
        return (max(low, 0), high) if type(expr) is SizeVar else (low, high)

    def visit_arithmetic(self, expr: BinaryExpr) -> Bound:
        return _wrapped(expr, _arithmetic(self, expr))

    def visit_floordiv(self, expr: FloorDiv) -> Bound:
        return self._quotient(expr, floor=True)

    def visit_truncdiv(self, expr: Div) -> Bound:
        return self._quotient(expr, floor=False)

    def _quotient(self, expr: FloorDiv | Div, floor: bool) -> Bound:
        by = self.bound(expr.b)
        bound = _division_bound(self.bound(expr.a), by, floor)
        # Only the smallest number divided by -1 leaves the type.
        return _wrapped(expr, bound) if by[0] <= -1 <= by[1] else bound

    def visit_floormod(self, expr: FloorMod) -> Bound:
        a, b = self.bound(expr.a), self.bound(expr.b)
        if b[0] <= 0:
            low = NEG_INF if b[0] == NEG_INF else min(b[0] + 1, 0)
            return low, b[1] if b[1] == POS_INF else max(b[1] - 1, 0)
        if a[0] >= 0:
            if a[1] < b[0]:
                return a
            high = min(a[1], b[1] if b[1] == POS_INF else b[1] - 1)
        else:
            high = b[1] if b[1] == POS_INF else b[1] - 1
        if b[0] == b[1]:
            coeff, base = self.modular.modular(expr.a)
            step = gcd(coeff, b[0])
            if step > 1:
                return base % step, min(high, b[0] - step + base % step)
        return 0, high

    def visit_truncmod(self, expr: Mod) -> Bound:
        a, b = self.bound(expr.a), self.bound(expr.b)
        largest = max(abs(b[0]), abs(b[1])) - 1
        if b[0] > 0 and 0 <= a[0] and a[1] < b[0]:
            return a
        low = 0 if a[0] >= 0 else max(a[0], -largest)
        return low, (0 if a[1] <= 0 else min(a[1], largest))

    def visit_min(self, expr: Min) -> Bound:
        a, b = self.bound(expr.a), self.bound(expr.b)
        return min(a[0], b[0]), min(a[1], b[1])

    def visit_max(self, expr: Max) -> Bound:
        a, b = self.bound(expr.a), self.bound(expr.b)
        return max(a[0], b[0]), min(max(a[1], b[1]), POS_INF)  # a number of uint64 may be larger

    def _union(self, lhs: PrimExpr, rhs: PrimExpr) -> Bound:
        a, b = self.bound(lhs), self.bound(rhs)
        return min(a[0], b[0]), min(max(a[1], b[1]), POS_INF)

    def visit_select(self, expr: Select) -> Bound:
        return self._union(expr.true_value, expr.false_value)

    def visit_truth(self, expr: PrimExpr) -> Bound:
        return 0, 1

    def visit_cast(self, expr: Cast) -> Bound:
        low, high = type_bound(expr.dtype)
        if not (expr.value.dtype.is_integral and expr.dtype.is_integral):
            return low, high
        inner = self.bound(expr.value)
        if expr.dtype.is_bool:
            return (0, 1) if inner[0] <= 0 <= inner[1] else (1, 1)
        if inner[1] == POS_INF and expr.value.dtype.is_uint and expr.dtype.is_int:
            return low, high  # a uint64 of 2**63 or more becomes negative
        return inner if low <= inner[0] and inner[1] <= high else (low, high)

    def visit_ramp(self, expr: Ramp) -> Bound:
        base, stride = self.bound(expr.base), self.bound(expr.stride)
        lanes = expr.lanes.value if isinstance(expr.lanes, IntImm) else _FAR
        ends = [0, stride[0] * (lanes - 1), stride[1] * (lanes - 1)]
        return _wrapped(expr, clamp(base[0] + min(ends), base[1] + max(ends)))

    def visit_broadcast(self, expr: Broadcast) -> Bound:
        return self.bound(expr.value)

    def visit_let(self, expr: Let) -> Bound:
        if expr.var not in self.facts.bounds:
            self.facts.bounds[expr.var] = self.bound(expr.value)
        return self.bound(expr.body)

    def visit_call(self, expr: Call) -> Bound:
        name = getattr(expr.op, "name", "")
        limits = type_bound(expr.dtype)
        if name == "tir.if_then_else":
            return self._union(expr.args[1], expr.args[2])
        if name == "tir.likely":
            return self.bound(expr.args[0])
        if name == "tir.vscale":
            return 1, limits[1]
        if name in ("tir.clz", "tir.popcount"):
            return 0, expr.args[0].dtype.bits
        if name == "tir.shift_left" and _plain_indices(expr):
            a, b = self.bound(expr.args[0]), self.bound(expr.args[1])
            known = 0 <= a[0] <= a[1] < _FAR and 0 <= b[0] <= b[1] < 64  # false for empty loops
            top = a[1] << b[1] if known else POS_INF
            return (a[0] << b[0], top) if top <= limits[1] and top < _FAR else limits
        if name in ("tir.shift_right", "tir.bitwise_and") and expr.dtype.is_integral:
            a, b = self.bound(expr.args[0]), self.bound(expr.args[1])
            if name == "tir.shift_right" and b[0] == b[1] and 0 <= b[0] < 63 and a[0] >= NEG_INF:
                return _division_bound(a, (1 << b[0], 1 << b[0]), floor=True)
            if name == "tir.bitwise_and" and (a[0] >= 0 or b[0] >= 0):
                return 0, min(side[1] for side in (a, b) if side[0] >= 0)
        return limits


def _plain_indices(call: Call) -> bool:
    """Whether the operands are index arithmetic without data."""
    if has_data(call.args[0]) or has_data(call.args[1]):
        return False
    return is_index(call.dtype)


def _arithmetic(analyzer: BoundAnalyzer, expr: BinaryExpr) -> Bound:
    """Bounds of a sum, difference or product that is taken not to overflow."""
    a, b = analyzer.bound(expr.a), analyzer.bound(expr.b)
    kind = type(expr)
    if kind is Add:
        return clamp(a[0] + b[0], a[1] + b[1])
    if kind is Sub:
        return clamp(a[0] - b[1], a[1] - b[0])
    if b[0] == b[1] and b[0] >= 0:
        return clamp(a[0] * b[0], a[1] * b[0])
    corners = a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]
    return clamp(min(corners), max(corners))


def _wrapped(expr: BinaryExpr | Ramp, bound: Bound) -> Bound:
    """The bounds of arithmetic that wraps: those of the type where its result may leave it.

    Arithmetic of index types wraps on data alone: of loop variables and sizes it is taken not to.
    Narrower types always wrap: of ``i: int8`` below 100, ``i + i`` may be -128.
    """
    if not expr.dtype.is_integral or (is_index(expr.dtype.element) and not has_data(expr)):
        return bound
    low, high = integer_range(expr.dtype.element)
    # An infinite end stands for every number beyond 2**62: of int64 and uint64 it may wrap, too.
    finite = NEG_INF < bound[0] and bound[1] < POS_INF
    return bound if finite and low <= bound[0] and bound[1] <= high else type_bound(expr.dtype)


_HANDLERS: Final[dict[type[Node], Callable[[BoundAnalyzer, Any], Bound]]] = {
    Var: BoundAnalyzer.visit_var,
    SizeVar: BoundAnalyzer.visit_var,
    Add: BoundAnalyzer.visit_arithmetic,
    Sub: BoundAnalyzer.visit_arithmetic,
    Mul: BoundAnalyzer.visit_arithmetic,
    FloorDiv: BoundAnalyzer.visit_floordiv,
    FloorMod: BoundAnalyzer.visit_floormod,
    Div: BoundAnalyzer.visit_truncdiv,
    Mod: BoundAnalyzer.visit_truncmod,
    Min: BoundAnalyzer.visit_min,
    Max: BoundAnalyzer.visit_max,
    Select: BoundAnalyzer.visit_select,
    Cast: BoundAnalyzer.visit_cast,
    Ramp: BoundAnalyzer.visit_ramp,
    Broadcast: BoundAnalyzer.visit_broadcast,
    Let: BoundAnalyzer.visit_let,
    Call: BoundAnalyzer.visit_call,
    Not: BoundAnalyzer.visit_truth,
    **dict.fromkeys(
        [kind for kind in NODE_TYPES.values() if issubclass(kind, CompareExpr | LogicalExpr)],
        BoundAnalyzer.visit_truth,
    ),
}
