"""Operators on nn tensors: each emits one relax operator, or a few, and wraps the result.

The names are TVM 0.20's; what ``nn.op`` has, ``nn`` has too: the functions of the modules here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from weft.relax.frontend.nn import activations
from weft.relax.frontend.nn.op import call, elementwise, manipulate, neural, sampling
from weft.relax.frontend.nn.tensor import wrap_nested

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    name: function
    for module in (activations, call, elementwise, manipulate, neural, sampling)
    for name, function in vars(module).items()
    if isinstance(function, FunctionType) and function.__module__ == module.__name__
    and not name.startswith("_")
}  # fmt: skip

__all__ = list(_FUNCTIONS)
__all__ += ["wrap_nested"]


def __getattr__(name: str) -> Callable[..., Any]:
    """The function of that name."""
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _FUNCTIONS[name]


def __dir__() -> list[str]:
    return [*globals(), *_FUNCTIONS]
