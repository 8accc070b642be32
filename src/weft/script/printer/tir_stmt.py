"""Docs of TensorIR's statements except blocks, and their short forms (``T.grid``).

A statement that opens a scope (let, allocate, attr ...) is printed as a plain line
(``x: T.int32 = 1``) if it is the last of its sequence, and elsewhere as ``with ...:``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

import numpy as np

from weft.ir.expr import IntImm, PrimExpr, StringImm
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.ir.type import PrimType, TupleType
from weft.runtime.ndarray import NDArray
from weft.script.printer.attributes import attribute_doc, mapping_doc
from weft.script.printer.doc import (
    AssertDoc,
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    ForDoc,
    IdDoc,
    IfDoc,
    IndexDoc,
    ListDoc,
    LiteralDoc,
    ReturnDoc,
    ScopeDoc,
    StmtBlockDoc,
    TupleDoc,
    WhileDoc,
)
from weft.script.printer.docsifier import Docsifier, Frame, prints
from weft.script.printer.shared_values import name_shared
from weft.script.printer.tir_buffer import DATA, NOTHING, buffer_declaration, define_buffer
from weft.script.printer.tir_expr import (
    call_style,
    declare_var,
    index_docs,
    is_true,
    list_doc,
    same,
    slice_end,
)
from weft.support.errors import IRTypeError
from weft.tir import stmt as nodes
from weft.tir.buffer import BufferRegion
from weft.tir.constant import is_const_int
from weft.tir.expr import Call, IterVar, Var, is_call
from weft.tir.stmt import For, ForKind, SeqStmt, Stmt


def body_docs(stmt: Stmt, d: Docsifier, frame: Frame) -> None:
    """Add the docs of a body to a frame."""
    if type(stmt) is SeqStmt:
        last = len(stmt.seq) - 1
        for index, item in enumerate(stmt.seq):
            frame.concise = index == last and id(item) not in d.remarks
            name_shared(item, d, frame)
            _add(d.doc(item), frame)
    else:
        frame.concise = id(stmt) not in d.remarks  # a remark is printed above a ``with``
        name_shared(stmt, d, frame)
        _add(d.doc(stmt), frame)


def _add(doc: Doc, frame: Frame) -> None:
    if type(doc) is StmtBlockDoc:
        frame.stmts.extend(doc.stmts)
    else:
        frame.stmts.append(doc)


def _scoped(lhs: ExprDoc | None, rhs: ExprDoc, stmts: list[Doc], concise: bool) -> Doc:
    """A line and the statements in its scope: a plain line if it is concise, else ``with``."""
    if not concise:
        return ScopeDoc(lhs, rhs, stmts)
    head: Doc = ExprStmtDoc(rhs) if lhs is None else AssignDoc(lhs, rhs)
    return StmtBlockDoc([head, *stmts])


# ---- simple statements


@prints("SeqStmt")
def _seq(node: SeqStmt, d: Docsifier) -> Doc:
    frame = d.push("tir")
    body_docs(node, d, frame)
    d.pop()
    return StmtBlockDoc(frame.stmts)


@prints("Evaluate")
def _evaluate(node: nodes.Evaluate, d: Docsifier) -> Doc:
    call = node.value
    if _is_return(call):
        return ReturnDoc(d.doc(call.args[0]))
    value = d.doc(node.value)
    if getattr(node.value, "KIND", "") == "Call":
        return ExprStmtDoc(value)
    return ExprStmtDoc(CallDoc(d.tir("evaluate"), (value,)))


def _is_return(value: PrimExpr) -> TypeGuard[Call]:
    """Whether ``return x`` builds this call of ``tir.ret``."""
    if not is_call(value, "ret"):
        return False
    return len(value.args) == 1 and call_style(value, "ret") == "plain"


@prints("BufferStore")
def _store(node: nodes.BufferStore, d: Docsifier) -> Doc:
    buffer, value = d.doc(node.buffer), d.doc(node.value)
    if node.predicate is None:
        return AssignDoc(IndexDoc(buffer, index_docs(node.indices, d)), value)
    args = (list_doc(node.indices, d), value)
    callee = AttrAccessDoc(buffer, "vstore")
    return ExprStmtDoc(CallDoc(callee, args, ("predicate",), (d.doc(node.predicate),)))


@prints("IfThenElse")
def _if(node: nodes.IfThenElse, d: Docsifier) -> Doc:
    condition = d.doc(node.condition)
    then_frame = d.push("tir")
    body_docs(node.then_case, d, then_frame)
    d.pop()
    if node.else_case is None:
        return IfDoc(condition, then_frame.stmts)
    else_frame = d.push("tir")
    body_docs(node.else_case, d, else_frame)
    d.pop()
    return IfDoc(condition, then_frame.stmts, else_frame.stmts)


@prints("While")
def _while(node: nodes.While, d: Docsifier) -> Doc:
    condition = d.doc(node.condition)
    frame = d.push("tir")
    body_docs(node.body, d, frame)
    d.pop()
    return WhileDoc(condition, frame.stmts)


# ---- statements that open a scope


@prints("LetStmt")
def _let(node: nodes.LetStmt, d: Docsifier) -> Doc:
    concise = d.frames[-1].concise
    rhs = d.doc(node.value)
    known = d.reference(node.var)
    frame = d.push("tir")
    if known is not None:
        body_docs(node.body, d, frame)
        d.pop()
        return _scoped(
            None, CallDoc(d.tir("LetStmt"), (rhs,), ("var",), (known,)), frame.stmts, concise
        )
    lhs = d.define(node.var, node.var.name or "v")
    body_docs(node.body, d, frame)
    annotation = node.var.type_annotation
    kind = None
    if not (isinstance(annotation, TupleType) and not annotation.fields):
        kind = d.doc(annotation)
    d.pop()
    if concise:
        return StmtBlockDoc([AssignDoc(lhs, rhs, kind), *frame.stmts])
    keys: tuple[str, ...] = ()
    values: tuple[ExprDoc, ...] = ()
    if not isinstance(annotation, PrimType) or annotation.dtype is not node.value.dtype:
        keys, values = ("type_annotation",), (kind or LiteralDoc(None),)
    return ScopeDoc(lhs, CallDoc(d.tir("LetStmt"), (rhs,), keys, values), frame.stmts)


@prints("AssertStmt")
def _assert(node: nodes.AssertStmt, d: Docsifier) -> Doc:
    concise = d.frames[-1].concise
    condition, message = d.doc(node.condition), d.doc(node.message)
    frame = d.push("tir")
    body_docs(node.body, d, frame)
    d.pop()
    if concise:
        return StmtBlockDoc([AssertDoc(condition, message), *frame.stmts])
    return ScopeDoc(None, CallDoc(d.tir("Assert"), (condition, message)), frame.stmts)


@prints("AttrStmt")
def _attr(node: nodes.AttrStmt, d: Docsifier) -> Doc:
    concise = d.frames[-1].concise
    body = node.body
    if node.attr_key == "realize_scope" and isinstance(node.value, StringImm) and node.value.value:
        if isinstance(body, nodes.BufferRealize) and body.buffer is node.node:
            return _realize_doc(body, node.value.value, d)
    frame = d.push("tir")
    lhs: ExprDoc | None = None
    thread = node.node
    if isinstance(thread, IterVar) and node.attr_key in ("thread_extent", "virtual_thread"):
        value = d.doc(node.value)
        if d.defined(thread.var):
            first: ExprDoc = d.doc(thread.var)
        else:
            first = LiteralDoc(thread.thread_tag)
            lhs = d.define(thread.var, thread.var.name or "v")
        rhs: ExprDoc = CallDoc(d.tir("launch_thread"), (first, value))
    else:
        args = (attribute_doc(thread, d), LiteralDoc(node.attr_key), d.doc(node.value))
        rhs = CallDoc(d.tir("attr"), args)
    body_docs(node.body, d, frame)
    d.pop()
    return _scoped(lhs, rhs, frame.stmts, concise)


@prints("Allocate")
def _allocate(node: nodes.Allocate, d: Docsifier) -> Doc:
    if d.config.syntax_sugar and _declares_itself(node):
        return _declare(expect(node.body, nodes.DeclBuffer), d, DATA, d.frames[-1].concise)
    scope = getattr(node.buffer_var.type_annotation, "storage_scope", "") or "global"
    extents = list_doc(node.extents, d)
    args: list[ExprDoc] = [extents, LiteralDoc(str(node.dtype)), LiteralDoc(scope)]
    if not is_true(node.condition):
        args.append(d.doc(node.condition))
    return _allocation(node, "allocate", args, d)


def _allocation(
    node: nodes.Allocate | nodes.AllocateConst, name: str, args: Sequence[ExprDoc], d: Docsifier
) -> Doc:
    """``with T.<name>(args) as v:``, or ``v = T.<name>(args)`` before what follows."""
    concise = d.frames[-1].concise
    keys: tuple[str, ...] = ()
    values: tuple[ExprDoc, ...] = ()
    if node.annotations:
        keys, values = ("annotations",), (mapping_doc(node.annotations, d),)
    rhs = CallDoc(d.tir(name), args, keys, values)
    frame = d.push("tir")
    lhs = d.define(node.buffer_var, node.buffer_var.name or "v")
    body_docs(node.body, d, frame)
    d.pop()
    return _scoped(lhs, rhs, frame.stmts, concise)


def _declares_itself(node: nodes.Allocate) -> bool:
    """Whether the body declares a buffer that is exactly this memory."""
    body = node.body
    if not isinstance(body, nodes.DeclBuffer) or body.buffer.data is not node.buffer_var:
        return False
    shape = body.buffer.shape
    if node.dtype is not body.buffer.dtype or not is_true(node.condition) or node.annotations:
        return False
    if len(shape) != len(node.extents):
        return False
    for size, extent in zip(shape, node.extents, strict=True):
        if not same(size, extent):
            return False
    return True


@prints("AllocateConst")
def _allocate_const(node: nodes.AllocateConst, d: Docsifier) -> Doc:
    extents = list_doc(node.extents, d)
    args = (_constant_data(node.data, d), LiteralDoc(str(node.dtype)), extents)
    return _allocation(node, "allocate_const", args, d)


def _constant_data(data: NDArray, d: Docsifier) -> ExprDoc:
    """The elements as a flat list; as metadata if they are many or have no literal."""
    array = data.numpy()
    plain = array.dtype.kind in "iub" or (
        array.dtype.kind == "f" and bool(np.isfinite(array).all())
    )
    if array.ndim != 1 or array.size > 64 or not plain:
        return d.add_metadata("runtime.NDArray", data)
    return ListDoc([LiteralDoc(item) for item in array.tolist()])


@prints("DeclBuffer")
def _decl_buffer(node: nodes.DeclBuffer, d: Docsifier) -> Doc:
    return _declare(node, d, NOTHING, d.frames[-1].concise)


def _declare(node: nodes.DeclBuffer, d: Docsifier, defines: int, concise: bool) -> Doc:
    outer = d.frames[-1]
    for size in (*node.buffer.shape, *node.buffer.strides) if defines == DATA else ():
        if isinstance(size, Var) and not d.defined(size):
            declare_var(size, d, outer)
    if defines == NOTHING and not d.defined(node.buffer.data):
        outer = d.function_frame("tir")
    name_shared(node.buffer, d, d.frames[-1])
    frame = d.push("tir")
    rhs = buffer_declaration(
        node.buffer, "decl_buffer", d, defines, frame=outer if defines == NOTHING else frame
    )
    lhs = define_buffer(node.buffer, d)
    body_docs(node.body, d, frame)
    d.pop()
    return _scoped(lhs, rhs, frame.stmts, concise)


@prints("BufferRealize")
def _realize(node: nodes.BufferRealize, d: Docsifier) -> Doc:
    return _realize_doc(node, "", d)


def _realize_doc(node: nodes.BufferRealize, scope: str, d: Docsifier) -> Doc:
    """``T.realize(region, scope)``; the scope was an attribute around the statement."""
    concise = d.frames[-1].concise
    region = d.doc(BufferRegion(node.buffer, node.bounds))
    args: list[ExprDoc] = [region, LiteralDoc(scope)]
    if not is_true(node.condition):
        args.append(d.doc(node.condition))
    frame = d.push("tir")
    body_docs(node.body, d, frame)
    d.pop()
    return _scoped(None, CallDoc(d.tir("realize"), args), frame.stmts, concise)


# ---- loops

_KINDS: Final = {
    ForKind.SERIAL: "serial", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unroll", ForKind.THREAD_BINDING: "thread_binding",
}  # fmt: skip


def _uses(expr: PrimExpr, names: set[int]) -> bool:
    if isinstance(expr, IntImm):
        return False
    for var in collect(expr, Var):
        if id(var) in names:
            return True
    return False


def _grid(loop: For) -> list[For]:
    """The nest of plain loops that one ``T.grid`` can print."""
    nest: list[For] = []
    names: set[int] = set()
    inner: Stmt = loop
    while type(inner) is For:
        plain = (
            inner.kind is ForKind.SERIAL and is_const_int(inner.min, 0) and not inner.annotations
        )
        if not plain or inner.thread_binding is not None or _uses(inner.extent, names):
            break
        nest.append(inner)
        names.add(id(inner.loop_var))
        inner = inner.body
    return nest


@prints("For")
def _for(node: For, d: Docsifier) -> Doc:
    nest = _grid(node) if d.config.syntax_sugar else []
    frame = d.push("tir")
    if len(nest) > 1:
        frame.loops = list(nest)
        lhs: list[ExprDoc] = []
        rhs: list[ExprDoc] = []
        for loop in nest:
            lhs.append(d.head(d.define(loop.loop_var, loop.loop_var.name), loop))
            rhs.append(d.head(d.doc(loop.extent), loop))
        body_docs(nest[-1].body, d, frame)
        d.pop()
        return ForDoc(TupleDoc(lhs), CallDoc(d.tir("grid"), rhs), frame.stmts)
    frame.loops = [node]
    name = d.head(d.define(node.loop_var, node.loop_var.name), node)
    header = d.head(_loop_header(node, d), node)
    body_docs(node.body, d, frame)
    d.pop()
    return ForDoc(name, header, frame.stmts)


def _loop_header(node: For, d: Docsifier) -> ExprDoc:
    args: list[ExprDoc] = []
    keys: list[str] = []
    values: list[ExprDoc] = []
    if is_const_int(node.min, 0):
        args.append(d.doc(node.extent))
    else:
        end = slice_end(node.min, node.extent)
        if end is None:
            raise IRTypeError("a loop's extent has no printed form")
        args += [d.doc(node.min), d.doc(end)]
    if node.thread_binding is not None:
        keys.append("thread")
        values.append(LiteralDoc(node.thread_binding.thread_tag))
    if node.annotations:
        keys.append("annotations")
        values.append(mapping_doc(node.annotations, d))
    if node.kind is ForKind.SERIAL and not keys:
        return CallDoc(IdDoc("range"), args)
    return CallDoc(d.tir(_KINDS[node.kind]), args, keys, values)
