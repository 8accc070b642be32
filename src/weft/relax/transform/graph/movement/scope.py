"""What the rules about data movement may ask: how a value was computed, what its axes are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np

from weft.ir.expr import PrimExpr
from weft.ir.operator_rules import OperatorRules
from weft.relax import op
from weft.relax.expr import Call, Constant, Expr
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value, same_dims


class Scope(Protocol):
    """The walk over a dataflow block."""

    def value(self, expr: Expr) -> Call | None:
        """The call that a variable of the current block is bound to, or None."""

    def emit(self, expr: Expr) -> Expr:
        """Bind a value after simplifying it; returns the new variable, or an equal old one."""

    def follows_product(self, expr: Expr) -> bool:
        """Whether a value is computed from a product by element-wise and moving operators only."""

    def is_used_once(self, expr: Expr) -> bool:
        """Whether a value of the old program is used once."""


Rule = Callable[[Scope, Call], Expr | None]
MOVEMENTS: Final = OperatorRules[Rule]("relax.")
"""Operator -> the rule for its calls."""

PERMUTE: Final = "relax.permute_dims"
RESHAPE: Final = "relax.reshape"


def name_of(call: Call | None) -> str:
    """The name of the operator that a call is of; "" for None."""
    return getattr(call.op, "name", "") if isinstance(call, Call) else ""


def producer(scope: Scope, expr: Expr, name: str) -> Call | None:
    """The call that computes a value, if it is a call of the operator ``name``; else None."""
    value = scope.value(expr)
    return value if name_of(value) == name else None


def dims_of(expr: Expr) -> list[PrimExpr] | None:
    """The extents of a tensor; None if they are not known."""
    dims = tensor_dims(getattr(expr, "struct_info", None))
    return None if dims is None else list(dims)


def is_unit(dim: PrimExpr) -> bool:
    """Whether an extent is 1."""
    return constant_value(dim) == 1


def without_units(dims: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The extents other than 1."""
    return [dim for dim in dims if not is_unit(dim)]


def moves_units_only(before: Sequence[PrimExpr], after: Sequence[PrimExpr]) -> bool:
    """Whether a reshape only adds and removes axes of extent 1."""
    return same_dims(without_units(before), without_units(after))


def axes_of(call: Call) -> list[int] | None:
    """The axes of a ``permute_dims``, counted from 0; None if the rank is unknown."""
    dims = dims_of(call.args[0])
    if dims is None:
        return None
    axes = call.attrs["axes"]
    if axes is None:
        return list(range(len(dims)))[::-1]
    return [int(axis) % len(dims) for axis in axes]


def inverse(axes: Sequence[int]) -> list[int]:
    """The axes that undo a permutation.

    >>> inverse([2, 0, 1])
    [1, 2, 0]
    """
    return [list(axes).index(axis) for axis in range(len(axes))]


def permuted(scope: Scope, expr: Expr, axes: Sequence[int]) -> Expr:
    """Emit the permutation of a tensor's axes; returns the variable."""
    return scope.emit(op.permute_dims(expr, list(axes)))


def reshaped(scope: Scope, expr: Expr, dims: Sequence[PrimExpr]) -> Expr:
    """Emit the reshape of a tensor; returns the variable."""
    return scope.emit(op.reshape(expr, list(dims)))


def constant_of(expr: Expr) -> np.ndarray | None:
    """The array of a constant, else None."""
    return expr.data.numpy() if isinstance(expr, Constant) else None
