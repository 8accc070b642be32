"""Ensembles of trees, probabilities from pairs: rules, and compiled code beside the reference."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax import op
from weft.relax.op.reference import classical as reference
from weft.relax.op.tree_tables import mask_tables
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRValueError
from weft.tir.expr import Var as TirVar
from weft.topi.trees import LEAF, MODES

N = TirVar("n", "int64")


def random_trees(seed, modes, depth=4, features=5):
    """Full trees of random branches; leaves have one to three scores."""
    rng = np.random.default_rng(seed)
    roots, nodes, splits, targets, weights = [], [], [], [], []
    for _ in range(3):
        start = len(nodes)
        roots.append(start)
        inner = (1 << depth) - 1
        for at in range(2 * inner + 1):
            if at < inner:
                mode = MODES.index(modes[int(rng.integers(len(modes)))])
                children = (start + 2 * at + 1, start + 2 * at + 2)
                nodes.append([rng.integers(features), mode, *children, rng.integers(2)])
                splits.append(rng.integers(-4, 5) / 2)
            else:
                count = int(rng.integers(1, 4))
                nodes.append([0, LEAF, len(targets), len(targets) + count, 0])
                splits.append(0.0)
                targets += rng.permutation(4)[:count].tolist()
                weights += rng.normal(size=count).tolist()
    return (np.array(roots, "int32"), np.array(nodes, "int32"), np.array(splits, "float32"),
            np.array(targets, "int32"), np.array(weights, "float32"))  # fmt: skip


@pytest.mark.parametrize("aggregate", ["SUM", "MIN", "MAX"])
@pytest.mark.parametrize("modes", [["LEQ"], list(MODES)], ids=["one", "all"])
def test_trees_give_the_scores_of_the_reference(aggregate, modes):
    tables = random_trees(3, modes)
    options = (4, " ".join(modes), True, aggregate)
    x = relax.Var("x", TensorStructInfo((N, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = op.tree_ensemble(x, *[relax.const(table) for table in tables], *options)
        builder.emit_func_output(builder.emit(call))
    compiled = weft.compile(builder.get(), cache=False)
    for rows in (0, 1, 37):
        data = np.random.default_rng(rows).integers(-5, 6, (rows, 5)).astype("float32") / 2
        data[::3, 1] = np.nan
        wanted = reference.tree_ensemble(data, *tables, *options)
        np.testing.assert_allclose(compiled(data), wanted, rtol=1e-5, atol=1e-6)


def uneven_trees(seed, leaves, scores, mode="LEQ", dtype="float32", features=5):
    """Trees of up to ``leaves`` leaves, grown at random; each leaf has ``scores`` scores."""
    rng = np.random.default_rng(seed)
    roots, nodes, splits, targets, weights = [], [], [], [], []

    def grow(count, of):
        at = len(nodes)
        nodes.append([0, LEAF, len(targets), len(targets) + scores, 0])
        splits.append(0.0)
        if count == 1:
            targets.extend(of)
            weights.extend(rng.normal(size=scores).tolist())
            return at
        left = int(rng.integers(1, count))
        children = grow(left, of), grow(count - left, of)
        nodes[at] = [rng.integers(features), MODES.index(mode), *children, rng.integers(2)]
        splits[at] = rng.integers(-4, 5) / 2
        return at

    for number in range(7):
        of = rng.permutation(4)[:scores].tolist()
        roots.append(grow(leaves if number == 3 else int(rng.integers(1, leaves + 1)), of))
    return (np.array(roots, "int32"), np.array(nodes, "int32"), np.array(splits, dtype),
            np.array(targets, "int32"), np.array(weights, dtype))  # fmt: skip


@pytest.mark.parametrize(
    ("leaves", "scores", "mode", "dtype", "has_masks"),
    [
        (2, 1, "LEQ", "float32", True), (32, 1, "LT", "float32", True),
        (33, 3, "GTE", "float32", True), (64, 1, "GT", "float64", True),
        (15, 4, "EQ", "float64", True), (20, 2, "NEQ", "float32", True),
        (65, 1, "LEQ", "float32", False), (9, 0, "LEQ", "float32", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_missing", [False, True])
def test_small_trees_are_compared_branch_by_branch(
    leaves, scores, mode, dtype, has_masks, has_missing
):
    tables = uneven_trees(leaves, leaves, scores, mode, dtype)
    assert (mask_tables(*tables) is not None) == has_masks
    options = (4, mode, has_missing, "SUM")
    x = relax.Var("x", TensorStructInfo((N, 5), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = op.tree_ensemble(x, *[relax.const(table) for table in tables], *options)
        builder.emit_func_output(builder.emit(call))
    compiled = weft.compile(builder.get(), cache=False)
    for rows in (0, 1, 4, 16, 37):
        data = np.random.default_rng(rows).integers(-5, 6, (rows, 5)).astype(dtype) / 2
        for given in (data, np.where(data == 2.5, np.nan, data).astype(dtype)):
            wanted = reference.tree_ensemble(given, *tables, *options)
            np.testing.assert_array_equal(compiled(given), wanted)


def test_a_ring_of_branches_has_no_masks():
    nodes = np.array([[0, 0, 1, 0, 0], [0, LEAF, 0, 1, 0]], "int32")
    arrays = np.zeros(1, "int32"), nodes, np.zeros(2, "float32"), np.zeros(1, "int32")
    assert mask_tables(*arrays, np.ones(1, "float32")) is None


@pytest.mark.parametrize("count", [2, 3, 7])
def test_probabilities_from_pairs_are_those_of_the_reference(count):
    x = relax.Var("x", TensorStructInfo((N, count, count), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(op.couple_pairs(x)))
    compiled = weft.compile(builder.get(), cache=False)
    for rows in (0, 1, 9):
        share = np.random.default_rng(rows).uniform(0.01, 0.99, (rows, count, count))
        pairs = np.triu(share, 1) + np.tril(1 - share.transpose(0, 2, 1), -1)
        pairs = pairs.astype("float32")
        made = compiled(pairs)
        np.testing.assert_allclose(made, reference.couple_pairs(pairs), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(made.sum(1), np.ones(rows), rtol=1e-5)


def infos(**changes):
    shapes = {"data": (N, 5), "roots": (3,), "nodes": (9, 5), "splits": (9,), "targets": (7,),
              "weights": (7,)} | changes  # fmt: skip
    kinds = {"roots": "int32", "nodes": "int32", "targets": "int32"}
    return [TensorStructInfo(shape, kinds.get(name, "float32")) for name, shape in shapes.items()]


def test_rules(infer):
    made = infer(lambda *args: op.tree_ensemble(*args, 4, "LEQ GT"), *infos())
    assert made == TensorStructInfo((N, 4), "float32")
    made = infer(op.couple_pairs, TensorStructInfo((N, 3, 3), "float64"))
    assert made == TensorStructInfo((N, 3), "float64")


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ((4, "ODD"), {}, "modes: expected some of LEQ, .* got 'ODD'"),
        ((0, "LEQ"), {}, "count: expected 1 or more, got 0"),
        ((4, "LEQ", False, "MEAN"), {}, "aggregate: expected SUM, MIN, MAX, got 'MEAN'"),
        ((4, "LEQ"), {"data": (5,)}, "2"),
    ],
)
def test_what_is_refused(infer, options, changes, message):
    with pytest.raises(IRValueError, match=message):
        infer(lambda *args: op.tree_ensemble(*args, *options), *infos(**changes))
