"""torch.linalg: factors that torch keeps packed (LU, LDL, reflections), any matrix's eigenvalues.

Eigenvalues are complex: a model computes with them (``.abs()``, ``.real``) and gives what is real.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.complex_numbers import complex_converter
from weft.relax.frontend.torch.operators.decompositions import (
    CHECK,
    parts,
    readers_of,
    turned,
)
from weft.relax.frontend.torch.registry import converter
from weft.relax.frontend.torch.values import ComplexTensor
from weft.support.errors import UnsupportedError

_PIVOT: Final = (
    "{name}: expected pivot=True, got False; PyTorch has LU without pivoting on GPUs only"
)


def _need_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise UnsupportedError(_PIVOT.format(name=name))


@converter("aten.linalg_lu_factor_ex.default")
def lu_factor_ex(
    context: Context,
    A: Expr,
    *,  # noqa: N803 - torch's name
    pivot: bool = True,
    **_: object,
) -> Sequence[Expr]:
    """(LU, pivots, info); a singular matrix is an error where torch checks info."""
    _need_pivot("linalg.lu_factor", pivot)
    is_checked = CHECK in readers_of(context, 2)
    return parts(context, op.linalg.lu_factor(A, is_checked), 3)


@converter("aten.linalg_lu.default")
def lu(
    context: Context,
    A: Expr,  # noqa: N803 - torch's name
    *,
    pivot: bool = True,
) -> Sequence[Expr]:
    """(permutation, lower triangle, upper triangle)."""
    _need_pivot("linalg.lu", pivot)
    packed, pivots, _ = parts(context, op.linalg.lu_factor(A), 3)
    return parts(context, op.linalg.lu_unpack(packed, pivots), 3)


@converter("aten.lu_unpack.default")
def lu_unpack(
    context: Context,
    LU_data: Expr,  # noqa: N803 - torch's name
    LU_pivots: Expr,  # noqa: N803 - torch's name
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> Sequence[Expr]:
    """(permutation, lower triangle, upper triangle); empty where not asked for."""
    results = parts(context, op.linalg.lu_unpack(LU_data, LU_pivots), 3)
    is_asked = unpack_pivots, unpack_data, unpack_data
    empty = context.emit(op.zeros([0], context.dtype))
    return [item if asked else empty for item, asked in zip(results, is_asked, strict=True)]


@converter("aten.linalg_lu_solve.default")
def lu_solve(
    context: Context,
    LU: Expr,  # noqa: N803 - torch's name
    pivots: Expr,
    B: Expr,  # noqa: N803 - torch's name
    *,
    left: bool = True,
    adjoint: bool = False,
) -> Expr:
    """The solution, of a matrix on the left or on the right."""
    if left:
        return op.linalg.lu_solve(LU, pivots, B, adjoint)
    solved = op.linalg.lu_solve(LU, pivots, turned(context, B), not adjoint)
    return turned(context, context.emit(solved))


@converter("aten.linalg_ldl_factor_ex.default")
def ldl_factor_ex(context: Context, self: Expr, **_: object) -> Sequence[Expr]:
    """(LD, pivots, info); a singular matrix is an error where torch checks info.

    Real matrices are symmetric if they are hermitian.
    """
    is_checked = CHECK in readers_of(context, 2)
    return parts(context, op.linalg.ldl_factor(self, is_checked), 3)


@converter("aten.linalg_ldl_solve.default")
def ldl_solve(
    context: Context,
    LD: Expr,  # noqa: N803 - torch's name
    pivots: Expr,
    B: Expr,  # noqa: N803 - torch's name
    **_: object,
) -> Expr:
    """The solution, of a symmetric matrix on the left."""
    return op.linalg.ldl_solve(LD, pivots, B)


@converter("aten.cholesky_inverse.default")
def cholesky_inverse(context: Context, self: Expr, upper: bool = False) -> Expr:
    """The inverse of L L^T."""
    lower = turned(context, self) if upper else self
    rows = context.dims(self)[-1]
    unit = context.emit(op.eye(rows, dtype=context.dtype))
    half = context.emit(op.linalg.solve_triangular(lower, unit, False))
    return op.linalg.solve_triangular(turned(context, lower), half, True)


@converter("aten.geqrf.default")
def geqrf(context: Context, self: Expr) -> Sequence[Expr]:
    """(triangle with vectors of reflections below, factors of reflections)."""
    return parts(context, op.linalg.geqrf(self), 2)


@converter("aten.linalg_householder_product.default")
def householder_product(context: Context, input: Expr, tau: Expr) -> Expr:
    """The first columns of the product of reflections."""
    rows, columns = context.dims(input)[-2:]
    unit = context.emit(op.eye(rows, columns, dtype=context.dtype))
    return op.linalg.ormqr(input, tau, unit)


@converter("aten.ormqr.default")
def ormqr(
    context: Context,
    self: Expr,
    input2: Expr,
    input3: Expr,
    left: bool = True,
    transpose: bool = False,
) -> Expr:
    """The product of reflections with a matrix on the right or on the left."""
    if left:
        return op.linalg.ormqr(self, input2, input3, transpose)
    product = op.linalg.ormqr(self, input2, turned(context, input3), not transpose)
    return turned(context, context.emit(product))


@complex_converter("aten.linalg_eig.default")
def eig(context: Context, self: Expr | ComplexTensor) -> Sequence[ComplexTensor | None]:
    """(eigenvalues, eigenvectors)."""
    if context.is_read(1):
        real, imaginary, *vectors = parts(context, op.linalg.eig(_real(self)), 4)
        return ComplexTensor(real, imaginary), ComplexTensor(*vectors)
    return eigvals(context, self), None


@complex_converter("aten.linalg_eigvals.default", "aten._linalg_eigvals.default")
def eigvals(context: Context, self: Expr | ComplexTensor) -> ComplexTensor:
    """The eigenvalues."""
    return ComplexTensor(*parts(context, op.linalg.eigvals(_real(self)), 2))


def _real(matrices: Expr | ComplexTensor) -> Expr:
    """The matrices, which must be real."""
    if isinstance(matrices, ComplexTensor):
        raise UnsupportedError(
            "linalg.eig: expected real matrices, got complex ones; for a + ib take "
            "torch.linalg.eig of the real matrix [[a, -b], [b, a]], which has each eigenvalue and "
            "its conjugate"
        )
    return matrices
