"""Layouts of tensors as texts: ``NCHW16c`` is ``NCHW`` with channels in blocks of 16.

A capital letter is a whole axis, or what is left of it; a number and a small letter are an axis of
that many elements, which the capital letter has been split by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import ExprLike, PrimExpr, as_prim_expr
from weft.ir.node import Array
from weft.support.errors import IRIndexError, IRValueError, wrong_type
from weft.tir import op

_AXIS: Final = re.compile(r"(\d*)([a-zA-Z])")


@dataclass(frozen=True)
class Layout:
    """The axes of a tensor by letters.

    Raises IRValueError for a letter that is there twice, a block without its number or its axis.

    >>> blocked = Layout("NCHW16c")
    >>> len(blocked), blocked[4], blocked.index_of("H"), blocked.factor_of("C")
    (5, 'c', 2, 16)
    """

    name: str
    axes: Mapping[str, int] = field(init=False, compare=False, repr=False)
    """Letter -> the number of its elements, -1 for a whole axis; in order."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise wrong_type("layout: expected a text", self.name)
        axes: dict[str, int] = {}
        for number, letter in _AXIS.findall(self.name):
            if letter in axes or (number != "") != letter.islower() or number == "0":
                raise self._wrong(letter)
            axes[letter] = int(number) if number else -1
        if "".join(["".join(pair) for pair in _AXIS.findall(self.name)]) != self.name:
            raise self._wrong(self.name)
        for letter in axes:
            if letter.upper() not in axes:
                raise self._wrong(letter)
        object.__setattr__(self, "axes", axes)

    def _wrong(self, part: str) -> IRValueError:
        return IRValueError(
            "layout: expected each axis once, as a capital letter, and blocks as a number and the "
            f"small letter of their axis, as in 'NCHW16c', got {part!r} in {self.name!r}"
        )

    def __len__(self) -> int:
        return len(self.axes)

    def __contains__(self, axis: object) -> bool:
        return axis in self.axes

    def __getitem__(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IRIndexError(f"layout {self.name} has {len(self)} axes, got {index}")
        return list(self.axes)[index]

    def index_of(self, axis: str) -> int:
        """The position of an axis; -1 for one that is not there."""
        return list(self.axes).index(axis) if axis in self.axes else -1

    def factor_of(self, axis: str) -> int:
        """The number of elements of the block of an axis, by either letter; -1 without a block."""
        return self.axes.get(axis.lower(), -1)


@dataclass(frozen=True)
class BijectiveLayout:
    """Positions and shapes in one layout as those in another one with the same axes.

    >>> blocked = bijective_layout("NCHW", "NCHW16c")
    >>> blocked.forward_index([0, 19, 7, 5]), blocked.backward_shape([1, 2, 7, 7, 16])
    ([0, 1, 7, 5, 3], [1, 32, 7, 7])
    """

    src_layout: Layout
    dst_layout: Layout

    def __post_init__(self) -> None:
        mine, its = (
            {axis.upper() for axis in side.axes} for side in (self.src_layout, self.dst_layout)
        )
        if mine != its:
            raise IRValueError(
                f"bijective_layout: expected layouts of the same axes, got {self.src_layout.name} "
                f"and {self.dst_layout.name}"
            )

    def forward_index(self, index: Sequence[ExprLike]) -> Array[PrimExpr]:
        """The position in the second layout of an element of the first one."""
        return _index(index, self.src_layout, self.dst_layout)

    def backward_index(self, index: Sequence[ExprLike]) -> Array[PrimExpr]:
        """The position in the first layout of an element of the second one."""
        return _index(index, self.dst_layout, self.src_layout)

    def forward_shape(self, shape: Sequence[ExprLike]) -> Array[PrimExpr]:
        """The shape in the second layout; blocks that are not full count as whole ones."""
        return _shape(shape, self.src_layout, self.dst_layout)

    def backward_shape(self, shape: Sequence[ExprLike]) -> Array[PrimExpr]:
        """The shape in the first layout."""
        return _shape(shape, self.dst_layout, self.src_layout)


def _parts(given: Sequence[ExprLike], layout: Layout) -> dict[str, PrimExpr]:
    if len(given) != len(layout):
        raise IRValueError(f"layout {layout.name} has {len(layout)} axes, got {len(given)} values")
    return {axis: as_prim_expr(part) for axis, part in zip(layout.axes, given, strict=True)}


def _index(given: Sequence[ExprLike], source: Layout, target: Layout) -> Array[PrimExpr]:
    parts, result = _parts(given, source), []
    for axis in target.axes:
        whole, block = parts[axis.upper()], parts.get(axis.lower())
        if block is not None:
            whole = whole * source.factor_of(axis) + block
        factor = target.factor_of(axis)
        if factor > 0:
            split = op.floormod if axis.islower() else op.floordiv
            whole = split(whole, factor)
        result.append(Analyzer().simplify(whole))
    return Array(result)


def _shape(given: Sequence[ExprLike], source: Layout, target: Layout) -> Array[PrimExpr]:
    parts, result = _parts(given, source), []
    for axis, factor in target.axes.items():
        whole = parts[axis.upper()]
        if source.factor_of(axis) > 0:
            whole = whole * source.factor_of(axis)
        if axis.islower():
            whole = op.const(factor, whole.dtype)
        elif target.factor_of(axis) > 0:
            whole = op.ceildiv(whole, target.factor_of(axis))
        result.append(Analyzer().simplify(whole))
    return Array(result)


def layout(layout_str: str, dtype: str = "int32") -> Layout:  # noqa: ARG001 - of TVM's signature
    """The layout of that text."""
    return Layout(layout_str)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout:
    """The mapping between two layouts of the same axes; IRValueError for others."""
    first, second = (
        side if isinstance(side, Layout) else Layout(side) for side in (src_layout, dst_layout)
    )
    return BijectiveLayout(first, second)
