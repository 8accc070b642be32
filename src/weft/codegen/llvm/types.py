"""TensorIR data types as LLVM types and constants.

A bool is ``i1`` in registers and ``i8`` in memory; float16 is ``half``. bfloat16 is the ``i16`` of
its bits: LLVM 22 aborts the process on some vectors of its own ``bfloat`` where the processor has
no bfloat16 registers.
Reference: the LLVM language manual, sections "Type System" and "Constants".
"""

from __future__ import annotations

import struct
from typing import Final

from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError

_SCALARS: Final = {
    "bool": "i1", "handle": "ptr", "float16": "half", "bfloat16": "i16", "float32": "float",
    "float64": "double", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip
MAX_LANES: Final = 4096
"""The most lanes of a vector: 4096 take LLVM a second, and some ten thousand abort the process."""


class _Types(dict[str, str]):
    """Memo of register types by data type: a subclass of dict, which generator_digest skips."""

    def __missing__(self, dtype: DataType) -> str:
        if dtype.is_scalable:
            raise UnsupportedError(
                f"expected a vector of a fixed number of lanes, got {dtype}: this target has no "
                "scalable vectors; use a constant number of lanes"
            )
        if dtype.lanes > MAX_LANES:
            raise UnsupportedError(
                f"expected a vector of at most {MAX_LANES} lanes, got {dtype}; split the loop"
            )
        element = _SCALARS.get(dtype.element)
        if element is None:
            raise UnsupportedError(
                f"code generation for {dtype} is not available; expected one of "
                f"{', '.join(_SCALARS)}"
            )
        text = self[dtype] = f"<{dtype.lanes} x {element}>"
        return text


_TYPES: Final = _Types(_SCALARS)


def llvm_type(dtype: DataType) -> str:
    """The register type of a data type: ``float``, ``<16 x float>``, ``ptr``."""
    return _TYPES[dtype]


def memory_type(dtype: DataType) -> str:
    """The type of an element in memory (bool: ``i8``)."""
    if not dtype.is_bool:
        return llvm_type(dtype)
    return "i8" if dtype.lanes == 1 else f"<{dtype.lanes} x i8>"


def element_bytes(dtype: DataType) -> int:
    """How many bytes one element (one lane) takes in memory."""
    return max(1, dtype.bits // 8)


def with_lanes(element: str, lanes: int) -> str:
    """The LLVM type of ``lanes`` elements of an LLVM scalar type."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def splat(element: str, constant: str, lanes: int) -> str:
    """A constant of ``lanes`` equal elements."""
    if lanes == 1:
        return constant
    return "zeroinitializer" if constant == "0" else f"splat ({element} {constant})"


def int_constant(value: int, dtype: DataType) -> str:
    """An integer constant as LLVM writes it: 255 of uint8 → ``-1``, 1 of bool → ``true``."""
    if dtype.is_bool:
        return "true" if value else "false"
    if value >= 1 << (dtype.bits - 1):
        value -= 1 << dtype.bits
    return str(value)


def bfloat_constant(value: float) -> str:
    """The bits of a constant that bfloat16 holds exactly, as an ``i16``: 1.0 → ``16256``."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    return str(bits - (1 << 16) if bits >= 1 << 15 else bits)


def float_constant(value: float, element: str) -> str:
    """A constant of the LLVM type ``half``, ``float`` or ``double``, in exact hexadecimal form.

    LLVM writes a float with the bits of the double of that value: 1.0 → ``0x3FF0000000000000``.
    """
    if element == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if element == "float":
        value = _to_float32(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _to_float32(value: float) -> float:
    """A value rounded to float32; infinite where it is too large."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded
