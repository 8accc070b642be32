"""Classical machine learning: ensembles of trees, probabilities from pairs of classes."""

from __future__ import annotations

from collections.abc import Sequence

from weft.relax.expr import Call, Constant, Expr, const
from weft.relax.op.definition import operator
from weft.relax.op.infer import check_float, check_rank, dims_of, fail, int64, result
from weft.relax.op.lowering import Builder, plain
from weft.relax.op.reference import classical as reference
from weft.relax.op.tree_tables import mask_tables
from weft.relax.struct_info import TensorStructInfo
from weft.te.tensor import Tensor
from weft.topi.pairwise import couple_pairs as topi_couple_pairs
from weft.topi.trees import AGGREGATES, MODES
from weft.topi.trees import tree_ensemble as topi_tree_ensemble


def infer_tree_ensemble(call: Call) -> TensorStructInfo:
    """(rows, count) in the type of the weights."""
    data = check_rank(call, 0, 2)
    for index, rank in enumerate((1, 2, 1, 1, 1), 1):
        check_rank(call, index, rank)
    attrs = call.attrs
    unknown = [mode for mode in str(attrs["modes"]).split() if mode not in MODES]
    if unknown:
        fail(call, f"modes: expected some of {', '.join(MODES)}, got {unknown[0]!r}")
    if attrs["aggregate"] not in AGGREGATES:
        fail(call, f"aggregate: expected {', '.join(AGGREGATES)}, got {attrs['aggregate']!r}")
    if attrs["count"] < 1:
        fail(call, f"count: expected 1 or more, got {attrs['count']}")
    weights = check_rank(call, 5, 1)
    check_float(call, weights)
    dims = dims_of(data)
    shape = None if dims is None else [dims[0], int64(attrs["count"])]
    return result(shape, weights.dtype, 2, data.vdevice)


def _tree_ensemble(
    data: Tensor, roots: Tensor, nodes: Tensor, splits: Tensor, targets: Tensor, weights: Tensor,
    count: int, modes: str, has_missing: bool, aggregate: str, masks: Sequence[Tensor] = (),
) -> Tensor:  # fmt: skip
    numbers = [MODES.index(mode) for mode in modes.split()]
    return topi_tree_ensemble(
        data, roots, nodes, splits, targets, weights, count, numbers, has_missing, aggregate, masks
    )


def _lower_tree_ensemble(bb: Builder, call: Call) -> Call:
    """A walk through the trees; of small known ones, with tables that compare all branches."""
    _, *tables = call.args
    attrs = [plain(call.attrs[name]) for name in ("count", "modes", "has_missing", "aggregate")]
    arrays = [table.data.numpy() for table in tables if isinstance(table, Constant)]
    masks = None
    if len(arrays) == len(tables) and attrs[3] == "SUM" and len(str(attrs[1]).split()) == 1:
        masks = mask_tables(*arrays)
    known = [const(table) for table in masks or ()]
    return bb.call_te(_tree_ensemble, *call.args, *attrs, known, primfunc_name_hint="tree_ensemble")


@operator(
    "relax.tree_ensemble", infer_tree_ensemble, legalize=_lower_tree_ensemble,
    numpy=reference.tree_ensemble,
)  # fmt: skip
def tree_ensemble(
    data: Expr, roots: Expr, nodes: Expr, splits: Expr, targets: Expr, weights: Expr, count: int,
    modes: str, has_missing: bool = False, aggregate: str = "SUM",
) -> None:  # fmt: skip
    """The scores (rows, count) that decision trees give the rows of ``data``.

    ``roots`` are the first nodes of the trees. A row of ``nodes`` is (feature, mode, yes, no,
    missing): a branch goes to ``yes`` where the feature compares so with its split, or is NaN and
    ``missing`` is 1, else to ``no``; a leaf (mode 6) adds the ``weights`` from number ``yes`` to
    ``no`` to their ``targets``. ``modes`` are those that occur, such as ``"LEQ GT"``.
    """


def infer_couple_pairs(call: Call) -> TensorStructInfo:
    """(rows, classes) in the type of the pairs."""
    info = check_rank(call, 0, 3)
    check_float(call, info)
    dims = dims_of(info)
    return result(None if dims is None else dims[:2], info.dtype, 2, info.vdevice)


@operator(
    "relax.couple_pairs", infer_couple_pairs, te=topi_couple_pairs, numpy=reference.couple_pairs
)
def couple_pairs(pairs: Expr) -> None:
    """Probabilities (rows, classes) from those of each class beside each other one.

    ``pairs[n, i, j]`` is the probability of class i where only i and j are possible.
    """
