"""Docs of IRModules, operators and global variables; the header that explains the prefixes."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.type import PrimType
from weft.script.printer.attributes import mapping_doc
from weft.script.printer.doc import (
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    ClassDoc,
    CommentDoc,
    Doc,
    ExprStmtDoc,
    FunctionDoc,
    IdDoc,
    LiteralDoc,
    StmtBlockDoc,
)
from weft.script.printer.docsifier import Docsifier, Frame, clean_name, prints
from weft.support.free_name import free_name

_ORDER: Final = {"PrimFunc": 0, "ExternFunc": 1, "Function": 2}


COMPILED = frozenset({"external_mods", "const_name_to_constant"})
"""Attributes that hold the compiled code of a backend, which cannot be printed."""


@prints("IRModule")
def _module(module: IRModule, d: Docsifier) -> Doc:
    frame = d.push("ir")
    name = clean = d.unique_name(d.binding_names[-1] if d.binding_names else "Module")
    d.in_module, d.global_infos = True, module.global_infos
    attrs = {key: value for key, value in module.attrs.items() if key not in COMPILED}
    if attrs:
        call = CallDoc(d.ir("module_attrs"), (mapping_doc(attrs, d),))
        frame.stmts.append(ExprStmtDoc(call))
    if module.global_infos:
        call = CallDoc(d.ir("module_global_infos"), (mapping_doc(module.global_infos, d),))
        frame.stmts.append(ExprStmtDoc(call))
    _name_functions(module, name, d)
    for var, func in module.functions.items():
        result = getattr(func, "ret_type", None)
        if isinstance(result, PrimType):
            d.return_types[var.name_hint] = result.dtype
    if d.function_names:
        names = {printed: name_hint for name_hint, printed in d.function_names.items()}
        call = CallDoc(d.ir("function_names"), (mapping_doc(names, d),))
        frame.stmts.append(ExprStmtDoc(call))
    for var, func in _ordered(module):
        printed = d.function_names.get(var.name_hint, var.name_hint)
        d.binding_names.append(printed)
        doc = d.doc(func)
        d.binding_names.pop()
        if not isinstance(doc, FunctionDoc):
            doc = AssignDoc(IdDoc(printed), doc)
        if not isinstance(func, Op) and d.tracking:
            doc.source = func
        frame.stmts.append(doc)
    d.pop()
    return ClassDoc(IdDoc(clean), [d.ir("ir_module")], frame.stmts)


def _name_functions(module: IRModule, module_name: str, d: Docsifier) -> None:
    """Find names for functions whose own are no identifiers, or are in use here."""
    names = [var.name_hint for var in module.functions]
    taken = {*names, *d.names}
    for name in names:
        d.globals[name] = module_name
        printed = clean_name(name)
        if printed == name and name not in (*d.prefixes.values(), "range"):
            continue
        d.function_names[name] = free_name(printed, taken)


def _ordered(module: IRModule) -> list[tuple[GlobalVar, BaseFunc]]:
    """PrimFuncs, then external functions, then graph functions; by name within each."""
    pairs = list(module.functions.items())
    pairs.sort(key=lambda pair: (_ORDER.get(pair[1].KIND, 3), pair[0].name_hint))
    return pairs


@prints("GlobalVar")
def _global_var(node: GlobalVar, d: Docsifier) -> Doc:
    module = d.globals.get(node.name_hint)
    name = d.function_names.get(node.name_hint, node.name_hint)
    if module is None:
        if d.in_module or not (d.frames and d.frames[-1].kind in ("relax", "tir")):
            return CallDoc(d.ir("GlobalVar"), (LiteralDoc(node.name_hint),))
        return IdDoc(node.name_hint)
    if d.relax_mode and d.config.module_alias:
        frame = _outer_function(d)
        if frame is not None:
            if not frame.uses_alias:
                frame.uses_alias = True
                frame.stmts.append(AssignDoc(IdDoc(d.config.module_alias), IdDoc(module)))
            return AttrAccessDoc(IdDoc(d.config.module_alias), name)
    return AttrAccessDoc(IdDoc(module), name)


def _outer_function(d: Docsifier) -> Frame | None:
    """The frame of the outermost graph function being printed."""
    for frame in d.frames:
        if frame.kind == "relax" and frame.is_func:
            return frame
    return None


@prints("Op")
def _op(node: Op, d: Docsifier) -> Doc:
    if node.name.startswith("tir.") and d.frames and d.frames[-1].kind == "tir":
        return LiteralDoc(node.name)
    return CallDoc(IdDoc("Op"), (IdDoc(node.name),))


def with_header(doc: Doc, d: Docsifier) -> list[Doc]:
    """The comment lines that say what ``I``, ``T`` and ``R`` are, an empty line, then the doc."""
    lines: list[Doc] = []
    for dialect in ("ir", "tir", "relax"):
        if dialect in d.used:
            line = f"from tvm.script import {dialect} as {d.prefixes[dialect]}"
            lines.append(CommentDoc(line))
    return [*lines, CommentDoc(""), doc] if lines else [doc]


def block(stmts: list[Doc]) -> Doc:
    """One doc for several lines."""
    return stmts[0] if len(stmts) == 1 else StmtBlockDoc(stmts)
