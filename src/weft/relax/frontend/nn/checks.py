"""Checks of the arguments that layers are made with: errors name the layer and the argument.

``@checked(groups=count, bias=flag)`` on ``__init__`` has each argument checked by its row; a check
takes the value, the place to name in errors, and the layer.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeGuard, TypeVar, cast

import numpy as np

from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError

Check = Callable[[object, str, object], None]
"""(value, place such as "Conv2D: groups", layer): raises IRTypeError or IRValueError."""

_Constructor = TypeVar("_Constructor", bound=Callable[..., None])
_VALUES: Final = ("float", "bfloat", "int", "uint", "bool")
"""How the names of data types begin that tensors can have."""


def checked(**checks: Check) -> Callable[[_Constructor], _Constructor]:
    """Have a constructor check its arguments by name before it runs.

    Raises IRTypeError for arguments that are missing, unknown or given twice.

    >>> class Head:
    ...     @checked(size=count)
    ...     def __init__(self, size: int) -> None:
    ...         self.size = size
    >>> Head(3).size
    3
    """

    def decorate(constructor: _Constructor) -> _Constructor:
        signature = inspect.signature(constructor)
        names = list(signature.parameters)[1:]

        @functools.wraps(constructor)
        def checking(self: object, *args: object, **kwargs: object) -> None:
            layer = type(self).__name__
            try:
                arguments = signature.bind(self, *args, **kwargs).arguments
            except TypeError:
                raise IRTypeError(_misfit(layer, signature, names, args, kwargs)) from None
            for name, check in checks.items():
                if name in arguments:
                    check(arguments[name], f"{layer}: {name}", self)
            constructor(self, *args, **kwargs)

        return cast("_Constructor", checking)

    return decorate


def _misfit(
    layer: str,
    signature: inspect.Signature,
    names: Sequence[str],
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> str:
    """Why arguments do not fit a constructor of these parameters."""
    expected = f"{layer}: expected the arguments ({', '.join(names)})"
    if len(args) > len(names):
        return f"{expected}, got {len(args)} by position"
    for name in kwargs:
        if name not in names:
            return f"{expected}, got the keyword {name}"
        if name in names[: len(args)]:
            return f"{expected}, got {name} twice"
    needed = [
        name
        for name in names[len(args) :]
        if name not in kwargs and signature.parameters[name].default is inspect.Parameter.empty
    ]
    return f"{expected}, missing {', '.join(needed)}"


def _text(value: object) -> str:
    return f"{value} of {value.dtype}" if isinstance(value, PrimExpr) else f"{value!r:.60}"


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def as_extent(value: object, where: str, wanted: str) -> Extent:
    """An extent that is no name: a number of 0 or more, or an int64 expression.

    Raises IRTypeError or IRValueError, in which ``wanted`` says what was expected.
    """
    if isinstance(value, IntImm):
        value = value.value
    if isinstance(value, PrimExpr) and str(value.dtype) == "int64":
        return value
    if not _is_int(value) or value < 0:
        error = IRValueError if _is_int(value) else IRTypeError
        raise error(f"{where}: expected {wanted}, got {_text(value)}")
    return int(value)


def extent(value: object, where: str, layer: object) -> None:
    """A number of 0 or more, or an int64 expression."""
    del layer
    as_extent(value, where, "an integer of 0 or more, or an int64 expression")


def dim(value: object, where: str, layer: object) -> None:
    """An extent, or the name of a symbol."""
    if not isinstance(value, str):
        extent(value, where, layer)
    elif not value:
        raise IRValueError(f"{where}: expected a size or the name of a symbol, got ''")


def count(value: object, where: str, layer: object) -> None:
    """A whole number of 1 or more."""
    del layer
    if not _is_int(value):
        raise IRTypeError(f"{where}: expected an integer of 1 or more, got {_text(value)}")
    if value < 1:
        raise IRValueError(f"{where}: expected an integer of 1 or more, got {value}")


def optional(check: Check) -> Check:
    """The check of what may be None."""

    def checked_unless_none(value: object, where: str, layer: object) -> None:
        if value is not None:
            check(value, where, layer)

    return checked_unless_none


def flag(value: object, where: str, layer: object) -> None:
    """True or False, or 1 or 0."""
    del layer
    if not isinstance(value, bool | np.bool_) and not (_is_int(value) and value in (0, 1)):
        raise IRTypeError(f"{where}: expected True or False, got {_text(value)}")


def number(value: object, where: str, layer: object) -> None:
    """A finite number."""
    del layer
    if isinstance(value, bool) or not isinstance(value, numbers.Real | np.floating | np.integer):
        raise IRTypeError(f"{where}: expected a number, got {_text(value)}")
    if not math.isfinite(value):
        raise IRValueError(f"{where}: expected a finite number, got {value}")


def dtype(value: object, where: str, layer: object) -> None:
    """A data type of tensors, or None."""
    del layer
    if value is None:
        return
    wanted = f"{where}: expected a data type of tensors such as 'float32', got {_text(value)}"
    try:
        kind = DataType(value)
    except (IRTypeError, IRValueError) as error:
        raise type(error)(wanted) from error
    if kind.lanes != 1 or not str(kind).startswith(_VALUES):
        raise IRTypeError(wanted)


def integers(value: object, where: str, layer: object) -> None:
    """A whole number, or several."""
    del layer
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not all(_is_int(item) for item in items):
        raise IRTypeError(f"{where}: expected an integer or integers, got {_text(value)}")


def window(least: int, per_axis: Sequence[int] = (1,), *, single: bool = True) -> Check:
    """The check of one integer for all of the layer's ``rank`` axes, or of a list for them.

    ``per_axis`` are the numbers of integers for each axis that a list may have; with ``single`` it
    may also have one for all.
    """

    def check(value: object, where: str, layer: object) -> None:
        rank = int(getattr(layer, "rank", 1))
        lengths = sorted({rank * times for times in per_axis} | ({1} if single else set()))
        wanted = (
            f"{where}: expected an integer of {least} or more, or a list of "
            f"{' or '.join(str(length) for length in lengths)} of them, got {_text(value)}"
        )
        several = isinstance(value, Sequence) and not isinstance(value, str)
        items = value if isinstance(value, Sequence) and several else [value]
        numbers = [item for item in items if _is_int(item)]
        if len(numbers) < len(items):
            raise IRTypeError(wanted)
        if (several and len(items) not in lengths) or any(item < least for item in numbers):
            raise IRValueError(wanted)

    return check


def layout(value: object, where: str, layer: object) -> None:
    """An order of the axes of the layer's own layout, or None for that itself."""
    own = str(getattr(layer, "layout", ""))
    if value is not None and (not isinstance(value, str) or sorted(value) != sorted(own)):
        error = IRValueError if isinstance(value, str) else IRTypeError
        raise error(f"{where}: expected an order of the axes such as {own!r}, got {_text(value)}")


def multiple(layer: object, channels: Extent, name: str, groups: int) -> None:
    """Raise IRValueError if a known number of channels is no multiple of the groups."""
    if not isinstance(channels, PrimExpr) and channels % groups:
        raise IRValueError(
            f"{type(layer).__name__}: {channels} channels are not a multiple of {name}={groups}"
        )
