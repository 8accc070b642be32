"""DataType: the name of a scalar or vector type, such as ``float32``, ``int8x4`` or ``bool``.

A ``DataType`` *is* a ``str``, so ``x.dtype == "float32"`` holds and it prints as users write it;
its parts are computed once per name. Lanes of a scalable vector print as ``float32xvscalex4``.
"""

from __future__ import annotations

import difflib
import re
from typing import Any, Final

import numpy as np

from weft.support.errors import IRTypeError

_PATTERN: Final = re.compile(
    r"(bool|handle|void|int|uint|float|bfloat|float8_e4m3fn|float8_e5m2)(\d*)"
    r"(?:x(vscalex)?(\d+))?$"
)
_DEFAULT_BITS: Final = {
    "bool": 1, "handle": 64, "void": 0, "int": 32, "uint": 32, "float": 32, "bfloat": 16,
    "float8_e4m3fn": 8, "float8_e5m2": 8,
}  # fmt: skip
_WIDTHS: Final = {
    "bool": (1,), "handle": (64,), "void": (0,), "float": (16, 32, 64), "bfloat": (16,),
    "int": (1, 4, 8, 16, 32, 64), "uint": (1, 4, 8, 16, 32, 64),
    "float8_e4m3fn": (8,), "float8_e5m2": (8,),
}  # fmt: skip


class DataTypeCode:
    """The type codes of DLPack, as TVM numbers them."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3FN = 10
    E5M2 = 12


_CODES: Final = {
    "bool": DataTypeCode.UINT, "int": DataTypeCode.INT, "uint": DataTypeCode.UINT,
    "float": DataTypeCode.FLOAT, "handle": DataTypeCode.HANDLE, "void": DataTypeCode.HANDLE,
    "bfloat": DataTypeCode.BFLOAT, "float8_e4m3fn": DataTypeCode.E4M3FN,
    "float8_e5m2": DataTypeCode.E5M2,
}  # fmt: skip
_CACHE: dict[str, DataType] = {}


class DataType(str):
    """An interned type name with its parts.

    ``kind`` is the base name (``int``, ``float``, ``bool`` ...), ``bits`` the width of one lane,
    ``lanes`` the number of lanes (0 or more; for a scalable vector the multiple of ``vscale``).

    >>> DataType("float32x4").bits, DataType("float32x4").lanes
    (32, 4)
    """

    kind: str
    bits: int
    lanes: int
    type_code: int
    is_scalable: bool
    is_float: bool
    is_int: bool
    is_uint: bool
    is_bool: bool
    is_handle: bool
    is_integral: bool

    def __new__(cls, name: object = "void") -> DataType:
        """Return the one object of that name; raise IRTypeError for an unknown name."""
        if isinstance(name, DataType):
            return name
        text = name if isinstance(name, str) else _name_of(name)
        known = _CACHE.get(text)
        return known if known is not None else _parse(cls, text)

    def with_lanes(self, lanes: int, scalable: bool = False) -> DataType:
        """The same scalar with ``lanes`` lanes (times vscale if ``scalable``)."""
        return make_dtype(self.kind, self.bits, lanes, scalable)

    @property
    def element(self) -> DataType:
        """The scalar type of one lane."""
        return self if self.lanes == 1 and not self.is_scalable else self.with_lanes(1)

    @property
    def itemsize(self) -> int:
        """Bytes that one element (all lanes) takes in memory."""
        return (self.bits * self.lanes + 7) // 8

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type of one lane (ml_dtypes for bfloat16 and the 8-bit floats)."""
        return to_numpy_dtype(self)


def make_dtype(kind: str, bits: int, lanes: int = 1, scalable: bool = False) -> DataType:
    """The type of that kind (``int``, ``uint``, ``float``, ``bool`` ...), width and lanes."""
    base = kind if kind in ("bool", "handle", "void") or "_" in kind else f"{kind}{bits}"
    if scalable:
        return DataType(f"{base}xvscalex{lanes}")
    return DataType(base if lanes == 1 else f"{base}x{lanes}")


def _parse(cls: type[DataType], text: str) -> DataType:
    match = _PATTERN.match(text if text else "void")
    if match is None:
        raise IRTypeError(
            f"expected a data type such as 'float32', 'int64' or 'bool', got {text!r}{_meant(text)}"
        )
    kind, bits_text, scalable, lanes_text = match.groups()
    bits = int(bits_text) if bits_text else _DEFAULT_BITS[kind]
    if bits not in _WIDTHS[kind]:
        allowed = ", ".join(f"{kind}{width}" for width in _WIDTHS[kind])
        raise IRTypeError(f"expected one of {allowed}, got {text!r}{_meant(text)}")
    lanes = int(lanes_text) if lanes_text else 1
    named = kind in ("bool", "handle", "void") or "_" in kind
    canonical = kind if named else f"{kind}{bits}"
    if kind == "uint" and bits == 1:
        kind = canonical = "bool"
    if scalable or lanes != 1:
        canonical += f"x{scalable or ''}{lanes}"
    dtype = _CACHE.get(canonical)
    if dtype is None:
        dtype = str.__new__(cls, canonical)
        _fill(dtype, kind, bits, lanes, bool(scalable))
        _CACHE[canonical] = dtype
    _CACHE[text] = dtype
    return dtype


def _meant(text: str) -> str:
    """The nearest of the usual types, for a message."""
    usual = "bool int8 int32 int64 uint8 float16 float32 float64 bfloat16".split()
    nearest = difflib.get_close_matches(text, usual, n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def _fill(dtype: DataType, kind: str, bits: int, lanes: int, scalable: bool) -> None:
    dtype.kind, dtype.bits, dtype.lanes, dtype.is_scalable = kind, bits, lanes, scalable
    dtype.type_code = _CODES[kind]
    dtype.is_float = kind in ("float", "bfloat") or "_" in kind
    dtype.is_int, dtype.is_uint, dtype.is_bool = kind == "int", kind == "uint", kind == "bool"
    dtype.is_handle = kind in ("handle", "void")
    dtype.is_integral = kind in ("int", "uint", "bool")


def _name_of(value: object) -> str:
    if isinstance(value, type) and value in (bool, int, float):
        return {bool: "bool", int: "int64", float: "float64"}[value]
    try:
        return str(np.dtype(value))  # type: ignore[call-overload] # any object: numpy raises
    except (TypeError, ValueError) as error:  # ValueError: from an object with a wrong ``dtype``
        raise IRTypeError(
            f"expected a data type such as 'float32' or numpy.float32, got {value!r}"
        ) from error


def to_numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy type of one lane of ``dtype``; ``handle`` is an unsigned 64-bit integer."""
    data_type = DataType(dtype)
    if data_type.kind == "bfloat" or "_" in data_type.kind:
        import ml_dtypes  # noqa: PLC0415 - an optional cost: only programs with these types load it

        scalar = getattr(ml_dtypes, str(data_type.element))
        numpy_dtype: np.dtype[Any] = np.dtype(scalar)
        return numpy_dtype
    if data_type.is_bool:
        return np.dtype("bool")
    if data_type.is_handle:
        return np.dtype("uint64")
    if data_type.bits < 8:
        return np.dtype(f"{data_type.kind}8")
    return np.dtype(f"{data_type.kind}{data_type.bits}")
