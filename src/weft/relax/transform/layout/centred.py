"""Bytes less their zero points, in whichever wider integers a program says them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax.expr import Call, Constant, Expr, ShapeExpr, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.graph.fold_by_numpy import fold_by_numpy, is_exact

BYTES: Final = {"int8": (-128, 127), "uint8": (0, 255)}
"""Types of one byte, and their limits."""
_WIDE: Final = ("int16", "int32", "int64")
_ASTYPE, _SUBTRACT = Op.get("relax.astype"), Op.get("relax.subtract")
_MOVING: Final = (Op.get("relax.reshape"), Op.get("relax.expand_dims"))

Lookup = Callable[[RelaxExpr], RelaxExpr | None]
"""What a variable is bound to, or None."""


@dataclass(frozen=True)
class Centred:
    """``numbers - zero``, exact: the difference of two bytes, which int16 holds."""

    numbers: Expr
    """int8 or uint8, of the shape of the whole."""
    zero: Expr | None
    """What is a byte in wider integers, and broadcasts to the numbers; None: zero."""
    reach: int
    """The largest that the difference can be, without its sign: 383 for uint8 less an int8."""


def dtype_of(expr: Expr) -> str:
    """The type of a tensor's elements; empty for what is no tensor."""
    info = expr.struct_info
    return str(info.dtype) if isinstance(info, TensorStructInfo) else ""


def sizes_of(expr: Expr) -> list[int | None] | None:
    """The extents of a tensor, None for those that are symbolic; None if its rank is unknown."""
    dims = tensor_dims(expr.struct_info)
    return None if dims is None else [constant_value(dim) for dim in dims]


def centred_of(expr: Expr, lookup: Lookup) -> Centred | None:
    """An integer tensor as bytes less their zero points; None where it is not seen to be that.

    Before: ``astype(x, "int32") - astype(z, "int32")`` of int8 or uint8, in int16 or wider, under
    any number of casts between those; or such casts of bytes alone.
    """
    expr = _uncast(expr, lookup)
    if dtype_of(expr) in BYTES:
        return Centred(expr, None, _reach(expr, (0, 0)))
    value = _value(expr, lookup)
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
    """The constant that an expression of constants is, where numpy computes it exactly."""
    value = _value(expr, lookup)
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


def _value(expr: RelaxExpr, lookup: Lookup) -> RelaxExpr | None:
    return lookup(expr) if isinstance(expr, Var) else expr


def _uncast(expr: Expr, lookup: Lookup) -> Expr:
    """What is cast to wider integers, as far as that keeps the numbers of bytes."""
    while dtype_of(expr) in _WIDE:
        value = _value(expr, lookup)
        if not isinstance(value, Call) or value.op is not _ASTYPE:
            break
        if dtype_of(value.args[0]) not in (*BYTES, *_WIDE):
            break
        expr = value.args[0]
    return expr


def _limits(zero: Expr, lookup: Lookup) -> tuple[int, int] | None:
    """The least and the largest of wider integers that are bytes, perhaps of another shape."""
    zero = _uncast(zero, lookup)
    if dtype_of(zero) in BYTES:
        return BYTES[dtype_of(zero)]
    value = _value(zero, lookup)
    if isinstance(value, Constant) and dtype_of(value) in _WIDE:
        numbers = value.data.numpy()
        low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
        return (low, high) if low >= -128 and high <= 255 else None
    if isinstance(value, Call) and value.op in _MOVING:
        return _limits(value.args[0], lookup)
    return None
