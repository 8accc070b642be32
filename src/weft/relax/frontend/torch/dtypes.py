"""Data types of torch and of weft, and how torch promotes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from weft.ir.expr import PrimExpr
from weft.relax.expr import Expr, PrimValue
from weft.relax.frontend.torch.float8_tensors import AS_BITS, is_float8
from weft.relax.frontend.torch.values import Operand
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRValueError, UnsupportedError

_NAMES: Final = {
    torch.bool: "bool", torch.uint8: "uint8", torch.int8: "int8", torch.int16: "int16",
    torch.int32: "int32", torch.int64: "int64", torch.uint16: "uint16", torch.uint32: "uint32",
    torch.uint64: "uint64", torch.float16: "float16", torch.bfloat16: "bfloat16",
    torch.float32: "float32", torch.float64: "float64",
}  # fmt: skip
_TORCH: Final = {name: dtype for dtype, name in _NAMES.items()}


def dtype_name(dtype: torch.dtype | str) -> str:
    """The name of a torch data type: ``torch.float32`` is ``"float32"``; a name stays itself."""
    if isinstance(dtype, str):
        return dtype.removeprefix("torch.")
    name = _NAMES.get(dtype)
    if name is None:
        way = (
            AS_BITS.format(dtype=dtype)
            if is_float8(dtype)
            else "complex numbers go as pairs of real numbers (torch.view_as_real)"
        )
        raise UnsupportedError(
            f"from_exported_program: there are no tensors of {dtype} in weft; {way}"
        )
    return name


def torch_dtype(name: str) -> torch.dtype:
    """The torch data type of a name; IRValueError for a name that torch does not know."""
    dtype = _TORCH.get(name)
    if dtype is None:
        raise IRValueError(f"expected a data type that torch has ({', '.join(_TORCH)}), got {name}")
    return dtype


def held_number(value: float, dtype: str) -> float:
    """A number in the form in which a tensor holds it: unsigned types wrap negative ones around.

    A number that torch refuses to convert to the type is given back as it is.

    >>> held_number(-1, "uint8"), held_number(300, "uint8"), held_number(-200, "int8")
    (255, 300, -200)
    """
    kind = DataType(dtype)
    if isinstance(value, int) and kind.is_uint and -(1 << kind.bits) < value < 0:
        return value + (1 << kind.bits)
    return value


def promoted_number(value: float, dtype: str) -> float:
    """A number beside a tensor in arithmetic, where torch wraps every integer around.

    >>> promoted_number(-1, "uint8"), promoted_number(300, "int8"), promoted_number(-1, "float32")
    (255, 44, -1)
    """
    kind = DataType(dtype)
    if not isinstance(value, int) or kind.is_bool or not kind.is_integral:
        return value
    size = 1 << kind.bits
    wrapped = value % size
    return wrapped - size if kind.is_int and 2 * wrapped >= size else wrapped


def result_dtype(operands: Sequence[Operand]) -> str:
    """The data type that torch computes with, of tensors (expressions) and Python numbers.

    Tensors with dimensions decide before tensors without, and those before numbers
    (``torch.result_type``).
    """
    samples = [_sample(operand) for operand in operands]
    first, *others = samples
    if not others:
        others = [first]
    dtype = None
    dimensioned = [s for s in samples if isinstance(s, torch.Tensor) and s.dim()]
    scalars = [s for s in samples if isinstance(s, torch.Tensor) and not s.dim()]
    numbers = [s for s in samples if not isinstance(s, torch.Tensor)]
    for group in (dimensioned, scalars, numbers):
        for sample in group:
            dtype = _joined(dtype, sample, bool(dimensioned))
    assert dtype is not None
    return _NAMES[dtype]


def _joined(
    dtype: torch.dtype | None, sample: torch.Tensor | float, dimensioned: bool
) -> torch.dtype:
    if dtype is None:
        return (
            sample.dtype
            if isinstance(sample, torch.Tensor)
            else torch.result_type(torch.empty((), dtype=torch.bool, device="meta"), sample)
        )
    shape = (1,) if dimensioned else ()
    return torch.result_type(torch.empty(shape, dtype=dtype, device="meta"), sample)


def _sample(operand: Operand) -> torch.Tensor | float:
    """A tensor on no device, or a number, that promotes as the operand does."""
    if isinstance(operand, Expr) and not isinstance(operand, PrimValue):
        info = operand.struct_info
        assert isinstance(info, TensorStructInfo)
        shape = () if info.ndim == 0 else (1,)
        return torch.empty(shape, dtype=_TORCH[str(info.dtype)], device="meta")
    if isinstance(operand, PrimValue):
        operand = operand.value
    if isinstance(operand, PrimExpr):
        return 1.0 if str(operand.dtype).startswith("float") else 1
    return operand
