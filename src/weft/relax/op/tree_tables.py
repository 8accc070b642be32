"""The tables by which all branches of small decision trees are compared at once, from constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from weft.topi.trees import FEATURE, LEAF, MISSING, MODE, NO, YES

_MOST_LEAVES: Final = 64
"""A leaf is a bit of an int64, at most; of larger trees a walk visits far fewer branches."""


class _Branch(NamedTuple):
    feature: int
    split: float
    missing: int
    mask: int
    """All bits but those of the leaves on its "yes"."""


class _Tree:
    """The leaves of a tree (their nodes), from left to right, and its branches."""

    def __init__(self, nodes: np.ndarray, splits: np.ndarray, root: int) -> None:
        self.nodes, self.splits = nodes, splits
        self.leaves: list[int] = []
        self.branches: list[_Branch] = []
        self.is_small = True
        self._bits(root)

    def _bits(self, at: int) -> int:
        """The bits of the leaves below a node; enters the branches below."""
        node = self.nodes[at]
        if node[MODE] == LEAF:
            self.leaves.append(at)
            return 1 << (len(self.leaves) - 1)
        place = len(self.branches)
        self.is_small = self.is_small and place < _MOST_LEAVES - 1
        if not self.is_small:
            return 0
        feature, missing = int(node[FEATURE]), int(node[MISSING] == 1)
        self.branches.append(_Branch(feature, self.splits[at], missing, -1))
        yes = self._bits(int(node[YES]))
        if self.is_small:
            self.branches[place] = self.branches[place]._replace(mask=~yes)
        return yes | self._bits(int(node[NO]))


def mask_tables(
    roots: np.ndarray, nodes: np.ndarray, splits: np.ndarray, targets: np.ndarray,
    weights: np.ndarray,
) -> list[np.ndarray] | None:  # fmt: skip
    """The arrays of ``weft.topi.tree_masks.MaskTables``, for the tables of ``relax.tree_ensemble``.

    None where a tree has more than 64 leaves, or where leaves add to several numbers of targets.
    """
    trees: list[_Tree] = []
    for root in roots.tolist():
        trees.append(_Tree(nodes, splits, root))
        if not trees[-1].is_small:
            return None
    scores = _scores(trees, nodes, targets, weights)
    if scores is None:
        return None
    branches = [branch for tree in trees for branch in tree.branches]
    kind = "int32" if all(len(tree.leaves) <= 32 for tree in trees) else "int64"
    if not branches:
        return None
    feature, split, missing, mask = zip(*branches, strict=True)
    used, columns = np.unique(feature, return_inverse=True)
    return [
        _offsets([len(tree.branches) for tree in trees]),
        used.astype("int32"),
        columns.astype("int32"),
        np.array(split, splits.dtype),
        np.array(missing, "int32"),
        np.array(mask, kind),
        _offsets([len(tree.leaves) for tree in trees])[:-1],
        *scores,
    ]


def _offsets(counts: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype("int32")


def _scores(
    trees: Sequence[_Tree], nodes: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The targets of each tree, the weights of each leaf; None where they are not as many."""
    leaves = np.array([leaf for tree in trees for leaf in tree.leaves])
    begins, widths = nodes[leaves, YES], nodes[leaves, NO] - nodes[leaves, YES]
    if not len(leaves) or widths.min() != widths.max() or widths[0] < 1:
        return None
    places = begins[:, None] + np.arange(widths[0])
    of_leaves = targets[places]
    counts = [len(tree.leaves) for tree in trees]
    firsts = _offsets(counts)[:-1]
    if not np.array_equal(of_leaves, np.repeat(of_leaves[firsts], counts, axis=0)):
        return None
    return of_leaves[firsts].astype("int32"), weights[places]
