"""Fourier transforms: the three operators of ATen that all functions of torch.fft end in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import Extent
from weft.relax.expr import Expr
from weft.relax.frontend.fourier import Transform, full_transform, scale_of, transformed
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.complex_numbers import complex_converter
from weft.relax.frontend.torch.operators.views import axes_of
from weft.relax.frontend.torch.values import ComplexTensor

NORMALIZATIONS: Final = ("none", "by root of length", "by length")
"""What the numbers of at::native::fft_norm_mode mean."""


def _along(
    context: Context, value: ComplexTensor, axes: Sequence[int], normalization: int, inverse: bool
) -> ComplexTensor:
    """The full transform along axes, one after the other."""
    for axis in axes:
        planes = value.real, value.imaginary
        length = context.dims(value.real)[axis]
        plan = full_transform(
            length, inverse=inverse, scale=scale_of(NORMALIZATIONS[normalization], length)
        )
        value = ComplexTensor(*transformed(context.builder, planes, axis, plan))
    return value


@complex_converter("aten._fft_c2c.default")
def fft_c2c(
    context: Context, self: ComplexTensor, dim: Sequence[int], normalization: int, forward: bool
) -> ComplexTensor:
    """Complex to complex."""
    axes = axes_of(dim, context.rank(self.real))
    return _along(context, self, axes, normalization, not forward)


@complex_converter("aten._fft_r2c.default")
def fft_r2c(
    context: Context, self: Expr, dim: Sequence[int], normalization: int, onesided: bool
) -> ComplexTensor:
    """Real to complex; one-sided along the last of the dimensions."""
    *others, last = axes_of(dim, context.rank(self))
    length = context.dims(self)[last]
    count = context.shape[last] if onesided else length
    plan = Transform(length, length, count, scale=scale_of(NORMALIZATIONS[normalization], length))
    spectrum = ComplexTensor(*transformed(context.builder, (self, None), last, plan))
    return _along(context, spectrum, others, normalization, False)


@complex_converter("aten._fft_c2r.default")
def fft_c2r(
    context: Context,
    self: ComplexTensor,
    dim: Sequence[int],
    normalization: int,
    last_dim_size: Extent,
) -> Expr:
    """One-sided spectra back to real numbers."""
    *others, last = axes_of(dim, context.rank(self.real))
    spectrum = _along(context, self, others, normalization, True)
    length, used = context.shape[last], context.dims(self.real)[last]
    plan = Transform(
        length, used, length, True, True, scale_of(NORMALIZATIONS[normalization], length)
    )
    real, _ = transformed(context.builder, (spectrum.real, spectrum.imaginary), last, plan)
    return real
