"""Equality of expressions, in which a variable or buffer equals only itself.

It is faster than ``structural_equal``, since it maps no variables: the simplifier uses it for every
name that a pattern repeats. It is TVM's ``expr_deep_equal``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def expr_deep_equal(lhs: object, rhs: object) -> bool:
    """Whether both are the same expression; variables and buffers equal only themselves."""
    if lhs is rhs:
        return True
    if type(lhs) is not type(rhs):
        return False
    return _equal(lhs, rhs, set())


def _equal(lhs: Any, rhs: Any, known: set[tuple[int, int]]) -> bool:
    """``expr_deep_equal``; ``known`` are pairs of ids that were found equal before."""
    if lhs is rhs:
        return True
    kind = type(lhs)
    if kind is not type(rhs):
        return False
    if kind is IntImm:
        return bool(lhs.value == rhs.value and lhs.dtype is rhs.dtype)
    if kind in _IDENTITY:
        return False
    if kind not in BINARY and not isinstance(lhs, Node):
        return _same_value(lhs, rhs, known)
    pair = (id(lhs), id(rhs))
    if pair in known:
        return True
    if kind in BINARY:
        if not (_equal(lhs.a, rhs.a, known) and _equal(lhs.b, rhs.b, known)):
            return False
    else:
        for name in lhs.INIT_FIELDS:
            if not _same_value(getattr(lhs, name), getattr(rhs, name), known):
                return False
    known.add(pair)
    return True


def contains_deep_equal(exprs: Iterable[object], expr: object) -> bool:
    """Whether one of ``exprs`` is the same expression as ``expr``."""
    for known in exprs:
        if expr_deep_equal(known, expr):
            return True
    return False


def all_deep_equal(lhs: Sequence[object], rhs: Sequence[object]) -> bool:
    """Whether two lists of the same length have the same expressions in the same places."""
    return all(expr_deep_equal(left, right) for left, right in zip(lhs, rhs, strict=True))


def _same_value(lhs: object, rhs: object, known: set[tuple[int, int]]) -> bool:
    if lhs is rhs:
        return True
    if isinstance(lhs, tuple):
        if not isinstance(rhs, tuple) or len(lhs) != len(rhs):
            return False
        for left, right in zip(lhs, rhs, strict=True):
            if not _same_value(left, right, known):
                return False
        return True
    if isinstance(lhs, Node):
        return _equal(lhs, rhs, known)
    return plain_equal(lhs, rhs)
