"""The sizes of a convolution by Winograd's algorithm: of its tiles, bands, panels and buffers.

A form is a key: passes compare the cycles of forms, and build one function for equal forms. So it
consists of numbers. Extents that only a call tells are ``symbols`` of the form; ``data`` holds for
each the number that costs are estimated with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

from weft.ir.expr import Extent
from weft.topi.nn.winograd_matrices import WINDOW

BATCH: Final = 0
HEIGHT: Final = 2
WIDTH: Final = 3
"""The axes of the data that may be symbolic."""
_Size = TypeVar("_Size", int, Extent)


def results(extent: _Size, before: int, after: int) -> _Size:
    """How many windows an axis has, with padding before and after it.

    >>> results(8, 1, 1)
    8
    """
    return extent + (before + after - WINDOW + 1)


def tiles_of(extent: _Size, tile: int) -> _Size:
    """How many tiles an axis has, with the last one, of which parts may lie beyond its end.

    >>> tiles_of(9, 4)
    3
    """
    return (extent + (tile - 1)) // tile


@dataclass(frozen=True)
class Form:
    """The sizes of a 3x3 convolution with stride and dilation 1, and of its tiles and bands."""

    tile: int
    """The number of results of a tile along each axis: 2 or 4."""
    rows: int
    """Rows of tiles in a band: a divisor of ``down``, or all rows of all images. If there are
    symbols: the tiles of a group, which are numbered through all images."""
    padding: tuple[int, int, int, int]
    """Top, left, bottom, right."""
    data: tuple[int, int, int, int, int]
    """Batch, channels / block, height, width, block."""
    filters: int
    block: int
    """The block of the result's channels."""
    panel: int
    """Filters in a panel of the weights: a multiple of ``block`` that divides ``filters``."""
    takes_kernel: bool = False
    """Whether the function transforms the kernel itself; else it takes transformed weights."""
    symbols: frozenset[int] = frozenset()
    """The axes of the data whose extents only a call tells: some of BATCH, HEIGHT, WIDTH."""
    groups: int = 1
    """How many groups of tiles a band has, if there are symbols."""

    @property
    def side(self) -> int:
        """The number of elements that a tile needs along each axis."""
        return self.tile + WINDOW - 1

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the result."""
        _, _, height, width, _ = self.data
        top, left, bottom, right = self.padding
        return results(height, top, bottom), results(width, left, right)

    @property
    def down(self) -> int:
        """The number of rows of tiles of an image."""
        return tiles_of(self.size[0], self.tile)

    @property
    def across(self) -> int:
        """The number of tiles of a row."""
        return tiles_of(self.size[1], self.tile)

    @property
    def row(self) -> int:
        """The number of tiles of a row in a band; 1 if a band has groups instead of rows."""
        return 1 if self.symbols else self.across

    @property
    def count(self) -> int:
        """The number of tiles of all images."""
        return self.data[0] * self.down * self.across

    @property
    def tiles(self) -> int:
        """The number of tiles of a band."""
        return self.rows * self.row * self.groups

    @property
    def is_whole(self) -> bool:
        """Whether one band holds all rows of all images."""
        return not self.symbols and self.rows == self.data[0] * self.down

    @property
    def bands(self) -> int:
        """The number of bands of all images."""
        if self.symbols:
            return tiles_of(self.count, self.tiles)
        return 1 if self.is_whole else self.data[0] * tiles_of(self.down, self.rows)

    @property
    def weights(self) -> tuple[int, int, int, int, int]:
        """The shape of the transformed weights."""
        channels = self.data[1] * self.data[4]
        return self.side, self.side, self.filters // self.panel, channels, self.panel

    @property
    def kernel(self) -> tuple[int, int, int, int, int, int]:
        """The shape of the kernel, in blocks of channels and of filters."""
        _, blocks, _, _, a = self.data
        return self.filters // self.block, blocks, WINDOW, WINDOW, a, self.block
