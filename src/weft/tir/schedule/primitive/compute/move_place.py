"""A block that is to move below a loop: the blocks it depends on, and the places it may go to."""

from __future__ import annotations

from weft.tir.schedule import checks, dependence, tree
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import Block, BlockRealize, For, Stmt, stmt_list

LAST, FIRST = -1, -2


class NotInSameScopeError(ScheduleFailure):
    """The loop is in another scope than the block, or around it."""


class RequiredBlocksError(ScheduleFailure):
    """Some consumers (or producers) of the block are not below the loop."""


class InsertionPointError(ScheduleFailure):
    """The index is no place between the block's producers and its consumers."""


class Move:
    """One move of a block below a loop: ``producing`` says whether to its consumers."""

    def __init__(
        self, state: ScheduleState, block: StmtSRef, loop: StmtSRef, *, producing: bool
    ) -> None:
        self.state, self.sref, self.loop, self.producing = state, block, loop, producing
        self.scope = checks.scope_root(state, block)
        self.block, self.root = tree.block_of(block), tree.block_of(self.scope)
        self.producers = dependence.producers_of(self.block, self.root)
        self.consumers = dependence.consumers_of(self.block, self.root)
        self.required = self.consumers if producing else self.producers
        self.realize = tree.realize_of(state, block)
        self.reduces = any(a.accumulates for a in self.block.iter_vars)

    def check_places(self) -> None:
        """The loop is in the block's scope and not around it."""
        if tree.scope_of(self.loop) is not self.scope:
            raise NotInSameScopeError(
                self.state,
                f"{name_of(self.loop)} is not in the same block scope as {name_of(self.sref)}",
                (self.sref, self.loop),
            )
        if self.loop in tree.loops_above(self.sref):
            raise NotInSameScopeError(
                self.state,
                f"{name_of(self.loop)} is an ancestor of block {self.block.name_hint}",
                (self.sref, self.loop),
            )

    def insertion_point(self, index: int) -> int:
        """The place in the loop's body; an error if not all required blocks are there."""
        inside = [_blocks_of(part) for part in stmt_list(loop_of(self.loop).body)]
        self.check_required({block for part in inside for block in part})
        self.check_order({block for part in inside for block in part})
        after = [i for i, part in enumerate(inside) if not part.isdisjoint(self.producers)]
        before = [i for i, part in enumerate(inside) if not part.isdisjoint(self.consumers)]
        first = after[-1] + 1 if after else 0
        last = before[0] if before else len(inside)
        if first > last:
            raise InsertionPointError(
                self.state,
                f"the last producer of {name_of(self.sref)} is statement {first - 1} of "
                f"{name_of(self.loop)}, its first consumer is statement {last}",
                (self.sref, self.loop),
            )
        place = last if index == LAST else first if index == FIRST else index
        if not first <= place <= last:
            raise InsertionPointError(
                self.state,
                f"index {index} of {name_of(self.loop)} is not between the producers "
                f"and the consumers of {name_of(self.sref)}: {first} to {last} are",
                self.loop,
                f"give {first} to {last}, -1 for the last or -2 for the first of these",
            )
        return place

    def check_order(self, inside: set[Block]) -> None:
        """Other producers come before the loop, other consumers after it."""
        blocks = dependence.hazards_below(self.root).blocks
        places = [i for i, block in enumerate(blocks) if block in inside]
        for i, block in enumerate(blocks):
            early = i < places[0] and block in self.consumers
            late = i > places[-1] and block in self.producers
            if early or late:
                raise InsertionPointError(
                    self.state,
                    f"{block.name_hint}, a {'consumer' if early else 'producer'} of "
                    f"{name_of(self.sref)}, is {'before' if early else 'after'} "
                    f"{name_of(self.loop)}",
                    (self.loop, self.state.sref_of(block)),
                )

    def check_required(self, inside: set[Block]) -> None:
        """All consumers (or producers) are below the loop."""
        missing = [block for block in self.required if block not in inside]
        if missing:
            what = "consumers" if self.producing else "producers"
            names = ", ".join([block.name_hint for block in missing])
            srefs = [self.state.sref_of(block) for block in missing]
            raise RequiredBlocksError(
                self.state,
                f"it requires all the {what} of {name_of(self.sref)} below {name_of(self.loop)}; "
                f"not there: {names}",
                (self.loop, *srefs),
                f"choose a loop around all the {what}, or move {names} there first",
            )


def _blocks_of(stmt: Stmt) -> set[Block]:
    """The blocks in a part of a loop's body that are in no other block."""
    if isinstance(stmt, BlockRealize):
        return {stmt.block}
    if isinstance(stmt, For):
        return {realize.block for realize in tree.child_realizes(stmt)}
    blocks: set[Block] = set()
    for inner in tree.nearest(stmt):
        blocks |= _blocks_of(inner)
    return blocks
