"""Arithmetic, comparisons, logic, bits and choices: functions that fold constants or build nodes.

Folding is exact: integers wrap to their width, as in hardware, and no rule for floats changes a
result (``0.0 * x`` stays, since ``x`` may be NaN).
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from weft.ir.expr import ExprLike, FloatImm, IntImm, PrimExpr, StringImm, as_prim_expr
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.support.span import Span
from weft.tir import expr as nodes
from weft.tir.constant import cast, const, is_const_int, match_types, wrap


class BinaryOperator(Protocol):
    """An operator function of two values."""

    __name__: str

    def __call__(self, lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr: ...


Number: TypeAlias = Any
"""A number during folding: a Python int for integers, a numpy scalar for floats."""
_NUMBERS: Final = (IntImm, FloatImm)


def _constants(
    a: PrimExpr, b: PrimExpr, compute: Callable[[Number, Number], Number]
) -> PrimExpr | None:
    """The folded constant of two constants; None if they are not both constant."""
    if not isinstance(a, _NUMBERS) or not isinstance(b, _NUMBERS):
        return None
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return IntImm(a.dtype, wrap(compute(a.value, b.value), a.dtype))
    if isinstance(a, FloatImm) and isinstance(b, FloatImm) and a.dtype.kind == "float":
        kind = a.dtype.numpy.type
        with np.errstate(all="ignore"):
            return FloatImm(a.dtype, float(compute(kind(a.value), kind(b.value))))
    return None


def add(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """lhs + rhs."""
    a, b = match_types(lhs, rhs)
    folded = _constants(a, b, lambda x, y: x + y)
    if folded is not None:
        return folded
    if is_const_int(a, 0):
        return b
    return a if is_const_int(b, 0) else nodes.Add(a, b, span)


def subtract(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """lhs - rhs."""
    a, b = match_types(lhs, rhs)
    folded = _constants(a, b, lambda x, y: x - y)
    if folded is not None:
        return folded
    return a if is_const_int(b, 0) else nodes.Sub(a, b, span)


def multiply(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """lhs * rhs."""
    a, b = match_types(lhs, rhs)
    folded = _constants(a, b, lambda x, y: x * y)
    if folded is not None:
        return folded
    if is_const_int(a, 0) or is_const_int(b, 1):
        return a
    return b if is_const_int(a, 1) or is_const_int(b, 0) else nodes.Mul(a, b, span)


def div(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """a / b as C divides: integers truncate."""
    return _truncated(a, b, span, "div")


def truncdiv(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """Integer division rounded towards zero."""
    return _truncated(a, b, span, "truncdiv")


def truncated_quotient(a: int, b: int) -> int:
    """Division rounded towards zero."""
    return builtins.abs(a) // builtins.abs(b) * (1 if (a < 0) == (b < 0) else -1)


def truncated_remainder(a: int, b: int) -> int:
    """The remainder of ``truncated_quotient``; it has the sign of ``a``."""
    return a - truncated_quotient(a, b) * b


def _divided(
    kind: type[nodes.BinaryExpr],
    operands: tuple[PrimExpr, PrimExpr],
    compute: Callable[[Number, Number], Number],
    span: Span | None,
    name: str,
) -> PrimExpr:
    """A quotient or remainder of operands of one type, folded where it is known."""
    lhs, rhs = operands
    if is_const_int(rhs, 0):
        raise IRValueError(f"{name}: the divisor is the constant 0")
    folded = _constants(lhs, rhs, compute)
    if folded is not None:
        return folded
    if is_const_int(rhs, 1):
        return lhs if kind in (nodes.Div, nodes.FloorDiv) else IntImm(lhs.dtype, 0)
    if is_const_int(lhs, 0) and kind in (nodes.FloorDiv, nodes.FloorMod):
        return lhs
    return kind(lhs, rhs, span)


def _truncated(a: ExprLike, b: ExprLike, span: Span | None, name: str) -> PrimExpr:
    pair = match_types(a, b)
    compute = operator.truediv if isinstance(pair[0], FloatImm) else truncated_quotient
    return _divided(nodes.Div, pair, compute, span, name)


def truncmod(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """The remainder of truncdiv; its sign is a's."""
    pair = match_types(a, b)
    compute = np.fmod if isinstance(pair[0], FloatImm) else truncated_remainder
    return _divided(nodes.Mod, pair, compute, span, "truncmod")


def divide(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """``/`` in a program: a true division; for integers, IRTypeError, since it is ambiguous."""
    a, b = match_types(lhs, rhs)
    if a.dtype.is_integral:
        raise IRTypeError(
            f"/ on {a.dtype} is ambiguous: use // (floor) or tir.truncdiv, or cast to a float"
        )
    return div(a, b, span)


def floordiv(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """Division rounded towards minus infinity."""
    return _divided(nodes.FloorDiv, match_types(a, b), operator.floordiv, span, "floordiv")


def floormod(a: ExprLike, b: ExprLike, span: Span | None = None) -> PrimExpr:
    """The remainder of floordiv; its sign is b's."""
    return _divided(nodes.FloorMod, match_types(a, b), operator.mod, span, "floormod")


indexdiv = floordiv

indexmod = floormod


def ceildiv(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """Integer division rounded towards plus infinity, for a positive divisor."""
    a, b = match_types(lhs, rhs)
    return floordiv(add(a, subtract(b, IntImm(b.dtype, 1))), b, span)


def min(*args: ExprLike, **kwargs: object) -> PrimExpr:  # noqa: A001 - TVM's name
    """The smaller of two values; with ``axis`` a reduction (TE)."""
    return _extreme("min", args, kwargs)


def max(*args: ExprLike, **kwargs: object) -> PrimExpr:  # noqa: A001 - TVM's name
    """The larger of two values; with ``axis`` a reduction (TE)."""
    return _extreme("max", args, kwargs)


def _extreme(name: str, args: Sequence[ExprLike], kwargs: Mapping[str, object]) -> PrimExpr:
    if "axis" in kwargs or (len(args) > 1 and isinstance(args[1], (nodes.IterVar, list, tuple))):
        reduction: PrimExpr = _REDUCERS[name](*args, **kwargs)
        return reduction
    values = args[:-1] if len(args) == 3 and isinstance(args[2], (Span, type(None))) else args
    if len(values) < 2:
        raise IRTypeError(f"{name}: expected two values, or a value and axis=, got {len(args)}")
    return functools.reduce(
        minimum if name == "min" else maximum, values[1:], as_prim_expr(values[0])
    )


def _minimum(x: Number, y: Number) -> Number:
    """The smaller number; for floats as in IEEE 754-2019, where -0.0 is less than 0.0."""
    if isinstance(x, np.floating):
        return -(-x - y) if x == 0 and y == 0 else np.minimum(x, y)
    return x if x <= y else y


def _maximum(x: Number, y: Number) -> Number:
    """The larger number; for floats as in IEEE 754-2019, where -0.0 is less than 0.0."""
    if isinstance(x, np.floating):
        return x + y if x == 0 and y == 0 else np.maximum(x, y)
    return x if x >= y else y


def minimum(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """The ``Min`` node of two values."""
    a, b = match_types(lhs, rhs)
    folded = _constants(a, b, _minimum)
    if folded is not None:
        return folded
    return a if a is b else nodes.Min(a, b, span)


def maximum(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """The ``Max`` node of two values."""
    a, b = match_types(lhs, rhs)
    folded = _constants(a, b, _maximum)
    if folded is not None:
        return folded
    return a if a is b else nodes.Max(a, b, span)


def _comparison(
    kind: type[nodes.CompareExpr], compute: Callable[[Number, Number], bool]
) -> BinaryOperator:
    def compare(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
        a, b = match_types(lhs, rhs)
        if isinstance(a, (IntImm, FloatImm)) and isinstance(b, (IntImm, FloatImm)):
            return IntImm(DataType("bool"), int(compute(a.value, b.value)))
        return kind(a, b, span)

    compare.__name__ = compare.__qualname__ = kind.__name__
    compare.__doc__ = f"{kind.__doc__} As an expression; equal constants fold."
    return compare


less = _comparison(nodes.LT, lambda x, y: x < y)

less_equal = _comparison(nodes.LE, lambda x, y: x <= y)

greater = _comparison(nodes.GT, lambda x, y: x > y)

greater_equal = _comparison(nodes.GE, lambda x, y: x >= y)

equal = _comparison(nodes.EQ, lambda x, y: x == y)

not_equal = _comparison(nodes.NE, lambda x, y: x != y)


def python_equal(lhs: object, rhs: object) -> Any:
    """``==`` on expressions: an EQ node, or NotImplemented if the types have no common type."""
    return _python_comparison(nodes.EQ, lhs, rhs)


def python_not_equal(lhs: object, rhs: object) -> Any:
    """``!=`` on expressions: an NE node, or NotImplemented if the types have no common type."""
    return _python_comparison(nodes.NE, lhs, rhs)


def _python_comparison(kind: type[nodes.CompareExpr], lhs: Any, rhs: Any) -> Any:
    if rhs is None or isinstance(rhs, (str, StringImm, list, tuple, dict)):
        return NotImplemented
    try:
        a, b = match_types(lhs, rhs)
    except IRTypeError:
        return NotImplemented
    if isinstance(a, (IntImm, FloatImm)) and isinstance(b, (IntImm, FloatImm)):
        same = _python_value(lhs) == _python_value(rhs)
        if same != (a.value == b.value):  # different numbers that the common type makes equal
            return IntImm(DataType("bool"), int(same == (kind is nodes.EQ)))
    return kind(a, b)


def _python_value(value: object) -> Number:
    """The number by which a constant is hashed: equal constants must have equal hashes."""
    value = as_prim_expr(value) if hasattr(value, "as_prim_expr") else value
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    return value.item() if isinstance(value, np.generic) else value


def logical_and(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """lhs and rhs."""
    a, b = _boolean(lhs), _boolean(rhs)
    for constant, other in ((a, b), (b, a)):
        if isinstance(constant, IntImm):
            return other if constant.value else constant
    return nodes.And(a, b, span)


def logical_or(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
    """lhs or rhs."""
    a, b = _boolean(lhs), _boolean(rhs)
    for constant, other in ((a, b), (b, a)):
        if isinstance(constant, IntImm):
            return constant if constant.value else other
    return nodes.Or(a, b, span)


def logical_not(value: ExprLike, span: Span | None = None) -> PrimExpr:
    """not value."""
    expr = _boolean(value)
    if isinstance(expr, IntImm):
        return IntImm(expr.dtype, int(not expr.value))
    return nodes.Not(expr, span)


def _boolean(value: ExprLike) -> PrimExpr:
    expr = as_prim_expr(value)
    return expr if expr.dtype.is_bool else cast(_bool_type(expr.dtype), expr)


def _bool_type(dtype: DataType) -> DataType:
    return DataType("bool") if dtype.lanes == 1 else DataType("bool").with_lanes(dtype.lanes)


def all(  # noqa: A001 - TVM's name
    *args: ExprLike | Sequence[ExprLike], span: Span | None = None
) -> PrimExpr:
    """The conjunction of conditions, or of a list of them."""
    return _chain(logical_and, args, "all")


def any(  # noqa: A001 - TVM's name
    *args: ExprLike | Sequence[ExprLike], span: Span | None = None
) -> PrimExpr:
    """The disjunction of conditions, or of a list of them."""
    return _chain(logical_or, args, "any")


def _chain(join: BinaryOperator, args: Sequence[Any], name: str) -> PrimExpr:
    conditions = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    if not conditions:
        raise IRValueError(f"{name}: expected at least one condition")
    result = _boolean(conditions[0])
    for condition in conditions[1:]:
        result = join(result, condition)
    return result


def negative(value: ExprLike, span: Span | None = None) -> PrimExpr:
    """-value: ``value * -1`` for expressions, as TVM writes it."""
    expr = as_prim_expr(value)
    if isinstance(expr, IntImm):
        return IntImm(expr.dtype, wrap(-expr.value, expr.dtype))
    if isinstance(expr, FloatImm):
        return FloatImm(expr.dtype, -expr.value)
    return (
        multiply(expr, const(-1, expr.dtype))
        if not expr.dtype.is_uint
        else subtract(const(0, expr.dtype), expr)
    )


def _bitwise(name: str, compute: Callable[[int, int], int]) -> BinaryOperator:
    def apply(lhs: ExprLike, rhs: ExprLike, span: Span | None = None) -> PrimExpr:
        a, b = match_types(lhs, rhs)
        if not a.dtype.is_integral:
            raise IRTypeError(f"{name}: expected integers, got {a.dtype}")
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            return IntImm(a.dtype, wrap(compute(a.value, b.value), a.dtype))
        return nodes.Call(a.dtype, Op.get(f"tir.{name}"), (a, b), span)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"The ``tir.{name}`` of two integers; constants fold."
    return apply


bitwise_and = _bitwise("bitwise_and", lambda x, y: x & y)

bitwise_or = _bitwise("bitwise_or", lambda x, y: x | y)

bitwise_xor = _bitwise("bitwise_xor", lambda x, y: x ^ y)

left_shift = shift_left = _bitwise("shift_left", lambda x, n: x << n if 0 <= n < 64 else 0)

right_shift = shift_right = _bitwise(
    "shift_right", lambda x, n: x >> n if 0 <= n < 64 else -1 if x < 0 else 0
)


def bitwise_not(value: ExprLike, span: Span | None = None) -> PrimExpr:
    """All bits flipped; ``not`` for booleans."""
    expr = as_prim_expr(value)
    if expr.dtype.is_bool:
        return logical_not(expr)
    if not expr.dtype.is_integral:
        raise IRTypeError(f"bitwise_not: expected an integer, got {expr.dtype}")
    if isinstance(expr, IntImm):
        return IntImm(expr.dtype, wrap(~expr.value, expr.dtype))
    return nodes.Call(expr.dtype, Op.get("tir.bitwise_not"), (expr,), span)


bitwise_neg = bitwise_not


def if_then_else(cond: ExprLike, t: ExprLike, f: ExprLike, span: Span | None = None) -> PrimExpr:
    """``t`` where ``cond``, else ``f``; only the chosen one is evaluated."""
    condition = _boolean(cond)
    a, b = match_types(t, f)
    if isinstance(condition, IntImm):
        return a if condition.value else b
    nodes.check_chooses("if_then_else", condition, a)
    return nodes.Call(a.dtype, Op.get("tir.if_then_else"), (condition, a, b), span)


def select(cond: ExprLike, t: ExprLike, f: ExprLike, span: Span | None = None) -> PrimExpr:
    """``t`` where ``cond``, else ``f``; both may be evaluated."""
    a, b = match_types(t, f)
    return nodes.Select(_boolean(cond), a, b, span)


def power(x: ExprLike, y: ExprLike, span: Span | None = None) -> PrimExpr:
    """x ** y."""
    a, b = match_types(x, y)
    if isinstance(b, (IntImm, FloatImm)) and b.value in (0, 1):
        return a if b.value == 1 else const(1, a.dtype)
    return nodes.Call(a.dtype, Op.get("tir.pow"), (a, b), span)


pow = power  # noqa: A001 - TVM's name


def abs(x: ExprLike, span: Span | None = None) -> PrimExpr:  # noqa: A001 - TVM's name
    """The absolute value; the smallest integer wraps to itself."""
    expr = as_prim_expr(x)
    if isinstance(expr, IntImm):
        return IntImm(expr.dtype, wrap(-expr.value if expr.value < 0 else expr.value, expr.dtype))
    if expr.dtype.is_uint or expr.dtype.is_bool:
        return expr
    return nodes.Call(expr.dtype, Op.get("tir.fabs"), (expr,), span)


def add_n(*values: ExprLike) -> PrimExpr:
    """The sum of several values."""
    total = as_prim_expr(values[0])
    for value in values[1:]:
        total = add(total, value)
    return total


def comm_reducer(fcombine: object, fidentity: object, name: str = "reduce") -> Any:
    """A reduction from a combiner and its identity (``weft.te.reduction`` defines it)."""
    return _REDUCERS["comm_reducer"](fcombine, fidentity, name)


def sum(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Any:  # noqa: A001 - TVM's
    """The sum over reduction axes (TE)."""
    return _REDUCERS["sum"](expr, axis, where, init)


_REDUCERS: Final[dict[str, Callable[..., Any]]] = {}


def register_reducers(**reducers: Callable[..., object]) -> None:
    """Register the implementations of ``sum``, ``min`` and so on, which ``weft.te`` has."""
    _REDUCERS.update(reducers)
