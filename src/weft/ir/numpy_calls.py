"""Functions of numpy and PyTorch on expressions: ``np.exp(x)`` says what to write instead.

Numpy offers each call of a universal function to its operands by ``__array_ufunc__`` (NEP 13).
Without it, numpy fails with words about loops and arguments that do not name the expression.
Arithmetic works as before. PyTorch has ``__torch_function__`` for the same end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

import numpy as np

from weft.support.errors import IRTypeError, IRValueError

OWN_NAMES: Final = {
    "maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min", "absolute": "abs",
    "fabs": "abs", "power": "power", "float_power": "power", "rint": "nearbyint",
    "arctan2": "atan2",
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}  # fmt: skip
"""Numpy's name of a function -> the name in tir and te, where it is another."""

_COMPARISONS: Final[dict[str, Callable[..., object]]] = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip


def apply_ufunc(
    ufunc: np.ufunc,
    method: str,
    inputs: tuple[object, ...],
    options: Mapping[str, object],
    home: str,
) -> object:
    """The result of numpy's function, applied element by element with Python's operators.

    Raises:
        IRTypeError: the function needs numbers; the message names the function of ``home``.
    """
    compare = _COMPARISONS.get(ufunc.__name__)
    if compare is not None and all(getattr(item, "ndim", 0) == 0 for item in inputs):
        # Numpy would ask for the truth value of what the comparison builds.
        numbers = [item.item() if isinstance(item, _NUMPY) else item for item in inputs]
        return compare(*numbers)
    try:
        return getattr(ufunc, method)(*[_as_object(item) for item in inputs], **options)
    except (TypeError, IRValueError) as error:
        name = ufunc.__name__ if home == "topi" else OWN_NAMES.get(ufunc.__name__, ufunc.__name__)
        raise IRTypeError(
            f"np.{ufunc.__name__} works on numbers, and an expression has its value only when the "
            f"program runs; write {home}.{name}"
        ) from error


def refuse_torch(function: Callable[..., object], home: str) -> NoReturn:
    """Raise IRTypeError for a function of PyTorch, which asks expressions by its own protocol.

    Without ``__torch_function__`` PyTorch says "must be Tensor, not Tensor".
    """
    name = str(getattr(function, "__name__", "function"))
    raise IRTypeError(
        f"torch.{name} works on tensors of PyTorch, and an expression has its value only when the "
        f"program runs; write {home}.{OWN_NAMES.get(name, name)}"
    )


_NUMPY: Final = (np.ndarray, np.generic)


def _is_plain(value: object) -> bool:
    """Whether numpy knows what a value is: a number or an array."""
    return isinstance(value, np.ndarray | np.generic | int | float | complex)


def _as_object(value: object) -> object:
    """What is neither number nor array, as an array of one object."""
    if _is_plain(value):
        return value
    array = np.empty((), object)
    array[()] = value
    return array
