"""Tiles of windows along a row whose pixels are loaded once for all steps of the window.

The windows of neighbouring pixels overlap: four windows of three pixels, one pixel apart, need six
pixels, and not twelve. Where a row of the window is unrolled, LLVM loads each pixel once, as long
as registers hold the pixels beside the accumulators: a tile must be small. Larger tiles load
a vector for each multiply-add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.dlight.nest import Access, Nest, product
from weft.ir.functor import mentions
from weft.target.machine import Machine
from weft.tir.expr import Var

_FEWEST: Final = 4
"""The fewest results of a tile: with fewer, starts and ends of tiles cost more than is gained."""


_APART: Final = 8
"""The most results of a tile whose windows have no pixels in common."""
_HELD: Final = 12
"""A window of at most so many pixels has its weights in registers."""


@dataclass(frozen=True)
class Window:
    """A window of ``taps`` pixels, ``wide`` of them along the row that a tile runs over.

    ``stride`` and ``dilation`` are the distances of neighbouring windows, and of neighbouring
    pixels of one, in the same unit: elements of the image, if ``window_of`` gives it.
    """

    axis: Var
    """Along the row."""
    taps: int
    wide: int
    stride: int
    dilation: int
    vectors: int
    """Vectors of a pixel."""

    def pixels(self, tile: int) -> int:
        """How many pixels of one row of the image a tile of so many results needs."""
        places = {
            result * self.stride + step * self.dilation
            for result in range(tile)
            for step in range(self.wide)
        }
        return len(places)

    @property
    def overlaps(self) -> bool:
        """Whether windows that are neighbours on the row have pixels in common."""
        return self.pixels(2) < 2 * self.wide

    def registers(self, tile: int) -> int:
        """What a tile of so many results needs: accumulators, pixels, and weights.

        The weights of a small window stay in registers from tile to tile.
        """
        weights = self.taps * self.vectors if self.taps <= _HELD else 1
        return self.vectors * (tile + self.pixels(tile)) + weights


def window_of(nest: Nest, row: Var, machine: Machine) -> Window | None:
    """The window of a block; None if it does not slide along the row."""
    axes = nest.result_axes()
    taps = product([nest.extent(axis) for axis in nest.reduced])
    along = [
        (load, axis) for load in nest.loads for axis in nest.reduced if slides(load, axis, row)
    ]
    if axes is None or taps is None or len(along) != 1:
        return None
    [(load, axis)] = along
    wide, channels = nest.extent(axis) or 1, nest.extent(axes[-1]) or 1
    stride, dilation = load.step(row), load.step(axis)
    if not stride or not dilation:
        return None
    return Window(axis, taps, wide, stride, dilation, -(-channels // machine.lanes()))


def slides(load: Access, axis: Var, row: Var) -> bool:
    """Whether an axis of a window moves along ``row``, so that neighbouring windows may overlap."""
    return any(mentions(index, axis) and mentions(index, row) for index in load.indices)


def tile_of(window: Window | None, length: int, machine: Machine) -> int | None:
    """How many results of a row of ``length`` a tile has; None if it had better fill the registers.

    Windows without common pixels get as many as hide the latency of each. Tiles that end with the
    row are preferred: a tile that is cut off is more code.

    >>> machine = Machine(1, 512, 32, 1, 32 << 10, 1 << 20, 8 << 20)
    >>> window = Window(Var("kx"), 9, 3, 1, 1, 1)
    >>> [tile_of(window, length, machine) for length in (7, 14, 56, 110)]
    [7, 7, 8, 10]
    """
    if window is None:
        return None
    fitting = range(1, min(length, machine.vector_registers) + 1)
    most = max([tile for tile in fitting if is_shared(window, tile, machine)], default=0)
    if not window.overlaps:
        most = min(length, _APART)
    if most < min(_FEWEST, length):
        return None
    whole = [tile for tile in range(most, most // 2, -1) if length % tile == 0]
    return whole[0] if whole else -(-length // -(-length // most))


def is_shared(window: Window, tile: int, machine: Machine) -> bool:
    """Whether windows overlap, and registers hold all that so many results of a row need."""
    return window.overlaps and window.registers(tile) <= machine.vector_registers
