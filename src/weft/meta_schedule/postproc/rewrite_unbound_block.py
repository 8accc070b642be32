"""Binding the blocks that no rule has bound to the threads of a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.scheduled_functions import block_variable, functions
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.target_facts import needed_number, target_of
from weft.meta_schedule.thread_binding import Limits, bind_block
from weft.tir.schedule import tree
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import BlockRealize, For, Stmt
from weft.tir.transform.threads.thread_scope import binding_of


class RewriteUnboundBlock(Postproc):
    """Binds the spatial loops of each block that stands under no threads of a GPU.

    Args:
        max_threadblocks: the most blocks of threads.
    """

    def __init__(self, max_threadblocks: int = 256) -> None:
        self.max_threadblocks = max_threadblocks
        self.max_threads_per_block = -1

    def _initialize_with_tune_context(self, context: Context) -> None:
        name = "RewriteUnboundBlock"
        self.max_threads_per_block = needed_number(
            target_of(context, name), "max_threads_per_block", name
        )

    def apply(self, sch: Schedule) -> bool:
        """Bind the blocks; always True."""
        limits = Limits(self.max_threadblocks, self.max_threads_per_block)
        unbound = [
            sch.state.sref_of(realize)
            for _, func in functions(sch)
            if isinstance(func.body, BlockRealize)
            for realize in _unbound(func.body.block.body, frozenset())
        ]
        for sref in unbound:
            bind_block(sch, block_variable(sch, sref), limits, lambda most: most)
        return True


def _unbound(stmt: Stmt, tags: frozenset[str]) -> Iterator[BlockRealize]:
    """The outer blocks under no blocks of threads, or under no threads."""
    if isinstance(stmt, BlockRealize):
        yield stmt
        return
    if isinstance(stmt, For):
        binding = binding_of(stmt)
        if binding is not None and not binding.is_virtual:
            tags |= {"block" if binding.is_block else "thread"}
    if len(tags) < 2:
        for inner in tree.substatements(stmt):
            yield from _unbound(inner, tags)
