"""Equality of expressions with every variable and buffer standing for itself.

Faster than ``structural_equal`` and without its variable mapping: the simplifier asks it for every
repeated name of a pattern. TVM's ``expr_deep_equal``.
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import IntImm
from weft.ir.node import Node
from weft.ir.structural import plain_equal
from weft.tir.buffer import Buffer
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Or,
    SizeVar,
    Sub,
    Var,
)

BINARY: Final = frozenset(
    {Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or}
)
"""The classes with operands ``a`` and ``b``."""
_IDENTITY: Final = frozenset({Var, SizeVar, Buffer})


def expr_deep_equal(lhs: Any, rhs: Any) -> bool:
    """Whether both are the same expression; variables and buffers equal only themselves."""
    if lhs is rhs:
        return True
    kind = type(lhs)
    if kind is not type(rhs):
        return False
    if kind is IntImm:
        return bool(lhs.value == rhs.value and lhs.dtype is rhs.dtype)
    if kind in BINARY:
        return expr_deep_equal(lhs.a, rhs.a) and expr_deep_equal(lhs.b, rhs.b)
    if kind in _IDENTITY or not isinstance(lhs, Node):
        return kind not in _IDENTITY and _same_value(lhs, rhs)
    for name in lhs.INIT_FIELDS:
        if not _same_value(getattr(lhs, name), getattr(rhs, name)):
            return False
    return True


def _same_value(lhs: Any, rhs: Any) -> bool:
    if lhs is rhs:
        return True
    if isinstance(lhs, tuple):
        if not isinstance(rhs, tuple) or len(lhs) != len(rhs):
            return False
        for mine, its in zip(lhs, rhs, strict=True):
            if not _same_value(mine, its):
                return False
        return True
    if isinstance(lhs, Node):
        return expr_deep_equal(lhs, rhs)
    return plain_equal(lhs, rhs)
