"""Kernels of resampling on tensors of the program, for extents that are symbols."""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr, RelaxLike, const


def kernel_weights(distance: Expr, mode: str, alpha: float) -> RelaxLike:
    """The weights of neighbours at a distance, which is 0 or more, a tensor of float64.

    ``mode`` is "linear" or "cubic", Keys' cubic convolution kernel (1981) of coefficient ``alpha``.
    """
    zero = const(0.0, "float64")
    if mode == "linear":
        return op.maximum(1.0 - distance, zero)
    x, a = distance, alpha
    near = (x * (a + 2) - (a + 3)) * x * x + 1.0
    far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a
    return op.where(x <= 1.0, near, op.where(x < 2.0, far, zero))
