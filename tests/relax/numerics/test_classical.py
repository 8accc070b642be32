"""Ensembles of trees, and probabilities from pairs of classes."""

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Input, Table
from weft.relax import op
from weft.relax.op.reference.classical import tree_ensemble
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


def a_tree(generator, nodes, first, depth):
    """Append a tree to the rows of ``nodes``; its root has the number ``first``."""
    nodes.append([0] * 5)
    if depth == 0 or generator.random() < 0.3:
        begin = generator.integers(0, 20)
        nodes[first][:] = [-1, LEAF, begin, begin + generator.integers(0, 4), 0]
        return
    yes = len(nodes)
    a_tree(generator, nodes, yes, depth - 1)
    no = len(nodes)
    a_tree(generator, nodes, no, depth - 1)
    mode = generator.integers(0, len(MODES))
    nodes[first][:] = [generator.integers(0, 5), mode, yes, no, generator.integers(0, 2)]


def forest(count, aggregate, has_nan, features=5):
    """Trees of any depth, also of a leaf alone, with branches of every mode."""
    generator = np.random.default_rng(count)
    nodes, roots = [], []
    for _ in range(count):
        roots.append(len(nodes))
        a_tree(generator, nodes, roots[-1], 5 if features else 0)

    def drawn(generator, shape):
        data = generator.integers(-2, 3, shape).astype("float64")
        return np.where(generator.random(shape) < 0.2, np.nan, data) if has_nan else data

    given = [
        Input(("n", features), "float64", drawn),
        Input((count,), "int32", roots),
        Input((len(nodes), 5), "int32", nodes),
        Input((len(nodes),), "float64", generator.integers(-2, 3, len(nodes))),
        Input((24,), "int32", generator.integers(0, 3, 24)),
        Input((24,), "float64", generator.integers(-9, 9, 24)),
    ]
    options = (3, " ".join(MODES), True, aggregate)
    return Case(
        "tree_ensemble", lambda *tensors: op.tree_ensemble(*tensors, *options), given,
        lambda *arrays: tree_ensemble(*arrays, *options),
        ({"n": 0}, {"n": 1}, {"n": 8}, {"n": 19}), note=f"{count} {aggregate} {has_nan}",
    )  # fmt: skip


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
        forest(1, "SUM", True),
        forest(8, "MIN", True),
        forest(9, "MAX", False),
        forest(21, "SUM", True),
        forest(17, "SUM", False),
        forest(9, "SUM", False, features=0),
        pairs(3, 2, "float32"),
        pairs("n", 4, "float32", ANY),
        pairs(2, 3, "float64"),
    ]
)


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_classical(case):
    TABLE.check(case)
