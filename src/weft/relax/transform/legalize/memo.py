"""Remembers lowerings of LegalizeOps, so that an equal call gets the same PrimFunc.

Calls are equal if they have the same operator, attributes, shapes, dtypes and numbers among the
arguments, and pass the same tensor twice in the same places (``call_key``). What is remembered is
the form of the ``call_tir``: its PrimFunc, which arguments of the operator it takes, and its
result. Lowerings of more than one call are not remembered.
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
    """The call contains something that has no key; it is lowered without being remembered."""


@dataclass(frozen=True)
class Lowering:
    """The form of the ``call_tir`` that replaces a call."""

    gvar: GlobalVar
    positions: tuple[int, ...]
    rest: tuple[RelaxExpr, ...]
    sinfo_args: Array[StructInfo]
    struct_info: StructInfo | None

    def call(self, leaves: list[Expr]) -> Call:
        """The ``call_tir`` for other arguments."""
        tensors = Tuple([leaves[position] for position in self.positions])
        kernel_call = Call(CALL_TIR, [self.gvar, tensors, *self.rest], None, self.sinfo_args)
        kernel_call.struct_info = self.struct_info
        return kernel_call


def lowering_of(call: RelaxExpr, leaves: list[Expr]) -> Lowering | None:
    """The form of a rule's result; None if it is more than a ``call_tir`` of the arguments."""
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
    """(key of all that lowering depends on, tensors among the arguments); None: no key exists."""
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
