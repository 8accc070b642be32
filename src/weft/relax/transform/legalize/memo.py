"""Lowerings that LegalizeOps has made once: the next equal call gets the same PrimFunc.

Calls are equal if operator, attributes, shapes, dtypes, numbers among the arguments, and which
arguments are one and the same agree (``call_key``). What is kept is not the call_tir but its form:
the PrimFunc, where its arguments stand among those of the operator, and its result. Lowerings that
bind more than that one call are made anew each time.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from weft.ir.expr import FloatImm, GlobalVar, IntImm, PrimExpr, RelaxExpr, StringImm
from weft.ir.node import Array, expect
from weft.relax.expr import (
    Call,
    Constant,
    DataTypeImm,
    Expr,
    PrimValue,
    ShapeExpr,
    Tuple,
    Var,
)
from weft.relax.expr import StringImm as RelaxString
from weft.relax.op.base import CALL_TIR
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.dtype import DataType
from weft.tir.expr import BinaryExpr
from weft.tir.expr import Var as TirVar


class _NoKeyError(Exception):
    """The call holds something that has no key; it is lowered without the memory."""


@dataclass(frozen=True)
class Lowering:
    """The form of a call_tir that stands for a call."""

    gvar: GlobalVar
    positions: tuple[int, ...]
    rest: tuple[RelaxExpr, ...]
    sinfo_args: Array[StructInfo]
    struct_info: StructInfo | None

    def call(self, leaves: list[Expr]) -> Call:
        """The call_tir on other arguments."""
        tensors = Tuple([leaves[position] for position in self.positions])
        kernel_call = Call(CALL_TIR, [self.gvar, tensors, *self.rest], None, self.sinfo_args)
        kernel_call.struct_info = self.struct_info
        return kernel_call


def lowering_of(call: RelaxExpr, leaves: list[Expr]) -> Lowering | None:
    """The form of what a rule has made; None if it is more than a call_tir of the arguments."""
    if not isinstance(call, Call) or call.op is not CALL_TIR:
        return None
    tensors = call.args[1]
    known = {id(leaf): position for position, leaf in reversed([*enumerate(leaves)])}
    if not isinstance(tensors, Tuple) or any(id(item) not in known for item in tensors.fields):
        return None
    positions = tuple([known[id(item)] for item in tensors.fields])
    callee = expect(call.args[0], GlobalVar)
    return Lowering(callee, positions, call.args[2:], call.sinfo_args, call.struct_info)


def call_key(call: Call) -> tuple[Hashable, list[Expr]] | None:
    """What lowering depends on, and the tensors among the arguments; None if there is no key."""
    if call.sinfo_args:
        return None
    leaves: list[Expr] = []
    try:
        args = tuple([_argument_key(arg, leaves) for arg in call.args])
        attrs = tuple([(name, _value_key(value)) for name, value in call.attrs.items()])
    except _NoKeyError:
        return None
    first: dict[int, int] = {}
    same = tuple([first.setdefault(id(leaf), position) for position, leaf in enumerate(leaves)])
    return (call.op.name, args, attrs, same), leaves


def _argument_key(arg: RelaxExpr, leaves: list[Expr]) -> Hashable:
    if isinstance(arg, Tuple):
        return ("tuple", *[_argument_key(item, leaves) for item in arg.fields])
    if isinstance(arg, ShapeExpr):
        return ("shape", *map(_value_key, arg.values))
    if isinstance(arg, PrimValue | RelaxString | DataTypeImm):
        return _value_key(arg.value)
    if isinstance(arg, Constant):
        leaves.append(arg)
        scalar = arg.data.numpy().tobytes() if len(arg.data.shape) == 0 else b""
        return ("constant", scalar, _info_key(arg.struct_info))
    if isinstance(arg, Var):
        leaves.append(arg)
        return _info_key(arg.struct_info)
    raise _NoKeyError


def _info_key(info: StructInfo | None) -> Hashable:
    if isinstance(info, TensorStructInfo):
        if not isinstance(info.shape, ShapeExpr):
            raise _NoKeyError
        dims = tuple(map(_value_key, info.shape.values))
        return ("tensor", str(info.dtype), dims, id(info.vdevice))
    if isinstance(info, TupleStructInfo):
        return ("fields", *map(_info_key, info.fields))
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        return ("dims", *map(_value_key, info.values))
    if isinstance(info, PrimStructInfo) and info.value is not None:
        return ("value", _value_key(info.value))
    raise _NoKeyError


def _value_key(value: object) -> Hashable:
    """A key of a number, a text, a list of them, or an expression over symbolic variables."""
    if isinstance(value, IntImm | FloatImm):
        return (str(value.dtype), repr(value.value))
    if isinstance(value, TirVar):
        return ("symbol", value)
    if isinstance(value, BinaryExpr):
        return (type(value).__name__, _value_key(value.a), _value_key(value.b))
    if isinstance(value, PrimExpr):
        raise _NoKeyError
    if isinstance(value, StringImm | str | DataType):
        return str(getattr(value, "value", value))
    if value is None or isinstance(value, bool | int | float):
        return (type(value).__name__, repr(value))
    if isinstance(value, tuple | list):
        return ("list", *map(_value_key, value))
    raise _NoKeyError
