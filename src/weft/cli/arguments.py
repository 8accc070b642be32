"""What a user writes on the command line: inputs, dynamic dimensions, sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.runtime.export.c_text import DTYPES
from weft.runtime.extent import evaluate, names_in
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError

_SYMBOL: Final = re.compile(r"[A-Za-z_]\w*")
EXAMPLE_SIZES: Final = (4, 6, 10, 12, 14, 18)
"""Sizes for symbolic dimensions where numbers are needed; different symbols get different sizes."""


@dataclass(frozen=True)
class InputSpec:
    """One input, from ``name:shape:dtype``; extents are numbers or names of symbols."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str = "float32"

    @property
    def symbols(self) -> dict[int, str]:
        """Axis -> symbol, of the symbolic dimensions."""
        return {i: dim for i, dim in enumerate(self.shape) if isinstance(dim, str)}


def parse_input(text: str) -> InputSpec:
    """``x:1x3x224x224:float32``, ``1x3x224x224``, ``tokens:nx16:int64``, ``step:scalar:int64``."""
    parts = text.split(":")
    if len(parts) > 3:
        raise IRValueError(f"--input {text}: expected name:shape:dtype, got {len(parts)} parts")
    if len(parts) == 1:
        parts = ["", *parts]
    name, shape, dtype = [*parts, "float32"][:3]
    if dtype not in DTYPES:
        raise IRValueError(
            f"--input {text}: {dtype!r} is no data type of arrays; there are {', '.join(DTYPES)}"
        )
    return InputSpec(name, parse_shape(shape, text), dtype)


def parse_shape(text: str, where: str) -> tuple[int | str, ...]:
    """``2x3``, ``nx3``, or ``scalar`` for no dimensions."""
    if text == "scalar":
        return ()
    if not text:
        raise IRValueError(f"--input {where}: expected a shape such as 1x3x224x224, got nothing")
    extents: list[int | str] = []
    for part in re.split(r"x(?=\d|[A-Za-z_])|,", text):
        if part.isdecimal():
            extents.append(int(part))
        elif _SYMBOL.fullmatch(part):
            extents.append(part)
        else:
            raise IRValueError(
                f"--input {where}: expected numbers or names between x (or commas), got {part!r} "
                f"in {text!r}"
            )
    return tuple(extents)


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """``["n=8"]`` as ``{"n": 8}``."""
    sizes = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value.isdecimal() or not _SYMBOL.fullmatch(name):
            raise IRValueError(f"--size {text}: expected name=number, such as n=8")
        sizes[name] = int(value)
    return sizes


class Sizes:
    """The numbers that stand for symbols: those of ``--size``, or examples."""

    def __init__(self, chosen: Mapping[str, int] | None = None) -> None:
        self._known = dict(chosen or {})
        self._next = 0

    def of(self, symbol: str) -> int:
        """The number of a symbol, or of an expression of symbols with known numbers (``n + 1``)."""
        if symbol not in self._known:
            if not symbol.isidentifier() and self._knows(symbol):
                return evaluate(symbol, self._known)
            self._known[symbol] = EXAMPLE_SIZES[self._next % len(EXAMPLE_SIZES)] + 20 * (
                self._next // len(EXAMPLE_SIZES)
            )
            self._next += 1
        return self._known[symbol]

    def _knows(self, expression: str) -> bool:
        try:
            return names_in(expression) <= self._known.keys()
        except IRTypeError:
            return False

    def shape(self, shape: Sequence[int | str]) -> tuple[int, ...]:
        """A shape with numbers in place of its symbols."""
        return tuple(self.of(dim) if isinstance(dim, str) else dim for dim in shape)


def random_array(shape: Sequence[int], dtype: str, rng: np.random.Generator) -> np.ndarray:
    """A random array that most models accept.

    Floats are normally distributed; integers are small, since they may be indices. Raises
    IRValueError for a shape that memory cannot hold.
    """
    numpy_dtype = DataType(dtype).numpy
    try:
        if dtype.startswith(("float", "bfloat")):
            return rng.standard_normal(shape).astype(numpy_dtype)
        return rng.integers(0, 2, shape).astype(numpy_dtype)
    except (MemoryError, ValueError) as error:
        raise IRValueError(f"an input of shape {tuple(shape)} does not fit into memory") from error
