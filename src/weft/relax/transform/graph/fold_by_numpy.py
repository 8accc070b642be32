"""Constants that numpy computes as compiled code does, bit for bit, without compiling anything.

IEEE 754 fixes the results of the four operations, the square root and what a float32 is of an
integer, and integers wrap in both; views of constants share their memory. A model has hundreds of
these on its weights (the norms of a ResNet-50 alone need 424), and a kernel for each would take
seconds to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import Call, Constant
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.support.dtype import DataType

_OF_NUMBERS: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "negative": np.negative,
}  # fmt: skip
_OF_FLOATS: Final[dict[str, Callable[..., Any]]] = {"divide": np.divide, "sqrt": np.sqrt}
_VIEWS: Final = frozenset({"expand_dims", "reshape", "squeeze", "flatten"})
_INTEGERS: Final = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))

EXACT: Final = {
    Op.get(f"relax.{name}"): name
    for name in (*_OF_NUMBERS, *_OF_FLOATS, *_VIEWS, "astype", "permute_dims", "layout_transform")
}
"""The operators, by name without ``relax.``."""


def fold_by_numpy(call: Call) -> Constant | None:
    """The constant that a call of one of ``EXACT`` on constants is; None for any other call."""
    name = EXACT.get(call.op)
    info = call.struct_info
    if name is None or not isinstance(info, TensorStructInfo):
        return None
    dims = [constant_value(dim) for dim in tensor_dims(info) or [None]]
    if info.ndim and None in dims:
        return None
    shape = tuple([int(dim) for dim in dims if dim is not None])
    values = [arg.data._array for arg in call.args if isinstance(arg, Constant)]
    kind = DataType(info.dtype)
    if name == "astype":
        return _cast(expect(call.args[0], Constant), kind)
    if any(str(arg.data.dtype) != str(kind) for arg in call.args if isinstance(arg, Constant)):
        return None
    function = _OF_NUMBERS.get(name)
    if function is None and kind.is_float:
        function = _OF_FLOATS.get(name)
    if function is not None and (kind.is_float or kind.is_int or kind.is_uint):
        with np.errstate(all="ignore"):
            made = np.asarray(function(*values), dtype=values[0].dtype)
        return _constant(made, kind)
    if name in _VIEWS:
        return _constant(values[0].reshape(shape), kind)
    if name == "permute_dims":
        axes = call.attrs["axes"]
        order = None if axes is None else [int(axis) for axis in axes]
        return _constant(np.ascontiguousarray(values[0].transpose(order)), kind)
    if name == "layout_transform" and call.attrs["pad_value"] is None:
        return Constant(call.attrs["index_map"].map_ndarray(expect(call.args[0], Constant).data))
    return None


def _cast(given: Constant, kind: DataType) -> Constant | None:
    """Integers as other integers or float32."""
    if str(given.data.dtype) not in _INTEGERS or str(kind) not in (*_INTEGERS, "float32"):
        return None
    return _constant(given.data._array.astype(str(kind)), kind)


def _constant(array: np.ndarray[Any, Any], dtype: DataType) -> Constant:
    return Constant(NDArray(array, dtype))
