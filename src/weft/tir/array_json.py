"""NDArrays in the JSON of programs: type, shape and base64 of their little-endian bytes.

Constants of both IRs hold NDArrays; this module registers with ``weft.ir.json_text`` how they are
written, and so for the runtime's ShapeTuple and String.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.json_text import load_json, register_codec, save_json
from weft.runtime.containers import ShapeTuple, String
from weft.runtime.device import Device
from weft.runtime.ndarray import NDArray, empty, storage_dtype
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRValueError

_SMALL: Final = 64


def encode_array(value: NDArray) -> dict[str, object]:
    """The array as a dict that ``json`` can write."""
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


class _UnknownArrayError(Exception):
    """An array is not among those that the caller keeps."""


def write_module(module: object, numbers: Mapping[int, int]) -> str:
    """The JSON of a module without its arrays, which the caller keeps.

    ``numbers`` maps the id of each array to its number, which is written instead. An unknown array
    of at most 64 bytes is written into the text; for a larger one the result is an empty text.
    """

    def aside(value: object) -> int | None:
        number = numbers.get(id(value))
        if number is None and isinstance(value, NDArray) and value._array.nbytes > _SMALL:
            raise _UnknownArrayError
        return number

    try:
        return save_json(module, aside=aside)
    except _UnknownArrayError:
        return ""


def read_module(text: str, arrays: Sequence[NDArray]) -> Any:
    """The module that ``write_module`` wrote, with these arrays."""
    slots.operators.get()  # import the definitions of operators, which programs name
    slots.relax_operators.get()
    return load_json(text, aside=arrays.__getitem__)


def _device_pair(device: Device) -> list[int]:
    return [device.device_type, device.device_id]


register_codec(__name__, NDArray, encode_array, decode_array)
register_codec(__name__, ShapeTuple, list, ShapeTuple)
register_codec(__name__, String, str, String)
register_codec(__name__, Device, _device_pair, lambda pair: Device(*pair))
slots.module_json.fill((write_module, read_module))
