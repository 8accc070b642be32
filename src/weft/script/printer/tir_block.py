"""Docs of TensorIR's blocks: their axes (``T.axis.remap``), regions, buffers and bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr, Range
from weft.script.printer.attributes import mapping_doc
from weft.script.printer.doc import (
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    ListDoc,
    LiteralDoc,
    ScopeDoc,
    TupleDoc,
)
from weft.script.printer.docsifier import Docsifier, Frame, prints
from weft.script.printer.shared_values import name_shared
from weft.script.printer.tir_buffer import DATA, buffer_declaration, define_buffer
from weft.script.printer.tir_expr import is_true, same, slice_end
from weft.script.printer.tir_stmt import body_docs
from weft.tir import stmt as nodes
from weft.tir.buffer import Buffer
from weft.tir.constant import is_const_int
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.stmt import For

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
    if realize is not None and not is_true(realize.predicate):
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


def alloc_docs(buffers: Sequence[Buffer], d: Docsifier, frame: Frame) -> None:
    """``A = T.alloc_buffer(...)`` for each buffer."""
    for buffer in buffers:
        name_shared(buffer, d, frame)
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


def _is_plain_binding(axis: IterVar, value: PrimExpr | None, loops: dict[int, For]) -> bool:
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


def _flush(
    run: list[int],
    block: nodes.Block,
    realize: nodes.BlockRealize | None,
    d: Docsifier,
    frame: Frame,
) -> None:
    if realize is None:
        return  # no axis is bound, so no binding is plain
    if len(run) == 1:
        _single_axis(block.iter_vars[run[0]], realize.iter_values[run[0]], d, frame)
    elif run:
        kinds = ""
        lhs: list[ExprDoc] = []
        values: list[ExprDoc] = []
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
    args: list[ExprDoc] = [_domain(axis.dom, d)]
    if value is not None:
        args.append(d.doc(value))
    keys: tuple[str, ...] = ()
    values: tuple[ExprDoc, ...] = ()
    if axis.dom is not None and axis.var.dtype is not axis.dom.extent.dtype:
        keys, values = ("dtype",), (LiteralDoc(str(axis.var.dtype)),)
    rhs = CallDoc(callee, args, keys, values)
    frame.stmts.append(AssignDoc(d.define(axis.var, axis.var.name), rhs))


def _domain(dom: Range | None, d: Docsifier) -> ExprDoc:
    if dom is None:
        return LiteralDoc(None)
    if is_const_int(dom.min, 0) and dom.min.dtype is dom.extent.dtype:
        return d.expr(dom.extent)
    end = slice_end(dom.min, dom.extent)
    if end is None:
        return d.expr(dom)
    return TupleDoc([d.doc(dom.min), d.doc(end)])
