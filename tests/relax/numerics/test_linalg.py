"""Solvers and decompositions: LAPACK's results, on stacks, of nothing, of symbolic sizes."""

import numpy as np
import pytest

import weft
from tests.lib.operator_cases import SAMPLED, Case, Table, row, t
from weft import relax
from weft.relax import op
from weft.support.errors import RuntimeFault

B = ({"b": 0}, {"b": 1}, {"b": 4})
N = ({"n": 0}, {"n": 1}, {"n": 5})
WIDE = "float64"


def positive(generator, shape):
    """Symmetric, with eigenvalues of 1 and more."""
    x = generator.standard_normal(shape)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])


def definite(*shape, dtype="float32"):
    return t(*shape, dtype=dtype, fill=positive)


def squares():
    for name in ("inv", "det", "slogdet"):
        function = getattr(np.linalg, name)
        for given, sizes in ((definite("b", 3, 3), B), (definite(2, "n", "n"), N),
                             (definite(4, 4, dtype=WIDE), ({},))):  # fmt: skip
            yield row(f"linalg.{name}", [given], function, sizes=sizes)
    for upper in (False, True):
        kind = "U" if upper else "L"
        yield row("linalg.cholesky", [definite("b", "n", "n")],
                  lambda x, upper=upper: np.linalg.cholesky(x, upper=upper), upper=upper,
                  sizes=({"b": 0, "n": 2}, {"b": 2, "n": 0}, {"b": 3, "n": 5}),
                  note=kind)  # fmt: skip
        yield row(
            "linalg.eigvalsh",
            [t("n", "n")],
            lambda x, kind=kind: np.linalg.eigvalsh(x, kind),
            upper=upper,
            sizes=N,
            note=kind,
        )
    yield row("linalg.matrix_exp", [t("b", 4, 4)], exponential, sizes=B)
    large = t(3, 3, dtype=WIDE, fill=lambda generator, shape: generator.normal(0, 9, shape))
    yield row("linalg.matrix_exp", [large], exponential, note="of a large norm", tolerance=1e-10)


def exponential(x):
    """By the eigenvalues."""
    values, vectors = np.linalg.eig(x.astype(complex))
    powers = vectors * np.exp(values)[..., None, :]
    return np.real(powers @ np.linalg.inv(vectors)) if x.size else x


def systems():
    yield row("linalg.solve", [definite("b", 3, 3), t("b", 3, 2)], np.linalg.solve, sizes=B)
    yield row(
        "linalg.solve",
        [definite(2, 1, 3, 3), t(4, 3, 1)],
        lambda a, b: np.linalg.solve(a, np.broadcast_to(b, (2, 4, 3, 1))),
        note="broadcast",
    )
    yield row("linalg.solve", [definite("n", "n", dtype=WIDE), t("n", 3, dtype=WIDE)],
              np.linalg.solve, sizes=N)  # fmt: skip
    for upper in (False, True):
        triangle = np.triu if upper else np.tril

        def solved(a, b, triangle=triangle):
            return np.linalg.solve(triangle(a), np.broadcast_to(b, (len(a), 4, 3)))

        yield row("linalg.solve_triangular", [definite("b", 4, 4), t(4, 3)], solved, upper=upper,
                  sizes=B, note=f"{upper=}")  # fmt: skip
    yield row("linalg.solve_triangular", [definite("n", "n"), t("n", 2)],
              lambda a, b: np.linalg.solve(np.tril(a, -1) + np.eye(len(a)), b), unitriangular=True,
              sizes=N, note="of ones")  # fmt: skip
    for rows, columns in ((6, 3), (3, 6)):
        yield row("linalg.lstsq", [t(rows, columns), t(rows, 2)],
                  lambda a, b: (np.linalg.lstsq(a, b, 1e-6)[0], np.array(min(a.shape))),
                  rcond=1e-6, note=f"{rows} equations")  # fmt: skip


def part(call, index):
    return relax.TupleGetItem(call, index)


def product(call):
    """The two or three factors of a decomposition, multiplied again."""

    def of(x):
        whole = call(x)
        if call is op.linalg.qr:
            return op.matmul(part(whole, 0), part(whole, 1))
        if call is op.linalg.eigh:
            scaled = op.multiply(part(whole, 1), op.expand_dims(part(whole, 0), -2))
            turned = op.permute_dims(part(whole, 1), [0, 2, 1])
            return op.matmul(scaled, turned)
        scaled = op.multiply(part(whole, 0), op.expand_dims(part(whole, 1), -2))
        return op.matmul(scaled, part(whole, 2))

    return of


def thin(x):
    return op.linalg.svd(x, full_matrices=False)


def factors():
    for name, call in (("qr", op.linalg.qr), ("svd", thin)):
        for shape, sizes in ((("b", 5, 3), B), ((2, 3, "n"), N), ((2, "n", 4), N)):
            yield Case(f"linalg.{name}", product(call), [t(*shape)], lambda x: x, sizes)
    yield Case("linalg.eigh", product(op.linalg.eigh), [definite(2, "n", "n")], lambda x: x, N)
    for name, call, index in (
        ("qr", lambda x: op.linalg.qr(x, complete=True), 0), ("svd", op.linalg.svd, 0),
        ("svd", op.linalg.svd, 2), ("eigh", lambda x: op.linalg.eigh(x, upper=True), 1),
    ):  # fmt: skip
        yield Case(
            f"linalg.{name}", lambda x, f=call, i=index: op.matmul(
                part(f(x), i), op.permute_dims(part(f(x), i))
            ), [t(4, 4)], lambda x: np.eye(4), note=f"orthonormal {index}")  # fmt: skip
    yield row("linalg.svdvals", [t("n", 3)],
              lambda x: np.linalg.svd(x, compute_uv=False), sizes=N)  # fmt: skip


def unpacked(x):
    """The product of the permutation and of both triangles."""
    whole = op.linalg.lu_factor(x)
    split = op.linalg.lu_unpack(part(whole, 0), part(whole, 1))
    return op.matmul(op.matmul(part(split, 0), part(split, 1)), part(split, 2))


def solved_by_triangles(a, b, adjoint):
    whole = op.linalg.lu_factor(a, check=True)
    return op.linalg.lu_solve(part(whole, 0), part(whole, 1), b, adjoint)


def solved_by_symmetric_factors(a, b):
    whole = op.linalg.ldl_factor(a, check=True)
    return op.linalg.ldl_solve(part(whole, 0), part(whole, 1), b)


def triangle_and_diagonal(x):
    """Of definite matrices with a large diagonal there are neither blocks of 2x2 nor swaps."""
    lower = np.linalg.cholesky(x)
    diagonal = np.diagonal(lower, axis1=-2, axis2=-1)
    unit = lower / diagonal[..., None, :]
    packed = np.tril(unit, -1) + diagonal[..., None] ** 2 * np.eye(x.shape[-1])
    places = np.broadcast_to(np.arange(1, x.shape[-1] + 1, dtype="int32"), x.shape[:-1])
    return packed, places, np.zeros(x.shape[:-2], "int32")


def dominant(generator, shape):
    """Symmetric, with a diagonal beside which all else is small."""
    x = generator.standard_normal(shape)
    return x + np.swapaxes(x, -1, -2) + 99 * np.eye(shape[-1])


def hollow(generator, shape):
    """Symmetric, with zeros on the diagonal."""
    x = generator.standard_normal(shape)
    return (x + np.swapaxes(x, -1, -2)) * (1 - np.eye(shape[-1]))


def reflected(x):
    """The triangle, with all reflections undone."""
    whole = op.linalg.geqrf(x)
    triangle = op.triu(part(whole, 0))
    return op.linalg.ormqr(part(whole, 0), part(whole, 1), triangle)


def vectors_and_values(x):
    """The real part of the eigenvectors times the eigenvalues: that of x times the vectors."""
    whole = op.linalg.eig(x)
    real, imaginary = (op.expand_dims(part(whole, i), -2) for i in (0, 1))
    scaled = op.subtract(op.multiply(part(whole, 2), real), op.multiply(part(whole, 3), imaginary))
    return op.subtract(scaled, op.matmul(x, part(whole, 2)))


def eliminated(x):
    """Elimination of one matrix after the other, row by row; the place of the first 0."""
    lu, count = x.copy(), min(x.shape[-2:])
    pivots = np.zeros((*x.shape[:-2], count), "int32")
    for at in np.ndindex(x.shape[:-2]):
        matrix = lu[at]
        for step in range(count):
            pivot = step + int(np.argmax(np.abs(matrix[step:, step])))
            pivots[(*at, step)] = pivot + 1
            matrix[[step, pivot]] = matrix[[pivot, step]]
            for below in range(step + 1, len(matrix)):
                matrix[below, step] /= matrix[step, step]
                matrix[below, step + 1 :] -= matrix[below, step] * matrix[step, step + 1 :]
    return lu, pivots, np.zeros(x.shape[:-2], "int32")


def heights(x):
    """The upper triangle, whose signs are LAPACK's choice, without them."""
    return op.abs(op.triu(part(op.linalg.geqrf(x), 0)))


def packed():
    for shape, sizes in ((("b", 5, 3), B), ((2, 3, "n"), N), (("n", 4), N)):
        yield row("linalg.lu_factor", [t(*shape, dtype=WIDE)], eliminated, sizes=sizes)
    for shape, sizes in ((("b", 3, 5), B), ((2, 3, 3), ({},))):
        yield Case("linalg.geqrf", heights, [t(*shape)], lambda x: np.abs(np.linalg.qr(x, "r")),
                   sizes)  # fmt: skip
    for shape, sizes in ((("b", 5, 3), B), ((2, 3, "n"), N), (("n", 4), N)):
        yield Case("linalg.lu_unpack", unpacked, [t(*shape)], lambda x: x, sizes)
        yield Case("linalg.ormqr", reflected, [t(*shape)], lambda x: x, sizes)
    for adjoint in (False, True):

        def solution(a, b, adjoint=adjoint):
            turned = np.swapaxes(a, -1, -2) if adjoint else a
            return np.linalg.solve(turned, np.broadcast_to(b, (*a.shape[:-1], b.shape[-1])))

        yield Case(
            "linalg.lu_solve", lambda a, b, f=adjoint: solved_by_triangles(a, b, f),
            [definite("b", 4, 4), t(4, 2)], solution, B, note=f"{adjoint=}",
        )  # fmt: skip
    for shape, sizes in ((("b", 3, 3), B), ((2, "n", "n"), N)):
        yield row("linalg.ldl_factor", [t(*shape, dtype=WIDE, fill=dominant)],
                  triangle_and_diagonal, sizes=sizes)  # fmt: skip
    for fill in (dominant, hollow):
        yield Case(
            "linalg.ldl_solve", solved_by_symmetric_factors,
            [t("b", 4, 4, dtype=WIDE, fill=fill), t(4, 2, dtype=WIDE)],
            lambda a, b: np.linalg.solve(a, np.broadcast_to(b, (len(a), 4, 2))),
            B, note=fill.__name__,
        )  # fmt: skip
    yield Case("linalg.eig", lambda x: op.add(vectors_and_values(x), relax.const(1.0)),
               [t(2, "n", "n")], np.ones_like, N)  # fmt: skip
    for index, kind in enumerate((np.real, np.imag)):
        yield Case("linalg.eigvals", lambda x, i=index: op.sort(part(op.linalg.eigvals(x), i)),
                   [t("b", 3, 3)], lambda x, f=kind: np.sort(f(np.linalg.eigvals(x))),
                   B, note=kind.__name__)  # fmt: skip


TABLE = Table([*squares(), *systems(), *factors(), *packed()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_linalg(case):
    TABLE.check(case)


def tensor(*dims, dtype="float32"):
    return relax.TensorStructInfo(dims, dtype)


@pytest.mark.parametrize(
    ("function", "infos", "text"),
    [
        (op.linalg.inv, [tensor(3, 4)], r"expected square matrices, got the shape \(3, 4\)"),
        (op.linalg.inv, [tensor(3)], "x: expected a matrix or a stack of them, got"),
        (op.linalg.det, [tensor(3, 3, dtype="float16")], "float32 or float64, got float16"),
        (op.linalg.solve, [tensor(3, 3), tensor(4, 2)], "right sides of 3 rows, got the shapes"),
        (op.linalg.solve, [tensor(2, 3, 3), tensor(5, 3, 2)], "cannot broadcast the stacks"),
        (op.linalg.eigh, [tensor(3, 3, dtype="int32")], "expected float32 or float64, got int32"),
        (op.linalg.ldl_factor, [tensor(3, 4)], r"square matrices, got the shape \(3, 4\)"),
        (
            op.linalg.ldl_solve,
            [tensor(3, 3), tensor(2, dtype="int32"), tensor(3, 2)],
            r"pivots: expected the shape \(3\), got \(2\)",
        ),
        (op.linalg.eig, [tensor(3, 4)], r"expected square matrices, got the shape \(3, 4\)"),
        (op.linalg.lu_unpack, [tensor(3, 4), tensor(3)], "pivots: expected int32, got float32"),
        (
            op.linalg.lu_unpack,
            [tensor(2, 3, 4), tensor(2, 4, dtype="int32")],
            r"pivots: expected the shape \(2, 3\), got \(2, 4\)",
        ),
        (
            op.linalg.lu_solve,
            [tensor(3, 3), tensor(3, dtype="int32"), tensor(4, 2)],
            "right sides of 3 rows, got the shapes",
        ),
    ],
)
def test_what_is_refused(infer, function, infos, text):
    with pytest.raises((TypeError, ValueError), match=text):
        infer(function, *infos)


def run(function, *arrays):
    builder = relax.BlockBuilder()
    given = [relax.Var(f"x{i}", relax.TensorStructInfo(a.shape, str(a.dtype)))
             for i, a in enumerate(arrays)]  # fmt: skip
    with builder.function("main", given):
        builder.emit_func_output(builder.emit(function(*given)))
    return relax.VirtualMachine(relax.build(builder.get(), "llvm"), weft.cpu())["main"](*arrays)


@pytest.mark.parametrize(
    ("function", "others", "text"),
    [
        (op.linalg.inv, [], r"linalg.inv: expected invertible matrices, got number \[1\] of the"),
        (op.linalg.solve, [np.ones((2, 2, 1), "float32")], "linalg.solve: expected invertible"),
        (op.linalg.cholesky, [], "linalg.cholesky: expected positive definite matrices"),
    ],
)
def test_a_matrix_that_has_no_result(function, others, text):
    matrices = np.stack([np.eye(2), np.zeros((2, 2))]).astype("float32")
    with pytest.raises(RuntimeFault, match=text):
        run(function, matrices, *others)


def test_numbers_that_are_not_finite():
    with pytest.raises(RuntimeFault, match="linalg.svdvals: expected finite numbers, got the mat"):
        run(op.linalg.svdvals, np.full((2, 2), np.nan, "float32"))
    assert np.isnan(run(op.linalg.matrix_exp, np.full((2, 2), np.nan, "float32")).numpy()).all()


def test_a_zero_on_the_diagonal_of_a_triangle_divides():
    solved = run(op.linalg.solve_triangular, np.diag([2.0, 0.0]), np.ones((2, 1)))
    np.testing.assert_array_equal(solved.numpy(), [[0.5], [np.inf]])
