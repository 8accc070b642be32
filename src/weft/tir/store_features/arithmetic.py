"""How many operations of each kind a store computes, in all of its runs."""

from __future__ import annotations

from collections import Counter
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.expr import (
    Add,
    Call,
    CompareExpr,
    Div,
    FloorDiv,
    FloorMod,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Select,
    Sub,
)
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.store_features.numbers import operands_of, slog

KINDS: Final = ("mad", "add_sub", "mul", "div_mod", "cmp", "math_func", "other_func")
ORDER: Final = (
    *[f"float_{kind}" for kind in KINDS], *[f"int_{kind}" for kind in KINDS], "bool_op",
    "select_op",
)  # fmt: skip
_OF_NUMBERS: Final[tuple[tuple[tuple[type, ...], str], ...]] = (
    ((Add, Sub), "add_sub"),
    ((Mul,), "mul"),
    ((Div, Mod, FloorDiv, FloorMod), "div_mod"),
    ((Max, Min, CompareExpr), "cmp"),
)
"""Operations that are counted for floats and for integers."""
_OF_TRUTH: Final[tuple[tuple[tuple[type, ...], str], ...]] = (
    ((LogicalExpr, Not), "bool_op"),
    ((Select,), "select_op"),
)
_PURE: Final = (CallEffectKind.Pure, CallEffectKind.ExprAnnotation)


def count_operations(value: PrimExpr) -> Counter[str]:
    """Operations of an expression, by the names in ``ORDER``."""
    counts: Counter[str] = Counter()
    _count(value, counts)
    return counts


def _count(expr: PrimExpr, counts: Counter[str]) -> None:
    name = _name(expr)
    if name is not None:
        counts[name] += 1
    for operand in operands_of(expr):
        _count(operand, counts)


def _name(expr: PrimExpr) -> str | None:
    """The name in ``ORDER`` of the operation of an expression; None if it has none."""
    for kinds, name in _OF_TRUTH:
        if isinstance(expr, kinds):
            return name
    prefix = "float" if expr.dtype.is_float else "int"
    if isinstance(expr, Call):
        return f"{prefix}_{'math_func' if effect_of(expr) in _PURE else 'other_func'}"
    return next(
        (f"{prefix}_{name}" for kinds, name in _OF_NUMBERS if isinstance(expr, kinds)), None
    )


def arithmetic_features(counts: Counter[str], runs: int) -> list[float]:
    """The logarithm of each count times the number of runs."""
    return [slog(counts[name] * runs) for name in ORDER]


def float_operations(counts: Counter[str]) -> int:
    """Operations on floating-point numbers."""
    return sum([count for name, count in counts.items() if name.startswith("float_")])
