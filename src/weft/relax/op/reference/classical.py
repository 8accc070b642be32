"""Classical machine learning in numpy, as the interpreter of graphs runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from weft.topi.pairwise import STEPS, TOLERANCE
from weft.topi.trees import FEATURE, LEAF, MISSING, MODE, MODES, NO, YES

_COMPARE: Final[dict[str, Callable[..., object]]] = {
    "LEQ": np.less_equal, "LT": np.less, "GTE": np.greater_equal, "GT": np.greater,
    "EQ": np.equal, "NEQ": np.not_equal,
}  # fmt: skip
_JOIN: Final[dict[str, Callable[..., float]]] = {
    "SUM": np.add, "MIN": np.minimum, "MAX": np.maximum,
}  # fmt: skip


def tree_ensemble(
    data: np.ndarray, roots: np.ndarray, nodes: np.ndarray, splits: np.ndarray,
    targets: np.ndarray, weights: np.ndarray, count: int, modes: str, has_missing: bool = False,
    aggregate: str = "SUM",
) -> np.ndarray:  # fmt: skip
    """Row by row and tree by tree."""
    scores = np.zeros((len(data), count), weights.dtype)
    for row, out in zip(data, scores, strict=True):
        seen: set[int] = set()
        for root in roots.tolist():
            node = nodes[root]
            at = root
            while node[MODE] != LEAF:
                value = row[node[FEATURE]]
                holds = bool(_COMPARE[MODES[node[MODE]]](value, splits[at]))
                holds |= bool(has_missing and node[MISSING] and np.isnan(value))
                at = int(node[YES] if holds else node[NO])
                node = nodes[at]
            for number in range(node[YES], node[NO]):
                target = int(targets[number])
                is_first = target not in seen and aggregate != "SUM"
                score = weights[number]
                out[target] = score if is_first else _JOIN[aggregate](out[target], score)
                seen.add(target)
    return scores


def couple_pairs(pairs: np.ndarray) -> np.ndarray:
    """Algorithm 2 of Wu, Lin and Weng: see ``topi.pairwise``."""
    results = np.zeros(pairs.shape[:2], pairs.dtype)
    count = pairs.shape[1]
    for given, p in zip(pairs, results, strict=True):
        matrix = -given * given.T
        off = given * (1 - np.eye(count))
        np.fill_diagonal(matrix, (off * off).sum(0))
        p[:] = 1 / count
        for _ in range(STEPS):
            products = matrix @ p
            square = p @ products
            if np.abs(products - square).max() < TOLERANCE / count:
                break
            for t in range(count):
                move = (square - products[t]) / matrix[t, t]
                p[t] += move
                square += move * (move * matrix[t, t] + 2 * products[t])
                square /= (1 + move) ** 2
                products = (products + move * matrix[t]) / (1 + move)
                p /= 1 + move
    return results
