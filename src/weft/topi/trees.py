"""Ensembles of decision trees: tables of nodes and one kernel that walks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.stmt import Stmt

MODES: Final = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
"""How a branch compares the feature with its split; the number of a mode is its place here."""
AGGREGATES: Final = ("SUM", "MIN", "MAX")
"""How the scores of several trees become one."""
LEAF: Final = 6
"""The mode of a node that is a leaf."""
FEATURE, MODE, YES, NO, MISSING = range(5)
"""Columns of the table of nodes."""
_COMPARE: Final = (
    op.less_equal, op.less, op.greater_equal, op.greater, op.equal, op.not_equal,
)  # fmt: skip


def tree_ensemble(
    data: Tensor, roots: Tensor, nodes: Tensor, splits: Tensor, targets: Tensor, weights: Tensor,
    count: int, modes: Sequence[int], has_missing: bool = False, aggregate: str = "SUM",
) -> Tensor:  # fmt: skip
    """The scores (rows, count) that all trees give each row of ``data``.

    ``roots`` are the first nodes of the trees. A row of ``nodes`` is (feature, mode, yes, no,
    missing): a branch goes to ``yes`` where the feature compares so with its split, or is NaN and
    ``missing`` is 1, else to ``no``. At a leaf the pairs of ``targets`` and ``weights`` from number
    ``yes`` to ``no`` are its scores. ``modes`` are those that occur. ``aggregate`` is SUM, MIN or
    MAX; a target that no leaf has a score for gets 0.
    """
    rows, kind = data.shape[0], DataType(weights.dtype)
    first = {
        "SUM": op.const(0, kind), "MIN": op.max_value(kind), "MAX": op.min_value(kind),
    }[aggregate]  # fmt: skip

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        x, root, node, split, target, weight = [ib.buffer_ptr(item) for item in ins]
        scores = ib.buffer_ptr(outs[0])
        with ib.for_range(0, rows, "i", kind="parallel") as i:
            with ib.for_range(0, count, "k") as k:
                scores[i, k] = first
            place = ib.allocate("int32", [1], "place")
            with ib.for_range(0, roots.shape[0], "tree") as tree:
                place[0] = root[tree]
                with ib.while_loop(op.not_equal(node[place[0], MODE], LEAF)):
                    at = ib.let("at", place[0])
                    holds = _holds(x[i, node[at, FEATURE]], split[at], node[at, MODE], modes)
                    if has_missing:
                        missing = op.equal(node[at, MISSING], 1)
                        is_nan = op.isnan(x[i, node[at, FEATURE]])
                        holds = op.logical_or(holds, op.logical_and(is_nan, missing))
                    place[0] = op.if_then_else(holds, node[at, YES], node[at, NO])
                leaf = ib.let("leaf", place[0])
                start = ib.let("start", node[leaf, YES])
                with ib.for_range(0, node[leaf, NO] - start, "w") as w:
                    to = ib.let("to", target[start + w])
                    scores[i, to] = _joined(aggregate, scores[i, to], weight[start + w])
            if aggregate != "SUM":
                with ib.for_range(0, count, "k") as k:
                    is_first = op.equal(scores[i, k], first)
                    scores[i, k] = op.if_then_else(is_first, op.const(0, kind), scores[i, k])
        return ib.get()

    return _kernel((data, roots, nodes, splits, targets, weights), body, (rows, count))


def _kernel(
    tables: Sequence[Tensor], body: Callable[[list[Buffer], list[Buffer]], Stmt],
    shape: tuple[PrimExpr, int],
) -> Tensor:  # fmt: skip
    names = ("data", "roots", "nodes", "splits", "targets", "weights")
    kind = tables[-1].dtype
    return extern(
        shape, list(tables), body, name="tree_ensemble", dtype=[kind],
        in_buffers=[
            decl_buffer(table.shape, table.dtype, name, data_alignment=8)
            for table, name in zip(tables, names, strict=True)
        ],
        out_buffers=[decl_buffer(shape, kind, "scores", data_alignment=8)],
    )  # fmt: skip


def _holds(value: PrimExpr, limit: PrimExpr, mode: PrimExpr, modes: Sequence[int]) -> PrimExpr:
    """Whether a branch goes to its ``yes``; trees without branches have no modes."""
    if not modes:
        return op.const(False, "bool")
    holds: PrimExpr = _COMPARE[modes[-1]](value, limit)
    for number in reversed(modes[:-1]):
        is_mode = op.equal(mode, op.const(number, "int32"))
        holds = op.if_then_else(is_mode, _COMPARE[number](value, limit), holds)
    return holds


def _joined(aggregate: str, so_far: PrimExpr, score: PrimExpr) -> PrimExpr:
    if aggregate == "SUM":
        return so_far + score
    return op.min(so_far, score) if aggregate == "MIN" else op.max(so_far, score)
