"""Docs of graph expressions: variables, tuples, constants, calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.relax import expr as nodes
from weft.relax.distributed.struct_info import DTensorStructInfo
from weft.relax.struct_info import StructInfo, TupleStructInfo
from weft.runtime.ndarray import NDArray
from weft.script.printer.attributes import attribute_doc, mapping_doc
from weft.script.printer.doc import (
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    Doc,
    ExprDoc,
    IdDoc,
    IndexDoc,
    ListDoc,
    LiteralDoc,
    TupleDoc,
)
from weft.script.printer.docsifier import Docsifier, prints
from weft.script.printer.relax_info import dimension_doc, scalar_doc
from weft.support.errors import TVMError

_SCALARS: Final = frozenset(
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split()
)


@prints("RelaxVar", "DataflowVar")
def _var(node: nodes.Var, d: Docsifier) -> Doc:
    doc = d.reference(node)
    if doc is not None:
        return doc
    frame = d.function_frame("relax")
    lhs = d.define(node, node.name_hint, frame)
    if d.config.verbose_expr and node.struct_info is not None:
        frame.stmts.append(AssignDoc(lhs, None, d.doc(node.struct_info)))
    return lhs


@prints("Tuple")
def _tuple(node: nodes.Tuple, d: Docsifier) -> Doc:
    if not node.fields:
        return CallDoc(d.relax("tuple"))
    return TupleDoc([d.doc(item) for item in node.fields])


@prints("TupleGetItem")
def _get_item(node: nodes.TupleGetItem, d: Docsifier) -> Doc:
    value, index = d.doc(node.tuple_value), LiteralDoc(int(node.index))
    if isinstance(node.tuple_value, nodes.Tuple):
        return CallDoc(d.relax("TupleGetItem"), (value, index))
    return IndexDoc(value, [index])


@prints("ShapeExpr")
def _shape(node: nodes.ShapeExpr, d: Docsifier) -> Doc:
    values = ListDoc([dimension_doc(value, d) for value in node.values])
    return CallDoc(d.relax("shape"), (values,))


@prints("PrimValue")
def _prim_value(node: nodes.PrimValue, d: Docsifier) -> Doc:
    return CallDoc(d.relax("prim_value"), (scalar_doc(node.value, d),))


@prints("RelaxStringImm")
def _string(node: nodes.StringImm, d: Docsifier) -> Doc:
    return CallDoc(d.relax("str"), (LiteralDoc(str(node.value)),))


@prints("DataTypeImm")
def _data_type(node: nodes.DataTypeImm, d: Docsifier) -> Doc:
    return CallDoc(d.relax("dtype"), (LiteralDoc(str(node.value)),))


@prints("ExternFunc")
def _extern(node: nodes.ExternFunc, d: Docsifier) -> Doc:
    return CallDoc(d.relax("ExternFunc"), (LiteralDoc(node.global_symbol),))


@prints("Constant")
def _constant(node: nodes.Constant, d: Docsifier) -> Doc:
    value = _scalar_literal(node.data)
    if value is None:
        return d.add_metadata("relax.expr.Constant", node)
    if isinstance(node.struct_info, DTensorStructInfo):
        info = d.doc(node.struct_info)
        return CallDoc(AttrAccessDoc(d.relax("dist"), "const"), (LiteralDoc(value), info))
    dtype = LiteralDoc(str(node.data.dtype))
    return CallDoc(d.relax("const"), (LiteralDoc(value), dtype))


def _scalar_literal(data: NDArray) -> bool | int | float | None:
    """The Python number of a 0-d constant, if a literal gives exactly that constant; else None."""
    if len(data.shape) != 0 or str(data.dtype) not in _SCALARS:
        return None
    value = data.numpy().item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- calls


@prints("RelaxCall")
def _call(node: nodes.Call, d: Docsifier) -> Doc:
    if isinstance(node.op, Op):
        special = _SPECIAL.get(node.op.name)
        if special is not None:
            doc = special(node, d)
            if doc is not None:
                return doc
    return _generic(node, d)


def _generic(node: nodes.Call, d: Docsifier) -> Doc:
    callee = node.op
    args: list[ExprDoc] = []
    if isinstance(callee, nodes.ExternFunc):
        prefix: ExprDoc = d.relax("call_packed")
        args.append(LiteralDoc(callee.global_symbol))
    elif isinstance(callee, Op):
        prefix = operator_doc(callee, d)
    else:
        prefix = d.doc(callee)
    for arg in node.args:
        args.append(d.doc(arg))
    if not rebuilds(node) or (isinstance(callee, Op) and not _is_in_script(callee)):
        return _explicit(node, args, d)
    keys: list[str] = []
    values: list[ExprDoc] = []
    for key, value in node.attrs.items():
        keys.append(key)
        values.append(relax_attribute(value, d))
    if node.sinfo_args:
        keys.append("sinfo_args")
        values.append(TupleDoc([d.doc(info) for info in node.sinfo_args]))
    return CallDoc(prefix, args, keys, values)


def rebuilds(node: nodes.Call) -> bool:
    """Whether calling the operator's function, as it would be printed, gives this call again."""
    function = node.op.get_attr("function") if isinstance(node.op, Op) else None
    if function is None:
        return isinstance(node.op, nodes.ExternFunc | Op) or not node.attrs
    if node.sinfo_args:
        return False
    try:
        call = function(*node.args, **node.attrs)
    except (TVMError, TypeError, ValueError):
        return False
    if len(call.args) != len(node.args) or len(call.attrs) != len(node.attrs):
        return False
    for mine, its in zip(call.args, node.args, strict=True):
        if mine is not its and not structural_equal(mine, its):
            return False
    return structural_equal(call.attrs, node.attrs)


def _explicit(node: nodes.Call, args: list[ExprDoc], d: Docsifier) -> Doc:
    """``R.Call("relax.add", (x, y), attrs={...}, sinfo_args=(...))``: the node itself."""
    callee: ExprDoc = LiteralDoc(node.op.name) if isinstance(node.op, Op) else d.doc(node.op)
    keys: list[str] = []
    values: list[ExprDoc] = []
    if node.attrs:
        keys.append("attrs")
        values.append(mapping_doc(node.attrs, d))
    if node.sinfo_args:
        keys.append("sinfo_args")
        values.append(TupleDoc([d.doc(info) for info in node.sinfo_args]))
    return CallDoc(d.relax("Call"), (callee, TupleDoc(args)), keys, values)


def _is_in_script(op: Op) -> bool:
    """Whether ``R`` has the operator: ``relax.nn.softmax`` is ``R.nn.softmax``."""
    return op.name.startswith("relax.")


def operator_doc(op: Op, d: Docsifier) -> ExprDoc:
    """``R.nn.softmax``."""
    if not _is_in_script(op):
        return IdDoc(op.name)
    first, *rest = op.name.split(".")[1:]
    doc: ExprDoc = d.relax(first)
    for part in rest:
        doc = AttrAccessDoc(doc, part)
    return doc


def relax_attribute(value: object, d: Docsifier) -> ExprDoc:
    """An attribute of an operator."""
    return attribute_doc(value, d)


def _callee_and_args(node: nodes.Call, d: Docsifier) -> list[ExprDoc]:
    callee = node.args[0]
    if isinstance(callee, nodes.ExternFunc):
        first: ExprDoc = LiteralDoc(callee.global_symbol)
    else:
        first = d.doc(callee)
    return [first, d.doc(node.args[1])]


def _out_sinfo(info: StructInfo, d: Docsifier) -> ExprDoc:
    if isinstance(info, TupleStructInfo) and len(info.fields) > 1:
        return ListDoc([d.doc(field) for field in info.fields])
    return d.expr(info)


def _destination_passing(node: nodes.Call, d: Docsifier) -> Doc | None:
    """call_tir and its family: ``R.call_tir(cls.f, (x,), out_sinfo=..., tir_vars=...)``."""
    if len(node.args) not in (2, 3) or len(node.sinfo_args) != 1:
        return None
    if not isinstance(node.op, Op):
        return None
    args = _callee_and_args(node, d)
    keys = ["out_sinfo"]
    values = [_out_sinfo(node.sinfo_args[0], d)]
    for key, value in node.attrs.items():
        keys.append(key)
        values.append(relax_attribute(value, d))
    if len(node.args) == 3:
        keys.append("tir_vars")
        values.append(d.doc(node.args[2]))
    callee = operator_doc(node.op, d)
    if node.op.name == "relax.call_tir" and _is_distributed(node.sinfo_args[0]):
        callee = AttrAccessDoc(d.relax("dist"), "call_tir")
    return CallDoc(callee, args, keys, values)


def _is_distributed(info: StructInfo) -> bool:
    fields = info.fields if isinstance(info, TupleStructInfo) else [info]
    return bool(fields) and all(isinstance(field, DTensorStructInfo) for field in fields)


def _registered(node: nodes.Call, d: Docsifier) -> Doc | None:
    """``R.call_pure_packed("f", x, sinfo_args=(...,))``; call_builtin_with_ctx likewise."""
    if not node.args or not isinstance(node.args[0], nodes.ExternFunc) or node.attrs:
        return None
    if not isinstance(node.op, Op):
        return None
    args: list[ExprDoc] = [LiteralDoc(node.args[0].global_symbol)]
    for arg in node.args[1:]:
        args.append(d.doc(arg))
    keys = ["sinfo_args"]
    values: list[ExprDoc] = [TupleDoc([d.doc(info) for info in node.sinfo_args])]
    return CallDoc(operator_doc(node.op, d), args, keys, values)


def _with_format(name: str) -> Callable[[nodes.Call, Docsifier], Doc | None]:
    """print and assert_op: the format string is the first resp. second argument."""
    position = 0 if name == "print" else 1

    def make(node: nodes.Call, d: Docsifier) -> Doc | None:
        if len(node.args) <= position:
            return None
        template = node.args[position]
        if not isinstance(template, nodes.StringImm) or node.attrs or node.sinfo_args:
            return None
        rest = [d.doc(a) for i, a in enumerate(node.args) if i != position]
        if position and len(rest) > 2:  # assert_op takes several arguments as one list
            rest = [rest[0], ListDoc(rest[1:])]
        return CallDoc(d.relax(name), rest, ("format",), (d.doc(template),))

    return make


_SPECIAL: Final[dict[str, Callable[[nodes.Call, Docsifier], Doc | None]]] = {
    "relax.call_tir": _destination_passing,
    "relax.call_tir_inplace": _destination_passing,
    "relax.call_tir_with_grad": _destination_passing,
    "relax.call_dps_packed": _destination_passing,
    "relax.dist.call_tir_local_view": _destination_passing,
    "relax.call_builtin_with_ctx": _registered,
    "relax.call_pure_packed": _registered,
    "relax.print": _with_format("print"),
    "relax.assert_op": _with_format("assert_op"),
}
