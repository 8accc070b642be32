"""The products of a mixture of experts: each run of rows with the matrix of its own group.

The rows of a group are cut into tiles of equally many rows; the last one of a group may be filled
up. A tile meets one matrix, so that default schedules make of it a product like any other, which
reads each matrix once. With tiles of 4 rows and groups of 5, 0 and 3 rows ``a`` to ``h``:

    data             tiles                            matrix of each
    a b c d e f g h  [a b c d] [e . . .] [f g h .]    0  0  2
"""

from __future__ import annotations

from typing import Final

from weft import te
from weft.ir.expr import IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi.moments import wide
from weft.topi.wide_products import rounded

_TILE: Final = 8
"""How many rows meet a matrix together: what the registers of common processors hold."""
_FAR: Final = 2**62
"""More rows than there are."""


def grouped_matmul(data: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Row s times ``weight[g]``, where group g is the first that ends behind row s.

    ``ends`` counts the rows of all groups up to each one. Rows behind the last group are 0.
    16-bit floats are summed in float32.
    """
    rows, depth = data.shape
    groups, columns = weight.shape[0], weight.shape[2]
    dtype = DataType(data.dtype)
    kind = str(wide(dtype))
    layout = _Layout(ends, rows, groups, _rows_of_a_tile(rows, groups))
    group, first, place = layout.groups_of_tiles(), layout.first_rows(), layout.places()

    def tile_element(tile: PrimExpr, row: PrimExpr, k: PrimExpr) -> PrimExpr:
        at = first[tile] + row
        return op.if_then_else(op.less(at, rows), data[at, k], op.const(0, data.dtype))

    tiles = te.compute((layout.tiles, layout.tile, depth), tile_element, name="tiles")

    def product(tile: PrimExpr, row: PrimExpr, column: PrimExpr) -> PrimExpr:
        k = te.reduce_axis((0, depth), name="k")
        factors = tiles[tile, row, k], weight[group[tile], k, column]
        return te.sum(factors[0].astype(kind) * factors[1].astype(kind), axis=k)

    products = te.compute((layout.tiles, layout.tile, columns), product, name="grouped_matmul")

    def element(row: PrimExpr, column: PrimExpr) -> PrimExpr:
        at = place[row]
        value = products[op.floordiv(at, layout.tile), op.floormod(at, layout.tile), column]
        return op.if_then_else(op.greater_equal(at, 0), value, op.const(0, kind))

    return rounded(te.compute((rows, columns), element, name="rows"), dtype)


def _rows_of_a_tile(rows: PrimExpr, groups: PrimExpr) -> int:
    """As many rows as a group has on average, at most ``_TILE``: more would be filled up."""
    if isinstance(rows, IntImm) and isinstance(groups, IntImm):
        return int(min(_TILE, max(1, -(-rows.value // max(1, groups.value)))))
    return _TILE


class _Layout:
    """Where the rows of each group are, in the data and in the tiles.

    Each answer is a reduction over the groups, so that it is computed before the product, once.
    """

    def __init__(self, ends: Tensor, rows: PrimExpr, groups: PrimExpr, tile: int) -> None:
        self.ends, self.rows, self.groups, self.tile = ends, rows, groups, tile
        self.tiles = op.floordiv(rows + op.min(rows, groups) * (tile - 1), tile)
        """At least as many tiles as there can be; those behind the last group are not read."""
        self.through = te.compute((groups,), self._tiles_through, name="tiles_through")

    def start(self, group: PrimExpr) -> PrimExpr:
        """The first row of a group."""
        before = op.cast("int64", self.ends[op.max(group - 1, 0)])
        return op.if_then_else(op.equal(group, 0), op.const(0, "int64"), before)

    def end(self, group: PrimExpr) -> PrimExpr:
        """The row behind the last one of a group."""
        return op.cast("int64", self.ends[group])

    def count(self, group: PrimExpr) -> PrimExpr:
        """How many tiles a group has."""
        rows = op.max(self.end(group) - self.start(group), op.const(0, "int64"))
        return op.floordiv(rows + (self.tile - 1), self.tile)

    def before(self, group: PrimExpr) -> PrimExpr:
        """How many tiles the groups before a group have."""
        return self.through[group] - self.count(group)

    def _tiles_through(self, group: PrimExpr) -> PrimExpr:
        axis = te.reduce_axis((0, self.groups), name="g")
        g = axis.var
        zero = op.const(0, "int64")
        return te.sum(op.if_then_else(op.less_equal(g, group), self.count(g), zero), axis=axis)

    def groups_of_tiles(self) -> Tensor:
        """The group of each tile; 0 for a tile of none."""

        def group(tile: PrimExpr) -> PrimExpr:
            axis = te.reduce_axis((0, self.groups), name="g")
            g = axis.var
            return te.max(self._if_holds(g, tile, g, 0), axis=axis)

        return te.compute((self.tiles,), group, name="group")

    def first_rows(self) -> Tensor:
        """The first row of each tile; behind all rows for a tile of no group."""

        def first(tile: PrimExpr) -> PrimExpr:
            axis = te.reduce_axis((0, self.groups), name="g")
            g = axis.var
            row = self.start(g) + (tile - self.before(g)) * self.tile
            return te.min(self._if_holds(g, tile, row, _FAR), axis=axis)

        return te.compute((self.tiles,), first, name="first")

    def _if_holds(self, group: PrimExpr, tile: PrimExpr, value: PrimExpr, other: int) -> PrimExpr:
        """``value`` if a tile is of a group, else ``other``."""
        from_before = op.greater_equal(tile, self.before(group))
        inside = op.logical_and(from_before, op.less(tile, self.through[group]))
        return op.if_then_else(inside, op.cast("int64", value), op.const(other, "int64"))

    def places(self) -> Tensor:
        """Where the product of each row is among the rows of all tiles; -1 for a row of none."""

        def place(row: PrimExpr) -> PrimExpr:
            axis = te.reduce_axis((0, self.groups), name="g")
            g = axis.var
            at = self.before(g) * self.tile + (row - self.start(g))
            inside = op.logical_and(op.greater_equal(row, self.start(g)), op.less(row, self.end(g)))
            return te.max(op.if_then_else(inside, at, op.const(-1, "int64")), axis=axis)

        return te.compute((self.rows,), place, name="place")
