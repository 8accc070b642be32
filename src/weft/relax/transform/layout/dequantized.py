"""Recognises bytes that a program turns into floats: ``(numbers - zero) * scale``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from weft.ir.op import Op
from weft.relax.expr import Call, Expr, const
from weft.relax.struct_info import dtype_of
from weft.relax.transform.layout.centred import (
    Centred,
    Lookup,
    centred_of,
    sizes_of,
    value_of,
)

_ASTYPE, _MULTIPLY, _PERMUTE = (
    Op.get(f"relax.{name}") for name in ("astype", "multiply", "permute_dims")
)
_FLOAT: Final = "float32"


@dataclass(frozen=True)
class Dequantized:
    """``(numbers - zero) * scale``, with its axes permuted by ``axes`` if that is given."""

    integers: Centred
    scale: Expr
    axes: tuple[int, ...] | None = None


def dequantized_of(expr: Expr, lookup: Lookup) -> Dequantized | None:
    """An operand as bytes with a zero point and a scale; None if it has another form.

    Bytes that are only cast to float32 have the scale 1.
    """
    value = value_of(expr, lookup)
    if not isinstance(value, Call):
        return None
    if value.op is _ASTYPE and dtype_of(value) == _FLOAT:
        centred = centred_of(value.args[0], lookup)
        return None if centred is None else Dequantized(centred, const(1.0, _FLOAT))
    if value.op is _PERMUTE:
        inner, axes = dequantized_of(value.args[0], lookup), value.attrs["axes"]
        if inner is None or inner.axes is not None:
            return None
        order = reversed(range(value.struct_info.ndim)) if axes is None else map(int, axes)
        return replace(inner, axes=tuple(order))
    if value.op is not _MULTIPLY:
        return None
    for numbers, scale in (value.args, reversed(value.args)):
        cast = value_of(numbers, lookup)
        if isinstance(cast, Call) and cast.op is _ASTYPE and dtype_of(cast) == _FLOAT:
            centred = centred_of(cast.args[0], lookup)
            if centred is not None and sizes_of(centred.numbers) == sizes_of(value):
                return Dequantized(centred, scale)
    return None
