"""Docs of struct infos, and of the annotations of variables."""

from __future__ import annotations

from weft.ir.expr import IntImm, PrimExpr, RelaxExpr
from weft.ir.functor import collect
from weft.ir.global_info import VDevice
from weft.relax import struct_info as infos
from weft.script.printer.doc import CallDoc, Doc, ExprDoc, ListDoc, LiteralDoc, TupleDoc
from weft.script.printer.doc_printer import to_python_script
from weft.script.printer.docsifier import Docsifier, prints
from weft.tir.expr import Var


def dimension_doc(value: PrimExpr, d: Docsifier) -> ExprDoc:
    """A dimension: an int, an expression, or a text if the signature defines a symbol in it."""
    if type(value) is IntImm and value.dtype == "int64":
        return LiteralDoc(value.value)
    doc = d.expr(value)
    for frame in d.frames:
        if frame.func_vars is not None:
            for var in collect(value, Var):
                if id(var) in frame.func_vars:
                    return LiteralDoc(to_python_script(doc))
            break
    return doc


@prints("ObjectStructInfo")
def _object(_node: infos.ObjectStructInfo, d: Docsifier) -> Doc:
    return d.relax("Object")


@prints("PrimStructInfo")
def _prim(node: infos.PrimStructInfo, d: Docsifier) -> Doc:
    if node.value is None:
        return CallDoc(d.relax("Prim"), (LiteralDoc(str(node.dtype)),))
    return CallDoc(d.relax("Prim"), (), ("value",), (scalar_doc(node.value, d),))


def scalar_doc(value: PrimExpr, d: Docsifier) -> ExprDoc:
    """A scalar value in a graph; an int64 constant is printed as a plain int."""
    return dimension_doc(value, d)


@prints("ShapeStructInfo")
def _shape(node: infos.ShapeStructInfo, d: Docsifier) -> Doc:
    if node.values is not None:
        values = ListDoc([dimension_doc(value, d) for value in node.values])
        return CallDoc(d.relax("Shape"), (values,))
    return CallDoc(d.relax("Shape"), (), ("ndim",), (LiteralDoc(int(node.ndim)),))


def shape_doc(shape: RelaxExpr, d: Docsifier) -> ExprDoc:
    """The shape of a tensor: a tuple of dimensions, or a variable."""
    known = getattr(shape, "values", None)
    if known is not None:
        return TupleDoc([dimension_doc(value, d) for value in known])
    doc: ExprDoc = d.doc(shape)
    return doc


@prints("TensorStructInfo")
def _tensor(node: infos.TensorStructInfo, d: Docsifier) -> Doc:
    args: list[ExprDoc] = []
    keys: list[str] = []
    values: list[ExprDoc] = []
    if node.shape is not None:
        args.append(shape_doc(node.shape, d))
    if node.dtype != "void":
        keys.append("dtype")
        values.append(LiteralDoc(str(node.dtype)))
    if node.shape is None and node.ndim != -1:
        keys.append("ndim")
        values.append(LiteralDoc(int(node.ndim)))
    if node.vdevice is not None:
        keys.append("vdevice")
        values.append(LiteralDoc(_vdevice_name(node.vdevice, d)))
    callee = d.relax("Tensor")
    return CallDoc(callee, args, keys, values) if args or keys else callee


def _vdevice_name(vdevice: VDevice, d: Docsifier) -> str:
    """``llvm:0:global``: the kind, the index among the module's devices of that kind, the scope."""
    kind = _kind_of(vdevice)
    index = 0
    for other in (d.global_infos or {}).get("vdevice", ()):
        if other is vdevice:
            return f"{kind}:{index}:{vdevice.memory_scope}"
        if isinstance(other, VDevice) and _kind_of(other) == kind:
            index += 1
    return f"{kind}:{int(vdevice.vdevice_id)}:{vdevice.memory_scope}"


def _kind_of(vdevice: VDevice) -> str:
    kind = getattr(vdevice.target, "kind", "")
    return str(getattr(kind, "name", kind))


@prints("TupleStructInfo")
def _tuple(node: infos.TupleStructInfo, d: Docsifier) -> Doc:
    if not node.fields:
        return d.relax("Tuple")
    return CallDoc(d.relax("Tuple"), [d.doc(field) for field in node.fields])


@prints("FuncStructInfo")
def _func(node: infos.FuncStructInfo, d: Docsifier) -> Doc:
    callee = d.relax("Callable")
    if node.params is None:
        keys: list[str] = []
        values: list[ExprDoc] = []
        if not isinstance(node.ret, infos.ObjectStructInfo):
            keys.append("ret")
            values.append(d.doc(node.ret))
        if node.purity:
            keys.append("purity")
            values.append(LiteralDoc(True))
        return CallDoc(callee, (), keys, values) if keys else callee
    params = TupleDoc([d.doc(param) for param in node.params])
    return CallDoc(callee, (params, d.doc(node.ret), LiteralDoc(bool(node.purity))))
