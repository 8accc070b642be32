"""Weights in the format of safetensors: eight bytes of length, a JSON header, then the data.

The format leaves open in which order arrays stand. Here those whose size is a multiple of a cache
line come first, and the header ends on such a line, so that in a file which is mapped into memory
each of them lies as native code wants it. The library of that name writes in an order of its own,
and copies what it reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.runtime.memory.allocation import ALIGNMENT, data_address, returned_empty
from weft.runtime.ndarray import NDArray, fresh
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError

_LONGEST_HEADER: Final = 100_000_000
"""What the format allows."""
_NAMES: Final = {"bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64"} | {
    f"{kind}{bits}": f"{kind[0].upper()}{bits}"
    for kind in ("int", "uint")
    for bits in (8, 16, 32, 64)
}
"""The format's names of types. Those that numpy has not (bfloat16, 8-bit floats) stand as integers
of the same bits."""


def constants_to_bytes(constants: Sequence[NDArray]) -> bytes:
    """Arrays in the format of safetensors, named by their numbers."""
    return b"".join(constants_as_parts(constants))


def constants_as_parts(constants: Sequence[NDArray]) -> list[bytes | memoryview]:
    """As ``constants_to_bytes``, in parts, of which those of arrays are the arrays' own memory."""
    arrays = [_bits(constant) for constant in constants]
    order = sorted(range(len(arrays)), key=lambda index: arrays[index].nbytes % ALIGNMENT != 0)
    header, place = {}, 0
    for index in order:
        array = arrays[index]
        header[f"{index:06}"] = {
            "dtype": _NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    length = len(text).to_bytes(8, "little")
    return [length, text, *[arrays[index].data for index in order]]


def _bits(constant: NDArray) -> np.ndarray:
    """The array in order, as a type that the format has."""
    if constant.dtype.lanes != 1:
        raise UnsupportedError(f"a constant of type {constant.dtype} cannot be saved")
    array = np.ascontiguousarray(constant._array)  # noqa: SLF001 - the same room
    array = array.reshape(constant.shape)
    return array if array.dtype.name in _NAMES else array.view(f"uint{constant.dtype.bits}")


def read_constants(data: memoryview, dtypes: Sequence[str], *, share: bool) -> list[NDArray]:
    """The arrays of these types that ``constants_to_bytes`` wrote.

    With ``share``, arrays that lie on cache lines stay in ``data``, which must be writable; others
    are copied to memory of their own. ValueError where the bytes are something else.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= length <= min(len(data), _LONGEST_HEADER):
        raise ValueError("its constants have no header")
    header: dict[str, Any] = json.loads(bytes(data[8 : 8 + length]))
    header.pop("__metadata__", None)
    if sorted(header) != [f"{index:06}" for index in range(len(dtypes))]:
        raise ValueError(f"expected {len(dtypes)} constants, found {len(header)}")
    body = data[8 + length :]
    constants: dict[str, NDArray] = {}
    place = 0
    for name, item in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"]):
        begin, end = item["data_offsets"]
        dtype, shape = DataType(dtypes[int(name)]), tuple(item["shape"])
        if begin != place or not _fits(shape, dtype, end - begin):
            raise ValueError(f"constant {name} is not of its shape")
        if end > len(body):
            raise ValueError("its constants are cut off")
        constants[name] = _constant(body[begin:end], shape, dtype, share)
        place = end
    if place < len(body):
        raise ValueError("there is more than its constants")
    return [constants[name] for name in sorted(constants)]


def _fits(shape: tuple[int, ...], dtype: DataType, size: int) -> bool:
    """Whether an array of this shape has so many bytes."""
    if not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        return False
    expected = dtype.itemsize
    for extent in shape:
        expected *= extent
    return expected == size


def _constant(data: memoryview, shape: tuple[int, ...], dtype: DataType, share: bool) -> NDArray:
    """The array of these bytes: where they are, or a copy."""
    content = np.frombuffer(data, np.uint8)
    if share and len(data) and data_address(content) % ALIGNMENT == 0:

        def in_place(
            full: tuple[int, ...], storage: np.dtype, nbytes: int
        ) -> tuple[np.ndarray, int]:
            array: np.ndarray = np.ndarray(full, storage, data)
            return array, data_address(array)

        return fresh(shape, dtype, in_place)
    constant = fresh(shape, dtype, returned_empty)
    constant._array.reshape(-1).view(np.uint8)[:] = content  # noqa: SLF001 - the same room
    return constant
