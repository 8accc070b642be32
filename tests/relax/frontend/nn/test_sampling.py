"""Drawing tokens: against plain loops, and by their distribution."""

import numpy as np
import pytest

from weft.relax.frontend import nn
from weft.relax.frontend.nn import op


def distributions(batch, vocabulary, seed=0):
    made = np.random.default_rng(seed).random((batch, vocabulary)).astype("float32") ** 3
    return made / made.sum(1, keepdims=True)


def kept_by(row, top_p, top_k):
    """How many of a row's probabilities, in falling order, top-p and top-k keep."""
    running = np.cumsum(row, dtype="float32")
    for count in range(1, len(row) + 1):
        if running[count - 1] >= top_p or count >= top_k:
            return count
    return len(row)


def drawn(row, tokens, count, number):
    running = np.cumsum(row, dtype="float32")
    for place in range(len(row)):
        if number < running[place] / running[count - 1]:
            return tokens[place]
    return tokens[-1]


def sorted_rows(prob):
    order = np.argsort(-prob, axis=1).astype("int64")
    return np.take_along_axis(prob, order, 1), order


@pytest.mark.parametrize("dims", [(), (["b", "v"], ["b", 1])], ids=["static", "symbolic"])
def test_multinomial_from_uniform(dims, apply):
    prob = distributions(3, 5)
    numbers = np.array([[0.0], [0.4], [0.999]], "float32")
    found = apply(op.multinomial_from_uniform, prob, numbers, dims=dims)
    running = np.cumsum(prob, 1, dtype="float32")
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, [[(row <= u).sum()] for row, u in
                                          zip(running, numbers[:, 0], strict=True)])  # fmt: skip


def test_multinomial_with_chosen_rows(apply):
    prob, rows = distributions(2, 4), np.array([[1], [1], [0]], "int32")
    numbers = np.array([[0.1], [0.9], [0.5]], "float32")
    found = apply(
        lambda p, u, i: op.multinomial_from_uniform(p, u, i, dtype="int32"), prob, numbers, rows
    )
    running = np.cumsum(prob, 1, dtype="float32")
    wanted = [[(running[row] <= u).sum()] for (row,), (u,) in zip(rows, numbers, strict=True)]
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, wanted)


TOPS = [([0.9, 0.5, 1.0], [3, 7, 2]), ([0.0, 1.0, 2.0], [1, 100, 5]), ([0.99, 0.3, 0.7], [7, 1, 4])]


@pytest.mark.parametrize(("top_p", "top_k"), TOPS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_sample_top_p_top_k(top_p, top_k, symbolic, apply):
    probs, tokens = sorted_rows(distributions(3, 7))
    p, k = np.array(top_p, "float32")[:, None], np.array(top_k, "int64")[:, None]
    dims = (["b", "v"], ["b", "v"], ["b", 1], ["b", 1], ["b", 1]) if symbolic else ()
    for numbers in ([[0.0], [0.3], [0.6]], [[0.95], [0.999], [0.5]]):
        uniform = np.array(numbers, "float32")
        found = apply(
            op.sample_top_p_top_k_from_sorted_prob, probs, tokens, p, k, uniform, dims=dims
        )
        wanted = [
            [drawn(probs[i], tokens[i], kept_by(probs[i], p[i, 0], k[i, 0]), uniform[i, 0])]
            for i in range(3)
        ]
        np.testing.assert_array_equal(found, wanted)


def test_samples_from_chosen_rows(apply):
    probs, tokens = sorted_rows(distributions(2, 6, seed=3))
    tokens = tokens.astype("int32")
    p, k = np.array([[0.8], [0.6]], "float32"), np.array([[4], [5]], "int32")
    rows = np.array([[1], [0], [1], [1]], "int64")
    uniform = np.array([[0.1], [0.9], [0.5], [0.99]], "float32")
    found = apply(op.sample_top_p_top_k_from_sorted_prob, probs, tokens, p, k, uniform, rows)
    wanted = [
        [drawn(probs[row], tokens[row], kept_by(probs[row], p[row, 0], k[row, 0]), u)]
        for (row,), (u,) in zip(rows, uniform, strict=True)
    ]
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, wanted)


def test_draws_are_distributed_as_asked(apply):
    row, tokens = sorted_rows(distributions(1, 5, seed=1))
    count = 4000
    uniform = ((np.arange(count) + 0.5) / count).astype("float32")[:, None]
    rows = np.zeros((count, 1), "int64")
    p, k = np.array([[0.95]], "float32"), np.array([[3]], "int64")
    found = apply(op.sample_top_p_top_k_from_sorted_prob, row, tokens, p, k, uniform, rows)
    kept = kept_by(row[0], 0.95, 3)
    wanted = np.zeros(5)
    wanted[tokens[0, :kept]] = row[0, :kept] / row[0, :kept].sum()
    np.testing.assert_allclose(np.bincount(found[:, 0], minlength=5) / count, wanted, atol=1e-3)


@pytest.mark.parametrize(("top_p", "top_k"), TOPS)
@pytest.mark.parametrize("dims", [(), (["b", "v"], ["b", "v"], ["b", 1], ["b", 1])],
                         ids=["static", "symbolic"])  # fmt: skip
def test_renormalize(top_p, top_k, dims, apply):
    prob = distributions(3, 7, seed=2)
    probs, tokens = sorted_rows(prob)
    p, k = np.array(top_p, "float32")[:, None], np.array(top_k, "int64")[:, None]
    found = apply(op.renormalize_top_p_top_k_prob, prob, probs, p, k, dims=dims)
    wanted = np.zeros_like(prob)
    for i in range(3):
        kept = tokens[i, : kept_by(probs[i], p[i, 0], k[i, 0])]
        wanted[i, kept] = prob[i, kept] / prob[i, kept].sum()
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_numbers_of_rows_that_differ(export):
    rows, numbers = nn.spec.Tensor([2, 5], "float32"), nn.spec.Tensor([3, 1], "float32")
    with pytest.raises(ValueError, match="Number of samples must match the number of probability"):
        export(op.multinomial_from_uniform, rows, numbers)
    with pytest.raises(ValueError, match=r"The shape of sample_indices must match.*\[2, 1\] and"):
        export(op.multinomial_from_uniform, rows, numbers, nn.spec.Tensor([2, 1], "int64"))
