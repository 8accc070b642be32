"""``T``: the names of TensorIR scripts (``from weft.script import tir as T``).

``prim_func`` and ``macro`` parse; every other name comes from ``weft.script.ir_builder.tir``.
"""

from __future__ import annotations

from collections import abc
from typing import Any, overload

from weft.script.ir_builder import tir as _names
from weft.script.parser.entry import decorate
from weft.script.parser.macro import make_macro
from weft.tir.function import PrimFunc


@overload
def prim_func(func: abc.Callable[..., object], /) -> PrimFunc: ...
@overload
def prim_func(
    *, private: bool = ..., check_well_formed: bool = ..., s_tir: bool = ...
) -> abc.Callable[[abc.Callable[..., object]], PrimFunc]: ...
def prim_func(
    func: abc.Callable[..., object] | None = None,
    /,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    s_tir: bool = True,
) -> Any:
    """Parse a function as a TensorIR program.

    Args:
        func: the function; left out where ``@T.prim_func(...)`` has arguments.
        private: without ``global_symbol``: nothing outside of its module calls it.
        check_well_formed: refuse a program that breaks a rule of the language.
        s_tir: an option of later TVM. With False no root block is added around blocks.

    >>> from weft.script import tir as T
    >>> @T.prim_func
    ... def add_one(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    ...     for i in range(4):
    ...         with T.block("B"):
    ...             v_i = T.axis.spatial(4, i)
    ...             B[v_i] = A[v_i] + 1
    >>> add_one.attrs["global_symbol"]
    'add_one'
    """
    options = {"private": private}
    if func is not None:
        return decorate(func, "tir", options, check_well_formed)

    def apply(given: abc.Callable[..., object]) -> Any:
        return decorate(given, "tir", options, check_well_formed)

    return apply


prim_func.dispatch_token = "tir"  # type: ignore[attr-defined] # as TVM has it


def macro(*args: object, hygienic: bool = True) -> Any:
    """Make a function whose body is written into the script at each call: ``@T.macro``.

    Args:
        args: the function, where ``@T.macro`` has no arguments.
        hygienic: names mean what they mean where the macro is defined, not where it is called.

    >>> from weft.script import tir as T
    >>> @T.macro
    ... def scale(A, B, i, factor):
    ...     B[i] = A[i] * factor
    >>> @T.prim_func(private=True)
    ... def double(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    ...     for i in range(4):
    ...         scale(A, B, i, 2)
    """
    return make_macro("tir", args, hygienic)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)


def __dir__() -> list[str]:
    return sorted({"macro", "prim_func", *dir(_names)})
