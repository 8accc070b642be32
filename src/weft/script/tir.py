"""``T``: the names of TensorIR scripts (``from weft.script import tir as T``).

``prim_func`` and ``macro`` parse; every other name is ``weft.script.ir_builder.tir``'s.
"""

from __future__ import annotations

from collections import abc
from typing import Any, overload

from weft.script.ir_builder import tir as _names
from weft.script.parser.entry import decorate
from weft.script.parser.macro import make_macro
from weft.tir.function import PrimFunc


@overload
def prim_func(func: abc.Callable[..., Any], /) -> PrimFunc: ...
@overload
def prim_func(
    *, private: bool = ..., check_well_formed: bool = ..., s_tir: bool = ...
) -> abc.Callable[[abc.Callable[..., Any]], PrimFunc]: ...
def prim_func(
    func: abc.Callable[..., Any] | None = None,
    /,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    s_tir: bool = True,
) -> Any:
    """Parse a function as TensorIR: ``@T.prim_func`` or ``@T.prim_func(private=True)``."""
    options = {"private": private}
    if func is not None:
        return decorate(func, "tir", options, check_well_formed)

    def apply(given: abc.Callable[..., Any]) -> Any:
        return decorate(given, "tir", options, check_well_formed)

    return apply


prim_func.dispatch_token = "tir"  # type: ignore[attr-defined] # as TVM has it


def macro(*args: Any, hygienic: bool = True) -> Any:
    """A part of a script to be expanded where it is called: ``@T.macro``."""
    return make_macro("tir", args, hygienic)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)
