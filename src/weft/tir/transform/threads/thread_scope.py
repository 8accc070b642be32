"""GPU threads in statements: which loop is bound to what, and where a kernel begins.

A loop of kind ``thread_binding``, and the attributes ``thread_extent`` and ``virtual_thread`` that
LowerOpaqueBlock makes of it, say that the variable is an index of the running thread. A kernel is
the outermost of these; all loops inside it that are bound to one tag run over the same threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.op import Op
from weft.support.errors import IRValueError
from weft.tir.buffer import Buffer
from weft.tir.expr import Call, IterVar, Var
from weft.tir.stmt import AttrStmt, Evaluate, For, ForKind, Stmt

LAUNCH: Final = ("thread_extent", "virtual_thread")
WARP_SIZE: Final = 32


@dataclass(frozen=True)
class Binding:
    """A statement whose variable is an index of the running thread."""

    stmt: Stmt
    var: Var
    tag: str
    low: PrimExpr | None
    extent: PrimExpr
    body: Stmt

    @property
    def is_block(self) -> bool:
        """Whether the tag numbers blocks of threads."""
        return self.tag.startswith("blockIdx.")

    @property
    def is_virtual(self) -> bool:
        """Whether the tag numbers virtual threads."""
        return self.tag.startswith("vthread")

    @property
    def is_thread(self) -> bool:
        """Whether the tag numbers the threads of a block, virtual ones included."""
        return not self.is_block


def binding_of(stmt: object) -> Binding | None:
    """The binding that a statement makes, or None."""
    if isinstance(stmt, For):
        if stmt.kind is not ForKind.THREAD_BINDING:
            return None
        tag = stmt.thread_binding.thread_tag if stmt.thread_binding is not None else ""
        return Binding(stmt, stmt.loop_var, checked_tag(tag), stmt.min, stmt.extent, stmt.body)
    if isinstance(stmt, AttrStmt) and stmt.attr_key in LAUNCH and isinstance(stmt.node, IterVar):
        tag = checked_tag(stmt.node.thread_tag or "vthread")
        return Binding(stmt, stmt.node.var, tag, None, stmt.value, stmt.body)
    return None


def checked_tag(tag: str) -> str:
    """The tag if it names an axis of blocks, threads or virtual threads."""
    kind, _, axis = tag.partition(".")
    if (kind in ("blockIdx", "threadIdx") and axis in ("x", "y", "z")) or kind == "vthread":
        return tag
    raise IRValueError(
        f"a loop is bound to {tag!r}; expected blockIdx.x/y/z, threadIdx.x/y/z, vthread or "
        "vthread.x/y/z"
    )


def scope_of(buffer: Buffer) -> str:
    """The storage scope without its suffix: ``shared`` of ``shared.dyn``."""
    return buffer.scope().partition(".")[0]


def sync_of(stmt: object) -> str | None:
    """The scope that a barrier statement names, or None."""
    if not isinstance(stmt, Evaluate) or not isinstance(stmt.value, Call):
        return None
    call = stmt.value
    if not isinstance(call.op, Op) or call.op.name != "tir.tvm_storage_sync" or not call.args:
        return None
    return str(getattr(call.args[0], "value", call.args[0])).partition(".")[0]


class _Bindings(Visitor):
    def __init__(self) -> None:
        self.found: list[Binding] = []

    def visit_Stmt(self, stmt: Stmt) -> None:
        binding = binding_of(stmt)
        if binding is not None:
            self.found.append(binding)
        self.visit_default(stmt)

    def visit_PrimExpr(self, expr: PrimExpr) -> None:
        return


def bindings_in(root: object) -> list[Binding]:
    """Every binding below (and at) a node, outermost first."""
    if not has_threads(root):
        return []
    visitor = _Bindings()
    visitor.visit(root)
    return visitor.found


def has_threads(root: object) -> bool:
    """Whether anything below is bound to threads."""
    return any(map(binding_of, collect(root, (For, AttrStmt))))


def thread_text(indices: Mapping[str, int]) -> str:
    """A thread in messages: ``(threadIdx.x=3, threadIdx.y=0)``."""
    return "(" + ", ".join([f"{tag}={index}" for tag, index in indices.items()]) + ")"
