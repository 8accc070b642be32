"""Solvers and decompositions: what defines each result, on stacks, in both types, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.linear_algebra import LIBRARY
from weft.runtime.ndarray import NDArray, array
from weft.runtime.registry import get_global_func
from weft.support.errors import RuntimeFault

SHAPES = [(3, 3), (1, 1), (2, 3, 3), (2, 2, 4, 4), (0, 3, 3)]
TYPES = ["float32", "float64"]


def near(dtype):
    return {"rtol": 2e-4, "atol": 2e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}


def close(a, b, dtype):
    np.testing.assert_allclose(a, b, **near(dtype))


def random(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def invertible(shape, dtype, seed=0):
    """Matrices that are far from singular."""
    return (random(shape, dtype, seed) + 4 * np.eye(shape[-1])).astype(dtype)


def positive(shape, dtype, seed=0):
    x = random(shape, "float64", seed)
    return (x @ x.swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def run(name, *arguments):
    """The registered function, on arrays of the runtime."""
    given = [array(item) if isinstance(item, np.ndarray) else item for item in arguments]
    result = get_global_func(f"weft.linalg.{name}")(*given)
    parts = result if isinstance(result, tuple) else (result,)
    assert all(isinstance(part, NDArray) and part.is_contiguous() for part in parts)
    values = [part.numpy() for part in parts]
    return values if isinstance(result, tuple) else values[0]


def transposed(x):
    return x.swapaxes(-1, -2)


def test_every_function_is_registered_and_known_by_its_operator():
    assert sorted(LIBRARY) == [
        "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "geqrf", "inv", "ldl_factor",
        "ldl_solve", "lstsq", "lu_factor", "lu_solve", "lu_unpack", "matrix_exp", "ormqr", "qr",
        "slogdet", "solve", "solve_triangular", "svd", "svdvals",
    ]  # fmt: skip
    for name in LIBRARY:
        assert get_global_func(f"weft.linalg.{name}").name == f"weft.linalg.{name}"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_inverse_times_its_matrix_is_one(shape, dtype):
    x = invertible(shape, dtype)
    inverse = run("inv", x)
    assert inverse.dtype == dtype
    close(inverse @ x, np.broadcast_to(np.eye(shape[-1]), shape), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("left", "right", "batch"), [
    ((3, 3), (3, 2), ()), ((2, 3, 3), (3, 2), (2,)), ((3, 3), (4, 3, 1), (4,)),
    ((2, 1, 3, 3), (5, 3, 2), (2, 5)), ((0, 3, 3), (3, 2), (0,)),
])  # fmt: skip
def test_solutions_fulfil_their_equations(left, right, batch, dtype):
    a, b = invertible(left, dtype), random(right, dtype, 1)
    x = run("solve", a, b)
    assert x.shape == (*batch, 3, right[-1])
    close(a @ x, np.broadcast_to(b, (*batch, *right[-2:])), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
@pytest.mark.parametrize("unit", [False, True], ids=["diagonal", "ones"])
def test_a_triangle_is_solved_and_the_rest_is_not_read(upper, unit, dtype):
    a, b = invertible((2, 4, 4), dtype), random((4, 3), dtype, 1)
    triangle = np.triu(a) if upper else np.tril(a)
    if unit:
        triangle = triangle - triangle * np.eye(4, dtype=dtype) + np.eye(4, dtype=dtype)
    x = run("solve_triangular", a, b, upper, unit)
    close(triangle @ x, np.broadcast_to(b, x.shape), dtype)
    spoilt = np.where(triangle == 0, np.nan, a).astype(dtype)
    np.testing.assert_array_equal(run("solve_triangular", spoilt, b, upper, unit), x)


def test_a_zero_on_the_diagonal_of_a_triangle_divides_as_any_number():
    a, b = np.array([[2.0, 0], [1, 0]]), np.array([[2.0], [3]])
    assert run("solve_triangular", a, b, False, False).tolist() == [[1], [np.inf]]


@pytest.mark.parametrize("dtype", TYPES)
def test_determinants_are_products_of_eigenvalues_and_have_a_sign(dtype):
    x = random((5, 3, 3), dtype)
    det = run("det", x)
    sign, size = run("slogdet", x)
    assert det.dtype == sign.dtype == size.dtype == dtype
    close(det, sign * np.exp(size), dtype)
    close(det, np.prod(np.linalg.eigvals(x.astype("float64")), -1).real, dtype)
    swapped = x[:, [1, 0, 2]]
    close(run("det", swapped), -det, dtype)


def test_the_determinant_of_a_singular_matrix_is_zero():
    x = np.ones((2, 2))
    assert run("det", x) == 0
    sign, size = run("slogdet", x)
    assert (sign, size) == (0, -np.inf)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
def test_a_triangle_times_its_transpose_is_the_matrix(upper, dtype):
    x = positive((2, 4, 4), dtype)
    triangle = run("cholesky", x, upper)
    np.testing.assert_array_equal(triangle, np.triu(triangle) if upper else np.tril(triangle))
    product = transposed(triangle) @ triangle if upper else triangle @ transposed(triangle)
    close(product, x, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("complete", [False, True], ids=["reduced", "complete"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 5, 3)])
def test_orthonormal_columns_times_a_triangle(shape, complete, dtype):
    x = random(shape, dtype)
    columns, triangle = run("qr", x, complete)
    wide = shape[-2] if complete else min(shape[-2:])
    assert columns.shape[-2:] == (shape[-2], wide)
    assert triangle.shape[-2:] == (wide, shape[-1])
    close(columns @ triangle, x, dtype)
    close(transposed(columns) @ columns, np.broadcast_to(np.eye(wide), (*shape[:-2], wide, wide)),
          dtype)  # fmt: skip
    np.testing.assert_array_equal(triangle, np.triu(triangle))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full", [False, True], ids=["reduced", "full"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 5)])
def test_singular_values_fall_and_give_the_matrix(shape, full, dtype):
    x = random(shape, dtype)
    left, values, right = run("svd", x, full)
    count = min(shape[-2:])
    assert left.shape[-1] == (shape[-2] if full else count)
    assert right.shape[-2] == (shape[-1] if full else count)
    close((left[..., :count] * values[..., None, :]) @ right[..., :count, :], x, dtype)
    assert (np.diff(values) <= 0).all()
    assert (values >= 0).all()
    close(run("svdvals", x), values, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
def test_eigenvectors_of_the_triangle_that_is_read(upper, dtype):
    x = random((2, 4, 4), dtype)
    triangle = np.triu(x) if upper else np.tril(x)
    symmetric = triangle + transposed(triangle) - triangle * np.eye(4, dtype=dtype)
    values, vectors = run("eigh", x, upper)
    close(symmetric @ vectors, vectors * values[..., None, :], dtype)
    close(transposed(vectors) @ vectors, np.broadcast_to(np.eye(4), (2, 4, 4)), dtype)
    assert (np.diff(values) >= 0).all()
    close(run("eigvalsh", x, upper), values, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 3)])
def test_least_squares_are_least_and_of_least_norm(shape, dtype):
    a, b = random(shape, dtype), random((shape[-2], 2), dtype, 1)
    x, rank = run("lstsq", a, b, 1e-7)
    assert (rank == min(shape[-2:])).all()
    close(x, np.linalg.pinv(a.astype("float64")) @ b, dtype)
    close(transposed(a) @ (a @ x), transposed(a) @ np.broadcast_to(b, (*shape[:-2], *b.shape)),
          dtype)  # fmt: skip


def test_small_singular_values_count_as_zero():
    a = np.diag([1.0, 1e-3])
    b = np.ones((2, 1))
    x, rank = run("lstsq", a, b, 1e-2)
    assert (rank, x.ravel().tolist()) == (1, [1, 0])
    x, rank = run("lstsq", a, b, 1e-4)
    assert rank == 2
    np.testing.assert_allclose(x.ravel(), [1, 1000])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [1e-3, 1, 8])
def test_exponentials_are_those_of_the_eigenvalues(scale, dtype):
    x = positive((3, 4, 4), "float64") * scale / 4
    values, vectors = np.linalg.eigh(x)
    expected = (vectors * np.exp(values)[..., None, :]) @ transposed(vectors)
    result = run("matrix_exp", x.astype(dtype))
    np.testing.assert_allclose(result / expected.max(), expected / expected.max(), **near(dtype))


def test_exponentials_of_special_matrices():
    np.testing.assert_allclose(run("matrix_exp", np.zeros((2, 2))), np.eye(2))
    assert run("matrix_exp", np.zeros((0, 2, 2))).shape == (0, 2, 2)
    np.testing.assert_allclose(run("matrix_exp", np.array([[0.0, 1], [0, 0]])), [[1, 1], [0, 1]])
    turn = np.array([[0.0, -np.pi], [np.pi, 0]])
    np.testing.assert_allclose(run("matrix_exp", turn), -np.eye(2), atol=1e-12)
    spoilt = np.array([[[np.inf, 0], [0, 1]], [[0, 0], [0, 0]]])
    result = run("matrix_exp", spoilt)
    assert np.isnan(result[0]).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 70, 40), (40, 70), (2, 1, 3)])
def test_triangles_and_swaps_give_the_matrix(shape, dtype):
    """Sizes above one panel among them."""
    x = random(shape, dtype)
    packed, pivots, info = run("lu_factor", x, True)
    assert pivots.dtype == info.dtype == np.int32
    assert (info == 0).all()
    permutation, lower, upper = run("lu_unpack", packed, pivots)
    count = min(shape[-2:])
    assert lower.shape[-1] == upper.shape[-2] == pivots.shape[-1] == count
    assert (np.abs(lower) <= 1).all()
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_array_equal(upper, np.triu(upper))
    close(permutation @ lower @ upper, x, dtype)


def test_the_place_of_the_first_zero_of_each_stack():
    x = np.stack([np.eye(3), np.diag([1.0, 0, 0]), np.zeros((3, 3))])
    assert run("lu_factor", x, False)[2].tolist() == [0, 2, 1]
    assert run("lu_factor", np.zeros((2, 0, 3)), True)[2].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("adjoint", [False, True], ids=["plain", "adjoint"])
@pytest.mark.parametrize("batches", [((), ()), ((2,), ()), ((), (3,)), ((2, 1), (3,))])
def test_solutions_by_triangles(batches, adjoint, dtype):
    a, b = random((*batches[0], 40, 40), dtype), random((*batches[1], 40, 2), dtype, 1)
    a = (a + 9 * np.eye(40)).astype(dtype)[..., ::-1, :]  # so that rows are swapped
    packed, pivots, _ = run("lu_factor", a, True)
    x = run("lu_solve", packed, pivots, b, adjoint)
    matrix = transposed(a) if adjoint else a
    close(matrix @ x, np.broadcast_to(b, x.shape), dtype)


def symmetric(shape, dtype, kind):
    """Symmetric matrices: any, of a zero diagonal, or of small integers (singular at times)."""
    x = random(shape, "float64")
    if kind == "integers":
        x = np.round(x)
    x = np.tril(x) + np.tril(x, -1).swapaxes(-1, -2)
    return (x * (1 - np.eye(shape[-1])) if kind == "hollow" else x).astype(dtype)


KINDS = ["any", "hollow", "integers"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (2, 2), (0, 3, 3), (2, 5, 5), (40, 40)])
def test_factors_of_symmetric_matrices_are_lapacks(shape, kind):
    """Blocks of 1x1 and 2x2, the same swaps and the same zeros."""
    torch = pytest.importorskip("torch")
    x = symmetric(shape, "float64", kind)
    expected = torch.linalg.ldl_factor_ex(torch.tensor(x))
    packed, pivots, info = run("ldl_factor", x + np.triu(np.ones(shape[-2:]), 1), False)
    np.testing.assert_array_equal(pivots, expected.pivots)
    np.testing.assert_array_equal(info, expected.info)
    np.testing.assert_allclose(packed, expected.LD, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("batches", [((), ()), ((2,), ()), ((), (3,)), ((2, 1), (3,)), ((0,), ())])
def test_solutions_of_symmetric_systems(batches, kind, dtype):
    a, b = symmetric((*batches[0], 40, 40), dtype, kind), random((*batches[1], 40, 2), dtype, 1)
    packed, pivots, _ = run("ldl_factor", a, True)
    x = run("ldl_solve", packed, pivots, b)
    assert x.dtype == dtype
    expected = np.linalg.solve(a.astype("float64"), np.broadcast_to(b, x.shape))
    scale = np.abs(expected).max(initial=1)
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(x / scale, expected / scale, atol=tolerance)


def test_the_place_of_the_first_zero_of_symmetric_factors():
    x = np.stack([np.eye(3), np.diag([1.0, 0, 0]), np.zeros((3, 3))])
    assert run("ldl_factor", x, False)[2].tolist() == [0, 2, 1]
    solved = run("ldl_solve", np.diag([2.0, 0]), np.array([1, 2], "int32"), np.ones((2, 1)))
    assert solved[1] == np.inf


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 5, 3)])
def test_reflections_are_orthonormal_and_give_the_matrix(shape, dtype):
    x = random(shape, dtype)
    packed, tau = run("geqrf", x)
    count = min(shape[-2:])
    wide = np.zeros((*shape[:-2], shape[-2], shape[-1]), dtype)
    wide[..., :count, :] = np.triu(packed)[..., :count, :]
    close(run("ormqr", packed, tau, wide, False), x, dtype)
    close(run("ormqr", packed, tau, x, True), wide, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (1, 1), (3, 5, 5)])
def test_eigenvectors_of_any_matrix(shape, dtype):
    x = random(shape, dtype)
    parts = run("eig", x)
    assert all(part.dtype == dtype for part in parts)
    values, vectors = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    close(x @ vectors, vectors * values[..., None, :], dtype)
    close(np.linalg.norm(vectors, axis=-2), np.ones(values.shape), dtype)
    real, imaginary = run("eigvals", x)
    close(np.sort(real), np.sort(values.real), dtype)
    close(np.sort(imaginary), np.sort(values.imag), dtype)


NOT_SQUARE = ["inv", "solve", "solve_triangular", "det", "slogdet", "cholesky", "eigh", "eigvalsh",
              "matrix_exp", "eig", "eigvals", "lu_solve", "ldl_factor", "ldl_solve"]  # fmt: skip
REST = {"solve": (np.ones((2, 1)),), "solve_triangular": (np.ones((2, 1)), True, False),
        "lu_solve": (np.ones(2, "int32"), np.ones((2, 1)), True),
        "ldl_factor": (True,), "ldl_solve": (np.ones(2, "int32"), np.ones((2, 1))),
        "cholesky": (False,), "eigh": (False,), "eigvalsh": (False,)}  # fmt: skip


@pytest.mark.parametrize("name", NOT_SQUARE)
def test_matrices_that_are_not_square(name):
    text = rf"linalg.{name}: expected square matrices, got the shape \(2, 3\)"
    with pytest.raises(RuntimeFault, match=text):
        run(name, np.ones((2, 3)), *REST.get(name, ()))


@pytest.mark.parametrize(("name", "rest"), [
    ("solve", ()), ("solve_triangular", (True, False)), ("lstsq", (1e-7,)),
])  # fmt: skip
def test_right_sides_of_another_number_of_rows(name, rest):
    with pytest.raises(RuntimeFault, match=r"expected right sides of 2 rows .*, got \(3, 1\)"):
        run(name, np.eye(2), np.ones((3, 1)), *rest)


REFUSED = [
    ("inv", (np.zeros((2, 2)),), "expected invertible matrices, got the matrix, which is not"),
    ("inv", (np.stack([np.eye(2), np.zeros((2, 2))]),), r"got number \[1\] of the stack"),
    ("solve", (np.zeros((1, 2, 2)), np.ones((2, 1))), r"got number \[0\] of the stack"),
    ("cholesky", (-np.eye(2), False), "expected positive definite matrices, got the matrix"),
    ("cholesky", (np.stack([np.eye(2)] * 2 + [-np.eye(2)]), True), r"number \[2\] of the stack"),
    ("svd", (np.full((2, 2), np.nan), True), "expected finite numbers"),
    ("eig", (np.full((2, 2), np.nan),), "expected finite numbers"),
    ("lu_factor", (np.zeros((2, 2)), True), "expected invertible matrices, got the matrix"),
    ("ldl_factor", (np.zeros((2, 1, 1)), True), r"expected invertible matrices, got number \[0\]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "text"), REFUSED)
def test_matrices_that_a_function_cannot_take(name, arguments, text):
    with pytest.raises(RuntimeFault, match=text):
        run(name, *arguments)


def test_arguments_are_not_changed():
    for name, arguments in (
        ("inv", ()), ("det", ()), ("solve", (np.ones((3, 1)),)), ("matrix_exp", ()),
        ("solve_triangular", (np.ones((3, 1)), False, False)), ("qr", (True,)), ("svd", (True,)),
        ("eigh", (True,)), ("cholesky", (True,)), ("lu_factor", (True,)), ("geqrf", ()),
        ("ldl_factor", (True,)), ("ldl_solve", (np.ones(3, "int32"), np.ones((3, 1)))),
        ("ormqr", (np.ones(3), np.ones((3, 2)), False)), ("eig", ()),
    ):  # fmt: skip
        x = positive((3, 3), "float64")
        given = array(x)
        others = [array(item) if isinstance(item, np.ndarray) else item for item in arguments]
        get_global_func(f"weft.linalg.{name}")(given, *others)
        np.testing.assert_array_equal(given.numpy(), x)
