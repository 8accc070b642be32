"""Let variables for values that an expression uses more than once, so that it stays small.

::

    @sharing
    def cube(bind, x):
        square = bind(x * x)
        return square * x + square

The arguments are bound to variables, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import overload

from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.tir.expr import Let, Var


class Bindings:
    """Binds values to new variables; ``around`` puts the lets around an expression."""

    def __init__(self) -> None:
        self._rows: list[tuple[Var, PrimExpr]] = []

    @overload
    def __call__(self, value: PrimExpr) -> PrimExpr: ...
    @overload
    def __call__(self, value: PrimExpr | float) -> PrimExpr | float: ...
    def __call__(self, value: PrimExpr | float) -> PrimExpr | float:
        """A variable for the value; a variable, a constant or a Python number stays as it is."""
        if not isinstance(value, PrimExpr) or isinstance(value, Var | IntImm | FloatImm):
            return value
        var = Var(f"t{len(self._rows)}", value.dtype)
        self._rows.append((var, value))
        return var

    def around(self, body: PrimExpr) -> PrimExpr:
        """The expression inside of the lets that define the variables."""
        for var, value in reversed(self._rows):
            body = Let(var, value, body)
        return body


def sharing(function: Callable[..., PrimExpr]) -> Callable[..., PrimExpr]:
    """The function without its first parameter, which gets new bindings in each call."""

    @functools.wraps(function)
    def computed(*args: PrimExpr | float) -> PrimExpr:
        bind = Bindings()
        return bind.around(function(bind, *map(bind, args)))

    return computed
