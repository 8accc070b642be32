"""Docs of graph functions, blocks and bindings."""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import post_order_visit
from weft.ir.node import Array, Node
from weft.ir.structural import structural_equal
from weft.relax import expr as nodes
from weft.relax.struct_info import StructInfo, TupleStructInfo
from weft.script.printer.attributes import mapping_doc
from weft.script.printer.doc import (
    AssignDoc,
    CallDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    LiteralDoc,
    ReturnDoc,
    ScopeDoc,
    StmtBlockDoc,
)
from weft.script.printer.docsifier import Docsifier, prints
from weft.script.printer.nested_values import Line, bind_nested, forget_nested, with_nested
from weft.script.printer.shared_extents import name_shared_extents
from weft.script.printer.tir_function import function_name

_HIDING = ("relax.call_tir", "relax.call_dps_packed")


@prints("Function")
def _function(func: nodes.Function, d: Docsifier) -> Doc:
    relax_mode, d.relax_mode = d.relax_mode, True
    is_top = not [frame for frame in d.frames if frame.kind == "relax" and frame.is_func]
    name = function_name(func, d)
    d.binding_names.append("")
    frame = d.push("relax", is_func=True)
    frame.func_vars = set()
    named = {param: d.define(param, param.name_hint) for param in _shapes_returned(func)}
    types = [*[param.struct_info for param in func.params], func.ret_struct_info]
    name_shared_extents(types, d, frame, frame.stmts)
    returns = None if func.ret_struct_info is None else d.doc(func.ret_struct_info)
    params = [_parameter(param, d, named) for param in func.params]
    frame.func_vars = None
    attrs = {k: v for k, v in func.attrs.items() if not (is_top and _is_own_name(k, v, name))}
    declared, frame.stmts = frame.stmts, []
    if attrs:
        call = CallDoc(d.relax("func_attr"), (mapping_doc(attrs, d),))
        declared.append(ExprStmtDoc(call))
    frame.stmts = declared
    body = sequence_docs(func.body, d, returns=True)
    frame.stmts.extend(body)
    d.pop()
    d.binding_names.pop()
    d.relax_mode = relax_mode
    keys: list[str] = []
    if not func.is_pure:
        keys.append("pure")
    if is_top and "global_symbol" not in func.attrs:
        keys.append("private")
    decorator: ExprDoc = d.relax("function")
    if keys:
        decorator = CallDoc(decorator, (), keys, [LiteralDoc(key == "private") for key in keys])
    return FunctionDoc(IdDoc(name), params, [decorator], returns, frame.stmts)


def _is_own_name(key: str, value: object, name: str) -> bool:
    return key == "global_symbol" and str(value) == name


def _shapes_returned(func: nodes.Function) -> list[nodes.Var]:
    """Parameters that the type of the result uses as shapes, so that they are named before it."""
    used: set[Node] = set()
    if func.ret_struct_info is not None:
        post_order_visit(func.ret_struct_info, used.add)
    return [param for param in func.params if param in used]


def _parameter(param: nodes.Var, d: Docsifier, named: dict[nodes.Var, IdDoc]) -> AssignDoc:
    annotation = d.relax("Object") if param.struct_info is None else d.doc(param.struct_info)
    return AssignDoc(named.get(param) or d.define(param, param.name_hint), None, annotation)


def sequence_docs(body: RelaxExpr, d: Docsifier, *, returns: bool) -> list[Doc]:
    """The lines of a SeqExpr; the last one is ``return value`` or ``value``."""
    frame = d.push("relax")
    if isinstance(body, nodes.SeqExpr):
        for block in body.blocks:
            _extend(frame.stmts, d.doc(block))
        body = body.body
    name_shared_extents([body], d, frame, frame.stmts)
    lines = bind_nested(body, d)
    value = d.doc(body)
    last = ReturnDoc(value) if returns else ExprStmtDoc(value)
    _extend(frame.stmts, with_nested(lines, last, d))
    d.pop()
    return frame.stmts


def _extend(stmts: list[Doc], doc: Doc) -> None:
    if type(doc) is StmtBlockDoc:
        stmts.extend(doc.stmts)
    else:
        stmts.append(doc)


@prints("SeqExpr")
def _seq_expr(node: nodes.SeqExpr, d: Docsifier) -> Doc:
    return StmtBlockDoc(sequence_docs(node, d, returns=False))


@prints("BindingBlock")
def _block(node: nodes.BindingBlock, d: Docsifier) -> Doc:
    stmts: list[Doc] = []
    for binding in node.bindings:
        _extend(stmts, d.doc(binding))
    return StmtBlockDoc(stmts)


@prints("DataflowBlock")
def _dataflow(node: nodes.DataflowBlock, d: Docsifier) -> Doc:
    stmts: list[Doc] = []
    outputs: list[ExprDoc] = []
    for binding in node.bindings:
        _extend(stmts, d.doc(binding))
        var = binding.var
        if not isinstance(var, nodes.DataflowVar):
            outputs.append(d.doc(var))
    stmts.append(ExprStmtDoc(CallDoc(d.relax("output"), outputs)))
    return ScopeDoc(None, CallDoc(d.relax("dataflow")), stmts)


@prints("VarBinding")
def _var_binding(node: nodes.VarBinding, d: Docsifier) -> Doc:
    value = node.value
    if isinstance(value, nodes.If):
        annotation = annotation_of(node.var, value, d)
        return _if_doc(value, d, _define(node.var, d), annotation)
    if isinstance(value, BaseFunc) and not isinstance(value, nodes.ExternFunc):
        lhs = _define(node.var, d)
        d.binding_names.append(getattr(lhs, "name", node.var.name_hint))
        doc: Doc = d.doc(value)
        d.binding_names.pop()
        return doc
    names: list[Doc] = []
    name_shared_extents([value, node.var.struct_info], d, d.frames[-1], names)
    lines = _lines_before(node, d)
    rhs = d.doc(value)
    annotation = annotation_of(node.var, value, d)
    line = with_nested(lines, AssignDoc(_define(node.var, d), rhs, annotation), d)
    return _after(names, line)


def _after(names: list[Doc], line: Doc) -> Doc:
    """A binding's line after those that name its shared extents."""
    if not names:
        return line
    _extend(names, line)
    return StmtBlockDoc(names)


def _lines_before(node: nodes.VarBinding | nodes.MatchCast, d: Docsifier) -> list[Line]:
    hint = "lv" if isinstance(node.var, nodes.DataflowVar) else "gv"
    return bind_nested(node.value, d, hint)


def _define(var: nodes.Var, d: Docsifier) -> ExprDoc:
    return d.reference(var) or d.define(var, var.name_hint)


def annotation_of(var: nodes.Var, value: RelaxExpr, d: Docsifier) -> ExprDoc | None:
    """The annotation of a bound variable; None if the call implies it."""
    info = var.struct_info
    if info is None or d.short:
        return None
    if isinstance(value, nodes.Call) and len(value.sinfo_args) == 1:
        if getattr(value.op, "name", "") in _HIDING or not d.config.show_all_struct_info:
            said = value.sinfo_args[0]
            if structural_equal(said, info):
                return None
    elif not d.config.show_all_struct_info and _says(value, info):
        return None
    return d.expr(info)


def _says(value: RelaxExpr, info: StructInfo) -> bool:
    """Whether the value's own struct info is that of the variable."""
    known = getattr(value, "struct_info", None)
    if known is None and isinstance(value, nodes.Tuple):
        fields = [field.struct_info for field in value.fields]
        known = None if None in fields else TupleStructInfo(Array(fields))
    return known is not None and structural_equal(known, info)


@prints("MatchCast")
def _match_cast(node: nodes.MatchCast, d: Docsifier) -> Doc:
    annotation = None
    if node.var.struct_info is not None and d.config.show_all_struct_info and not d.short:
        annotation = d.doc(node.var.struct_info)
    names: list[Doc] = []
    name_shared_extents([node.value, node.struct_info], d, d.frames[-1], names)
    lines = _lines_before(node, d)
    args = (d.doc(node.value), d.doc(node.struct_info))
    cast = CallDoc(d.relax("match_cast"), args)
    return _after(names, with_nested(lines, AssignDoc(_define(node.var, d), cast, annotation), d))


@prints("If")
def _if(node: nodes.If, d: Docsifier) -> Doc:
    return _if_doc(node, d, None, None)


def _if_doc(node: nodes.If, d: Docsifier, lhs: ExprDoc | None, annotation: ExprDoc | None) -> Doc:
    lines = bind_nested(node.cond, d)
    condition = d.doc(node.cond)
    forget_nested(lines, d)
    branches: list[list[Doc]] = []
    for branch in (node.true_branch, node.false_branch):
        stmts = sequence_docs(branch, d, returns=False)
        last = stmts[-1]
        if lhs is not None and isinstance(last, ExprStmtDoc):
            stmts[-1] = AssignDoc(lhs, last.expr, annotation)
        branches.append(stmts)
    return with_nested(lines, IfDoc(condition, branches[0], branches[1]), d)
