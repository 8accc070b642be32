"""Weights by name as bytes, in the format of ``tvm.runtime.save_param_dict``: an exchange format.

Little-endian: a magic number, 0, the number of names, each with its length before it, the number of
arrays, and each array: a magic number, 0, device (1, 0), rank, dtype (code, bits, lanes), extents,
the number of its bytes, the bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from weft.runtime.ndarray import NDArray, array, empty, storage_dtype
from weft.support.dtype import DataType
from weft.support.errors import ArtifactError, wrong_type
from weft.support.files import write_whole

_LIST: Final = 0xF7E58D4F05049CB7
_ARRAY: Final = 0xDD5E40F096B4A13F
_HEADER: Final = struct.Struct("<QQiiiBBH")
_DTYPES: Final = {
    (int(dtype.type_code), dtype.bits): dtype
    for dtype in map(
        DataType,
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 "
        "float8_e4m3fn float8_e5m2".split(),
    )
}
_MOST_AXES: Final = 64
"""As numpy has it."""
_LARGEST: Final = 1 << 40
"""An extent beside one of 0, which no number of bytes bounds."""


def save_param_dict(params: Mapping[str, object]) -> bytearray:
    """The bytes of arrays by name; arrays may be NDArrays or numpy's.

    >>> data = save_param_dict({"w": np.ones((2, 3), "float32")})
    >>> load_param_dict(data)["w"].shape
    (2, 3)
    """
    if not isinstance(params, Mapping):
        raise wrong_type("save_param_dict: expected a dict", params)
    names = [str(name).encode() for name in params]
    parts = [struct.pack("<QQQ", _LIST, 0, len(names))]
    for name in names:
        parts += [struct.pack("<Q", len(name)), name]
    parts.append(struct.pack("<Q", len(names)))
    for value in params.values():
        parts += _array_parts(value if isinstance(value, NDArray) else array(value))
    return bytearray(b"".join(parts))


def _array_parts(value: NDArray) -> list[bytes]:
    dtype, shape = DataType(value.dtype), tuple(value.shape)
    content = np.ascontiguousarray(value.numpy()).tobytes()
    header = _HEADER.pack(
        _ARRAY, 0, 1, 0, len(shape), int(dtype.type_code), dtype.bits, dtype.lanes
    )
    return [header, struct.pack(f"<{len(shape)}qQ", *shape, len(content)), content]


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """The arrays that ``save_param_dict`` wrote, also TVM's; ArtifactError for other bytes."""
    reader = _Reader(param_bytes)
    reader.expect(_LIST, "a dict of arrays")
    names = [
        reader.take(reader.count(1)).decode("utf-8", "replace") for _ in range(reader.count(8))
    ]
    count = reader.count(_HEADER.size)
    if count != len(names):
        raise ArtifactError(f"load_param_dict: expected {len(names)} arrays, got {count}")
    return {name: reader.array() for name in names}


class _Reader:
    """Reads bytes front to back; ArtifactError where they end, or are none of the format."""

    def __init__(self, content: bytes | bytearray) -> None:
        self.content, self.place = memoryview(content), 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        part = self.content[self.place : self.place + size]
        if len(part) < size:
            raise ArtifactError(
                f"load_param_dict: expected {size} bytes at {self.place}, got {len(part)}: the "
                "data was cut off, or is of another kind"
            )
        self.place += size
        return bytes(part)

    def count(self, least: int) -> int:
        """A number of things of at least ``least`` bytes each, which must all be there."""
        number = int.from_bytes(self.take(8), "little")
        left = len(self.content) - self.place
        if number * least > left:
            raise ArtifactError(
                f"load_param_dict: expected at most {left} bytes at {self.place}, got {number} "
                f"things of {least} bytes or more"
            )
        return number

    def expect(self, magic: int, what: str) -> None:
        """Read the numbers that begin ``what``."""
        first, _reserved = struct.unpack("<QQ", self.take(16))
        if first != magic:
            raise ArtifactError(
                f"load_param_dict: expected {what}, which begins with {magic:#x}, got {first:#x}; "
                "relax.load and weft.load read models"
            )

    def array(self) -> NDArray:
        """The next array."""
        self.expect(_ARRAY, "an array")
        _device, _number, rank, code, bits, lanes = struct.unpack("<iiiBBH", self.take(16))
        dtype = _DTYPES.get((code, bits))
        if dtype is None or lanes == 0 or not 0 <= rank <= _MOST_AXES:
            raise ArtifactError(
                f"load_param_dict: expected an array of numbers, got the dtype ({code}, {bits}, "
                f"{lanes}) and {rank} dimensions"
            )
        dtype = dtype.with_lanes(lanes)
        shape = struct.unpack(f"<{rank}q", self.take(8 * rank))
        size, storage = self.count(1), storage_dtype(dtype)
        expected = math.prod(shape) * storage.itemsize * dtype.lanes
        least, most = min(shape, default=0), max(shape, default=0)
        if size != expected or least < 0 or most > _LARGEST:
            raise ArtifactError(
                f"load_param_dict: expected {expected} bytes of an array {dtype}{list(shape)}, "
                f"got {size}"
            )
        full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
        result = empty(shape, dtype)
        return result.copyfrom(np.frombuffer(self.take(size), storage).reshape(full))


def save_param_dict_to_file(params: Mapping[str, object], path: str | Path) -> None:
    """Write arrays by name to a file."""
    write_whole(Path(path), bytes(save_param_dict(params)), durable=False)


def load_param_dict_from_file(path: str | Path) -> dict[str, NDArray]:
    """The arrays of a file that ``save_param_dict_to_file`` wrote."""
    return load_param_dict(Path(path).read_bytes())
