"""Metadata of printed scripts: what has no literal syntax, as one JSON text, exact to the bit.

Printed (``show_meta=True``) it is the line ``metadata = tvm.ir.load_json(\"\"\"...\"\"\")`` before
the script, which then names entries ``metadata["relax.expr.Constant"][0]``. The JSON maps each key
to its list; arrays carry dtype, shape and base64 of their little-endian bytes. The parser reads it
back with ``from_json``.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import Array, Map, Node
from weft.relax.expr import Constant
from weft.runtime.ndarray import NDArray, empty, storage_dtype
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError

FORMAT: Final = "weft-metadata-1"
PREFIX: Final = 'metadata = tvm.ir.load_json("""'


def to_statement(metadata: Mapping[str, Sequence[Any]]) -> str:
    """The line of a script that defines ``metadata``."""
    text = to_json(metadata).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'{PREFIX}{text}""")'


def to_json(metadata: Mapping[str, Sequence[Any]]) -> str:
    """The JSON text of the collected values, by key."""
    content = {key: [encode(item) for item in items] for key, items in metadata.items()}
    return json.dumps({"format": FORMAT, "metadata": content})


def from_json(text: str) -> dict[str, list[Any]]:
    """The values by key; raises IRValueError for a text that ``to_json`` did not make."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"metadata: expected the JSON that show_meta=True prints: {error}"
        raise IRValueError(message) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise IRValueError(f"metadata: expected format {FORMAT!r}, got {found!r}")
    return {key: [decode(item) for item in items] for key, items in content["metadata"].items()}


def encode(value: Any) -> Any:
    """One value as JSON."""
    if value is None or isinstance(value, bool | int | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return {"kind": "float", "bits": struct.pack("<d", value).hex()}
    if isinstance(value, Constant):
        return {"kind": "Constant", "data": encode(value.data)}
    if isinstance(value, NDArray):
        return _encode_array(value)
    if isinstance(value, Array | list | tuple):
        return {"kind": "Array", "items": [encode(item) for item in value]}
    if isinstance(value, Mapping):
        pairs = [[encode(key), encode(item)] for key, item in value.items()]
        return {"kind": "Map", "items": pairs}
    kind = value.KIND if isinstance(value, Node) else type(value).__name__
    raise IRTypeError(
        f"metadata: a value of kind {kind} cannot be written as text; expected arrays, constants, "
        "numbers, strings, lists or maps of them"
    )


def decode(value: Any) -> Any:
    """The value that ``encode`` wrote."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    if kind == "float":
        return struct.unpack("<d", bytes.fromhex(value["bits"]))[0]
    if kind == "Constant":
        return Constant(decode(value["data"]))
    if kind == "NDArray":
        return _decode_array(value)
    if kind == "Array":
        return Array([decode(item) for item in value["items"]])
    if kind == "Map":
        return Map({decode(key): decode(item) for key, item in value["items"]})
    raise IRValueError(f"metadata: unknown kind of entry {kind!r}")


def _encode_array(value: NDArray) -> dict[str, Any]:
    array = np.ascontiguousarray(value.numpy())
    raw = base64.b64encode(array.tobytes()).decode("ascii")
    return {"kind": "NDArray", "dtype": str(value.dtype), "shape": list(value.shape), "data": raw}


def _decode_array(value: dict[str, Any]) -> NDArray:
    dtype, shape = DataType(value["dtype"]), tuple(value["shape"])
    raw = base64.b64decode(value["data"])
    made = empty(shape, dtype)
    storage = storage_dtype(dtype)
    expected = int(np.prod(shape, dtype=np.int64)) * storage.itemsize * dtype.lanes
    if len(raw) != expected:
        raise IRValueError(
            f"metadata: an array {dtype}{list(shape)} has {expected} bytes, the text has {len(raw)}"
        )
    full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
    made.copyfrom(np.frombuffer(raw, storage).reshape(full))
    return made
