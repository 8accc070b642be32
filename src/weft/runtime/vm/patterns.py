"""Patterns of values: what a VM function expects, checked at run time with both sides in the error.

See weft.runtime.vm.bytecode for the forms. ``match`` returns the value as the machine keeps it:
numpy arrays and torch tensors become NDArrays that share their memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.runtime.containers import ShapeTuple
from weft.runtime.extent import evaluate, names_in
from weft.runtime.faults import DivisionFault
from weft.runtime.ndarray import NDArray, from_dlpack
from weft.runtime.vm.bytecode import Pattern
from weft.support.errors import IRTypeError, IRValueError, wrong_type

LONG: Final = 80
"""Of how many characters on the extents of a shape are too much to read in an error."""


def bind(value: object, pattern: Pattern, symbols: dict[str, int]) -> None:
    """Bind the names that stand alone as an extent; ``match`` then checks, in any order.

    A parameter of shape ``(n + 1,)`` may stand before the one of shape ``(n,)``. What does not fit
    is left for ``match`` to report.
    """
    kind = pattern[0]
    if kind == "tuple":
        if isinstance(value, tuple | list) and len(value) == len(pattern[1]):
            for item, sub in zip(value, pattern[1], strict=True):
                bind(item, sub, symbols)
    elif kind == "prim":
        text = pattern[2]
        if text is not None and text.isidentifier() and isinstance(value, int | np.integer):
            symbols.setdefault(text, int(value))
    elif kind in ("tensor", "shape"):
        extents = pattern[2 if kind == "tensor" else 1]
        actual = value if kind == "shape" else getattr(value, "shape", None)
        if extents is not None and isinstance(actual, tuple | list):
            _bind_extents(actual, extents, symbols)


def _bind_extents(
    actual: Sequence[int], extents: Sequence[int | str], symbols: dict[str, int]
) -> None:
    if len(actual) == len(extents):
        for size, extent in zip(actual, extents, strict=True):
            if isinstance(extent, str) and extent.isidentifier():
                symbols.setdefault(extent, int(size))


def symbol_axes(patterns: Sequence[Pattern]) -> dict[str, tuple[int, int]]:
    """Each symbol that stands alone as an extent of a tensor: the first such value, and the axis.

    >>> symbol_axes([("tensor", "float32", ("n * 2", 4)), ("tensor", "float32", (4, "n"))])
    {'n': (1, 1)}
    """
    places: dict[str, tuple[int, int]] = {}
    for index, pattern in enumerate(patterns):
        if pattern[0] == "tensor" and pattern[2] is not None:
            for axis, extent in enumerate(pattern[2]):
                if isinstance(extent, str) and extent.isidentifier():
                    places.setdefault(extent, (index, axis))
    return places


def match(value: object, pattern: Pattern, symbols: dict[str, int], what: str) -> object:
    """Check ``value``, bind new symbols, and return it as the machine keeps it."""
    return _MATCHERS[pattern[0]](value, pattern, symbols, what)


def as_ndarray(value: object, what: str) -> NDArray:
    """An NDArray over the memory of an array or tensor (copied only where it must be)."""
    if isinstance(value, NDArray):
        return value
    if isinstance(value, np.ndarray):
        return NDArray(value if value.flags.writeable else value.copy())
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value.detach() if hasattr(value, "detach") else value)
    if isinstance(value, bool | int | float | np.generic):
        raise IRTypeError(f"{what}: expected a tensor, got the number {value!r}")
    raise wrong_type(f"{what}: expected a tensor (NDArray, numpy array or torch tensor)", value)


def _tensor(value: object, pattern: Pattern, symbols: dict[str, int], what: str) -> NDArray:
    _, dtype, extents, ndim = pattern
    array = as_ndarray(value, what)
    if dtype and array.dtype != dtype:
        raise IRTypeError(f"{what}: expected dtype {dtype}, got {array.dtype}")
    if extents is not None:
        match_extents(array.shape, extents, symbols, what)
    elif ndim >= 0 and array.ndim != ndim:
        raise IRValueError(f"{what}: expected {ndim} dimensions, got shape {tuple(array.shape)}")
    return array


def match_extents(
    actual: Sequence[int], extents: Sequence[int | str], symbols: dict[str, int], what: str
) -> None:
    """Compare a shape with the expected one, binding names that are free."""
    matches = len(actual) == len(extents)
    if matches:
        _bind_extents(actual, extents, symbols)
        for size, extent in zip(actual, extents, strict=True):
            matches = matches and _value(extent, symbols, what) == size
    if not matches:
        raise IRValueError(f"{what}: {_difference(actual, extents, symbols, what)}")


def _difference(
    actual: Sequence[int], extents: Sequence[int | str], symbols: dict[str, int], what: str
) -> str:
    """What was expected and found; of shapes whose text is long, the first axis that differs."""
    known = ", ".join(str(extent) for extent in extents)
    if len(known) > LONG and len(actual) == len(extents):
        for axis, (size, extent) in enumerate(zip(actual, extents, strict=True)):
            if (wanted := _value(extent, symbols, what)) != size:
                return (
                    f"expected {wanted} along axis {axis}, that is {extent}"
                    f"{_with_values([extent], symbols)}, got shape {tuple(actual)}"
                )
    comma = "," if len(extents) == 1 else ""
    return f"expected shape ({known}{comma}){_with_values(extents, symbols)}, got {tuple(actual)}"


def _with_values(extents: Sequence[int | str], symbols: dict[str, int]) -> str:
    """The values of the symbols in extents: ``, n=2, m=3``."""
    used = frozenset().union(*map(names_in, extents))
    return "".join(f", {name}={value}" for name, value in symbols.items() if name in used)


def _value(extent: int | str, symbols: dict[str, int], what: str) -> int:
    try:
        return evaluate(extent, symbols)
    except DivisionFault as error:
        raise DivisionFault(f"{what}: {error}") from None


def _shape(value: object, pattern: Pattern, symbols: dict[str, int], what: str) -> ShapeTuple:
    _, extents, ndim = pattern
    if not isinstance(value, tuple | list):
        raise wrong_type(f"{what}: expected a shape", value)
    if extents is not None:
        match_extents(value, extents, symbols, what)
    elif ndim >= 0 and len(value) != ndim:
        raise IRValueError(f"{what}: expected a shape of {ndim} dimensions, got {tuple(value)}")
    return ShapeTuple(value)


def _prim(
    value: object, pattern: Pattern, symbols: dict[str, int], what: str
) -> bool | int | float:
    _, dtype, text = pattern
    if isinstance(value, NDArray) and value.ndim == 0:
        value = value.numpy().item()
    if isinstance(value, np.generic):
        value = value.item()
    wanted = float if dtype.startswith(("float", "bfloat")) else int
    if not isinstance(value, int | float) or (wanted is int and isinstance(value, float)):
        raise IRTypeError(f"{what}: expected a number of type {dtype}, got {value!r}")
    if text is not None:
        if text.isidentifier() and text not in symbols:
            symbols[text] = int(value)
        elif (expected := _value(text, symbols, what)) != value:
            raise IRValueError(f"{what}: expected {expected} ({text}), got {value}")
    return bool(value) if dtype == "bool" else wanted(value)


def _tuple(
    value: object, pattern: Pattern, symbols: dict[str, int], what: str
) -> tuple[object, ...]:
    fields = pattern[1]
    if not isinstance(value, tuple | list):
        raise wrong_type(f"{what}: expected a tuple", value)
    if len(value) != len(fields):
        raise IRValueError(f"{what}: expected a tuple of {len(fields)}, got one of {len(value)}")
    bind(value, pattern, symbols)
    return tuple(
        [
            match(item, sub, symbols, f"{what}[{i}]")
            for i, (item, sub) in enumerate(zip(value, fields, strict=True))
        ]
    )


_MATCHERS: Final[dict[str, Callable[..., object]]] = {
    "tensor": _tensor, "shape": _shape, "prim": _prim, "tuple": _tuple,
    "object": lambda value, pattern, symbols, what: value,
}  # fmt: skip
