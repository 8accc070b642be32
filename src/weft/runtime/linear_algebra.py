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
