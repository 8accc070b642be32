"""NDArrays in the JSON of programs: type, shape and base64 of their little-endian bytes.

Constants of both IRs hold NDArrays; this module teaches ``weft.ir.json_text`` to write them, and
the runtime's names for shapes and texts.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from weft.ir.json_text import register_codec
from weft.runtime.containers import ShapeTuple, String
from weft.runtime.ndarray import NDArray, empty, storage_dtype
from weft.support.dtype import DataType
from weft.support.errors import IRValueError


def encode_array(value: NDArray) -> dict[str, Any]:
    """The array as values that ``json`` writes."""
    raw = base64.b64encode(np.ascontiguousarray(value.numpy()).tobytes()).decode("ascii")
    return {"dtype": str(value.dtype), "shape": list(value.shape), "data": raw}


def decode_array(content: dict[str, Any]) -> NDArray:
    """The array that ``encode_array`` wrote; raises IRValueError if bytes are missing."""
    dtype, shape = DataType(content["dtype"]), tuple(content["shape"])
    raw = base64.b64decode(content["data"])
    storage = storage_dtype(dtype)
    expected = int(np.prod(shape, dtype=np.int64)) * storage.itemsize * dtype.lanes
    if len(raw) != expected:
        raise IRValueError(
            f"an array {dtype}{list(shape)} has {expected} bytes, the text has {len(raw)}"
        )
    made = empty(shape, dtype)
    full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
    made.copyfrom(np.frombuffer(raw, storage).reshape(full))
    return made


register_codec(__name__, NDArray, encode_array, decode_array)
register_codec(__name__, ShapeTuple, list, ShapeTuple)
register_codec(__name__, String, str, String)
