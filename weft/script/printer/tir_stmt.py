"""Docs of TensorIR's statements, blocks and their sugar (``T.grid``, ``T.axis.remap``).

A statement that opens a scope (let, allocate, attr ...) and stands last in its sequence prints as
a plain line (``x: T.int32 = 1``); elsewhere it prints as ``with ...:``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.ir.expr import IntImm, PrimExpr, StringImm
from weft.ir.functor import collect
from weft.ir.type import PrimType, TupleType
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
from weft.script.printer.tir_buffer import (
    DATA,
    NOTHING,
    buffer_declaration,
    define_buffer,
)
from weft.script.printer.tir_expr import (
    call_style,
    declare_var,
    index_docs,
    list_doc,
    same,
    slice_end,
)
from weft.support.errors import IRTypeError
from weft.tir import stmt as nodes
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.stmt import For, ForKind, SeqStmt


def body_docs(stmt: Any, d: Docsifier, frame: Frame) -> None:
    """Add the docs of a body to a frame."""
    if type(stmt) is SeqStmt:
        last = len(stmt.seq) - 1
        for index, item in enumerate(stmt.seq):
            frame.concise = index == last and id(item) not in d.remarks
            _add(d.doc(item), frame)
    else:
        frame.concise = id(stmt) not in d.remarks  # a remark stands above a ``with`` of its own
        _add(d.doc(stmt), frame)


def _add(doc: Doc, frame: Frame) -> None:
    if type(doc) is StmtBlockDoc:
        frame.stmts.extend(doc.stmts)
    else:
        frame.stmts.append(doc)


def _scoped(lhs: ExprDoc | None, rhs: ExprDoc, stmts: list[Doc], concise: bool) -> Doc:
    """A line and its scope: a plain line where nothing follows, else ``with``."""
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
    call: Any = node.value
    if _is_return(call):
        return ReturnDoc(d.doc(call.args[0]))
    value = d.doc(node.value)
    if getattr(node.value, "KIND", "") == "Call":
        return ExprStmtDoc(value)
    return ExprStmtDoc(CallDoc(d.tir("evaluate"), (value,)))


def _is_return(value: Any) -> bool:
    """Whether ``return x`` builds this call of ``tir.ret``."""
    if getattr(value, "KIND", "") != "Call" or getattr(value.op, "name", "") != "tir.ret":
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
        return _scoped(None, CallDoc(d.tir("LetStmt"), (rhs,), ("var",), (known,)), frame.stmts,
                       concise)  # fmt: skip
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
    values: tuple[Any, ...] = ()
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
    body: Any = node.body
    if node.attr_key == "realize_scope" and isinstance(node.value, StringImm) and node.value.value:
        if isinstance(body, nodes.BufferRealize) and body.buffer is node.node:
            return _realize_doc(body, node.value.value, d)
    frame = d.push("tir")
    lhs: ExprDoc | None = None
    thread = node.node
    if isinstance(thread, IterVar) and node.attr_key in ("thread_extent", "virtual_thread"):
        value = d.doc(node.value)
        if d.defined(thread.var):
            first: Any = d.doc(thread.var)
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
    concise = d.frames[-1].concise
    if d.config.syntax_sugar and _declares_itself(node):
        return _declare(node.body, d, DATA, concise)
    scope = getattr(node.buffer_var.type_annotation, "storage_scope", "") or "global"
    extents = list_doc(node.extents, d)
    args: list[Any] = [extents, LiteralDoc(str(node.dtype)), LiteralDoc(scope)]
    if not _is_true(node.condition):
        args.append(d.doc(node.condition))
    keys: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    if node.annotations:
        keys, values = ("annotations",), (mapping_doc(node.annotations, d),)
    rhs = CallDoc(d.tir("allocate"), args, keys, values)
    frame = d.push("tir")
    lhs = d.define(node.buffer_var, node.buffer_var.name or "v")
    body_docs(node.body, d, frame)
    d.pop()
    return _scoped(lhs, rhs, frame.stmts, concise)


def _is_true(expr: Any) -> bool:
    return isinstance(expr, IntImm) and expr.value == 1 and expr.dtype.is_bool


def _declares_itself(node: nodes.Allocate) -> bool:
    """Whether the body is the declaration of a buffer that is just this memory."""
    body: Any = node.body
    if not isinstance(body, nodes.DeclBuffer) or body.buffer.data is not node.buffer_var:
        return False
    shape = body.buffer.shape
    if node.dtype is not body.buffer.dtype or not _is_true(node.condition) or node.annotations:
        return False
    if len(shape) != len(node.extents):
        return False
    for size, extent in zip(shape, node.extents, strict=True):
        if not same(size, extent):
            return False
    return True


@prints("AllocateConst")
def _allocate_const(node: nodes.AllocateConst, d: Docsifier) -> Doc:
    concise = d.frames[-1].concise
    extents = list_doc(node.extents, d)
    args = (_constant_data(node.data, d), LiteralDoc(str(node.dtype)), extents)
    keys: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    if node.annotations:
        keys, values = ("annotations",), (mapping_doc(node.annotations, d),)
    rhs = CallDoc(d.tir("allocate_const"), args, keys, values)
    frame = d.push("tir")
    lhs = d.define(node.buffer_var, node.buffer_var.name or "v")
    body_docs(node.body, d, frame)
    d.pop()
    return _scoped(lhs, rhs, frame.stmts, concise)


def _constant_data(data: Any, d: Docsifier) -> ExprDoc:
    """The elements as a flat list; as metadata where they are many or have no literal."""
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


def _declare(node: Any, d: Docsifier, defines: int, concise: bool) -> Doc:
    outer = d.frames[-1]
    for size in (*node.buffer.shape, *node.buffer.strides) if defines == DATA else ():
        if isinstance(size, Var) and not d.defined(size):
            declare_var(size, d, outer)
    if defines == NOTHING and not d.defined(node.buffer.data):
        outer = d.function_frame("tir")
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
    """``T.realize(region, scope)``; a scope stands for an attribute around the statement."""
    concise = d.frames[-1].concise
    region = d.doc(nodes.BufferRegion(node.buffer, node.bounds))
    args: list[Any] = [region, LiteralDoc(scope)]
    if not _is_true(node.condition):
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


def _is_zero(expr: Any) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


def _uses(expr: Any, names: set[int]) -> bool:
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
    inner: Any = loop
    while type(inner) is For:
        plain = inner.kind is ForKind.SERIAL and _is_zero(inner.min) and not inner.annotations
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
        rhs: list[Any] = []
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
    args: list[Any] = []
    keys: list[str] = []
    values: list[Any] = []
    if _is_zero(node.min):
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


# ---- blocks

_AXES: Final = {
    IterType.DataPar: "spatial", IterType.CommReduce: "reduce", IterType.Ordered: "scan",
    IterType.Opaque: "opaque",
}  # fmt: skip


@prints("BlockRealize")
def _block_realize(node: nodes.BlockRealize, d: Docsifier) -> Doc:
    return _block_doc(node.block, node, d)


@prints("Block")
def _block(node: nodes.Block, d: Docsifier) -> Doc:
    return _block_doc(node, None, d)


def _block_doc(block: nodes.Block, realize: nodes.BlockRealize | None, d: Docsifier) -> Doc:
    frame = d.push("tir")
    _axes(block, realize, d, frame)
    if realize is not None and not _is_true(realize.predicate):
        frame.stmts.append(ExprStmtDoc(CallDoc(d.tir("where"), (d.doc(realize.predicate),))))
    for name in ("reads", "writes"):
        regions = [d.doc(region) for region in getattr(block, name)]
        frame.stmts.append(ExprStmtDoc(CallDoc(d.tir(name), regions)))
    if block.annotations:
        attributes = CallDoc(d.tir("block_attr"), (mapping_doc(block.annotations, d),))
        frame.stmts.append(ExprStmtDoc(attributes))
    alloc_docs(block.alloc_buffers, d, frame)
    for match in block.match_buffers:
        frame.stmts.append(d.doc(match))
    if block.init is not None:
        inner = d.push("tir")
        body_docs(block.init, d, inner)
        d.pop()
        frame.stmts.append(ScopeDoc(None, CallDoc(d.tir("init")), inner.stmts))
    body_docs(block.body, d, frame)
    d.pop()
    keys = () if realize is not None else ("no_realize",)
    values = () if realize is not None else (LiteralDoc(True),)
    head = CallDoc(d.tir("block"), (LiteralDoc(block.name_hint),), keys, values)
    return ScopeDoc(None, d.head(head, block), frame.stmts)


def alloc_docs(buffers: Any, d: Docsifier, frame: Frame) -> None:
    """``A = T.alloc_buffer(...)`` for each buffer."""
    for buffer in buffers:
        rhs = buffer_declaration(buffer, "alloc_buffer", d, DATA, frame=frame)
        frame.stmts.append(AssignDoc(define_buffer(buffer, d, frame), rhs))


def _axes(
    block: nodes.Block, realize: nodes.BlockRealize | None, d: Docsifier, frame: Frame
) -> None:
    """The lines that bind the block's axes; runs of plain bindings become ``T.axis.remap``."""
    loops: dict[int, For] = {}
    if realize is not None and d.config.syntax_sugar:
        for outer in d.frames:
            for loop in outer.loops:
                loops[id(loop.loop_var)] = loop
    run: list[int] = []
    for index in range(len(block.iter_vars)):
        value = None if realize is None else realize.iter_values[index]
        if _is_plain_binding(block.iter_vars[index], value, loops):
            run.append(index)
        else:
            _flush(run, block, realize, d, frame)
            run = []
            _single_axis(block.iter_vars[index], value, d, frame)
    _flush(run, block, realize, d, frame)


def _is_plain_binding(axis: IterVar, value: Any, loops: dict[int, For]) -> bool:
    if axis.iter_type not in (IterType.DataPar, IterType.CommReduce) or not isinstance(value, Var):
        return False
    loop = loops.get(id(value))
    return (
        loop is not None
        and axis.dom is not None
        and axis.var.dtype is loop.loop_var.dtype
        and same(loop.min, axis.dom.min)
        and same(loop.extent, axis.dom.extent)
    )


def _flush(run: list[int], block: nodes.Block, realize: Any, d: Docsifier, frame: Frame) -> None:
    if len(run) == 1:
        _single_axis(block.iter_vars[run[0]], realize.iter_values[run[0]], d, frame)
    elif run:
        kinds = ""
        lhs: list[ExprDoc] = []
        values: list[Any] = []
        for index in run:
            axis = block.iter_vars[index]
            lhs.append(d.define(axis.var, axis.var.name))
            values.append(d.doc(realize.iter_values[index]))
            kinds += "S" if axis.iter_type is IterType.DataPar else "R"
        callee = AttrAccessDoc(d.tir("axis"), "remap")
        rhs = CallDoc(callee, (LiteralDoc(kinds), ListDoc(values)))
        frame.stmts.append(AssignDoc(TupleDoc(lhs), rhs))


def _single_axis(axis: IterVar, value: PrimExpr | None, d: Docsifier, frame: Frame) -> None:
    callee = AttrAccessDoc(d.tir("axis"), _AXES.get(axis.iter_type, axis.iter_type.name))
    args: list[Any] = [_domain(axis.dom, d)]
    if value is not None:
        args.append(d.doc(value))
    keys: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    if axis.dom is not None and axis.var.dtype is not axis.dom.extent.dtype:
        keys, values = ("dtype",), (LiteralDoc(str(axis.var.dtype)),)
    rhs = CallDoc(callee, args, keys, values)
    frame.stmts.append(AssignDoc(d.define(axis.var, axis.var.name), rhs))


def _domain(dom: Any, d: Docsifier) -> Any:
    if dom is None:
        return LiteralDoc(None)
    if _is_zero(dom.min) and dom.min.dtype is dom.extent.dtype:
        return d.doc(dom.extent)
    end = slice_end(dom.min, dom.extent)
    if end is None:
        return d.doc(dom)
    return TupleDoc([d.doc(dom.min), d.doc(end)])
