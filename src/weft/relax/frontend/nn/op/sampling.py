"""Drawing tokens from distributions, given uniform random numbers.

All take probabilities (batch, vocabulary). The functions with top-p and top-k work on rows sorted
in falling order: top-p keeps the fewest tokens whose probabilities sum to p, top-k the first k;
a row keeps what both keep, and at least one token ("The Curious Case of Neural Text Degeneration",
Holtzman et al. 2020).
"""

from __future__ import annotations

import numpy as np

from weft import te
from weft.ir.expr import PrimExpr
from weft.ir.node import expect
from weft.relax import op as relax_op
from weft.relax.frontend.nn.op.call import tensor_expr_op
from weft.relax.frontend.nn.op.manipulate import cumsum
from weft.relax.frontend.nn.op.manipulate import sum as sum_
from weft.relax.frontend.nn.tensor import Tensor, emit, expr_of
from weft.support.errors import IRValueError
from weft.tir.expr import IterVar
from weft.tir.op import (
    const,
    if_then_else,
    logical_and,
    logical_not,
    logical_or,
    min_value,
    select,
)


def multinomial_from_uniform(
    prob: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
    dtype: str = "int64",
    name: str = "multinomial_from_uniform",
) -> Tensor:
    """One token for each uniform number (n, 1): (n, 1) of ``dtype``.

    ``sample_indices`` (n, 1) says from which row each is drawn; without it, number i is for row i,
    and IRValueError where the numbers of rows differ.
    """
    rows = _rows(prob, uniform_sample, sample_indices, "multinomial_from_uniform")
    drawn = relax_op.multinomial_from_uniform(
        expr_of(prob, "prob"), expr_of(uniform_sample, "uniform_sample"), rows._expr, dtype
    )
    return emit(drawn, name)


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob: Tensor,
    sorted_index: Tensor,
    top_p: Tensor,
    top_k: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
) -> Tensor:
    """One token for each uniform number (n, 1), by top-p and top-k: (n, 1) of sorted_index's type.

    ``sorted_prob`` falls along each row, ``sorted_index`` has the tokens in that order; ``top_p``
    and ``top_k`` are (batch, 1).
    """
    rows = _rows(sorted_prob, uniform_sample, sample_indices, "sample_top_p_top_k_from_sorted_prob")
    running = cumsum(sorted_prob, axis=1)
    kept = tensor_expr_op(_kept_mass, "get_renorm_prob", [running, top_p, top_k])
    drawn = tensor_expr_op(
        _drawn, "get_index_from_sorted", [running, sorted_index, kept, uniform_sample, rows]
    )
    return expect(drawn, Tensor)


def renormalize_top_p_top_k_prob(
    prob: Tensor, sorted_prob: Tensor, top_p: Tensor, top_k: Tensor
) -> Tensor:
    """The probabilities (batch, vocabulary) of the tokens kept, divided by their sum; 0 elsewhere.

    ``sorted_prob`` has the same rows in falling order; ``top_p`` and ``top_k`` are (batch, 1).
    """
    running = cumsum(sorted_prob, axis=1)
    cutoff = tensor_expr_op(_cutoff, "get_renorm_cutoff", [sorted_prob, running, top_p, top_k])
    filtered = expect(tensor_expr_op(_filtered, "filter_with_top_p_top_k", [prob, cutoff]), Tensor)
    return filtered / sum_(filtered, axis=1, keepdims=True)


def _rows(prob: Tensor, uniform: Tensor, sample_indices: Tensor | None, where: str) -> Tensor:
    """The row of ``prob`` that each draw is from."""
    count = uniform.shape[0]
    if sample_indices is not None:
        if list(sample_indices.shape) != list(uniform.shape):
            raise IRValueError(
                f"{where}: The shape of sample_indices must match the shape of uniform_sample, got "
                f"{sample_indices.shape} and {uniform.shape}"
            )
        return sample_indices
    if not prob.shape[0] == count:
        raise IRValueError(
            f"{where}: Number of samples must match the number of probability distributions, got "
            f"{count} and {prob.shape[0]}; sample_indices says which row each is from"
        )
    if isinstance(count, int):
        return Tensor.from_const(np.arange(count, dtype=np.int64).reshape(count, 1))
    numbers = relax_op.reshape(relax_op.arange(0, count, dtype="int64"), [count, 1])
    return emit(numbers, "sample_indices")


def _goes_on(
    running: te.Tensor, top_p: te.Tensor, top_k: te.Tensor, i: PrimExpr, j: IterVar
) -> PrimExpr:
    """Whether row i keeps a token after the first j + 1, whose probabilities sum to running."""
    count = (j + 1).astype(top_k.dtype)
    return logical_and(running[i, j] < top_p[i, 0], count < top_k[i, 0])


def _stops(
    running: te.Tensor, top_p: te.Tensor, top_k: te.Tensor, i: PrimExpr, j: IterVar
) -> PrimExpr:
    """Whether the first j + 1 tokens of row i are enough, or all there are."""
    last = j == running.shape[1] - 1
    return logical_or(logical_not(_goes_on(running, top_p, top_k, i, j)), last)


def _kept_mass(running: te.Tensor, top_p: te.Tensor, top_k: te.Tensor) -> te.Tensor:
    """(batch, 1): the sum of the probabilities kept, the running sum at the first stop."""
    batch, vocabulary = running.shape
    j = te.reduce_axis((0, vocabulary), "j")
    everything = const(float("inf"), running.dtype)
    return te.compute(
        (batch, 1),
        lambda i, _: te.min(
            select(_stops(running, top_p, top_k, i, j), running[i, j], everything), axis=j
        ),
        name="renorm_prob",
    )


def _cutoff(
    sorted_prob: te.Tensor, running: te.Tensor, top_p: te.Tensor, top_k: te.Tensor
) -> te.Tensor:
    """(batch, 1): the probability of the last token kept, the one at the first stop."""
    batch, vocabulary = running.shape
    j = te.reduce_axis((0, vocabulary), "j")
    return te.compute(
        (batch, 1),
        lambda i, _: te.max(
            select(
                _stops(running, top_p, top_k, i, j), sorted_prob[i, j], min_value(running.dtype)
            ),
            axis=j,
        ),
        name="cutoff",
    )


def _drawn(
    running: te.Tensor, tokens: te.Tensor, kept: te.Tensor, uniform: te.Tensor, rows: te.Tensor
) -> te.Tensor:
    """(n, 1): the token at the first place where the running share exceeds the number."""
    vocabulary = running.shape[1]
    j = te.reduce_axis((0, vocabulary), "j")
    end = vocabulary - 1

    def place(i: PrimExpr, _: PrimExpr) -> PrimExpr:
        row = rows[i, 0]
        share = running[row, j] / kept[row, 0]
        return te.min(select(uniform[i, 0] < share, j.var, end).astype("int64"), axis=j)

    first = te.compute((uniform.shape[0], 1), place, name="place")
    return te.compute(
        (uniform.shape[0], 1), lambda i, _: tokens[rows[i, 0], first[i, 0]], name="output_index"
    )


def _filtered(prob: te.Tensor, cutoff: te.Tensor) -> te.Tensor:
    """The probabilities from the cutoff on, 0 elsewhere."""
    zero = const(0, prob.dtype)
    return te.compute(
        prob.shape,
        lambda i, j: if_then_else(prob[i, j] >= cutoff[i, 0], prob[i, j], zero),
        name="filter_with_top_p_top_k",
    )
