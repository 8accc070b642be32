"""The order in which the axes of a tensor are stored, in terms of the axes that the program names.

What the program calls axis 1 may be stored last, or split into blocks. An AxisOrder lists the
stored dimensions as pairs: ``(axis, 0)`` stands for a whole axis, or for its blocks if it is split,
and ``(axis, 4)`` for the position within a block of four. Of a program in ``NCHW``, the order
``NHWC`` is ``((0, 0), (2, 0), (3, 0), (1, 0))``, and ``NCHW4c`` is
``((0, 0), (1, 0), (2, 0), (3, 0), (1, 4))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.ir.expr import PrimExpr
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.infer import int64
from weft.relax.op.layout import parse_layout
from weft.tir.expr import Var
from weft.tir.index_map import IndexMap
from weft.tir.op import floordiv, floormod


@dataclass(frozen=True)
class AxisOrder:
    """The stored dimensions of a tensor."""

    axes: tuple[tuple[int, int], ...]

    @property
    def ndim(self) -> int:
        """The number of axes that the program names."""
        return sum(not factor for _, factor in self.axes)

    @property
    def is_blocked(self) -> bool:
        """Whether an axis is split into blocks."""
        return any(factor for _, factor in self.axes)

    @property
    def is_identity(self) -> bool:
        """Whether the tensor is stored as the program names its axes."""
        return self == identity(len(self.axes))

    def blocks(self) -> list[tuple[int, int]]:
        """(axis, size of a block) for each axis that is split."""
        return [(axis, factor) for axis, factor in self.axes if factor]

    def position(self, axis: int) -> int:
        """The stored position of an axis of the program (that of its blocks, if it is split)."""
        return self.axes.index((axis % self.ndim, 0))

    def stored(self, names: str) -> str:
        """The layout as text, given the letters of the program's axes: "NCHW" -> "NHWC"."""
        return "".join(
            f"{factor}{names[axis].lower()}" if factor else names[axis]
            for axis, factor in self.axes
        )

    def without(self, removed: Sequence[int]) -> AxisOrder:
        """The order without some axes; those that are left are numbered from 0 again."""
        kept = [axis for axis in range(self.ndim) if axis not in removed]
        return AxisOrder(tuple((kept.index(a), f) for a, f in self.axes if a in kept))

    def below(self, ndim: int) -> AxisOrder:
        """The order of a tensor of ``ndim`` axes, whose additional first axes are stored first."""
        more = ndim - self.ndim
        new = tuple((axis, 0) for axis in range(more))
        return AxisOrder((*new, *((axis + more, factor) for axis, factor in self.axes)))

    def divides(self, dims: Sequence[PrimExpr] | None) -> bool:
        """Whether the extents of split axes are proved to be multiples of the block sizes."""
        if not self.is_blocked:
            return True
        return dims is not None and all(
            constant_value(simplified(floormod(dims[axis], int64(factor)))) == 0
            for axis, factor in self.blocks()
        )


def identity(ndim: int) -> AxisOrder:
    """The order in which the program names the axes."""
    return AxisOrder(tuple((axis, 0) for axis in range(ndim)))


def order_of(names: str, stored: str) -> AxisOrder:
    """The order of the layout ``stored``, given the letters of the program's axes."""
    layout = parse_layout(stored, names, "ConvertLayout")
    return AxisOrder(tuple((names.index(letter), factor) for letter, factor in layout.axes))


def permutation(have: AxisOrder, want: AxisOrder) -> list[int] | None:
    """The axes of a transposition from one order to another; None if it splits or joins axes."""
    if sorted(have.axes) != sorted(want.axes):
        return None
    return [have.axes.index(item) for item in want.axes]


def index_map(have: AxisOrder, want: AxisOrder) -> IndexMap:
    """The map from the stored indices of an element in one order to those in another."""
    stored = [Var(f"i{position}", "int32") for position in range(len(have.axes))]
    places = dict(zip(have.axes, stored, strict=True))
    have_factors, want_factors = dict(have.blocks()), dict(want.blocks())
    final: list[Any] = []
    for axis, part in want.axes:
        index: Any = places[axis, 0]
        if axis in have_factors:
            factor = have_factors[axis]
            index = index * factor + places[axis, factor]
        if part:
            index = floormod(index, part)
        elif axis in want_factors:
            index = floordiv(index, want_factors[axis])
        final.append(index)
    return IndexMap(stored, final)


Order = AxisOrder | tuple[Any, ...] | None
"""The order of a tensor, the orders of a tuple's fields, or None if it is unknown or no tensor."""
