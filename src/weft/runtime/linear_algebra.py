"""Solvers and decompositions of matrices: LAPACK's, through numpy, on stacks of matrices.

Their steps depend on each other, so weft has no kernels for them: LegalizeOps calls these functions
by name, ``weft.linalg.*``. Importing the module registers them; the virtual machine does. The plain
functions of arrays are what the interpreter of graphs runs, in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.runtime.bunch_kaufman import factored, solved
from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func
from weft.support.errors import RuntimeFault

Arrays = np.ndarray | tuple[np.ndarray, ...]
F = Callable[..., Arrays]

LIBRARY: Final[dict[str, F]] = {}
"""The functions by the name of their operator."""


def _library(name: str, expected: str = "") -> Callable[[F], F]:
    """Register a function; ``expected`` says what matrices it can take, where not all."""

    def register(function: F) -> F:
        @functools.wraps(function)
        def checked(*args: Any) -> Arrays:
            try:
                with np.errstate(all="ignore"):
                    return function(*args)
            except np.linalg.LinAlgError as error:
                place = _first_refused(function, *args)
                raise RuntimeFault(f"linalg.{name}: expected {expected}, got {place}") from error

        @register_func(f"weft.linalg.{name}", override=True)
        def run(*args: object) -> NDArray | tuple[NDArray, ...]:
            given = [np.asarray(arg) if isinstance(arg, NDArray) else arg for arg in args]
            results = checked(*given)
            if isinstance(results, tuple):
                return tuple([NDArray(np.array(part, order="C")) for part in results])
            return NDArray(np.array(results, order="C"))

        LIBRARY[name] = checked
        return checked

    return register


def _first_refused(function: F, matrices: np.ndarray, *rest: Any) -> str:
    """Which of a stack of matrices a function cannot take."""
    options = [item for item in rest if not isinstance(item, np.ndarray)]
    for place in np.ndindex(*matrices.shape[:-2]):
        matrix = matrices[place]
        others = [np.zeros((len(matrix), 1), matrix.dtype)] * (len(rest) - len(options))
        try:
            function(matrix, *others, *options)
        except np.linalg.LinAlgError:
            where = f"number {list(place)} of the stack" if place else "the matrix"
            return f"{where}, which is not: {np.array2string(matrix, precision=3, threshold=9)}"
    return "one that is not"


def _need_square(name: str, x: np.ndarray) -> None:
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeFault(f"linalg.{name}: expected square matrices, got the shape {x.shape}")


def _need_rows(name: str, a: np.ndarray, b: np.ndarray) -> None:
    if a.shape[-2] != b.shape[-2]:
        raise RuntimeFault(
            f"linalg.{name}: expected right sides of {a.shape[-2]} rows for matrices of the shape "
            f"{a.shape}, got {b.shape}"
        )


@_library("inv", "invertible matrices")
def inv(x: np.ndarray) -> np.ndarray:
    """The inverse of each matrix."""
    _need_square("inv", x)
    return np.linalg.inv(x)


@_library("solve", "invertible matrices")
def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x of a x = b, for each pair of matrices."""
    _need_square("solve", a)
    _need_rows("solve", a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    return np.linalg.solve(a, wide)


@_library("solve_triangular")
def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    """As ``solve``, of the triangle of each matrix, row by row; a zero divides as any number."""
    _need_square("solve_triangular", a)
    _need_rows("solve_triangular", a, b)
    return _substituted(a, b, upper, unitriangular)


def _substituted(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    """The solution for a triangle, row by row."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    solved = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    count = a.shape[-1]
    for row in range(count)[:: -1 if upper else 1]:
        known = slice(row + 1, count) if upper else slice(0, row)
        solved[..., row, :] -= (a[..., row : row + 1, known] @ solved[..., known, :])[..., 0, :]
        if not unitriangular:
            solved[..., row, :] /= a[..., row, row, None]
    return solved


@_library("det")
def det(x: np.ndarray) -> np.ndarray:
    """The determinant of each matrix."""
    _need_square("det", x)
    return np.asarray(np.linalg.det(x), x.dtype)


@_library("slogdet")
def slogdet(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The sign of each determinant, and the logarithm of its size."""
    _need_square("slogdet", x)
    sign, size = np.linalg.slogdet(x)
    return np.asarray(sign, x.dtype), np.asarray(size, x.dtype)


@_library("cholesky", "positive definite matrices")
def cholesky(x: np.ndarray, upper: bool) -> np.ndarray:
    """The triangle whose product with its own transpose is x, of which that triangle is read."""
    _need_square("cholesky", x)
    return np.linalg.cholesky(x, upper=bool(upper))


@_library("qr")
def qr(x: np.ndarray, complete: bool) -> tuple[np.ndarray, ...]:
    """Orthonormal columns and a triangle whose product is x."""
    columns, triangle = np.linalg.qr(x, "complete" if complete else "reduced")
    return columns, triangle


@_library("svd", "finite numbers")
def svd(x: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, ...]:
    """Orthonormal columns, singular values from the largest, orthonormal rows."""
    left, values, right = np.linalg.svd(x, bool(full_matrices))
    return left, values, right


@_library("svdvals", "finite numbers")
def svdvals(x: np.ndarray) -> np.ndarray:
    """The singular values, from the largest."""
    return np.linalg.svd(x, compute_uv=False)


@_library("eigh", "finite numbers")
def eigh(x: np.ndarray, upper: bool) -> tuple[np.ndarray, ...]:
    """Eigenvalues, from the smallest, and eigenvectors of a symmetric matrix, by one triangle."""
    _need_square("eigh", x)
    values, vectors = np.linalg.eigh(x, "U" if upper else "L")
    return values, vectors


@_library("eigvalsh", "finite numbers")
def eigvalsh(x: np.ndarray, upper: bool) -> np.ndarray:
    """The eigenvalues of a symmetric matrix, from the smallest."""
    _need_square("eigvalsh", x)
    return np.linalg.eigvalsh(x, "U" if upper else "L")


@_library("lstsq", "finite numbers")
def lstsq(a: np.ndarray, b: np.ndarray, rcond: float) -> tuple[np.ndarray, ...]:
    """The x of the smallest a x - b, and of these the smallest x; and the rank of each a.

    Singular values count as 0 up to ``rcond`` times the largest one.
    """
    _need_rows("lstsq", a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide_a, wide_b = (np.broadcast_to(item, (*batch, *item.shape[-2:])) for item in (a, b))
    solved = np.zeros((*batch, a.shape[-1], b.shape[-1]), a.dtype)
    ranks = np.zeros(batch, np.int64)
    for place in np.ndindex(*batch):
        solved[place], _, ranks[place], _ = np.linalg.lstsq(wide_a[place], wide_b[place], rcond)
    return solved, ranks


_PADE: Final = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
"""Coefficients of the quotient of polynomials of degree 13 that is close to the exponential."""
_NEAR: Final = 5.371920351148152
"""The norm up to which that quotient is as good as float64."""


@_library("matrix_exp", "finite numbers")
def matrix_exp(x: np.ndarray) -> np.ndarray:
    """The exponential of each matrix: scaled, a quotient of polynomials, squared (Higham, 2005)."""
    _need_square("matrix_exp", x)
    count = x.shape[-1]
    if x.size == 0:
        return x.copy()
    norms = np.abs(x.astype("float64")).sum(-2).max(-1)
    if not np.isfinite(norms).all():
        return np.where(np.isfinite(norms)[..., None, None], x, np.nan)
    times = np.ceil(np.log2(np.maximum(norms / _NEAR, 1))).astype(np.int64)
    a = x.astype("float64") / np.exp2(times)[..., None, None]
    a2 = a @ a
    a4, unit = a2 @ a2, np.eye(count)
    a6 = a2 @ a4
    c = [float(number) for number in _PADE]
    odd = a @ (
        a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * unit
    )
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2
    even = even + c[0] * unit
    power = np.linalg.solve(even - odd, even + odd)
    for step in range(int(times.max())):
        power = np.where((times > step)[..., None, None], power @ power, power)
    return power.astype(x.dtype)


_PANEL: Final = 32
"""Columns of a matrix that are eliminated together, before a product updates the rest."""


@_library("lu_factor", "invertible matrices")
def lu_factor(x: np.ndarray, check: bool) -> tuple[np.ndarray, ...]:
    """Both triangles in one matrix, the row (from 1) each row is swapped with, the first 0.

    Right-looking elimination by panels with partial pivoting (Golub and Van Loan, section 3.4). The
    last result is the place (from 1) of the first 0 on the diagonal of the upper triangle, else 0;
    with ``check`` such a matrix is refused.
    """
    lu, (rows, columns) = x.copy(), x.shape[-2:]
    count = min(rows, columns)
    pivots = np.zeros((*x.shape[:-2], count), np.int32)
    for start in range(0, count, _PANEL):
        stop = min(start + _PANEL, count)
        _eliminate(lu, pivots, start, stop)
        if stop < columns:
            done, right = slice(start, stop), slice(stop, None)
            corner = lu[..., done, done]
            lu[..., done, right] = _substituted(corner, lu[..., done, right], False, True)
            lu[..., right, right] -= lu[..., right, done] @ lu[..., done, right]
    is_zero = np.diagonal(lu, axis1=-2, axis2=-1) == 0
    places = np.where(is_zero, np.arange(1, count + 1), count + 1)
    first = places.min(-1, initial=count + 1)
    if check and (first <= count).any():
        raise np.linalg.LinAlgError("a zero on the diagonal")
    return lu, pivots, np.where(first > count, 0, first).astype(np.int32)


def _eliminate(lu: np.ndarray, pivots: np.ndarray, start: int, stop: int) -> None:
    """Factor the columns from ``start`` to ``stop`` in place; whole rows are swapped."""
    for column in range(start, stop):
        pivot = column + np.argmax(np.abs(lu[..., column:, column]), -1)
        pivots[..., column] = pivot + 1
        place = pivot[..., None, None]
        chosen, row = np.take_along_axis(lu, place, -2), lu[..., column : column + 1, :].copy()
        np.put_along_axis(lu, place, row, -2)
        lu[..., column : column + 1, :] = chosen
        head = lu[..., column, column, None]
        lu[..., column + 1 :, column] /= np.where(head == 0, 1, head)
        within = slice(column + 1, stop)
        factors, row = lu[..., column + 1 :, column, None], lu[..., column, None, within]
        lu[..., column + 1 :, within] -= factors * row


def _order(pivots: np.ndarray, rows: int) -> np.ndarray:
    """Which row of the matrix is at each row of its triangles, by the swaps."""
    order = np.array(np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)))
    for row in range(pivots.shape[-1]):
        place = pivots[..., row, None].astype(np.int64) - 1
        other = np.take_along_axis(order, place, -1)
        np.put_along_axis(order, place, order[..., row, None], -1)
        order[..., row, None] = other
    return order


@_library("lu_unpack")
def lu_unpack(lu: np.ndarray, pivots: np.ndarray) -> tuple[np.ndarray, ...]:
    """The permutation, the lower triangle with ones, the upper one; their product is the matrix."""
    rows, columns = lu.shape[-2:]
    count = min(rows, columns)
    lower = np.tril(lu[..., :count], -1) + np.eye(rows, count, dtype=lu.dtype)
    permutation = np.swapaxes(np.eye(rows, dtype=lu.dtype)[_order(pivots, rows)], -1, -2)
    return permutation, lower, np.triu(lu[..., :count, :])


@_library("lu_solve")
def lu_solve(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
    """The x of a x = b, or with ``adjoint`` of a^T x = b, by the triangles of a."""
    _need_square("lu_solve", lu)
    _need_rows("lu_solve", lu, b)
    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    order = np.broadcast_to(_order(pivots, lu.shape[-1]), (*batch, lu.shape[-1]))[..., None]
    if not adjoint:
        half = _substituted(lu, np.take_along_axis(b, order, -2), False, True)
        return _substituted(lu, half, True, False)
    turned = np.swapaxes(lu, -1, -2)
    solved = _substituted(turned, _substituted(turned, b, False, False), True, True)
    return np.take_along_axis(solved, np.argsort(order, -2), -2)


@_library("ldl_factor", "invertible matrices")
def ldl_factor(x: np.ndarray, check: bool) -> tuple[np.ndarray, ...]:
    """Factors of symmetric matrices, each by itself, since each has blocks of its own.

    Results as of ``lu_factor``; see ``weft.runtime.bunch_kaufman`` for how they are packed.
    """
    _need_square("ldl_factor", x)
    packed, pivots = np.zeros_like(x), np.zeros(x.shape[:-1], np.int32)
    first = np.zeros(x.shape[:-2], np.int32)
    for place in np.ndindex(*x.shape[:-2]):
        packed[place], pivots[place], first[place] = factored(x[place])
    if check and first.any():
        raise np.linalg.LinAlgError("a zero on the diagonal")
    return packed, pivots, first


@_library("ldl_solve")
def ldl_solve(ld: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x of a x = b, by the factors of a; a 0 in D divides as any number."""
    _need_square("ldl_solve", ld)
    _need_rows("ldl_solve", ld, b)
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    wide = [np.broadcast_to(item, (*batch, *item.shape[-rank:]))
            for item, rank in ((ld, 2), (pivots, 1), (b, 2))]  # fmt: skip
    result = np.zeros(wide[2].shape, b.dtype)
    for place in np.ndindex(*batch):
        result[place] = solved(*[item[place] for item in wide])
    return result


@_library("geqrf")
def geqrf(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """A triangle with the vectors of reflections below it, and the factor of each reflection."""
    packed, factors = np.linalg.qr(x, "raw")
    return np.swapaxes(packed, -1, -2), factors


@_library("ormqr")
def ormqr(a: np.ndarray, tau: np.ndarray, b: np.ndarray, transpose: bool) -> np.ndarray:
    """The product of the reflections I - tau v v^T, whose vectors ``geqrf`` gives, with b."""
    _need_rows("ormqr", a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    for place in range(tau.shape[-1])[:: 1 if transpose else -1]:
        vector = a[..., place:, place, None].copy()
        vector[..., 0, :] = 1
        below = result[..., place:, :]
        below -= tau[..., place, None, None] * vector * (np.swapaxes(vector, -1, -2) @ below)
    return result


@_library("eig", "finite numbers")
def eig(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Eigenvalues and eigenvectors, of each the real and the imaginary parts."""
    _need_square("eig", x)
    values, vectors = np.linalg.eig(x)
    parts = values.real, values.imag, vectors.real, vectors.imag
    return tuple([np.asarray(part, x.dtype) for part in parts])


@_library("eigvals", "finite numbers")
def eigvals(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The real and the imaginary parts of the eigenvalues."""
    _need_square("eigvals", x)
    values = np.linalg.eigvals(x)
    return np.asarray(values.real, x.dtype), np.asarray(values.imag, x.dtype)
