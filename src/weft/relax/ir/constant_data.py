"""The array of a constant, from what users write for it."""

from __future__ import annotations

import numpy as np

from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.runtime.ndarray import NDArray, array
from weft.support.dtype import DataType
from weft.support.errors import IRValueError


def constant_data(
    value: object, dtype: str | DataType | StructInfo | None
) -> tuple[NDArray, StructInfo | None]:
    """The array of ``relax.const(value, dtype)``, and its struct info if ``dtype`` gives it."""
    info = dtype if isinstance(dtype, StructInfo) else None
    name = getattr(dtype, "dtype", dtype)
    if name is not None and not isinstance(name, str):
        name = str(DataType(name))
    if isinstance(value, NDArray):
        return value, info
    data = array(value).numpy()
    if name is None and isinstance(value, bool | int | float | list | tuple):
        name = {"f": "float32", "i": "int32", "b": "bool"}.get(data.dtype.kind)
    if name:
        data = _converted(data, DataType(name))
    if info is not None and not isinstance(info, TensorStructInfo):
        info = None
    if info is not None and info.shape is None:
        info = None
    return array(data), info


def _converted(data: np.ndarray, dtype: DataType) -> np.ndarray:
    """``data`` in another type; IRValueError for integers that do not fit."""
    with np.errstate(over="ignore", invalid="ignore"):
        converted = data.astype(dtype.numpy)
    integers = data.dtype.kind in "iu" and converted.dtype.kind in "iu"
    if integers and not np.array_equal(converted, data):
        raise IRValueError(
            f"const: expected integers that {dtype} can hold, got some from {data.min()} to "
            f"{data.max()}; name a wider type, as relax.const(value, 'int64')"
        )
    return converted
