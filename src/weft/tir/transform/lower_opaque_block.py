"""LowerOpaqueBlock: replaces blocks by plain statements.

Predicates become ``if``, allocated buffers become ``allocate`` with ``decl_buffer``, a loop of one
iteration becomes its body, and ``pragma_*`` annotations become attributes. It needs opaque blocks
(without axes, init and matched buffers).
"""

from __future__ import annotations

import itertools
from typing import Any

from weft.ir.expr import IntImm, PrimExpr, StringImm
from weft.support.dtype import DataType
from weft.support.errors import VerifyError
from weft.tir.buffer import Buffer
from weft.tir.constant import is_const_int
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AttrStmt,
    BlockRealize,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Stmt,
)
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


class _Lower(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[int, PrimExpr] = {}

    def visit_Var(self, var: Var) -> PrimExpr:
        return self.values.get(id(var), var)

    def visit_For(self, loop: For) -> Stmt:
        is_unit = is_const_int(loop.extent, 1)
        if is_unit and loop.kind != ForKind.THREAD_BINDING and not _kept(loop):
            self.values[id(loop.loop_var)] = self.visit(loop.min)
            body: Stmt = self.visit(loop.body)
        else:
            annotations = {k: v for k, v in loop.annotations.items() if not k.startswith("pragma_")}
            plain = loop
            if len(annotations) != len(loop.annotations):
                plain = loop.with_(annotations=type(loop.annotations)(annotations))
            body = self.visit_default(plain)
            if isinstance(body, For) and body.kind is ForKind.THREAD_BINDING:
                body = launch_thread(body)
        return _with_pragmas(loop, body)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        if block.iter_vars or block.init is not None or block.match_buffers:
            raise VerifyError(
                f"LowerOpaqueBlock: block {block.name_hint} still has axes, init or match_buffer; "
                "run LowerInitBlock, ConvertBlocksToOpaque and LowerMatchBuffer first"
            )
        body: Stmt = self.visit(block.body)
        for buffer in reversed(block.alloc_buffers):
            body = allocate(self.visit(buffer), body)
        for key, value in block.annotations.items():
            if key.startswith("pragma_"):
                body = AttrStmt(StringImm(""), key, _as_value(value), body)
        predicate = self.visit(realize.predicate)
        if isinstance(predicate, IntImm) and predicate.value:
            return body
        return IfThenElse(predicate, body, span=realize.span)


def launch_thread(loop: For) -> Stmt:
    """A loop bound to threads as an attribute (``thread_extent`` or ``virtual_thread``)."""
    tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
    dom = loop.domain
    axis = IterVar(dom, loop.loop_var, IterType.ThreadIndex, tag)
    key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
    return AttrStmt(axis, key, loop.extent, loop.body)


def _kept(loop: For) -> bool:
    return bool([key for key in loop.annotations if not key.startswith("pragma_")])


def _with_pragmas(loop: For, body: Stmt) -> Stmt:
    for key, value in sorted(loop.annotations.items(), reverse=True):
        if key.startswith("pragma_"):
            body = AttrStmt(loop.loop_var, key, _as_value(value), body)
    return body


def pragma_loop(attr: AttrStmt) -> Any:
    """The variable of the loop to which an attribute from a pragma belongs.

    That of the loop directly below, if there is one: a copied loop has a new variable.
    """
    body = attr.body
    while isinstance(body, AttrStmt):
        body = body.body
    return body.loop_var if isinstance(body, For) else getattr(attr.node, "var", attr.node)


def _as_value(value: object) -> object:
    return StringImm(value) if isinstance(value, str) else value


def allocation_extents(buffer: Buffer) -> list[PrimExpr]:
    """The extents to allocate for a buffer; strides with gaps give larger extents of inner axes."""
    if not buffer.strides or not buffer.shape:
        return list(buffer.shape)
    steps = [stride.value if isinstance(stride, IntImm) else 0 for stride in buffer.strides]
    nested = steps[-1] == 1
    for outer, inner in itertools.pairwise(steps):
        nested = nested and outer > 0 and inner > 0 and outer % inner == 0
    if not nested:
        return [buffer.shape[0] * buffer.strides[0]]
    wide = [
        IntImm(buffer.shape[0].dtype, outer // inner) for outer, inner in itertools.pairwise(steps)
    ]
    return [buffer.shape[0], *wide]


def allocate(buffer: Buffer, body: Stmt) -> Stmt:
    """``body`` with memory for ``buffer`` declared around it."""
    extents = allocation_extents(buffer)
    condition = IntImm(DataType("bool"), 1)
    dtype = buffer.dtype
    return Allocate(buffer.data, dtype, extents, condition, DeclBuffer(buffer, body))


def lower_opaque_block(func: PrimFunc) -> PrimFunc:
    """The function without blocks."""
    return rewrite_body(func, _Lower())


LowerOpaqueBlock = define_pass("LowerOpaqueBlock", lower_opaque_block)
