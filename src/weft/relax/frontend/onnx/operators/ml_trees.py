"""ai.onnx.ml: ensembles of decision trees, as tables that one kernel walks (topi.trees)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.ml_features import as_rows
from weft.relax.frontend.onnx.operators.ml_scores import (
    ML,
    above,
    class_names,
    greatest,
    labels,
    transformed,
    two_scores,
)
from weft.relax.frontend.onnx.protos import Attribute
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Array, TextValue, Value
from weft.topi import trees

MEMBER: Final = 6
"""The mode of TreeEnsemble that asks whether the feature is one of several values."""
AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""What the numbers of TreeEnsemble's attributes mean."""


@dataclass
class Ensemble:
    """The tables of an ensemble: see ``topi.trees.tree_ensemble``."""

    roots: Array
    nodes: Array
    splits: Array
    targets: Array
    weights: Array

    def check(self, context: Context, features: int, count: int) -> None:
        """Raise OnnxNodeError for what the kernel could not walk: it does not look again."""
        branches = self.nodes[:, trees.MODE] != trees.LEAF
        children = self.nodes[branches][:, [trees.YES, trees.NO]]
        if children.size and not (0 <= children.min() and children.max() < len(self.nodes)):
            context.fail("a branch of its trees goes to a node that there is not")
        tested = self.nodes[branches][:, trees.FEATURE]
        if tested.size and not (0 <= tested.min() and tested.max() < features):
            context.fail(f"its trees ask for feature {tested.max()} of {features}")
        if len(self.targets) and not (0 <= self.targets.min() and self.targets.max() < count):
            context.fail(f"a leaf of its trees is of target {self.targets.max()} of {count}")
        level = np.arange(len(self.nodes))
        for _ in range(len(self.nodes) + 1):
            inner = level[self.nodes[level, trees.MODE] != trees.LEAF]
            if not len(inner):
                return
            level = _distinct(self.nodes[inner][:, [trees.YES, trees.NO]].ravel())
        context.fail("the branches of a tree go round in a ring")

    def scores(self, context: Context, x: Value, count: int, aggregate: str) -> Expr:
        """The scores (rows, count) of an input, in the type of the weights, or the wider input's.

        float32 would move doubles across splits, and make scores equal that are not.
        """
        if x.dtype == "float64" and str(self.splits.dtype) == "float32":
            wide = [table.astype("float64") for table in (self.splits, self.weights)]
            doubles = replace(self, splits=wide[0], weights=wide[1])
            return doubles.scores(context, x, count, aggregate)
        if aggregate not in AGGREGATES:
            context.fail(f"aggregate: expected {', '.join(AGGREGATES)}, got {aggregate!r}")
        rows = context.as_type(as_rows(context, x), str(self.splits.dtype))
        self.check(context, context.extent(context.value(rows), 1, "X"), count)
        modes = [
            trees.MODES[mode] for mode in np.unique(self.nodes[:, trees.MODE]) if mode != trees.LEAF
        ]
        tables = (self.roots, self.nodes, self.splits, self.targets, self.weights)
        scores = context.emit(
            op.tree_ensemble(
                rows,
                *[context.constant(table).expr for table in tables],
                count,
                " ".join(modes),
                bool(self.nodes[:, trees.MISSING].any()),
                "SUM" if aggregate == "AVERAGE" else aggregate,
            )
        )
        if aggregate != "AVERAGE":
            return scores
        number = context.constant(float(len(self.roots)), str(self.weights.dtype)).expr
        return context.emit(op.divide(scores, number))


Tables = Mapping[str, Attribute]
"""The attributes of a node by name."""


def _ints(given: Tables, name: str) -> Array:
    return np.asarray(given.get(name) or [], "int64")


def _floats(given: Tables, name: str, dtype: str | None = None) -> Array:
    """The floats of an attribute, or those of its tensor in double precision."""
    tensor = given.get(f"{name}_as_tensor")
    if isinstance(tensor, np.ndarray) and tensor.size:
        return tensor.ravel() if dtype is None else tensor.ravel().astype(dtype)
    return np.asarray(given.get(name) or [], dtype or "float32")


def _distinct(values: Array) -> Array:
    """Each of some integers once, sorted (np.unique's hashes take two seconds for a million)."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


@dataclass
class _Places:
    """Where the nodes of trees stand, which are known by the number of a tree and their own."""

    trees_of: Array
    numbers: Array
    keys: Array
    order: Array

    @classmethod
    def of(cls, trees_of: Array, numbers: Array) -> _Places:
        """Those of nodes with these numbers."""
        places = cls(_distinct(trees_of), _distinct(numbers), trees_of, numbers)
        keys = places._keys(trees_of, numbers)
        places.order = np.argsort(keys, kind="stable")
        places.keys = keys[places.order]
        return places

    def _keys(self, trees_of: Array, numbers: Array) -> Array:
        """One number for each pair, -1 where there is no such tree or node."""
        ranks = []
        for known, wanted in ((self.trees_of, trees_of), (self.numbers, numbers)):
            rank = np.searchsorted(known, wanted).clip(0, max(len(known) - 1, 0))
            ranks.append(np.where(known[rank] == wanted, rank, -1))
        return np.where(np.minimum(*ranks) < 0, -1, ranks[0] * len(self.numbers) + ranks[1])

    def find(self, trees_of: Array, numbers: Array) -> Array:
        """The place of each pair, -1 where there is none."""
        keys = self._keys(trees_of, numbers)
        at = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
        return np.where((keys >= 0) & (self.keys[at] == keys), self.order[at], -1)

    @property
    def is_unique(self) -> bool:
        """Whether no two nodes have the same numbers."""
        return bool((self.keys[1:] != self.keys[:-1]).all())


def _modes(context: Context, given: Tables, count: int) -> Array:
    """The modes of all nodes as ``topi.trees`` has them."""
    names = given.get("nodes_modes")
    texts = names if isinstance(names, list) else []
    known = {f"BRANCH_{mode}": number for number, mode in enumerate(trees.MODES)}
    known["LEAF"] = trees.LEAF
    modes = np.array([known.get(str(text), -1) for text in texts], "int64")
    unknown = [str(texts[at]).removeprefix("BRANCH_") for at in np.nonzero(modes < 0)[0][:1]]
    if len(texts) != count or unknown or not count:
        context.fail(
            f"expected {count} nodes with modes that there are, got {unknown or len(texts)}"
        )
    return modes


def _of_nodes(context: Context, given: Tables, kind: str, has_one: bool = False) -> Ensemble:
    """The tables of TreeEnsembleClassifier and -Regressor: ``kind`` is ``class`` or ``target``.

    Where there ``has_one`` target only, a leaf's first score counts, as in ONNX Runtime: skl2onnx
    writes the number of a leaf as often as there are classes.
    """
    trees_of, numbers = _ints(given, "nodes_treeids"), _ints(given, "nodes_nodeids")
    count = len(trees_of)
    modes = _modes(context, given, count)
    if len(numbers) != count:
        context.fail(f"expected {count} numbers of nodes, got {len(numbers)}")
    places = _Places.of(trees_of, numbers)
    if not places.is_unique:
        context.fail("expected nodes of different numbers in each tree, found two of one")
    nodes = np.zeros((count, 5), "int32")
    nodes[:, trees.MODE] = modes
    nodes[:, trees.FEATURE] = _ints(given, "nodes_featureids")
    tracks = _ints(given, "nodes_missing_value_tracks_true")
    nodes[:, trees.MISSING] = tracks if len(tracks) else 0
    is_child = np.zeros(count, bool)
    branches = np.nonzero(modes != trees.LEAF)[0]
    for column, name in ((trees.YES, "nodes_truenodeids"), (trees.NO, "nodes_falsenodeids")):
        children = places.find(trees_of[branches], _ints(given, name)[branches])
        nodes[branches, column] = children
        is_child[children[children >= 0]] = True
    roots = np.nonzero(~is_child)[0]
    if len(_distinct(trees_of[roots])) != len(roots) or len(roots) != len(places.trees_of):
        context.fail("expected one root of every tree, found nodes without a parent beside it")
    return _with_leaves(context, given, kind, (nodes, roots, places), has_one)


def _with_leaves(
    context: Context,
    given: Tables,
    kind: str,
    walked: tuple[Array, Array, _Places],
    has_one: bool,
) -> Ensemble:
    """The tables with the scores of the leaves, those of a leaf side by side."""
    nodes, roots, places = walked
    leaves = places.find(_ints(given, f"{kind}_treeids"), _ints(given, f"{kind}_nodeids"))
    if (leaves < 0).any():
        context.fail("a score of its trees is of a node that there is not")
    order = np.argsort(leaves, kind="stable")
    is_leaf = nodes[:, trees.MODE] == trees.LEAF
    order = order[is_leaf[leaves[order]]]
    if has_one and len(order):
        order = order[np.diff(leaves[order], prepend=-1) > 0]
    at = np.nonzero(is_leaf)[0]
    nodes[at, trees.YES] = np.searchsorted(leaves[order], at, "left")
    nodes[at, trees.NO] = np.searchsorted(leaves[order], at, "right")
    splits, weights = _floats(given, "nodes_values"), _floats(given, f"{kind}_weights")
    if len(splits) != len(nodes) or len(weights) != len(leaves):
        context.fail(
            f"expected {len(nodes)} splits and {len(leaves)} scores, got {len(splits)} and "
            f"{len(weights)}"
        )
    return Ensemble(
        roots.astype("int32"),
        nodes,
        splits,
        _ints(given, f"{kind}_ids")[order].astype("int32"),
        weights[order],
    )


@converter("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
    context: Context,
    x: Value,
    *,
    n_targets: int = 1,
    aggregate_function: str = "SUM",
    post_transform: str = "NONE",
    **given: Attribute,
) -> Expr:
    """The sum (mean, least, greatest) of what the leaves give each target."""
    ensemble = _of_nodes(context, given, "target", n_targets == 1)
    scores = ensemble.scores(context, x, n_targets, aggregate_function)
    scores = _with_base(context, scores, _floats(given, "base_values"), n_targets)
    return transformed(context, context.as_type(scores, "float32"), post_transform)


def _with_base(context: Context, scores: Expr, base: Array, count: int) -> Expr:
    if not len(base):
        return scores
    if len(base) != count:
        context.fail(f"base_values: expected {count} numbers, got {len(base)}")
    dtype = str(scores.struct_info.dtype)
    return context.emit(op.add(scores, context.constant(base.astype(dtype)).expr))


@converter("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
    context: Context,
    x: Value,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    post_transform: str = "NONE",
    **given: Attribute,
) -> list[Value | TextValue | Expr]:
    """The class with the greatest score, and the scores of all classes.

    A model of two classes whose leaves have scores of one class only compares it with 0.5, or with
    0 where some scores are negative.
    """
    names = class_names(context, classlabels_int64s, classlabels_strings)
    ensemble = _of_nodes(context, given, "class")
    base = _floats(given, "base_values")
    used = _distinct(ensemble.targets)
    if len(names) != 2 or len(used) != 1:
        scores = ensemble.scores(context, x, len(names), "SUM")
        scores = _with_base(context, scores, base, len(names))
        place, shares = greatest(context, scores), context.as_type(scores, "float32")
        return [labels(context, place, names), transformed(context, shares, post_transform)]
    is_share = bool((ensemble.weights >= 0).all())
    scores = ensemble.scores(context, x, 2, "SUM")
    number = int(used[0])
    score = context.emit(op.strided_slice(scores, [1], [number], [number + 1]))
    score = _with_base(context, score, base, 1)
    place = above(context, score, 0.5 if is_share else 0.0)
    score = context.as_type(score, "float32")
    if number == 0:
        pair = two_scores(context, score, post_transform, is_share=is_share)
    else:  # the other class has the score 0
        zero = context.emit(op.multiply(score, context.constant(0.0, "float32").expr))
        pair = transformed(context, context.emit(op.concat([zero, score], 1)), post_transform)
    return [labels(context, place, names), pair]


# The one operator of opset 5


@converter("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(
    context: Context,
    x: Value,
    *,
    aggregate_function: int = 1,
    post_transform: int = 0,
    n_targets: int = 1,
    **given: Attribute,
) -> Expr:
    """What all trees give each target, in the input's type."""
    if not (0 <= aggregate_function < 4 and 0 <= post_transform < 5):
        context.fail(
            f"expected aggregate_function 0 to 3 and post_transform 0 to 4, got "
            f"{aggregate_function} and {post_transform}"
        )
    ensemble = _of_leaves(context, given)
    aggregate = AGGREGATES[aggregate_function]
    scores = ensemble.scores(context, x, n_targets, aggregate)
    return transformed(context, context.as_type(scores, x.dtype), TRANSFORMS[post_transform])


def _tensor(given: Tables, name: str) -> Array:
    value = given.get(name)
    return value.ravel() if isinstance(value, np.ndarray) else np.zeros(0, "float32")


def _of_leaves(context: Context, given: Tables) -> Ensemble:
    """The tables of TreeEnsemble, whose leaves are apart from its branches."""
    modes, splits = _tensor(given, "nodes_modes").astype("int64"), _tensor(given, "nodes_splits")
    weights, targets = _tensor(given, "leaf_weights"), _ints(given, "leaf_targetids")
    count, ends = len(modes), len(weights)
    nodes = np.zeros((count + ends, 5), "int32")
    nodes[:count, trees.FEATURE] = _ints(given, "nodes_featureids")
    nodes[:count, trees.MODE] = modes
    tracks = _ints(given, "nodes_missing_value_tracks_true")
    nodes[:count, trees.MISSING] = tracks if len(tracks) else 0
    for column, side in ((trees.YES, "true"), (trees.NO, "false")):
        is_leaf = _ints(given, f"nodes_{side}leafs")
        nodes[:count, column] = _ints(given, f"nodes_{side}nodeids") + count * (is_leaf != 0)
    at = np.arange(ends)
    nodes[count:, trees.MODE] = trees.LEAF
    nodes[count:, trees.YES], nodes[count:, trees.NO] = at, at + 1
    if len(splits) != count or len(targets) != ends or (modes > MEMBER).any():
        context.fail(
            f"expected {count} splits and {ends} targets, got {len(splits)} and {len(targets)}"
        )
    splits = np.concatenate([splits, np.zeros(ends, splits.dtype)])
    ensemble = Ensemble(
        _ints(given, "tree_roots").astype("int32"), nodes, splits, targets.astype("int32"), weights
    )
    members = np.nonzero(modes == MEMBER)[0]
    return _without_members(context, ensemble, members, _tensor(given, "membership_values"))


def _without_members(
    context: Context, ensemble: Ensemble, members: Array, values: Array
) -> Ensemble:
    """A branch that asks for one of several values as a chain of branches that ask for one each.

    The values of each such branch end in a NaN.
    """
    ends = np.nonzero(np.isnan(values))[0]
    if len(ends) != len(members):
        context.fail(f"membership_values: expected {len(members)} lists, got {len(ends)}")
    equal, nodes, splits, start = trees.MODES.index("EQ"), [ensemble.nodes], [ensemble.splits], 0
    free = len(ensemble.nodes)
    for at, end in zip(members.tolist(), ends.tolist(), strict=True):
        wanted = values[start:end]
        start = end + 1
        if not len(wanted):
            context.fail("membership_values: expected at least one value of a branch")
        rest = np.repeat(ensemble.nodes[[at]], len(wanted) - 1, axis=0)
        rest[:, trees.MODE] = equal
        last = int(ensemble.nodes[at, trees.NO])
        rest[:, trees.NO] = [*range(free + 1, free + len(rest)), last][: len(rest)]
        ensemble.nodes[at, trees.MODE] = equal
        ensemble.splits[at] = wanted[0]
        if len(rest):
            ensemble.nodes[at, trees.NO] = free
        nodes.append(rest)
        splits.append(wanted[1:].astype(ensemble.splits.dtype))
        free += len(rest)
    ensemble.nodes, ensemble.splits = np.concatenate(nodes), np.concatenate(splits)
    return ensemble
