"""Recognises bytes minus their zero points, which programs compute in wider integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax.expr import Call, Constant, Expr, ShapeExpr, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.struct_info import dtype_of
from weft.relax.transform.graph.fold_by_numpy import fold_by_numpy, is_exact

BYTES: Final = {"int8": (-128, 127), "uint8": (0, 255)}
"""Integer types of one byte -> (least, largest) value."""
_WIDE: Final = ("int16", "int32", "int64")
_ASTYPE, _SUBTRACT = Op.get("relax.astype"), Op.get("relax.subtract")
_MOVING: Final = tuple(
    [Op.get(f"relax.{name}") for name in ("reshape", "expand_dims", "repeat", "strided_slice")]
)

Lookup = Callable[[RelaxExpr], RelaxExpr | None]
"""Variable -> the value it is bound to, or None."""


@dataclass(frozen=True)
class Centred:
    """``numbers - zero`` without overflow: int16 holds every difference of two bytes."""

    numbers: Expr
    """An int8 or uint8 tensor of the result's shape."""
    zero: Expr | None
    """Wider integers that have values of bytes and broadcast to ``numbers``; None means zero."""
    reach: int
    """The largest absolute value that the difference can have: 383 for uint8 minus int8."""


def sizes_of(expr: Expr) -> list[int | None] | None:
    """The extents of a tensor, with None for symbolic ones; None if the rank is unknown."""
    dims = tensor_dims(expr.struct_info)
    return None if dims is None else [constant_value(dim) for dim in dims]


def centred_of(expr: Expr, lookup: Lookup) -> Centred | None:
    """An integer tensor as bytes minus their zero point; None if it is not recognised as such.

    Recognised are ``astype(x, "int32") - astype(z, "int32")`` for bytes ``x`` and ``z``, in int16
    or wider and under any number of casts between these types, and such casts of bytes alone.
    """
    expr = _uncast(expr, lookup)
    if dtype_of(expr) in BYTES:
        return Centred(expr, None, _reach(expr, (0, 0)))
    value = value_of(expr, lookup)
    if not isinstance(value, Call) or value.op is not _SUBTRACT or dtype_of(value) not in _WIDE:
        return None
    numbers, zero = _uncast(value.args[0], lookup), value.args[1]
    limits = _limits(zero, lookup)
    if dtype_of(numbers) not in BYTES or limits is None:
        return None
    whole, own = sizes_of(value), sizes_of(numbers)
    if own is None or whole != own:
        return None
    return Centred(numbers, zero, _reach(numbers, limits))


def _reach(numbers: Expr, zeros: tuple[int, int]) -> int:
    low, high = BYTES[dtype_of(numbers)]
    return max(high - zeros[0], zeros[1] - low)


def known(expr: Expr, lookup: Lookup) -> Constant | None:
    """The value of an expression of constants that numpy computes exactly; None for others."""
    value = value_of(expr, lookup)
    if isinstance(value, Constant):
        return value
    if not isinstance(value, Call) or not is_exact(value):
        return None
    args: list[Expr] = []
    for arg in value.args:
        constant = arg if isinstance(arg, ShapeExpr) else known(arg, lookup)
        if constant is None:
            return None
        args.append(constant)
    resolved = Call(value.op, args, value.attrs, value.sinfo_args)
    resolved.struct_info = value.struct_info
    return fold_by_numpy(resolved)


def value_of(expr: RelaxExpr, lookup: Lookup) -> RelaxExpr | None:
    """What an expression is bound to, past second names of it (``y = x``); None: it is given."""
    value: RelaxExpr | None = expr
    while isinstance(value, Var):
        value = lookup(value)
    return value


def _uncast(expr: Expr, lookup: Lookup) -> Expr:
    """The expression below casts to wider integers, which keep the values of bytes."""
    while dtype_of(expr) in _WIDE:
        value = value_of(expr, lookup)
        if not isinstance(value, Call) or value.op is not _ASTYPE:
            break
        if dtype_of(value.args[0]) not in (*BYTES, *_WIDE):
            break
        expr = value.args[0]
    return expr


def _limits(zero: Expr, lookup: Lookup) -> tuple[int, int] | None:
    """The (least, largest) value of wider integers that are bytes or are reshaped from such.

    None if they are not known to be.
    """
    zero = _uncast(zero, lookup)
    if dtype_of(zero) in BYTES:
        return BYTES[dtype_of(zero)]
    value = value_of(zero, lookup)
    if isinstance(value, Constant) and dtype_of(value) in _WIDE:
        numbers = value.data.numpy()
        low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
        return (low, high) if low >= -128 and high <= 255 else None
    if isinstance(value, Call) and value.op in _MOVING:
        return _limits(value.args[0], lookup)
    return None
