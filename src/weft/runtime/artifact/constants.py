"""Weights in the format of safetensors: eight bytes of length, a JSON header, then the data.

Written by the library of that name; read here, since that library copies what it reads: each array
is filled from the file itself, so that weights are in memory once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

import numpy as np

from weft.runtime.memory.allocation import returned_empty
from weft.runtime.ndarray import NDArray, fresh
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError

_PIECE: Final = 1 << 20
"""Bytes that are read at once."""
_LONGEST_HEADER: Final = 100_000_000
"""What the format allows."""


def constants_to_bytes(constants: Sequence[NDArray]) -> bytes:
    """Arrays in the format of safetensors, named by their numbers.

    Types that numpy has not (bfloat16, 8-bit floats) stand there as integers of the same bits.
    """
    from safetensors.numpy import save  # noqa: PLC0415 - loaded with the first file

    tensors = {}
    for index, constant in enumerate(constants):
        if constant.dtype.lanes != 1:
            raise UnsupportedError(f"a constant of type {constant.dtype} cannot be saved")
        array = np.ascontiguousarray(constant._array)  # noqa: SLF001 - the same room
        array = array.reshape(constant.shape)
        bits = array if array.dtype.kind in "biuf" else array.view(f"uint{constant.dtype.bits}")
        tensors[f"{index:06}"] = bits
    result: bytes = save(tensors)
    return result


def read_constants(file: BinaryIO, size: int, dtypes: Sequence[str]) -> list[NDArray]:
    """The arrays of these types that ``constants_to_bytes`` wrote, each in memory of its own.

    ``size`` is the number of bytes that there are. ValueError where they are something else.
    """
    length = int.from_bytes(_read(file, 8), "little")
    if not 2 <= length <= min(size, _LONGEST_HEADER):
        raise ValueError("its constants have no header")
    header: dict[str, Any] = json.loads(_read(file, length))
    header.pop("__metadata__", None)
    if sorted(header) != [f"{index:06}" for index in range(len(dtypes))]:
        raise ValueError(f"expected {len(dtypes)} constants, found {len(header)}")
    constants: dict[str, NDArray] = {}
    place = 0
    for name, item in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"]):
        begin, end = item["data_offsets"]
        dtype, shape = DataType(dtypes[int(name)]), tuple(item["shape"])
        if begin != place or not _fits(shape, dtype, end - begin) or end > size:
            raise ValueError(f"constant {name} is not of its shape")
        constants[name] = fresh(shape, dtype, returned_empty)
        _fill(file, constants[name])
        place = end
    if file.read(1):
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


def _fill(file: BinaryIO, constant: NDArray) -> None:
    """Read an array's bytes."""
    memory = constant._array.reshape(-1).view(np.uint8)  # noqa: SLF001 - the same room
    for begin in range(0, len(memory), _PIECE):
        piece = memory[begin : begin + _PIECE]
        piece[:] = np.frombuffer(_read(file, len(piece)), np.uint8)


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError("its constants are cut off")
    return data
