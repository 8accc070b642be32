"""UnrollLoop: loops of kind ``unrolled`` (or under a pragma) become their bodies in a row.

``pragma_auto_unroll_max_step``, or the option ``{"tir.UnrollLoop": {"auto_max_step": n}}`` of the
pass context, unrolls serial loops while the steps stay below its value. A body
larger than ``LIMIT`` statements in all stays a loop that LLVM may unroll.
"""

from __future__ import annotations

from weft.ir.expr import IntImm
from weft.ir.functor import collect, substitute
from weft.ir.transform import Pass, PassContext
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    LetStmt,
    Stmt,
    seq,
)
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body

LIMIT = 4096


class _Unroll(StmtMutator):
    def __init__(self, max_step: int) -> None:
        super().__init__()
        self.max_step = max_step

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "pragma_auto_unroll_max_step" and isinstance(attr.value, IntImm):
            outer, self.max_step = self.max_step, attr.value.value
            body: Stmt = self.visit(attr.body)
            self.max_step = outer
            return body
        if attr.attr_key in ("pragma_unroll_explicit", "pragma_auto_unroll_max_depth"):
            return self.visit(attr.body)
        return self.visit_default(attr)

    def visit_For(self, loop: For) -> Stmt:
        loop = self.visit_default(loop)
        wanted = loop.kind == ForKind.UNROLLED
        if not isinstance(loop.extent, IntImm):
            if wanted and not loop.extent.dtype.is_integral:
                raise IRValueError("UnrollLoop: the extent of an unrolled loop must be constant")
            return loop.with_(kind=ForKind.SERIAL) if wanted else loop
        steps = loop.extent.value * max(1, len(collect(loop.body, (BufferStore, Evaluate))))
        if wanted and steps > LIMIT:
            return loop.with_(kind=ForKind.SERIAL)
        if not wanted and (loop.kind != ForKind.SERIAL or steps > self.max_step):
            return loop
        return unrolled(loop, loop.extent.value)


def unrolled(loop: For, count: int) -> Stmt:
    """``count`` copies of the body; each has variables and buffers of its own."""
    copies = []
    for index in range(count):
        value = op.add(loop.min, IntImm(loop.loop_var.dtype, index))
        body = loop.body if index == 0 else renewed(loop.body)
        copies.append(substitute(body, {loop.loop_var: value}))
    return seq(*copies)


def renewed(body: Stmt) -> Stmt:
    """A copy in which everything the body defines is new (SSA: one definition a variable)."""
    defined = collect(body, (For, LetStmt, Allocate, DeclBuffer))
    mapping: dict[object, object] = {}
    for item in defined:
        if isinstance(item, For):
            mapping[item.loop_var] = _fresh(item.loop_var)
        elif isinstance(item, LetStmt):
            mapping[item.var] = _fresh(item.var)
        elif isinstance(item, Allocate):
            mapping[item.buffer_var] = _fresh(item.buffer_var)
    for item in defined:
        if isinstance(item, DeclBuffer):
            data = mapping.get(item.buffer.data)
            if data is not None:
                mapping[item.buffer] = item.buffer.with_(data=data)
    return substitute(body, mapping) if mapping else body


def _fresh(var: Var) -> Var:
    return type(var)(var.name, var.type_annotation)


def unroll_loop(func: PrimFunc) -> PrimFunc:
    """The function with its unrolled loops expanded (option ``tir.UnrollLoop``)."""
    options = PassContext.current().config.get("tir.UnrollLoop", {})
    return rewrite_body(func, _Unroll(int(options.get("auto_max_step", 0))))


def UnrollLoop() -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.UnrollLoop``."""
    return make_pass("UnrollLoop", unroll_loop)
