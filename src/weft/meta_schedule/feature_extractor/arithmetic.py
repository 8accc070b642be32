"""How many operations of each kind a store computes, in all of its runs."""

from __future__ import annotations

from collections import Counter
from typing import Final

from weft.ir.expr import PrimExpr
from weft.meta_schedule.feature_extractor.numbers import operands_of, slog
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
)
from weft.tir.intrinsic import CallEffectKind, effect_of

KINDS: Final = ("mad", "add_sub", "mul", "div_mod", "cmp", "math_func", "other_func")
ORDER: Final = (
    *[f"float_{kind}" for kind in KINDS], *[f"int_{kind}" for kind in KINDS], "bool_op",
    "select_op",
)  # fmt: skip
_OF_BOTH: Final[dict[type, str]] = {
    Add: "add_sub", Sub: "add_sub", Mul: "mul", Div: "div_mod", Mod: "div_mod",
    FloorDiv: "div_mod", FloorMod: "div_mod", Max: "cmp", Min: "cmp", EQ: "cmp", NE: "cmp",
    LT: "cmp", LE: "cmp", GT: "cmp", GE: "cmp",
}  # fmt: skip
_OF_ONE: Final[dict[type, str]] = {
    And: "bool_op", Or: "bool_op", Not: "bool_op", Select: "select_op",
}  # fmt: skip
_PURE: Final = (CallEffectKind.Pure, CallEffectKind.ExprAnnotation)


def count_operations(value: PrimExpr) -> Counter[str]:
    """Operations of an expression, by the names in ``ORDER``."""
    counts: Counter[str] = Counter()
    _count(value, counts)
    return counts


def _count(expr: PrimExpr, counts: Counter[str]) -> None:
    kind = type(expr)
    if kind in _OF_ONE:
        counts[_OF_ONE[kind]] += 1
    else:
        name = _OF_BOTH.get(kind)
        if isinstance(expr, Call):
            name = "math_func" if effect_of(expr) in _PURE else "other_func"
        if name is not None:
            counts[f"{'float' if expr.dtype.is_float else 'int'}_{name}"] += 1
    for operand in operands_of(expr):
        _count(operand, counts)


def arithmetic_features(counts: Counter[str], runs: int) -> list[float]:
    """The logarithm of each count times the number of runs."""
    return [slog(counts[name] * runs) for name in ORDER]


def float_operations(counts: Counter[str]) -> int:
    """Operations on floating-point numbers."""
    return sum([count for name, count in counts.items() if name.startswith("float_")])
