"""UnrollLoop replaces a loop of kind ``unrolled`` (or under a pragma) by copies of its body.

``pragma_auto_unroll_max_step``, or the option ``{"tir.UnrollLoop": {"auto_max_step": n}}`` of the
pass context, unrolls serial loops while the steps stay below its value. Under
``pragma_unroll_explicit`` 0 (option ``explicit_unroll``), and where the bodies would be more than
``LIMIT`` statements, loops stay and have kind ``unrolled``: code generation tells LLVM to unroll
them.
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import IntImm
from weft.ir.functor import collect, contains, substitute
from weft.ir.transform import PassContext
from weft.support.errors import PassError
from weft.tir import op
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, SeqStmt, Stmt, seq
from weft.tir.stmt_functor import DEFINITIONS, redefined
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

LIMIT: Final = 4096


OPTIONS: Final = ("auto_max_step", "auto_max_depth", "auto_max_extent", "explicit_unroll")


class _Unroll(StmtMutator):
    """Expands loops from the inside out; ``depth`` counts unrolled loops inside the current one."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.max_step = int(options.get("auto_max_step", 0))
        self.max_depth = int(options.get("auto_max_depth", 8))
        self.max_extent = int(options.get("auto_max_extent", 0))
        self.explicit = bool(options.get("explicit_unroll", True))
        self.depth = 0

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        value = attr.value.value if isinstance(attr.value, IntImm) else 0
        field = _PRAGMAS.get(attr.attr_key)
        if field is None:
            return self.visit_default(attr)
        outer = getattr(self, field)
        setattr(self, field, type(outer)(value))
        body: Stmt = self.visit(attr.body)
        setattr(self, field, outer)
        return body

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        visited, outer, deepest = [], self.depth, 0
        for item in stmt.seq:
            self.depth = 0
            visited.append(self.visit(item))
            deepest = max(deepest, self.depth)
        self.depth = max(outer, deepest)
        if all(new is old for new, old in zip(visited, stmt.seq, strict=True)):
            return stmt
        return seq(*visited)

    def visit_For(self, loop: For) -> Stmt:
        loop = self.visit_default(loop)
        wanted = loop.kind == ForKind.UNROLLED
        if not isinstance(loop.extent, IntImm):
            return loop.with_(kind=ForKind.SERIAL) if wanted else loop
        count = loop.extent.value
        if not wanted and not self.chosen(loop, count):
            return loop
        self.depth += 1
        if not (self.explicit or (count == 1 and self.max_extent == 1)):
            return loop if wanted else loop.with_(kind=ForKind.UNROLLED)
        if count * max(1, _statements(loop.body)) > LIMIT:
            return loop.with_(kind=ForKind.UNROLLED)
        return unrolled(loop, count) if count > 0 else Evaluate(0)

    def chosen(self, loop: For, count: int) -> bool:
        """Whether a serial loop is short enough to unroll by itself."""
        if loop.kind != ForKind.SERIAL or self.depth > self.max_depth:
            return False
        if any(inner.kind != ForKind.UNROLLED for inner in collect(loop.body, For)):
            return False
        return count <= self.max_extent or count * max(1, _statements(loop.body)) <= self.max_step


_PRAGMAS: Final = {
    "pragma_auto_unroll_max_step": "max_step", "pragma_auto_unroll_max_depth": "max_depth",
    "pragma_unroll_explicit": "explicit",
}  # fmt: skip


def _statements(stmt: Stmt) -> int:
    """The number of stores and calls that run, those in a loop counted once for each iteration."""
    if isinstance(stmt, For):
        extent = stmt.extent.value if isinstance(stmt.extent, IntImm) else 1
        return max(extent, 1) * _statements(stmt.body)
    if isinstance(stmt, (BufferStore, Evaluate)):
        return 1
    total = 0
    for name in stmt.CHILDREN:
        value = getattr(stmt, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Stmt):
                total += _statements(item)
    return total


def unrolled(loop: For, count: int) -> Stmt:
    """``count`` copies of the body; each has variables and buffers of its own."""
    copies = []
    defines = contains(loop.body, DEFINITIONS)
    for index in range(count):
        value = op.add(loop.min, IntImm(loop.loop_var.dtype, index))
        renew = redefined if defines and index > 0 else substitute
        copies.append(renew(loop.body, {loop.loop_var: value}))
    return seq(*copies)


def unroll_loop(func: PrimFunc) -> PrimFunc:
    """The function with copies of the body for each unrolled loop (option ``tir.UnrollLoop``)."""
    options = PassContext.current().config.get("tir.UnrollLoop", {})
    unknown = sorted(set(options) - {*OPTIONS, "unroll_local_access"})
    if unknown:
        raise PassError(
            f"tir.UnrollLoop: there is no option {unknown[0]!r}; there are: {', '.join(OPTIONS)}"
        )
    return rewrite_body(func, _Unroll(options))


UnrollLoop = define_pass("UnrollLoop", unroll_loop)
