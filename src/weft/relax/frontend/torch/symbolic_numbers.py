"""Functions of numbers, exchanged while torch.export captures: those that take no symbols.

``math.sqrt(width)`` and ``torch.linspace(-1, 1, width)`` ask for plain numbers, and so a trace in
which the width may vary would make a constant of it. These take the symbols of torch, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch

_SYMBOLS: Final = (torch.SymInt, torch.SymFloat)
_sqrt: Final = math.sqrt
_log: Final = math.log
_linspace: Final = torch.linspace
_fftfreq: Final = torch.fft.fftfreq
_rfftfreq: Final = torch.fft.rfftfreq
_as_tensor: Final = torch.as_tensor
_new_tensor: Final = torch.Tensor.new_tensor
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


def _has_symbols(data: object) -> bool:
    """Whether a symbol stands anywhere in nested lists."""
    if isinstance(data, list | tuple):
        return any(map(_has_symbols, data))
    return isinstance(data, _SYMBOLS)
