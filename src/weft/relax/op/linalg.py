"""``relax.op.linalg``: solvers and decompositions, calls of LAPACK (weft.runtime.linear_algebra).

Each takes a stack of matrices, the last two axes, in float32 or float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.ir.expr import Extent
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import broadcast, constant_value, differ, simplified
from weft.relax.op.definition import operator
from weft.relax.op.infer import (
    VOID,
    common_dtype,
    dims_of,
    fail,
    param_name,
    result,
    show_dims,
    tensor,
)
from weft.relax.op.reference.rule import Reference, by_wide
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.runtime.linear_algebra import LIBRARY
from weft.support.errors import IRTypeError
from weft.tir.op import min as tir_min


def _matrices(call: Call, index: int = 0) -> TensorStructInfo:
    """The argument, which must be a stack of matrices of a type that LAPACK has."""
    info = tensor(call, index)
    if info.dtype not in (VOID, "float32", "float64"):
        raise IRTypeError(
            f"{call.op.name}: {param_name(call, index)}: expected float32 or float64, got "
            f"{info.dtype}; use astype"
        )
    if info.ndim in (0, 1):
        fail(call, f"{param_name(call, index)}: expected a matrix or a stack of them, got {info}")
    return info


def _square(call: Call) -> TensorStructInfo:
    info = _matrices(call)
    dims = dims_of(info)
    if dims and differ(dims[-1], dims[-2]):
        fail(call, f"expected square matrices, got the shape {show_dims(dims)}")
    return info


def _of(
    info: TensorStructInfo,
    change: Callable[[list[Extent]], list[Extent]],
    less: int = 0,
    dtype: str | None = None,
) -> TensorStructInfo:
    """A tensor whose dimensions come from an argument's, with ``less`` dimensions."""
    dims = dims_of(info)
    rank = info.ndim if info.ndim == -1 else info.ndim - less
    whole = None if dims is None else change(list(dims))
    return result(whole, dtype or info.dtype, rank, info.vdevice)


def _shorter(rows: Extent, columns: Extent) -> Extent:
    """The smaller one of two extents."""
    mine, its = constant_value(rows), constant_value(columns)
    if mine is not None and its is not None:
        return min(mine, its)
    return simplified(tir_min(rows, columns))


def _reference(name: str) -> Reference:
    """The function of the library, in float64, with the attributes in their order."""
    function: Callable[..., Any] = LIBRARY[name]

    @by_wide
    def run(*args: np.ndarray, **attrs: object) -> object:
        return function(*args, *attrs.values())

    return run


def _library(name: str) -> dict[str, Any]:
    """What the row of a function of the library says."""
    return {"packed": f"weft.linalg.{name}", "numpy": _reference(name)}


def infer_square(call: Call) -> StructInfo:
    """A matrix for each matrix, which is square."""
    return _square(call)


@operator("relax.linalg.inv", infer_square, **_library("inv"))
def inv(x: Expr) -> None:
    """The inverse of each matrix; an error if one has none."""


@operator("relax.linalg.cholesky", infer_square, **_library("cholesky"))
def cholesky(x: Expr, upper: bool = False) -> None:
    """L with x = L L^T, or with ``upper`` U with x = U^T U; of x that triangle is read."""


@operator("relax.linalg.matrix_exp", infer_square, **_library("matrix_exp"))
def matrix_exp(x: Expr) -> None:
    """The exponential of each matrix."""


def infer_det(call: Call) -> StructInfo:
    """A number for each matrix."""
    return _of(_square(call), lambda dims: dims[:-2], 2)


@operator("relax.linalg.det", infer_det, **_library("det"))
def det(x: Expr) -> None:
    """The determinant of each matrix."""


def infer_slogdet(call: Call) -> StructInfo:
    """Two numbers for each matrix."""
    return TupleStructInfo([infer_det(call)] * 2)


@operator("relax.linalg.slogdet", infer_slogdet, **_library("slogdet"))
def slogdet(x: Expr) -> None:
    """(sign, logarithm of the absolute value) of each determinant."""


def _solved(
    call: Call, a: TensorStructInfo, rows: Callable[[Sequence[Extent]], Extent], right: int = 1
) -> TensorStructInfo:
    """The info of x in a x = b, whose batches broadcast; ``rows`` tells how many x has.

    b is argument number ``right``.
    """
    b = _matrices(call, right)
    dtype = common_dtype(call, [a, b])
    mine, its = dims_of(a), dims_of(b)
    rank = -1 if -1 in (a.ndim, b.ndim) else max(a.ndim, b.ndim)
    if mine is None or its is None:
        return result(None, dtype, rank, a.vdevice)
    if differ(mine[-2], its[-2]):
        fail(
            call,
            f"expected right sides of {mine[-2]} rows, got the shapes {show_dims(mine)} and "
            f"{show_dims(its)}",
        )
    batch = broadcast(mine[:-2], its[:-2])
    if isinstance(batch, str):
        fail(call, f"cannot broadcast the stacks {show_dims(mine)} and {show_dims(its)}: {batch}")
    whole = None if batch is None else [*batch, rows(mine), its[-1]]
    return result(whole, dtype, rank, a.vdevice)


def infer_solve(call: Call) -> StructInfo:
    """(..., n, n) and (..., n, k) give (..., n, k); the batches broadcast."""
    return _solved(call, _square(call), lambda dims: dims[-2])


@operator("relax.linalg.solve", infer_solve, **_library("solve"))
def solve(a: Expr, b: Expr) -> None:
    """x with a x = b, b a matrix of right sides; an error if an a is singular."""


@operator("relax.linalg.solve_triangular", infer_solve, **_library("solve_triangular"))
def solve_triangular(a: Expr, b: Expr, upper: bool = False, unitriangular: bool = False) -> None:
    """x with a x = b, where of a one triangle is read; ``unitriangular``: its diagonal is 1."""


def infer_lstsq(call: Call) -> StructInfo:
    """(..., m, n) and (..., m, k) give (..., n, k), and a rank for each matrix."""
    solution = _solved(call, _matrices(call), lambda dims: dims[-1])
    return TupleStructInfo([solution, _of(solution, lambda dims: dims[:-2], 2, "int64")])


@operator("relax.linalg.lstsq", infer_lstsq, **_library("lstsq"))
def lstsq(a: Expr, b: Expr, rcond: float) -> None:
    """(x with the least a x - b, the least of these, rank of a); see ``runtime.linear_algebra``."""


def infer_qr(call: Call) -> StructInfo:
    """Columns (..., m, k) and a triangle (..., k, n); k is m if complete, else the smaller."""
    info, complete = _matrices(call), bool(call.attrs["complete"])

    def inner(dims: list[Extent]) -> Extent:
        return dims[-2] if complete else _shorter(dims[-2], dims[-1])

    return TupleStructInfo(
        [
            _of(info, lambda dims: [*dims[:-1], inner(dims)]),
            _of(info, lambda dims: [*dims[:-2], inner(dims), dims[-1]]),
        ]
    )


@operator("relax.linalg.qr", infer_qr, **_library("qr"))
def qr(x: Expr, complete: bool = False) -> None:
    """(orthonormal columns, upper triangle) whose product is x."""


def infer_svdvals(call: Call) -> StructInfo:
    """As many numbers for each matrix as its shorter side has."""
    return _of(_matrices(call), lambda dims: [*dims[:-2], _shorter(dims[-2], dims[-1])], 1)


@operator("relax.linalg.svdvals", infer_svdvals, **_library("svdvals"))
def svdvals(x: Expr) -> None:
    """The singular values, from the largest."""


def infer_svd(call: Call) -> StructInfo:
    """(..., m, k), (..., k) and (..., k, n); with full matrices the first and last are square."""
    info, full = _matrices(call), bool(call.attrs["full_matrices"])

    def left(dims: list[Extent]) -> list[Extent]:
        return [*dims[:-1], dims[-2] if full else _shorter(dims[-2], dims[-1])]

    def right(dims: list[Extent]) -> list[Extent]:
        inner = dims[-1] if full else _shorter(dims[-2], dims[-1])
        return [*dims[:-2], inner, dims[-1]]

    return TupleStructInfo([_of(info, left), infer_svdvals(call), _of(info, right)])


@operator("relax.linalg.svd", infer_svd, **_library("svd"))
def svd(x: Expr, full_matrices: bool = True) -> None:
    """(U, S, V^T): x is U diag(S) V^T, with the singular values from the largest."""


def infer_eigvalsh(call: Call) -> StructInfo:
    """A number for each row."""
    return _of(_square(call), lambda dims: dims[:-1], 1)


@operator("relax.linalg.eigvalsh", infer_eigvalsh, **_library("eigvalsh"))
def eigvalsh(x: Expr, upper: bool = False) -> None:
    """The eigenvalues of symmetric matrices, from the smallest; one triangle is read."""


def infer_eigh(call: Call) -> StructInfo:
    """A number for each row, and a matrix."""
    return TupleStructInfo([infer_eigvalsh(call), _square(call)])


@operator("relax.linalg.eigh", infer_eigh, **_library("eigh"))
def eigh(x: Expr, upper: bool = False) -> None:
    """(eigenvalues from the smallest, eigenvectors as columns) of symmetric matrices."""


def infer_lu_factor(call: Call) -> StructInfo:
    """A matrix of the same shape, a number for each pivot, and one for each matrix."""
    info = _matrices(call)
    pivots = _of(info, lambda dims: [*dims[:-2], _shorter(dims[-2], dims[-1])], 1, "int32")
    return TupleStructInfo([info, pivots, _of(info, lambda dims: dims[:-2], 2, "int32")])


@operator("relax.linalg.lu_factor", infer_lu_factor, **_library("lu_factor"))
def lu_factor(x: Expr, check: bool = False) -> None:
    """(both triangles in one, swaps of rows from 1, place of the first 0 from 1, 0 without).

    With ``check`` a matrix with such a 0 is an error.
    """


def _need_pivots(call: Call, lu: TensorStructInfo) -> None:
    """The second argument must hold a row for each column that is eliminated."""
    pivots = tensor(call, 1)
    if pivots.dtype not in (VOID, "int32"):
        fail(call, f"{param_name(call, 1)}: expected int32, got {pivots.dtype}; use astype")
    mine, its = dims_of(lu), dims_of(pivots)
    if mine is None or its is None:
        return
    expected = [*mine[:-2], _shorter(mine[-2], mine[-1])]
    if len(expected) != len(its) or any(map(differ, expected, its)):
        fail(
            call,
            f"{param_name(call, 1)}: expected the shape {show_dims(expected)}, got "
            f"{show_dims(its)}",
        )


def infer_lu_unpack(call: Call) -> StructInfo:
    """(..., m, m), (..., m, k) and (..., k, n); k is the smaller one of m and n."""
    info = _matrices(call)
    _need_pivots(call, info)
    return TupleStructInfo(
        [
            _of(info, lambda dims: [*dims[:-1], dims[-2]]),
            _of(info, lambda dims: [*dims[:-1], _shorter(dims[-2], dims[-1])]),
            _of(info, lambda dims: [*dims[:-2], _shorter(dims[-2], dims[-1]), dims[-1]]),
        ]
    )


@operator("relax.linalg.lu_unpack", infer_lu_unpack, **_library("lu_unpack"))
def lu_unpack(lu: Expr, pivots: Expr) -> None:
    """(permutation, lower triangle with ones, upper triangle) of what ``lu_factor`` gives."""


def infer_lu_solve(call: Call) -> StructInfo:
    """(..., n, n), (..., n) and (..., n, k) give (..., n, k); the batches broadcast."""
    info = _square(call)
    _need_pivots(call, info)
    return _solved(call, info, lambda dims: dims[-2], right=2)


@operator("relax.linalg.lu_solve", infer_lu_solve, **_library("lu_solve"))
def lu_solve(lu: Expr, pivots: Expr, b: Expr, adjoint: bool = False) -> None:
    """x with a x = b, or with ``adjoint`` a^T x = b; a 0 on the diagonal divides as any number."""


def infer_ldl_factor(call: Call) -> StructInfo:
    """As ``infer_lu_factor``, of matrices that are square."""
    _square(call)
    return infer_lu_factor(call)


@operator("relax.linalg.ldl_factor", infer_ldl_factor, **_library("ldl_factor"))
def ldl_factor(x: Expr, check: bool = False) -> None:
    """(D and L in one triangle, swaps of rows from 1, place of the first 0 in D from 1, else 0).

    Of symmetric matrices, whose lower triangle is read. Rows of a block of 2x2 in D have their
    swap negated. With ``check`` a matrix with such a 0 is an error.
    """


@operator("relax.linalg.ldl_solve", infer_lu_solve, **_library("ldl_solve"))
def ldl_solve(ld: Expr, pivots: Expr, b: Expr) -> None:
    """x with a x = b, by what ``ldl_factor`` gives of a; a 0 in D divides as any number."""


def infer_geqrf(call: Call) -> StructInfo:
    """A matrix of the same shape, and a number for each reflection."""
    return TupleStructInfo([_matrices(call), infer_svdvals(call)])


@operator("relax.linalg.geqrf", infer_geqrf, **_library("geqrf"))
def geqrf(x: Expr) -> None:
    """(triangle of ``qr`` with the vectors of its reflections below, factors of reflections)."""


def infer_ormqr(call: Call) -> StructInfo:
    """(..., m, n), (..., k) and (..., m, j) give (..., m, j); the batches broadcast."""
    info = _matrices(call)
    common_dtype(call, [info, tensor(call, 1)])
    return _solved(call, info, lambda dims: dims[-2], right=2)


@operator("relax.linalg.ormqr", infer_ormqr, **_library("ormqr"))
def ormqr(a: Expr, tau: Expr, b: Expr, transpose: bool = False) -> None:
    """Q b or Q^T b, where ``a`` and ``tau`` hold the reflections of Q as ``geqrf`` gives them."""


def infer_eigvals(call: Call) -> StructInfo:
    """Two numbers for each row."""
    return TupleStructInfo([infer_eigvalsh(call)] * 2)


@operator("relax.linalg.eigvals", infer_eigvals, **_library("eigvals"))
def eigvals(x: Expr) -> None:
    """(real, imaginary) parts of the eigenvalues, in the order of LAPACK."""


def infer_eig(call: Call) -> StructInfo:
    """Two numbers for each row, and two matrices."""
    return TupleStructInfo([*[infer_eigvalsh(call)] * 2, *[_square(call)] * 2])


@operator("relax.linalg.eig", infer_eig, **_library("eig"))
def eig(x: Expr) -> None:
    """(real, imaginary) parts of eigenvalues, and of eigenvectors as columns of length 1."""
