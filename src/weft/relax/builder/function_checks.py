"""Checks when a block builder finishes a function: its parameters and its free variables."""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.functor import collect
from weft.ir.node import Array
from weft.relax.expr import Binding, Function, Var
from weft.support.errors import IRValueError, wrong_type
from weft.support.recursion import deep_recursion

Params = Var | Iterable[Var]
"""The parameters of a function; a single one may be given without a list."""


@deep_recursion
def check_bound(func: Function, name: str) -> None:
    """Raise IRValueError if the function uses a variable that nothing defines."""
    met = collect(func, (Var, Binding, Function))
    bound: set[Var] = {item.var for item in met if isinstance(item, Binding)}
    for item in met:
        bound.update(item.params if isinstance(item, Function) else ())
    free = [item for item in met if isinstance(item, Var) and item not in bound]
    if free:
        names = ", ".join([var.name_hint for var in free[:5]]) + (", ..." if len(free) > 5 else "")
        params = ", ".join([param.name_hint for param in func.params[:5]]) or "none"
        raise IRValueError(
            f"function {name!r}: expected every variable to be a parameter (here: {params}) or "
            f"bound by emit, but nothing defines {names}; pass it to bb.function as a parameter"
        )


def checked_params(params: Params) -> Array[Var]:
    """The parameters as an Array; raises IRTypeError for anything but variables."""
    params = [params] if isinstance(params, Var) else params
    if not isinstance(params, Iterable):
        raise wrong_type("function: expected a list of relax.Var as parameters", params)
    checked = Array(params)
    for index, param in enumerate(checked):
        if not isinstance(param, Var):
            raise wrong_type(f"function: parameter {index}: expected a relax.Var", param)
    return checked
