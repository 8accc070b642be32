"""Functions of numbers, exchanged while torch.export captures: those that take no symbols.

``math.sqrt(width)`` and ``torch.linspace(-1, 1, width)`` ask for plain numbers, and so a trace in
which the width may vary would make a constant of it. These take the symbols of torch, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import sympy
import torch
import torch.backends.opt_einsum

from weft.relax.frontend.torch.symbols import quotient_of

_SYMBOLS: Final = (torch.SymInt, torch.SymFloat)
_floor_divided: Final = torch.SymInt.__floordiv__
_round: Final = torch.SymFloat.__round__
_sqrt: Final = math.sqrt
_log: Final = math.log
_linspace: Final = torch.linspace
_fftfreq: Final = torch.fft.fftfreq
_rfftfreq: Final = torch.fft.rfftfreq
_as_tensor: Final = torch.as_tensor
_new_tensor: Final = torch.Tensor.new_tensor
_get_opt_einsum: Final = torch.backends.opt_einsum.get_opt_einsum
_ASSUMED: Final = 64
"""An extent of which the example tells nothing, where only speed depends on it."""
UNARY: Final = ("exp", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")
"""Functions of ``math`` that torch has under the same names for tensors."""


def of_symbols(name: str) -> Callable[[float], float]:
    """A function of ``math``, also of symbols: computed in float64, as Python does."""
    plain, of_tensors = getattr(math, name), getattr(torch, name)

    def function(x: Any, /) -> Any:
        return plain(x) if not isinstance(x, _SYMBOLS) else _computed(of_tensors, x)

    return function


def sqrt(x: Any, /) -> Any:
    """``math.sqrt``."""
    return torch._sym_sqrt(x) if isinstance(x, _SYMBOLS) else _sqrt(x)


def log(x: Any, /, *base: Any) -> Any:
    """``math.log``: natural, or to a base."""
    if not isinstance(x, _SYMBOLS):
        return _log(x, *base)
    return _computed(torch.log, x) / (_log(*base) if base else 1.0)


def divide(self: Any, other: Any, /) -> tuple[Any, Any]:
    """``divmod`` of a symbol by a number or a symbol."""
    return self // other, self % other


def divide_number(self: Any, number: Any, /) -> tuple[Any, Any]:
    """``divmod`` of a number by a symbol."""
    return number // self, number % self


def rounded(self: Any, digits: Any = None, /) -> Any:
    """``round`` of a symbol; of a quotient of integers by functions of integers.

    torch cannot write down what it takes for granted of its own function for this.
    """
    parts = None if digits is not None else quotient_of(self.node.expr)
    if parts is None:
        return _round(self) if digits is None else _round(self, digits)
    number, divisor = (_symbol(self, part) for part in parts)
    is_odd = number // divisor % 2  # halfway between two numbers the even one
    return (2 * number + divisor - 1 + is_odd) // (2 * divisor)


def _symbol(like: Any, value: sympy.Basic) -> Any:
    """An integer of torch for an expression of the symbols that ``like`` is made of."""
    if value.is_Integer:
        return int(value)
    shapes = like.node.shape_env
    known = value.xreplace(shapes.backed_var_to_val)
    return shapes.create_symintnode(value, hint=int(known) if known.is_Integer else None)


def floor_divided(self: Any, other: Any, /) -> Any:
    """``//`` of a symbol: of ``-n``, whose guards torch fails to report, without a minus."""
    if type(other) is int and other > 0 and (-self.node.expr).is_nonnegative:
        return -_floor_divided(-self + (other - 1), other)
    return _floor_divided(self, other)


def _computed(function: Callable[[torch.Tensor], torch.Tensor], x: Any) -> Any:
    return function(torch.tensor(x, dtype=torch.float64)).item()


def linspace(start: Any, end: Any, steps: Any, **options: Any) -> torch.Tensor:
    """``torch.linspace``: the first half is counted from the start, the other one from the end."""
    dtype = options.get("dtype") or torch.get_default_dtype()
    if not isinstance(steps, torch.SymInt) or not dtype.is_floating_point:
        return _linspace(start, end, steps, **options)
    place = torch.arange(steps, **{**options, "dtype": dtype})
    step = (end - start) / torch.sym_max(steps - 1, 1)
    is_near = torch.arange(steps) < torch.sym_max(steps // 2, 1)
    return torch.where(is_near, place * step + start, end - (steps - 1 - place) * step)


def fftfreq(n: Any, d: float = 1.0, **options: Any) -> torch.Tensor:
    """``torch.fft.fftfreq``."""
    if not isinstance(n, torch.SymInt):
        return _fftfreq(n, d, **options)
    place = torch.arange(n)
    place = torch.where(place < (n + 1) // 2, place, place - n)
    return place.to(options.get("dtype") or torch.get_default_dtype()) / (n * d)


def rfftfreq(n: Any, d: float = 1.0, **options: Any) -> torch.Tensor:
    """``torch.fft.rfftfreq``."""
    if not isinstance(n, torch.SymInt):
        return _rfftfreq(n, d, **options)
    dtype = options.get("dtype") or torch.get_default_dtype()
    return torch.arange(n // 2 + 1, dtype=dtype) / (n * d)


def as_tensor(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """``torch.as_tensor``, of a list of symbols by ``torch.tensor``."""
    return (torch.tensor if _has_symbols(data) else _as_tensor)(data, *args, **kwargs)


def new_tensor(self: torch.Tensor, data: Any, **options: Any) -> torch.Tensor:
    """The method of tensors of this name, of a list of symbols by ``torch.tensor``."""
    if not _has_symbols(data):
        return _new_tensor(self, data, **options)
    return torch.tensor(data, **{"dtype": self.dtype, **options})


def get_opt_einsum() -> SimpleNamespace:
    """What ``torch.einsum`` asks for the order of its products: it is told the example's sizes."""
    return SimpleNamespace(contract_path=_contract_path)


def _contract_path(equation: str, *operands: torch.Tensor, **options: object) -> Any:
    shapes = [[_in_example(size) for size in operand.shape] for operand in operands]
    return _get_opt_einsum().contract_path(equation, *shapes, shapes=True, **options)


def _in_example(size: int | torch.SymInt) -> int:
    if not isinstance(size, torch.SymInt):
        return size
    return int(size.node.hint) if size.node.has_hint() else _ASSUMED


def _has_symbols(data: object) -> bool:
    """Whether a symbol stands anywhere in nested lists."""
    if isinstance(data, list | tuple):
        return any(map(_has_symbols, data))
    return isinstance(data, _SYMBOLS)
