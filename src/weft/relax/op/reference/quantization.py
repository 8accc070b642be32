"""Linear quantisation. The quotient is computed in the data's own type, not in float64.

Rounding is discontinuous: near a half, a more precise quotient may round to another integer.
"""

from __future__ import annotations

import numpy as np

from weft.relax.op.reference.rule import convert, is_float, numpy_dtype, quiet


def _along(parameter: np.ndarray, data: np.ndarray, axis: int) -> np.ndarray:
    """Scale or zero point, reshaped to broadcast along the axis."""
    if parameter.ndim == 0 or parameter.shape[0] == 1:
        return parameter.reshape([])
    shape = [1] * data.ndim
    shape[axis] = -1
    return parameter.reshape(shape)


@quiet
def quantize(
    data: np.ndarray,
    scale: np.ndarray,
    zero_point: np.ndarray,
    axis: int = -1,
    out_dtype: str = "int8",
) -> np.ndarray:
    """round(data / scale) + zero point."""
    scaled = data / _along(scale, data, axis).astype(data.dtype)
    is_whole = not is_float(np.empty(0, numpy_dtype(out_dtype)))
    scaled = np.round(scaled) if is_whole else scaled
    moved = scaled + _along(zero_point, data, axis).astype(data.dtype)
    return convert(moved, out_dtype) if is_whole else moved


@quiet
def dequantize(
    data: np.ndarray,
    scale: np.ndarray,
    zero_point: np.ndarray,
    axis: int = -1,
    out_dtype: str = "float32",
) -> np.ndarray:
    """scale * (data - zero point); the difference is computed exactly."""
    middle = "float64" if is_float(data) else "int32"
    zero = convert(_along(zero_point, data, axis), middle)
    distance = (convert(data, middle) - zero).astype("float64")
    values = distance * _along(scale, data, axis).astype("float64")
    if out_dtype != "float16":
        return np.asarray(values)
    limit = float(np.finfo(np.float16).max)
    return np.asarray(np.clip(values, -limit, limit))
