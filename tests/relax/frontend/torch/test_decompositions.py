"""torch.linalg through the importer: what torch makes of it, on one matrix and on stacks."""

from __future__ import annotations

import pytest
import torch
from torch import linalg

import weft
from tests.lib.aten import check_model
from weft.support.errors import RuntimeFault, UnsupportedError

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]

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
    with pytest.raises(UnsupportedError, match=r"aten.linalg_cholesky_ex.default: info is read"):
        weft.compile(Call(linalg.cholesky_ex), (torch.eye(3),), cache=False)


def test_the_inverse_with_info_of_a_singular_matrix():
    matrices = torch.stack([torch.ones(3, 3), positive(3, 3)])
    inverse, info = weft.compile(Call(linalg.inv_ex), (matrices,), cache=False)(matrices)
    assert info.tolist() == linalg.inv_ex(matrices).info.tolist() == [2, 0]
    torch.testing.assert_close(inverse[1], matrices[1].inverse())
    check_model(Call(lambda x: linalg.cond(x, 1)), matrices)


def packed(x):
    """What torch keeps packed, of any matrices."""
    factors = linalg.lu_factor_ex(x)
    reflections = torch.geqrf(x)
    return (
        *factors, *linalg.lu(x), *torch.lu_unpack(*factors[:2]),
        torch.lu_unpack(*factors[:2], unpack_data=False)[0], *reflections,
    )  # fmt: skip


def systems(s, b):
    """Solved by factors, from the left and the right."""
    factors = linalg.lu_factor(s)
    return (
        linalg.lu_solve(*factors, b), linalg.lu_solve(*factors, b, adjoint=True),
        linalg.lu_solve(*factors, b.mT, left=False),
        linalg.lu_solve(*factors, b.mT, left=False, adjoint=True), torch.lu_solve(b, *factors),
        torch.cholesky_inverse(linalg.cholesky(s)),
        torch.cholesky_inverse(linalg.cholesky(s, upper=True), upper=True),
        *reflected(s, torch.diagonal(s, dim1=-2, dim2=-1), b),
    )  # fmt: skip


def reflected(packed, tau, b):
    """Products of the reflections that are packed so."""
    return (
        linalg.householder_product(packed, tau), torch.ormqr(packed, tau, b),
        torch.ormqr(packed, tau, b, transpose=True), torch.ormqr(packed, tau, b.mT, left=False),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((1, 1), torch.float32), ((2, 5, 3), torch.float32), ((2, 2, 3, 5), torch.float64),
     ((0, 3, 3), torch.float32), ((0, 3), torch.float64)],
)  # fmt: skip
def test_packed_factors(shape, dtype):
    torch.manual_seed(0)
    check_model(Call(packed), torch.randn(shape, dtype=dtype))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((1, 1), torch.float32), ((2, 4, 4), torch.float32), ((3, 3), torch.float64),
     ((0, 3, 3), torch.float64), ((0, 0), torch.float32)],
)  # fmt: skip
def test_systems_by_factors(shape, dtype):
    torch.manual_seed(0)
    right = torch.randn(*shape[:-1], 2, dtype=dtype)
    check_model(Call(systems), positive(*shape, dtype=dtype), right)


def test_reflections_of_fewer_columns():
    torch.manual_seed(0)
    check_model(Call(reflected), *torch.geqrf(torch.randn(2, 5, 3)), torch.randn(2, 5, 2))


def test_packed_factors_of_symbolic_sizes():
    torch.manual_seed(0)
    check_model(
        Call(systems), positive(3, 4, 4), torch.randn(3, 4, 2),
        dynamic_shapes=(({0: BATCH, 1: SIZE, 2: SIZE}, {0: BATCH, 1: SIZE}),),
        others=[(positive(2, 7, 7), torch.randn(2, 7, 2))],
    )  # fmt: skip


def test_factors_of_a_singular_matrix():
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    check_model(Call(linalg.lu), singular)
    check_model(Call(linalg.lu_factor_ex), singular)
    model = weft.compile(Call(linalg.lu_factor), (torch.eye(2),), cache=False)
    with pytest.raises(RuntimeFault, match="linalg.lu_factor: expected invertible matrices, got"):
        model(singular)


def symmetric_systems(s, b):
    """By factors of symmetric matrices."""
    factors = linalg.ldl_factor(s)
    hermitian = linalg.ldl_factor_ex(s, hermitian=True)
    return (*factors, *hermitian, linalg.ldl_solve(*factors, b),
            linalg.ldl_solve(*hermitian[:2], b, hermitian=True))  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((1, 1), torch.float64), ((2, 4, 4), torch.float64), ((3, 3), torch.float32),
     ((0, 3, 3), torch.float64), ((0, 0), torch.float32)],
)  # fmt: skip
def test_symmetric_systems(shape, dtype):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=dtype)
    check_model(Call(symmetric_systems), x + x.mT, torch.randn(*shape[:-1], 2, dtype=dtype))


def test_symmetric_systems_of_symbolic_sizes():
    torch.manual_seed(0)
    x, other = (torch.randn(shape, dtype=torch.float64) for shape in ((3, 4, 4), (2, 7, 7)))
    b, c = (torch.randn(shape, dtype=torch.float64) for shape in ((3, 4, 2), (2, 7, 2)))
    check_model(
        Call(symmetric_systems), x + x.mT, b,
        dynamic_shapes=(({0: BATCH, 1: SIZE, 2: SIZE}, {0: BATCH, 1: SIZE}),),
        others=[(other + other.mT, c)],
    )  # fmt: skip


def test_factors_of_a_singular_symmetric_matrix():
    zeros = torch.zeros(2, 2)
    check_model(Call(linalg.ldl_factor_ex), zeros)
    model = weft.compile(Call(linalg.ldl_factor), (torch.eye(2),), cache=False)
    with pytest.raises(RuntimeFault, match="linalg.ldl_factor: expected invertible matrices, got"):
        model(zeros)


def spectrum(x):
    """Eigenvalues by their size, and by the parts of both."""
    values, vectors = linalg.eig(x)
    error = x.to(vectors.dtype) @ vectors - vectors * values.unsqueeze(-2)
    return (
        linalg.eigvals(x).abs().sort()[0], values.real.sort()[0], values.imag.sort()[0],
        error.abs() + 1, (vectors.abs() ** 2).sum(-2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((4, 4), torch.float64), ((1, 1), torch.float32), ((2, 3, 3), torch.float32),
     ((0, 3, 3), torch.float64), ((0, 0), torch.float32)],
)  # fmt: skip
def test_eigenvalues_of_any_matrix(shape, dtype):
    torch.manual_seed(0)
    check_model(Call(spectrum), torch.randn(shape, dtype=dtype))


def test_complex_eigenvalues_as_a_result_say_what_to_do():
    with pytest.raises(UnsupportedError, match=r"real results, got a complex one; return torch.vi"):
        weft.compile(Call(linalg.eigvals), (torch.eye(3),), cache=False)
    with pytest.raises(UnsupportedError, match=r"linalg.eig: expected real matrices, got complex"):
        weft.compile(Call(lambda x: linalg.eigvals(x * 1j).abs()), (torch.eye(3),), cache=False)


def test_factors_without_pivots_are_refused():
    with pytest.raises(UnsupportedError, match="linalg.lu: expected pivot=True, got False"):
        weft.compile(Call(lambda x: linalg.lu(x, pivot=False)), (torch.eye(3),), cache=False)
