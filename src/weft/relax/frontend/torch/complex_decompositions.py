"""Operators on complex numbers in terms of others, for which there are converters."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from typing import Final

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

ATEN: Final = torch.ops.aten
Number = float | complex
Table = Mapping[torch._ops.OperatorBase, Callable[..., object]]


# Exponentials, logarithms, powers


def expm1(self: Tensor) -> Tensor:
    """exp(z) - 1, also where that is small."""
    x, y = self.real, self.imag
    real = torch.expm1(x) * torch.cos(y) - 2 * torch.sin(y / 2) ** 2
    return torch.complex(real, torch.exp(x) * torch.sin(y))


def log1p(self: Tensor) -> Tensor:
    """log(1 + z), also where that is small."""
    x, y = self.real, self.imag
    near = torch.log1p(x * (2 + x) + y * y) / 2
    far = torch.log(torch.hypot(1 + x, y))
    real = torch.where(torch.hypot(x, y) < 0.5, near, far)
    return torch.complex(real, torch.atan2(y, 1 + x))


def exp2(self: Tensor) -> Tensor:
    """2 to the power of z."""
    return torch.exp(self * math.log(2))


def log2(self: Tensor) -> Tensor:
    """The logarithm to the base 2."""
    return torch.log(self) / math.log(2)


def log10(self: Tensor) -> Tensor:
    """The logarithm to the base 10."""
    return torch.log(self) / math.log(10)


def rsqrt(self: Tensor) -> Tensor:
    """1 / sqrt(z)."""
    return torch.reciprocal(torch.sqrt(self))


def sigmoid(self: Tensor) -> Tensor:
    """1 / (1 + exp(-z)), by the tangent, which does not overflow."""
    return (torch.tanh(self / 2) + 1) / 2


def sinc(self: Tensor) -> Tensor:
    """sin(pi z) / (pi z), 1 at 0."""
    z = self * math.pi
    is_zero = self == 0
    return torch.where(is_zero, 1, torch.sin(z) / torch.where(is_zero, 1, z))


def power(self: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """z to the power of w: exp(w log z), by products if w is a small whole number."""
    if not isinstance(exponent, Tensor):
        whole = abs(exponent) <= 8 and exponent == round(complex(exponent).real)
        if whole and isinstance(self, Tensor):
            return _whole_power(self, round(complex(exponent).real))
        if exponent == 0.5 and isinstance(self, Tensor):
            return torch.sqrt(self)
    if not isinstance(self, Tensor):
        return torch.exp(cmath.log(self) * exponent) if self else self * exponent
    value = torch.exp(torch.log(self) * exponent)
    real = exponent.real if isinstance(exponent, complex) or _is_complex(exponent) else exponent
    is_zero = (self == 0) & (real > 0)
    return torch.where(is_zero, 0, value)


def _whole_power(base: Tensor, exponent: int) -> Tensor:
    if exponent < 0:
        return torch.reciprocal(_whole_power(base, -exponent))
    result = torch.ones_like(base)
    for place in range(exponent):
        result = result * base if place else base
    return result


# Inverses of sines and tangents (Kahan, 1987)


def _roots(z: Tensor) -> tuple[Tensor, Tensor]:
    """sqrt(1 - z) and sqrt(1 + z), which keep the sign of an imaginary part of 0."""
    x, y = z.real, z.imag
    return torch.sqrt(torch.complex(1 - x, -y)), torch.sqrt(torch.complex(1 + x, y))


def asin(self: Tensor) -> Tensor:
    """The inverse of the sine."""
    below, above = _roots(self)
    real = torch.atan2(self.real, (below * above).real)
    return torch.complex(real, torch.asinh((below.conj() * above).imag))


def acos(self: Tensor) -> Tensor:
    """The inverse of the cosine."""
    below, above = _roots(self)
    real = 2 * torch.atan2(below.real, above.real)
    return torch.complex(real, torch.asinh((above.conj() * below).imag))


def acosh(self: Tensor) -> Tensor:
    """The inverse of the hyperbolic cosine."""
    x, y = self.real, self.imag
    below, above = torch.sqrt(torch.complex(x - 1, y)), torch.sqrt(torch.complex(x + 1, y))
    real = torch.asinh((below.conj() * above).real)
    return torch.complex(real, 2 * torch.atan2(below.imag, above.real))


def atanh(self: Tensor) -> Tensor:
    """The inverse of the hyperbolic tangent."""
    x, y = self.real, self.imag
    size = x.abs()
    real = torch.log1p(4 * size / ((1 - size) ** 2 + y * y)) / 4
    angle = torch.atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2
    return torch.complex(torch.copysign(real, x), angle)


def asinh(self: Tensor) -> Tensor:
    """The inverse of the hyperbolic sine: -i asin(i z)."""
    return _turned_back(asin(_turned(self)))


def atan(self: Tensor) -> Tensor:
    """The inverse of the tangent: -i atanh(i z)."""
    return _turned_back(atanh(_turned(self)))


def _turned(z: Tensor) -> Tensor:
    """I z."""
    return torch.complex(-z.imag, z.real)


def _turned_back(z: Tensor) -> Tensor:
    """-i z."""
    return torch.complex(z.imag, -z.real)


# Reductions and products


def product(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """The product of all elements."""
    return product_along(self.reshape(-1), 0, dtype=dtype)


def product_along(
    self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    """The product along a dimension, by halves."""
    left = self.to(dtype or self.dtype)
    while left.shape[dim] > 1:
        half = left.shape[dim] // 2
        first, second, rest = left.tensor_split([half, 2 * half], dim)
        left = torch.cat([first * second, rest], dim)
    if left.shape[dim] == 0:
        left = torch.cat([left, torch.ones_like(left.sum(dim, keepdim=True))], dim)
    return left if keepdim else left.squeeze(dim)


def products_so_far(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """The products of the first elements along a dimension, of twice as many in each step."""
    left, step = self.to(dtype or self.dtype), 1
    while left.dim() and step < left.shape[dim]:
        first, rest = left.tensor_split([step], dim)
        left = torch.cat([first, rest * left.narrow(dim, 0, rest.shape[dim])], dim)
        step *= 2
    return left


def variance(self: Tensor, *args: object, **keywords: object) -> Tensor:
    """That of the real and of the imaginary parts."""
    return torch.var(self.real, *args, **keywords) + torch.var(self.imag, *args, **keywords)


def deviation(self: Tensor, *args: object, **keywords: object) -> Tensor:
    """The root of the variance."""
    return torch.sqrt(variance(self, *args, **keywords))


def vdot(self: Tensor, other: Tensor) -> Tensor:
    """The dot product with the conjugate of the first vector."""
    return torch.dot(self.conj().resolve_conj(), other)


def trace(self: Tensor) -> Tensor:
    """The sum of the diagonal."""
    return self.diagonal().sum()


def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask is true, in order."""
    whole, chosen = torch.broadcast_tensors(self, mask)
    return whole.reshape(-1)[chosen.reshape(-1)]


def lerp(self: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """A point between two."""
    return self + weight * (end - self)


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``self + value * tensor1 * tensor2``."""
    return self + value * tensor1 * tensor2


def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``self + value * tensor1 / tensor2``."""
    return self + value * (tensor1 / tensor2)


def addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """``beta * self + alpha * mat1 @ mat2``."""
    return beta * self + alpha * (mat1 @ mat2)


def eye(n: int, m: int | None = None, *, dtype: torch.dtype, **_: object) -> Tensor:
    """Ones on the diagonal."""
    real = torch.eye(n, n if m is None else m, dtype=dtype.to_real())
    return torch.complex(real, torch.zeros_like(real))


# Properties


def isnan(self: Tensor) -> Tensor:
    """Whether a part is no number."""
    return torch.isnan(self.real) | torch.isnan(self.imag)


def isinf(self: Tensor) -> Tensor:
    """Whether a part is infinite."""
    return torch.isinf(self.real) | torch.isinf(self.imag)


def isfinite(self: Tensor) -> Tensor:
    """Whether both parts are finite."""
    return torch.isfinite(self.real) & torch.isfinite(self.imag)


# Matrices: those of real numbers of twice the size, [[a, -b], [b, a]], which multiply alike


def _as_real(matrix: Tensor) -> Tensor:
    a, b = matrix.real, matrix.imag
    return torch.cat([torch.cat([a, -b], -1), torch.cat([b, a], -1)], -2)


def _as_complex(matrix: Tensor) -> Tensor:
    """The left half of what stands for a complex matrix."""
    columns = matrix.shape[-1] // 2
    real, imaginary = matrix.narrow(-1, 0, columns).chunk(2, -2)
    return torch.complex(real.contiguous(), imaginary.contiguous())


def inverse(
    A: Tensor,  # noqa: N803 - torch's name
    *,
    check_errors: bool = False,
) -> tuple[Tensor, Tensor]:
    """(the inverse, info)."""
    real, info = torch.linalg.inv_ex(_as_real(A), check_errors=check_errors)
    return _as_complex(real), info


def solve(
    A: Tensor,  # noqa: N803 - torch's name
    B: Tensor,  # noqa: N803 - torch's name
    *,
    left: bool = True,
    check_errors: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(the solution, LU, pivots, info); of LU, which has no meaning here, nothing may be read."""
    is_vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and A.shape[:-1] == B.shape)
    given = B.unsqueeze(-1) if is_vector else B
    if not left:
        transposed = solve(A.mT, given.mT, check_errors=check_errors)
        return transposed[0].mT, *transposed[1:]
    stacked = torch.cat([given.real, given.imag], -2)
    both, info = torch.linalg.solve_ex(_as_real(A), stacked, check_errors=check_errors)
    result = torch.complex(*(half.contiguous() for half in both.chunk(2, -2)))
    nothing = torch.full_like(A, math.nan)
    solution = result.squeeze(-1) if is_vector else result
    return solution, nothing, torch.zeros(A.shape[:-1], dtype=torch.int32), info


def matrix_exp(self: Tensor) -> Tensor:
    """The exponential of matrices."""
    return _as_complex(torch.linalg.matrix_exp(_as_real(self)))


_INVERSES: Final[Table] = {
    ATEN.asin.default: asin, ATEN.acos.default: acos, ATEN.atan.default: atan,
    ATEN.asinh.default: asinh, ATEN.acosh.default: acosh, ATEN.atanh.default: atanh,
}  # fmt: skip
_POWERS: Final[Table] = {
    ATEN.expm1.default: expm1, ATEN.log1p.default: log1p, ATEN.exp2.default: exp2,
    ATEN.log2.default: log2, ATEN.log10.default: log10, ATEN.rsqrt.default: rsqrt,
    ATEN.sigmoid.default: sigmoid, ATEN.sinc.default: sinc, ATEN.pow.Tensor_Tensor: power,
    ATEN.pow.Tensor_Scalar: power, ATEN.pow.Scalar: power,
}  # fmt: skip
_REDUCTIONS: Final[Table] = {
    ATEN.prod.default: product, ATEN.prod.dim_int: product_along,
    ATEN.cumprod.default: products_so_far, ATEN.var.default: variance, ATEN.var.dim: variance,
    ATEN.var.correction: variance, ATEN.std.default: deviation, ATEN.std.dim: deviation,
    ATEN.std.correction: deviation, ATEN.vdot.default: vdot, ATEN.trace.default: trace,
    ATEN.masked_select.default: masked_select,
}  # fmt: skip
_OTHERS: Final[Table] = {
    ATEN.lerp.Scalar: lerp, ATEN.lerp.Tensor: lerp, ATEN.addcmul.default: addcmul,
    ATEN.addcdiv.default: addcdiv, ATEN.addmm.default: addmm, ATEN.baddbmm.default: addmm,
    ATEN.addmv.default: addmm, ATEN.eye.default: eye, ATEN.eye.m: eye,
    ATEN.isnan.default: isnan, ATEN.isinf.default: isinf, ATEN.isfinite.default: isfinite,
    ATEN._linalg_solve_ex.default: solve, ATEN.linalg_inv_ex.default: inverse,
    ATEN.linalg_matrix_exp.default: matrix_exp,
}  # fmt: skip
COMPLEX_DECOMPOSITIONS: Final[Table] = {
    **_INVERSES, **_POWERS, **_REDUCTIONS, **_OTHERS,
}  # fmt: skip
"""Overload -> a function of its arguments, where one of them is complex."""


def where_complex(
    function: Callable[..., object], otherwise: Callable[..., object] | None
) -> Callable[..., object]:
    """A decomposition for complex arguments, and what there was for real ones."""

    def decompose(*args: object, **keywords: object) -> object:
        leaves = pytree.tree_leaves((args, keywords))
        if any(_is_complex(leaf) for leaf in leaves):
            return function(*args, **keywords)
        return NotImplemented if otherwise is None else otherwise(*args, **keywords)

    return decompose


def _is_complex(value: object) -> bool:
    kind = value.dtype if isinstance(value, Tensor) else value
    return isinstance(value, complex) or (isinstance(kind, torch.dtype) and kind.is_complex)
