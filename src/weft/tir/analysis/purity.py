"""Tests whether a PrimFunc is pure: it writes only its own memory and calls only pure operators."""

from __future__ import annotations

from weft.ir.functor import Visitor
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.stmt import Allocate, Block, BufferStore


class _Purity(Visitor):
    def __init__(self) -> None:
        self.allocated: set[Var] = set()
        self.fault: str | None = None

    def report(self, text: str) -> None:
        self.fault = self.fault or text

    def visit_Allocate(self, node: Allocate) -> None:
        self.allocated.add(node.buffer_var)
        self.visit_default(node)

    visit_AllocateConst = visit_Allocate

    def visit_Block(self, node: Block) -> None:
        self.allocated.update([buffer.data for buffer in node.alloc_buffers])
        self.visit_default(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        if node.buffer.data not in self.allocated:
            self.report(f"it writes to the buffer {node.buffer.name}")
        self.visit(node.value)
        self.visit(node.indices)

    def visit_Call(self, node: Call) -> None:
        self.visit(node.args)
        if effect_of(node) == CallEffectKind.UpdateState:
            self.report(f"it calls {getattr(node.op, 'name', getattr(node.op, 'name_hint', '?'))}")

    def visit_Buffer(self, node: Buffer) -> None:
        pass


@deep_recursion
def is_pure_function(func: PrimFunc) -> bool:
    """Whether the function has no effect that a caller could see."""
    purity = _Purity()
    purity.visit(func.body)
    return purity.fault is None


@deep_recursion
def assert_pure_function(func: PrimFunc) -> bool:
    """True for a pure function; else an IRValueError says what it does."""
    purity = _Purity()
    purity.visit(func.body)
    if purity.fault is not None:
        name = func.attrs.get("global_symbol", "the function")
        raise IRValueError(f"{name} is expected to be pure, but {purity.fault}")
    return True
