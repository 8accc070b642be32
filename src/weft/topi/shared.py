"""Names for values that one expression uses more than once, so that it stays a short tree.

::

    @sharing
    def cube(bind, x):
        square = bind(x * x)
        return square * x + square

The arguments are bound too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import overload

from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.tir.expr import Let, Var


class Bindings:
    """Calls give the variable of a value; ``around`` defines all of them."""

    def __init__(self) -> None:
        self._rows: list[tuple[Var, PrimExpr]] = []

    @overload
    def __call__(self, value: PrimExpr) -> PrimExpr: ...
    @overload
    def __call__(self, value: PrimExpr | float) -> PrimExpr | float: ...
    def __call__(self, value: PrimExpr | float) -> PrimExpr | float:
        """A variable of the value; a variable, a constant or a Python number is itself."""
        if not isinstance(value, PrimExpr) or isinstance(value, Var | IntImm | FloatImm):
            return value
        var = Var(f"t{len(self._rows)}", value.dtype)
        self._rows.append((var, value))
        return var

    def around(self, body: PrimExpr) -> PrimExpr:
        """The expression with the variables defined."""
        for var, value in reversed(self._rows):
            body = Let(var, value, body)
        return body


def sharing(function: Callable[..., PrimExpr]) -> Callable[..., PrimExpr]:
    """The function of expressions without its first parameter, the bindings."""

    @functools.wraps(function)
    def computed(*args: PrimExpr | float) -> PrimExpr:
        bind = Bindings()
        return bind.around(function(bind, *map(bind, args)))

    return computed
