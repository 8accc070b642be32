"""Blocks of bindings inside of a function: bodies of branches and of loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import BindingBlock, Expr, SeqExpr, Var


@dataclass(frozen=True)
class Taken:
    """Which of two branches is taken, and why the other does not fit ("": it may)."""

    index: int
    reason: str


class Opened:
    """A block that is being built; it has its bindings once it is closed."""

    def __init__(self) -> None:
        self.block = BindingBlock([])

    def ending_in(self, result: Expr) -> SeqExpr:
        """The bindings, then the result."""
        return SeqExpr([self.block], result)


@contextmanager
def opened_block(builder: BlockBuilder, params: Sequence[Var] | None = None) -> Iterator[Opened]:
    """A block with a scope of its own, closed whatever is raised inside."""
    opened = Opened()
    builder.begin_scope(params)
    builder.begin_binding_block()
    try:
        yield opened
    finally:
        opened.block = builder.end_block()
        builder.end_scope()
