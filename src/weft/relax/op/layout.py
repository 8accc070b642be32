"""Layouts of activations and weights: ``NCHW``, ``NHWC``, ``OIHW``, and blocked ones (``NCHW4c``).

A layout is a list of axes; a lower-case letter with a number is a part split from the axis of the
same upper-case letter: NCHW4c splits C into C // 4 and 4. Rules are written once, for a canonical
order of axes, to which ``Layout`` converts shapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.expr import Extent
from weft.relax.ir.shape_arith import constant_value, differ, simplified
from weft.relax.op.infer import int64
from weft.support.errors import IRValueError
from weft.tir.op import floordiv

_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])")


@dataclass(frozen=True)
class Layout:
    """The axes in order: (letter, 0) for a primal axis, (letter, factor) for a split part."""

    name: str
    axes: tuple[tuple[str, int], ...]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.axes)

    def position(self, letter: str) -> int:
        """Where the primal axis of that letter is."""
        return self.axes.index((letter, 0))

    def to_canonical(self, dims: Sequence[Extent], order: str) -> list[Extent]:
        """The extents in the order of upper-case axes, multiplied by those of their split parts."""
        extents: dict[str, Extent] = {}
        for (letter, factor), dim in zip(self.axes, dims, strict=True):
            known = extents.get(letter)
            if factor and differ(dim, int64(factor)):
                raise IRValueError(
                    f"layout {self.name}: expected an extent of {factor} for its axis "
                    f"{factor}{letter.lower()}, got {dim}"
                )
            part = int64(factor) if factor else dim
            extents[letter] = part if known is None else simplified(known * part)
        return [extents[letter] for letter in order]

    def from_canonical(self, dims: Sequence[Extent], order: str) -> list[Extent]:
        """The inverse of ``to_canonical``."""
        extents = dict(zip(order, dims, strict=True))
        laid_out: list[Extent] = []
        for letter, factor in self.axes:
            if factor:
                laid_out.append(int64(factor))
                continue
            extent = extents[letter]
            for other, part in self.axes:
                if other == letter and part:
                    extent = simplified(floordiv(extent, int64(part)))
            laid_out.append(extent)
        return laid_out


def parse_layout(name: str, order: str, what: str) -> Layout:
    """The layout of that name, which must have the axes of ``order``."""
    axes: list[tuple[str, int]] = []
    position = 0
    while position < len(name):
        match = _AXIS.match(name, position)
        if match is None:
            break
        primal, factor, part = match.groups()
        axes.append((primal, 0) if primal else (part.upper(), int(factor)))
        position = match.end()
    letters = sorted(letter for letter, factor in axes if not factor)
    if position != len(name) or letters != sorted(order):
        raise IRValueError(f"{what}: expected a layout with the axes {order}, got {name!r}")
    return Layout(name, tuple(axes))


def is_constant(dim: Extent, value: int) -> bool:
    """Whether the dimension is that number."""
    return constant_value(dim) == value
