"""``relax.utils``: helpers for those who write passes and importers."""

from __future__ import annotations

from weft.relax.analysis.variables import defined_symbolic_vars
from weft.relax.args_converter import args_converter
from weft.relax.expr import Function
from weft.relax.expr import as_relax_expr as convert_to_expr
from weft.relax.ir import substitution

__all__ = ["args_converter", "convert_to_expr", "copy_with_new_vars"]


def copy_with_new_vars(func: Function) -> Function:
    """The function with new parameters, bound variables and symbolic variables."""
    copy = substitution.copy_with_new_vars(func)
    symbols = defined_symbolic_vars(copy)
    fresh = {var: type(var)(var.name, var.dtype) for var in symbols}  # a size stays one
    return substitution.replace(copy, symbols=fresh)
