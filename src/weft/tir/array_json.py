"""NDArrays in the JSON of programs: type, shape and base64 of their little-endian bytes.

Constants of both IRs hold NDArrays; this module teaches ``weft.ir.json_text`` to write them, and
the runtime's names for shapes and texts.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.json_text import load_json, register_codec, save_json
from weft.runtime.containers import ShapeTuple, String
from weft.runtime.ndarray import NDArray, empty, storage_dtype
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRValueError

_SMALL: Final = 64


def encode_array(value: NDArray) -> dict[str, object]:
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
    array = empty(shape, dtype)
    full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
    array.copyfrom(np.frombuffer(raw, storage).reshape(full))
    return array


class _Elsewhere(Exception):  # noqa: N818 - no error: a way out of the walk
    """An array that is not among those that are kept."""


def write_module(module: object, numbers: Mapping[int, int]) -> str:
    """The JSON of a module whose arrays are kept elsewhere: ``numbers`` by the id of an array.

    Empty if one is not among them; arrays of at most 64 bytes then stand in the text.
    """

    def aside(value: object) -> int | None:
        number = numbers.get(id(value))
        if number is None and isinstance(value, NDArray) and value._array.nbytes > _SMALL:
            raise _Elsewhere
        return number

    try:
        return save_json(module, aside=aside)
    except _Elsewhere:
        return ""


def read_module(text: str, arrays: Sequence[NDArray]) -> Any:
    """The module that ``write_module`` wrote, on these arrays."""
    slots.operators.get()  # programs name operators: those who define them come first
    slots.relax_operators.get()
    return load_json(text, aside=arrays.__getitem__)


register_codec(__name__, NDArray, encode_array, decode_array)
register_codec(__name__, ShapeTuple, list, ShapeTuple)
register_codec(__name__, String, str, String)
slots.module_json.fill((write_module, read_module))
