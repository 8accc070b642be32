"""Linear quantisation. The quotient is rounded in the data's own type, since rounding is a jump."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.relax.reference.rule import convert, is_float, numpy_dtype, quiet, table


def _along(parameter: Any, data: Any, axis: int) -> Any:
    """Scale or zero point shaped so that it broadcasts along the axis."""
    if parameter.ndim == 0 or parameter.shape[0] == 1:
        return parameter.reshape([])
    shape = [1] * data.ndim
    shape[axis] = -1
    return parameter.reshape(shape)


def _quantize(
    data: Any, scale: Any, zero_point: Any, axis: int = -1, out_dtype: str = "int8"
) -> Any:
    scaled = np.round(data / _along(scale, data, axis).astype(data.dtype))
    moved = scaled + _along(zero_point, data, axis).astype(data.dtype)
    if is_float(np.empty(0, numpy_dtype(out_dtype))):
        return moved
    return convert(moved, out_dtype)


def _dequantize(
    data: Any, scale: Any, zero_point: Any, axis: int = -1, out_dtype: str = "float32"  # noqa: ARG001 - the interpreter rounds to it
) -> Any:  # fmt: skip
    zero = convert(_along(zero_point, data, axis), "int32")
    distance = convert(data, "int32") - zero
    return distance.astype("float64") * _along(scale, data, axis).astype("float64")


TABLE = table({"quantize": quiet(_quantize), "dequantize": quiet(_dequantize)})
