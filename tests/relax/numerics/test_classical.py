"""Ensembles of trees, and probabilities from pairs of classes."""

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Input, Table
from weft.relax import op
from weft.topi.trees import LEAF, MODES

STUMPS = [
    [0, MODES.index("LEQ"), 1, 2, 0],
    [0, LEAF, 0, 1, 0],
    [0, LEAF, 1, 3, 0],
    [1, MODES.index("GT"), 4, 5, 1],
    [0, LEAF, 3, 4, 0],
    [0, LEAF, 4, 4, 0],
]
"""Two trees: ``x[0] <= 0.5`` (one score, else two), ``x[1] > 0 or NaN`` (one score, else none)."""
SPLITS = [0.5, 0, 0, 0.0, 0, 0]
TARGETS = [0, 0, 1, 1]
WEIGHTS = [2.0, -1.0, 3.0, 0.25]


def scores_of_the_stumps(data, *_tables):
    """The two trees written out."""
    first, second = data[:, 0] <= 0.5, (data[:, 1] > 0) | np.isnan(data[:, 1])
    zero = np.where(first, 2.0, -1.0)
    one = np.where(first, 0.0, 3.0) + np.where(second, 0.25, 0.0)
    return np.stack([zero, one], axis=1)


def with_some_nan(generator, shape):
    data = generator.standard_normal(shape)
    data[1::3, 1] = np.nan
    return data


def trees(rows, kind, sizes=({},)):
    given = [
        Input((rows, 2), kind, with_some_nan),
        Input((2,), "int32", [0, 3]),
        Input((6, 5), "int32", STUMPS),
        Input((6,), kind, SPLITS),
        Input((4,), "int32", TARGETS),
        Input((4,), kind, WEIGHTS),
    ]
    return Case(
        "tree_ensemble",
        lambda *tensors: op.tree_ensemble(*tensors, 2, "LEQ GT", True),
        given,
        scores_of_the_stumps,
        sizes,
    )


def shares(generator, shape):
    """``pairs[n, i, j] + pairs[n, j, i] == 1``."""
    share = generator.uniform(0.05, 0.95, shape)
    return np.triu(share, 1) + np.tril(1 - share.transpose(0, 2, 1), -1)


def least_disagreement(pairs):
    """The p of sum 1 with the least sum of (r[j, i] p[i] - r[i, j] p[j])**2: linear equations."""
    rows, count, _ = pairs.shape
    results = np.zeros((rows, count))
    for row, result in zip(pairs, results, strict=True):
        matrix = -row * row.T
        np.fill_diagonal(matrix, (row**2).sum(0) - np.diag(row) ** 2)
        side = np.ones((count, 1))
        equations = np.block([[matrix, side], [side.T, np.zeros((1, 1))]])
        result[:] = np.linalg.solve(equations, [*np.zeros(count), 1])[:count]
    return results


def pairs(rows, count, kind, sizes=({},)):
    given = [Input((rows, count, count), kind, shares)]
    return Case("couple_pairs", op.couple_pairs, given, least_disagreement, sizes, 2e-3)


ANY = ({"n": 0}, {"n": 1}, {"n": 7})
TABLE = Table(
    [
        trees(5, "float32"),
        trees("n", "float32", ANY),
        trees(4, "float64"),
        pairs(3, 2, "float32"),
        pairs("n", 4, "float32", ANY),
        pairs(2, 3, "float64"),
    ]
)


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_classical(case):
    TABLE.check(case)
