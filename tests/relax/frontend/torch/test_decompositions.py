"""torch.linalg through the importer: what torch makes of it, on one matrix and on stacks."""

from __future__ import annotations

import pytest
import torch
from torch import linalg

import weft
from tests.lib.aten import check_model
from weft.support.errors import RuntimeFault, UnsupportedError

pytestmark = pytest.mark.torch

BATCH, SIZE = (torch.export.Dim(name, min=2, max=16) for name in ("batch", "size"))


class Call(torch.nn.Module):
    """A function of tensors as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def positive(*shape, dtype=torch.float32):
    x = torch.randn(shape, dtype=dtype)
    return x @ x.mT + 2 * torch.eye(shape[-1], dtype=dtype)


def square(s, b):
    """Of positive definite matrices and right sides."""
    lower = linalg.cholesky(s)
    values, vectors = linalg.eigh(s)
    return (
        linalg.inv(s), linalg.det(s), *linalg.slogdet(s), torch.logdet(s), lower,
        linalg.solve(s, b), linalg.solve(s, b.mT, left=False),
        linalg.solve_triangular(lower, b, upper=False),
        linalg.solve_triangular(lower, b.mT, upper=False, left=False),
        torch.cholesky_solve(b, lower), (vectors * values.unsqueeze(-2)) @ vectors.mT,
        linalg.eigvalsh(s), torch.matrix_exp(s / 8), linalg.cond(s), linalg.matrix_power(s, 3),
    )  # fmt: skip


def tall(x, y):
    """Of matrices with more rows than columns."""
    columns, triangle = linalg.qr(x)
    left, values, right = linalg.svd(x, full_matrices=False)
    return (
        columns @ triangle, (left * values.unsqueeze(-2)) @ right, linalg.svdvals(x),
        linalg.pinv(x), linalg.pinv(x, atol=0.5, rtol=0.1), linalg.matrix_norm(x, "nuc"),
        linalg.matrix_norm(x, 2), linalg.matrix_rank(x), linalg.lstsq(x, y).solution,
        linalg.qr(x, "r")[1].abs(),
    )  # fmt: skip


def test_one_matrix():
    torch.manual_seed(0)
    check_model(Call(square), positive(4, 4), torch.randn(4, 2))
    check_model(Call(tall), torch.randn(6, 3), torch.randn(6, 2))
    check_model(Call(linalg.solve), positive(4, 4), torch.randn(4))


def test_stacks_of_float64():
    torch.manual_seed(0)
    wide = {"dtype": torch.float64}
    check_model(Call(square), positive(2, 3, 4, 4, **wide), torch.randn(2, 3, 4, 2, **wide))
    check_model(Call(tall), torch.randn(2, 6, 3, **wide), torch.randn(2, 6, 2, **wide))


def test_symbolic_stacks_and_sizes():
    torch.manual_seed(0)
    check_model(
        Call(square), positive(3, 4, 4), torch.randn(3, 4, 2),
        dynamic_shapes=(({0: BATCH, 1: SIZE, 2: SIZE}, {0: BATCH, 1: SIZE}),),
        others=[
            (positive(count, size, size), torch.randn(count, size, 2))
            for count, size in ((2, 7), (5, 3))
        ],
    )  # fmt: skip


def test_a_singular_matrix_is_an_error():
    model = weft.compile(Call(linalg.inv), (torch.eye(3),), cache=False)
    with pytest.raises(RuntimeFault, match="linalg.inv: expected invertible matrices, got the mat"):
        model(torch.ones(3, 3))


def test_what_weft_does_not_compute_is_told():
    with pytest.raises(UnsupportedError, match=r"aten.linalg_inv_ex.default: info is read"):
        weft.compile(Call(linalg.inv_ex), (torch.eye(3),), cache=False)
