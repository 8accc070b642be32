"""Operators that no kernel can be made for before the shapes and dtypes are there.

A call on a tensor of unknown rank, dtype or data-dependent shape stays an operator in the bytecode:
``call operator relax.exp('{...}', %0)``. Its first operand is JSON that says what the attributes
and the kinds of the arguments are; ``weft.driver.operators`` compiles and runs it.
"""

from __future__ import annotations

from typing import TypeAlias

from weft.ir.expr import RelaxExpr
from weft.ir.json_text import save_json
from weft.ir.node import Map
from weft.ir.op import Op
from weft.relax.expr import Call, Constant, DataTypeImm, StringImm
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.legalize import rule_of
from weft.relax.vm.bytecode_calls import Emitter

Kind: TypeAlias = "str | list[Kind]"
"""How the value of an argument is to be taken; of a tuple, how each of its fields is."""


def waits_for_shapes(call: Call) -> bool:
    """Whether an operator has a lowering that only lacks shapes or dtypes, or values of shapes."""
    op = call.op
    if not isinstance(op, Op) or rule_of(op) is None:
        return False
    infos = [call.struct_info, *[arg.struct_info for arg in call.args]]
    return not all(_is_complete(info) for info in infos)


def _is_complete(info: StructInfo | None) -> bool:
    if isinstance(info, TensorStructInfo):
        return info.dtype != "void" and getattr(info.shape, "values", None) is not None
    if isinstance(info, TupleStructInfo):
        return all(_is_complete(field) for field in info.fields)
    return not isinstance(info, ShapeStructInfo) or info.values is not None


def call_operator(builder: Emitter, call: Call, register: int) -> None:
    """Emit the call, and the check of what it returns against the call's struct info."""
    kinds = [_kind(arg) for arg in call.args]
    text = save_json(Map({"attrs": call.attrs, "kinds": kinds}))
    operands = [builder.value(arg) for arg in call.args]
    callee = ("operator", call.op.name)
    builder.code.append(("call", register, callee, (("value", text), *operands)))
    what = f"{builder.name}: the result of {call.op.name}"
    builder.code.append(("match", register, builder.symbols.pattern(call.struct_info), what))


def _kind(arg: RelaxExpr) -> Kind:
    """How the value of an argument is to be taken: a name, or those of a tuple's fields."""
    if isinstance(arg, StringImm):
        return "string"
    if isinstance(arg, Constant) and not arg.data.shape:
        return "scalar"  # some operators need its value when they are compiled
    return "dtype" if isinstance(arg, DataTypeImm) else _kind_of(arg.struct_info)


def _kind_of(info: StructInfo | None) -> Kind:
    if isinstance(info, TupleStructInfo):
        return [_kind_of(field) for field in info.fields]
    if isinstance(info, PrimStructInfo):
        return str(info.dtype)
    return "shape" if isinstance(info, ShapeStructInfo) else "tensor"
