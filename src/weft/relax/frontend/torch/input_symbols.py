"""Symbols of torch, defined by the shapes of a function's inputs.

A parameter of a graph function binds a symbol only where it stands alone as an extent. torch has
inputs of extents such as ``2*s0`` too (derived dimensions): then the extent becomes a variable of
its own and the symbol is solved for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch

from weft.ir.expr import Extent, as_prim_expr
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.support.errors import UnsupportedError
from weft.tir.expr import SizeVar
from weft.tir.op import floordiv


def define_symbols(
    symbols: SymbolTable,
    values: Sequence[object],
    extents: Sequence[Sequence[Extent | None]] = (),
) -> None:
    """Give a meaning to every symbol in the shapes of fake tensors, and in symbolic numbers.

    ``extents`` are the caller's own variables for the extents of the first values, None for those
    that have none.
    """
    for value, given in zip(values, extents, strict=False):
        for size, extent in zip(getattr(value, "shape", ()), given, strict=False):
            if extent is not None and _is_symbol(size):
                symbols.define(size.node.expr, as_prim_expr(extent))
    expressions = [expression for value in values for expression in _sizes(value)]
    for expression in expressions:
        if isinstance(expression, sympy.Symbol) and expression not in symbols:
            symbols.define(expression)
    for expression in expressions:
        unknown = [s for s in sorted(expression.free_symbols, key=str) if s not in symbols]
        if unknown:
            _solve(symbols, expression, unknown)


def _is_symbol(size: int | torch.SymInt) -> bool:
    return isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol)


def _sizes(value: object) -> list[sympy.Expr]:
    """The symbolic extents of a fake tensor, or a symbolic number."""
    if isinstance(value, torch.Tensor):
        return [size.node.expr for size in value.shape if isinstance(size, torch.SymInt)]
    return [value.node.expr] if isinstance(value, torch.SymInt) else []


def _solve(symbols: SymbolTable, expression: sympy.Expr, unknown: list[sympy.Symbol]) -> None:
    """Define the one unknown symbol of ``a * s + b`` by a new variable that is the extent."""
    symbol = unknown[0]
    slope = (
        sympy.Poly(expression, symbol).coeff_monomial(symbol)
        if len(unknown) == 1 and (expression.is_polynomial(symbol))
        else None
    )
    if slope is None or not slope.is_Integer or sympy.diff(expression, symbol) != slope:
        raise UnsupportedError(
            f"the extent {expression} of an input does not tell {', '.join(map(str, unknown))}; "
            "give another input that has it as an extent of its own"
        )
    rest = symbols.expression(sympy.expand(expression - slope * symbol))
    extent = SizeVar(f"{symbol}_extent", "int64")
    symbols.define(symbol, floordiv(extent - rest, int(slope)))
    symbols.alias(expression, extent)
