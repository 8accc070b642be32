"""torch.linalg: solvers and decompositions of matrices, as calls of LAPACK.

torch splits its functions into one that computes and tells whether it could, and a check of that;
here the first one raises. Results that only gradients read (LU, pivots) are not given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Call, Expr, ShapeExpr, TupleGetItem, const
from weft.relax.frontend.torch.complex_tensor import operator_name
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter, overload_name
from weft.support.errors import UnsupportedError

CHECK: Final = "aten._linalg_check_errors.default"
Results = Sequence[Expr | None]


def parts(context: Context, call: Call, count: int) -> list[Expr]:
    """The results of a call, as variables."""
    whole = context.emit(call)
    return [context.emit(TupleGetItem(whole, index)) for index in range(count)]


def _not_given(context: Context, index: int, what: str) -> Expr | None:
    """None in the place of a result that weft does not compute, which nothing may read."""
    if context.is_read(index):
        raise UnsupportedError(
            f"{overload_name(context.node.target)}: {what} (result {index}) is read, which weft "
            'does not compute; use the solution or the determinant only, or fallback="torch"'
        )
    return None


def readers_of(context: Context, index: int) -> set[str]:
    """The operators that read a result; ``CHECK`` is torch's own check of ``info``."""
    items = [node for node in context.node.users if node.args[1] == index]
    return {operator_name(user) for item in items for user in item.users}


def _info(context: Context, index: int) -> Expr:
    """Zeros: all went well, or there was an error. Only torch's own check may read them."""
    if readers_of(context, index) - {CHECK}:
        raise UnsupportedError(
            f"{overload_name(context.node.target)}: info is read, but weft raises an error for a "
            "matrix that has no result; use the function without _ex (torch.linalg.solve)"
        )
    return op.zeros(context.results[index][0], "int32")


@converter("aten.linalg_inv_ex.default")
def inv_ex(context: Context, A: Expr, **_: object) -> Results:  # noqa: N803 - torch's name
    """(inverse, info); where info is read, a singular matrix has no error but an inverse of NaN."""
    if not readers_of(context, 1) - {CHECK}:
        return op.linalg.inv(A), _info(context, 1)
    factors, pivots, info = parts(context, op.linalg.lu_factor(A), 3)
    unit = context.emit(op.eye(context.dims(A)[-1], dtype=context.dtype))
    return op.linalg.lu_solve(factors, pivots, unit), info


@converter("aten.linalg_cholesky_ex.default")
def cholesky_ex(context: Context, self: Expr, *, upper: bool = False, **_: object) -> Results:
    """(triangle, info)."""
    return op.linalg.cholesky(self, upper), _info(context, 1)


@converter("aten.cholesky.default")
def cholesky(context: Context, self: Expr, upper: bool = False) -> Expr:
    """The triangle."""
    return op.linalg.cholesky(self, upper)


@converter("aten._linalg_det.default")
def det(context: Context, A: Expr) -> Results:  # noqa: N803 - torch's name
    """(determinant, LU, pivots)."""
    return op.linalg.det(A), _not_given(context, 1, "LU"), _not_given(context, 2, "pivots")


@converter("aten._linalg_slogdet.default")
def slogdet(context: Context, A: Expr) -> Results:  # noqa: N803 - torch's name
    """(sign, logarithm of the size, LU, pivots)."""
    rest = _not_given(context, 2, "LU"), _not_given(context, 3, "pivots")
    return *parts(context, op.linalg.slogdet(A), 2), *rest


def turned(context: Context, matrices: Expr) -> Expr:
    """Each matrix transposed."""
    rank = context.rank(matrices)
    axes = [*range(rank - 2), rank - 1, rank - 2]
    return context.emit(op.permute_dims(matrices, axes))


@converter("aten._linalg_solve_ex.default")
def solve_ex(
    context: Context,
    A: Expr,
    B: Expr,
    *,  # noqa: N803 - torch's name
    left: bool = True,
    **_: object,
) -> Results:
    """(solution, LU, pivots, info); vectors on the right are columns."""
    rest = _not_given(context, 1, "LU"), _not_given(context, 2, "pivots"), _info(context, 3)
    shape = context.results[0][0]
    is_vector = context.rank(B) == 1 or (
        context.rank(B) == context.rank(A) - 1
        and len(shape) == context.rank(B)
        and _same(context.dims(B), context.dims(A)[:-1])
    )
    if is_vector:
        column = context.emit(op.expand_dims(B, [-1]))
        return op.squeeze(context.emit(op.linalg.solve(A, column)), [-1]), *rest
    if left:
        return op.linalg.solve(A, B), *rest
    solved = op.linalg.solve(turned(context, A), turned(context, B))
    return turned(context, context.emit(solved)), *rest


def _same(dims: Sequence[object], others: Sequence[object]) -> bool:
    return all(a is b or (isinstance(a, int) and a == b) for a, b in zip(dims, others, strict=True))


@converter("aten.linalg_solve_triangular.default")
def solve_triangular(
    context: Context,
    self: Expr,
    B: Expr,
    *,
    upper: bool,  # noqa: N803 - torch's name
    left: bool = True,
    unitriangular: bool = False,
) -> Expr:
    """The solution, of a triangle on the left or on the right."""
    if left:
        return op.linalg.solve_triangular(self, B, upper, unitriangular)
    sides = turned(context, self), turned(context, B)
    solved = context.emit(op.linalg.solve_triangular(*sides, not upper, unitriangular))
    return turned(context, solved)


@converter("aten.triangular_solve.default")
def triangular_solve(
    context: Context,
    self: Expr,
    A: Expr,
    upper: bool = True,  # noqa: N803 - torch's name
    transpose: bool = False,
    unitriangular: bool = False,
) -> Results:
    """(solution of A x = self, A)."""
    if transpose:
        other = turned(context, A)
        return op.linalg.solve_triangular(other, self, not upper, unitriangular), A
    return op.linalg.solve_triangular(A, self, upper, unitriangular), A


@converter("aten.cholesky_solve.default")
def cholesky_solve(context: Context, self: Expr, input2: Expr, upper: bool = False) -> Expr:
    """The x of L L^T x = self, by two triangles."""
    lower = turned(context, input2) if upper else input2
    half = context.emit(op.linalg.solve_triangular(lower, self, False))
    return op.linalg.solve_triangular(turned(context, lower), half, True)


@converter("aten.linalg_qr.default")
def qr(context: Context, A: Expr, mode: str = "reduced") -> Results:  # noqa: N803 - torch's name
    """(columns, triangle); without the columns in mode ``r``."""
    columns, triangle = parts(context, op.linalg.qr(A, mode == "complete"), 2)
    return op.zeros([0], context.dtype) if mode == "r" else columns, triangle


@converter("aten._linalg_svd.default")
def svd(
    context: Context,
    A: Expr,
    full_matrices: bool = False,  # noqa: N803 - torch's name
    compute_uv: bool = True,
    **_: object,
) -> Results:
    """(columns, singular values, rows)."""
    if context.is_read(0) or context.is_read(2):
        return parts(context, op.linalg.svd(A, full_matrices), 3)
    return None, op.linalg.svdvals(A), None


@converter("aten.linalg_pinv.atol_rtol_tensor")
def pinv(
    context: Context,
    self: Expr,
    *,
    atol: Expr | None = None,
    rtol: Expr | None = None,
    hermitian: bool = False,
) -> Expr:
    """The inverse on what singular values above max(atol, rtol * the largest one) span."""
    kind = context.dtype
    left, values, right = parts(context, op.linalg.svd(self, full_matrices=False), 3)
    largest = context.emit(op.max(values, [-1], keepdims=True))
    limit = op.multiply(largest, _relative(context, self, atol, rtol))
    if atol is not None:
        limit = op.maximum(context.emit(limit), _column(context, atol, kind))
    is_kept = context.emit(op.greater(values, context.emit(limit)))
    inverse = op.where(is_kept, op.divide(const(1.0, kind), values), const(0.0, kind))
    scaled = op.multiply(turned(context, right), op.expand_dims(context.emit(inverse), [-2]))
    return op.matmul(context.emit(scaled), turned(context, left))


def _relative(context: Context, matrices: Expr, atol: Expr | None, rtol: Expr | None) -> Expr:
    """The relative limit: what is given; 0 beside an absolute one; the precision times a side."""
    kind = context.dtype
    if rtol is not None:
        return _column(context, rtol, kind)
    rows, columns = context.dims(matrices)[-2:]
    sides = op.max(op.shape_to_tensor(ShapeExpr([rows, columns])), [0])
    side = context.emit(op.astype(context.emit(sides), kind))
    limit = context.emit(op.multiply(side, const(float(np.finfo(kind).eps), kind)))
    if atol is None:
        return limit
    given = _column(context, atol, kind)
    is_given = context.emit(op.greater(given, const(0.0, kind)))
    return context.emit(op.where(is_given, const(0.0, kind), limit))


def _column(context: Context, limits: Expr, kind: str) -> Expr:
    """A limit for each matrix, beside the singular values of each."""
    limits = context.cast(limits, kind)
    return context.emit(op.expand_dims(limits, [-1])) if context.rank(limits) else limits


@converter("aten._linalg_eigh.default")
def eigh(
    context: Context,
    A: Expr,
    UPLO: str = "L",
    compute_v: bool = True,  # noqa: N803 - torch's name
) -> Results:
    """(eigenvalues, eigenvectors)."""
    upper = UPLO.upper() == "U"
    if context.is_read(1):
        return parts(context, op.linalg.eigh(A, upper), 2)
    return op.linalg.eigvalsh(A, upper), None


@converter("aten.linalg_lstsq.default")
def lstsq(
    context: Context, self: Expr, b: Expr, rcond: float | None = None, **_: object
) -> Results:
    """(solution, residuals, rank, singular values); the second and last where they are empty."""
    sides = [side for side in context.dims(self)[-2:] if isinstance(side, int)]
    if rcond is None and len(sides) < 2:
        raise UnsupportedError(
            "linalg.lstsq: expected rcond where the size of the matrices is symbolic; torch takes "
            "the precision of the type times the longer side"
        )
    if rcond is None:
        rcond = float(np.finfo(context.dtype_of(self)).eps) * max(sides)
    is_vector = context.rank(b) == context.rank(self) - 1
    right = context.emit(op.expand_dims(b, [-1])) if is_vector else b
    solution, rank = parts(context, op.linalg.lstsq(self, right, rcond), 2)
    shapes = [shape for shape, _ in context.results]
    empty = [
        op.zeros([0], context.dtype) if shapes[index] == [0] else _not_given(context, index, what)
        for index, what in ((1, "residuals"), (3, "singular_values"))
    ]
    if is_vector:
        solution = context.emit(op.squeeze(solution, [-1]))
    if len(shapes[2]) != context.rank(rank):
        return solution, empty[0], _not_given(context, 2, "rank"), empty[1]
    return solution, empty[0], rank, empty[1]


@converter("aten.linalg_matrix_exp.default")
def matrix_exp(context: Context, self: Expr) -> Expr:
    """The exponential of each matrix."""
    return op.linalg.matrix_exp(self)
