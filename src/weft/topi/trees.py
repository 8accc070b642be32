"""Ensembles of decision trees: tables of nodes and one kernel that walks them.

Some trees are walked in lockstep, and by some rows in turn. So the loads of a step overlap, no
branch depends on data but the end of all walks, and the tables of the trees stay in the first cache
(Asadi, Lin and de Vries, *Runtime optimizations for tree-based machine learning models*, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import Extent, PrimExpr
from weft.te.operation import as_list, extern
from weft.te.primfunc import LAYOUT_REWRITE_PREPROC
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import Stmt
from weft.topi.simplify import simplified
from weft.topi.tree_masks import LANES, MaskedRows, MaskTables

MODES: Final = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
"""How a branch compares the feature with its split; the number of a mode is its place here."""
AGGREGATES: Final = ("SUM", "MIN", "MAX")
"""How the scores of several trees become one."""
LEAF: Final = 6
"""The mode of a node that is a leaf."""
FEATURE, MODE, YES, NO, MISSING = range(5)
"""Columns of the table of nodes."""
_TREES: Final = 8
"""How many trees a row walks through at a time."""
_ROWS: Final = 8
"""How many rows walk through some trees while these are in the first cache."""
_FEW: Final = 4
"""Rows below which each walks, also where masks are known."""
_FEATURE, _MODE = 2, 3
"""Columns of the table that steps read, after those of both children."""
_MISSING_BIT: Final = 3
_MISSING: Final = 1 << _MISSING_BIT
"""What a mode is increased by where a branch goes to its ``yes`` for NaN."""
COMPARE: Final = (
    op.less_equal, op.less, op.greater_equal, op.greater, op.equal, op.not_equal,
)  # fmt: skip
"""The comparison of each mode."""


def tree_ensemble(
    data: Tensor, roots: Tensor, nodes: Tensor, splits: Tensor, targets: Tensor, weights: Tensor,
    count: int, modes: Sequence[int], has_missing: bool = False, aggregate: str = "SUM",
    masks: Sequence[Tensor] = (),
) -> Tensor:  # fmt: skip
    """The scores (rows, count) that all trees give each row of ``data``.

    ``roots`` are the first nodes of the trees. A row of ``nodes`` is (feature, mode, yes, no,
    missing): a branch goes to ``yes`` where the feature compares so with its split, or is NaN and
    ``missing`` is 1, else to ``no``. At a leaf the pairs of ``targets`` and ``weights`` from number
    ``yes`` to ``no`` are its scores. ``modes`` are those that occur. ``aggregate`` is SUM, MIN or
    MAX; a target that no leaf has a score for gets 0.

    ``masks`` are the tables of ``weft.topi.tree_masks.MaskTables`` for the same trees, of one mode
    and with sums: then rows are compared with all branches at once, where there are several.
    """
    rows, length = data.shape[0], LANES if masks else _ROWS

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        tables, scores = [ib.buffer_ptr(item) for item in ins], ib.buffer_ptr(outs[0])
        sizes = roots.shape[0], data.shape[1], count
        walk = _Walk(ib, tables[:6], scores, modes, aggregate, sizes)
        blocks = simplified(op.floordiv(rows + (length - 1), length))
        with ib.for_range(0, blocks, "block", kind="parallel") as block:
            begin = ib.let("begin", block * length)
            size = ib.let("size", op.minimum(rows - begin, op.const(length, begin.dtype)))
            if masks:
                own, shapes = MaskTables(*tables[6:]), [table.shape for table in masks]
                used, width = [shapes[own._fields.index(name)] for name in ("used", "targets")]
                widths = (roots.shape[0], used[0], count, width[1])
                with ib.if_scope(op.greater_equal(size, _FEW)):
                    together = MaskedRows(ib, tables[0], own, widths, COMPARE[modes[0]])
                    together.rows(begin, size, scores, has_missing=has_missing)
                with ib.else_scope():
                    walk.block(begin, size, has_missing=has_missing)
            else:
                walk.block(begin, size, has_missing=has_missing)
        return ib.get()

    tables = (data, roots, _steps(nodes), splits, targets, weights, *masks)
    return _kernel(tables, body, (rows, count), weights.dtype)


@dataclass
class _Walk:
    """Emits the walk of rows through the trees; holds the buffers that it reads and writes."""

    ib: IRBuilder
    tables: Sequence[BufferVar]
    scores: BufferVar
    modes: Sequence[int]
    aggregate: str
    sizes: tuple[Extent, Extent, int]
    """The trees, the features, the targets."""

    def block(self, begin: PrimExpr, size: PrimExpr, *, has_missing: bool) -> None:
        """All scores of ``size`` rows from ``begin`` on; missing features are asked for if any."""
        ib = self.ib
        if not has_missing:
            self.rows(begin, size, has_nan=False)
            return
        with ib.if_scope(self.has_nan(begin, size)):
            self.rows(begin, size, has_nan=True)
        with ib.else_scope():
            self.rows(begin, size, has_nan=False)

    def has_nan(self, begin: PrimExpr, size: PrimExpr) -> PrimExpr:
        """Whether a feature of some rows is NaN: else no branch need ask."""
        ib, data = self.ib, self.tables[0]
        is_any = ib.allocate("int32", [1], "any_nan", scope="local")
        is_any[0] = op.const(0, "int32")
        with ib.for_range(0, size, "i") as i, ib.for_range(0, self.sizes[1], "feature") as feature:
            is_nan = op.cast("int32", op.isnan(data[begin + i, feature]))
            is_any[0] = op.bitwise_or(is_any[0], is_nan)
        return op.not_equal(is_any[0], 0)

    def rows(self, begin: PrimExpr, size: PrimExpr, *, has_nan: bool) -> None:
        """All scores of ``size`` rows from ``begin`` on."""
        ib, scores, kind = self.ib, self.scores, self.scores.dtype
        count, _, targets = self.sizes
        first = {
            "SUM": op.const(0, kind), "MIN": op.max_value(kind), "MAX": op.min_value(kind),
        }[self.aggregate]  # fmt: skip
        with ib.for_range(0, size, "i") as i, ib.for_range(0, targets, "k") as k:
            scores[begin + i, k] = first
        groups = simplified(op.floordiv(count, _TREES))
        with ib.for_range(0, groups, "group") as group, ib.for_range(0, size, "i") as i:
            self.trees(begin + i, group * _TREES, _TREES, has_nan=has_nan)
        with ib.for_range(simplified(groups * _TREES), count, "tree") as tree:
            with ib.for_range(0, size, "i") as i:
                self.trees(begin + i, tree, 1, has_nan=has_nan)
        if self.aggregate != "SUM":
            with ib.for_range(0, size, "i") as i, ib.for_range(0, targets, "k") as k:
                score = scores[begin + i, k]
                is_first = op.equal(score, first)
                scores[begin + i, k] = op.if_then_else(is_first, op.const(0, kind), score)

    def trees(self, row: PrimExpr, tree: PrimExpr, count: int, *, has_nan: bool) -> None:
        """Walk through ``count`` trees from number ``tree`` on, a step in each at a time.

        A step waits for its loads, so that those of several trees take hardly longer than those of
        one. Where the leaf is reached, a step stays; after one in which all stay, they end.
        """
        ib, root = self.ib, self.tables[1]
        place = ib.allocate("int32", [count], "place", scope="local")
        moved = ib.allocate("int32", [1], "moved", scope="local")
        moved[0] = op.cast("int32", op.greater(self.sizes[1], 0))
        for lane in range(count):
            place[lane] = root[tree + lane]
        with ib.while_loop(op.not_equal(moved[0], 0)):
            moved[0] = op.const(0, "int32")
            for lane in range(count):
                at = ib.let("at", place[lane])
                place[lane] = self.step(row, at, has_nan=has_nan)
                moved[0] = op.bitwise_or(moved[0], op.bitwise_xor(at, place[lane]))
        for lane in range(count):
            self.add(row, place[lane])

    def step(self, row: PrimExpr, at: PrimExpr, *, has_nan: bool) -> PrimExpr:
        """The node after ``at``, which is itself if it is a leaf."""
        data, _, node, split, *_ = self.tables
        value = self.ib.let("value", data[row, node[0, at, _FEATURE]])
        mode = op.bitwise_and(node[0, at, _MODE], op.const(_MISSING - 1, "int32"))
        # Numbers, not conditions: a processor cannot foretell a branch of a tree.
        holds = op.cast("int32", _holds(value, split[at], mode, self.modes))
        if has_nan:
            missing = op.shift_right(node[0, at, _MODE], op.const(_MISSING_BIT, "int32"))
            holds = op.bitwise_or(holds, op.bitwise_and(op.cast("int32", op.isnan(value)), missing))
        return node[0, at, holds]

    def add(self, row: PrimExpr, leaf: PrimExpr) -> None:
        """Take the scores of a leaf into those of the row."""
        *_, node, _, target, weight = self.tables
        start = self.ib.let("start", node[1, leaf, 0])
        with self.ib.for_range(0, node[1, leaf, 1] - start, "w") as w:
            to = self.ib.let("to", target[start + w])
            self.scores[row, to] = _joined(self.aggregate, self.scores[row, to], weight[start + w])


def _steps(nodes: Tensor) -> Tensor:
    """The table of nodes as steps read it: (2, nodes, 4).

    A branch is (no, yes, feature, mode + 8 * missing). A leaf goes to itself, whatever feature 0
    is; in the second part it has the numbers of its first score and of the one after its last.
    Tables that are known are laid out once, when the model is built.
    """
    count = nodes.shape[0]

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        [given], [laid_out] = map(ib.buffer_ptr, ins), map(ib.buffer_ptr, outs)
        with ib.for_range(0, count, "at") as at:
            mode, me = given[at, MODE], op.cast("int32", at)
            is_leaf, zero = op.equal(mode, LEAF), op.const(0, "int32")
            for place, column, at_leaf in ((0, NO, me), (1, YES, me), (_FEATURE, FEATURE, zero)):
                laid_out[0, at, place] = op.select(is_leaf, at_leaf, given[at, column])
            is_missing = op.cast("int32", op.equal(given[at, MISSING], 1))
            laid_out[0, at, _MODE] = op.select(is_leaf, zero, mode + is_missing * _MISSING)
            for place, column in ((0, YES), (1, NO)):
                laid_out[1, at, place] = op.select(is_leaf, given[at, column], zero)
                laid_out[1, at, place + 2] = zero
        return ib.get()

    shape = [op.const(2, "int64"), count, op.const(4, "int64")]
    return as_list(extern(
        [shape], [nodes], body, name="tree_steps", dtype=["int32"],
        attrs={LAYOUT_REWRITE_PREPROC: True},
        in_buffers=[decl_buffer(nodes.shape, "int32", "nodes", data_alignment=8)],
        out_buffers=[decl_buffer(shape, "int32", "steps", data_alignment=8)],
    ))[0]  # fmt: skip


def _kernel(
    tables: Sequence[Tensor], body: Callable[[list[Buffer], list[Buffer]], Stmt],
    shape: tuple[PrimExpr, int], kind: str,
) -> Tensor:  # fmt: skip
    names = ("data", "roots", "nodes", "splits", "targets", "weights", *MaskTables._fields)
    return extern(
        shape, list(tables), body, name="tree_ensemble", dtype=[kind],
        in_buffers=[
            decl_buffer(table.shape, table.dtype, name, data_alignment=8)
            for table, name in zip(tables, names, strict=False)
        ],
        out_buffers=[decl_buffer(shape, kind, "scores", data_alignment=8)],
    )  # fmt: skip


def _holds(value: PrimExpr, limit: PrimExpr, mode: PrimExpr, modes: Sequence[int]) -> PrimExpr:
    """Whether a branch goes to its ``yes``; trees without branches have no modes."""
    if not modes:
        return op.const(False, "bool")
    holds: PrimExpr = COMPARE[modes[-1]](value, limit)
    for number in reversed(modes[:-1]):
        is_mode = op.equal(mode, op.const(number, "int32"))
        holds = op.select(is_mode, COMPARE[number](value, limit), holds)
    return holds


def _joined(aggregate: str, so_far: PrimExpr, score: PrimExpr) -> PrimExpr:
    if aggregate == "SUM":
        return so_far + score
    return op.min(so_far, score) if aggregate == "MIN" else op.max(so_far, score)
