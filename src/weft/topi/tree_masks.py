"""Small decision trees: 16 rows are compared with every branch of a tree, whose leaves are bits.

::

    leaves, from left to right: bits of a number from the lowest up, at first all 1
    a branch whose condition does not hold for a row: clears the bits of the leaves on its "yes"
    the lowest bit that is left is the row's leaf

No step waits for the one before, as in a walk, and 16 rows take the same instructions; a walk
visits fewer branches. (Lucchese et al., *QuickScorer*, SIGIR 2015; with vectors: *Exploiting CPU
SIMD extensions to speed-up document scoring with tree ensembles*, SIGIR 2016.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.ir.expr import Extent, PrimExpr
from weft.tir import op
from weft.tir.ir_builder import BufferVar, IRBuilder, WithScope

LANES: Final = 16
"""How many rows are compared at a time."""


class MaskTables(NamedTuple):
    """Tables of trees whose leaves all add to the same number of targets.

    Tree t has the branches from number ``starts[t]`` to ``starts[t + 1]``, and leaves from number
    ``leaves[t]`` on. Branch b compares ``data[row, used[features[b]]]`` with ``splits[b]``, and
    holds for NaN where ``missing[b]`` is 1; where it does not hold, the leaves whose bits are 0 in
    ``masks[b]`` are none of the row's. A leaf adds ``weights[leaf, k]`` to ``targets[t, k]``.
    """

    starts: BufferVar
    used: BufferVar
    features: BufferVar
    splits: BufferVar
    missing: BufferVar
    masks: BufferVar
    leaves: BufferVar
    targets: BufferVar
    weights: BufferVar


@dataclass
class MaskedRows:
    """Emits the work of 16 rows; ``holds`` compares a feature with a split."""

    ib: IRBuilder
    data: BufferVar
    tables: MaskTables
    sizes: tuple[Extent, Extent, int, Extent]
    """The trees, the features that branches use, the targets of all, those of a tree."""
    holds: Callable[[PrimExpr, PrimExpr], PrimExpr]

    def rows(
        self, begin: PrimExpr, size: PrimExpr, scores: BufferVar, *, has_missing: bool
    ) -> None:
        """All scores of ``size`` rows from ``begin`` on."""
        ib = self.ib
        trees, _, count, _ = self.sizes
        kind = self.tables.weights.dtype
        columns = self._columns(begin, size)
        totals = ib.allocate(kind, [count * LANES], "totals", scope="local")
        with ib.for_range(0, count, "k") as k, self._lanes() as lane:
            totals[k * LANES + lane] = op.const(0, kind)
        any_nan = self._any_nan(columns) if has_missing else None
        with ib.for_range(0, trees, "tree") as tree:
            left = self._remaining(tree, columns, any_nan)
            self._add(tree, left, totals)
        with ib.for_range(0, size, "i") as i, ib.for_range(0, count, "k") as k:
            scores[begin + i, k] = totals[k * LANES + i]

    def _lanes(self) -> WithScope:
        return self.ib.for_range(0, LANES, "lane", kind="vectorize")

    def _columns(self, begin: PrimExpr, size: PrimExpr) -> BufferVar:
        """The used features of the rows side by side; where rows lack, the last stands for them."""
        ib, data, used, features = self.ib, self.data, self.tables.used, self.sizes[1]
        columns = ib.allocate(data.dtype, [features * LANES], "columns", scope="local")
        with ib.for_range(0, LANES, "lane") as lane:
            row = ib.let("row", begin + op.minimum(op.cast(size.dtype, lane), size - 1))
            with ib.for_range(0, features, "feature") as feature:
                columns[feature * LANES + lane] = data[row, used[feature]]
        return columns

    def _any_nan(self, columns: BufferVar) -> PrimExpr:
        """Whether a feature is NaN: else no branch need ask."""
        ib = self.ib
        met = ib.allocate("int32", [LANES], "met", scope="local")
        with self._lanes() as lane:
            met[lane] = op.const(0, "int32")
        with ib.for_range(0, self.sizes[1], "feature") as feature, self._lanes() as lane:
            is_nan = op.cast("int32", op.isnan(columns[feature * LANES + lane]))
            met[lane] = op.bitwise_or(met[lane], is_nan)
        anywhere = ib.allocate("int32", [1], "anywhere", scope="local")
        anywhere[0] = op.const(0, "int32")
        with ib.for_range(0, LANES, "lane") as lane:
            anywhere[0] = op.bitwise_or(anywhere[0], met[lane])
        return ib.let("any_nan", anywhere[0])

    def _remaining(self, tree: PrimExpr, columns: BufferVar, any_nan: PrimExpr | None) -> BufferVar:
        """The bits of the leaves that are left to each row."""
        ib, kind = self.ib, self.tables.masks.dtype
        left = ib.allocate(kind, [LANES], "left", scope="local")
        with self._lanes() as lane:
            left[lane] = op.const(-1, kind)
        if any_nan is None:
            self._branches(tree, columns, left, has_nan=False)
            return left
        with ib.if_scope(op.equal(any_nan, 0)):
            self._branches(tree, columns, left, has_nan=False)
        with ib.else_scope():
            self._branches(tree, columns, left, has_nan=True)
        return left

    def _branches(
        self, tree: PrimExpr, columns: BufferVar, left: BufferVar, *, has_nan: bool
    ) -> None:
        ib, tables = self.ib, self.tables
        begin = ib.let("begin", tables.starts[tree])
        with ib.for_range(0, tables.starts[tree + 1] - begin, "branch") as branch:
            at = ib.let("at", begin + branch)
            column = ib.let("column", tables.features[at] * LANES)
            split, mask = ib.let("split", tables.splits[at]), ib.let("mask", tables.masks[at])
            missing = ib.let("missing", op.not_equal(tables.missing[at], 0))
            with self._lanes() as lane:
                value = columns[column + lane]
                holds = self.holds(value, split)
                if has_nan:
                    holds = op.logical_or(holds, op.logical_and(op.isnan(value), missing))
                others = op.bitwise_and(left[lane], mask)
                left[lane] = op.select(holds, left[lane], others)

    def _add(self, tree: PrimExpr, left: BufferVar, totals: BufferVar) -> None:
        """Add the scores of each row's leaf to its totals."""
        ib, tables, kind, width = self.ib, self.tables, left.dtype, self.sizes[3]
        first = ib.let("first", tables.leaves[tree])
        leaf = ib.allocate("int32", [LANES], "leaf", scope="local")
        with self._lanes() as lane:
            below = op.bitwise_and(left[lane], -left[lane]) - op.const(1, kind)
            leaf[lane] = first + op.cast("int32", op.popcount(below))
        with ib.for_range(0, width, "k") as k:
            to = ib.let("to", tables.targets[tree, k] * LANES)
            with self._lanes() as lane:
                totals[to + lane] = totals[to + lane] + tables.weights[leaf[lane], k]
