"""Finding blocks and loops."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from weft.tir.schedule import checks, dependence, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import BlockNotFoundError
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.stmt import Block, For

if TYPE_CHECKING:
    from weft.tir.schedule.schedule import Schedule


def _with_function(self: Schedule, arguments: dict[str, object]) -> None:
    if arguments["func_name"] is None:
        arguments["func_name"] = self._default_function().name_hint


@primitive("GetBlock", pure=True, canonical=_with_function)
def get_block(self: Schedule, name: str, func_name: str | None = None) -> BlockRV:
    """The block of that name in a function (default: the one worked on, see ``work_on``).

    Raises BlockNotFoundError if no block or more than one has the name.
    """
    root = self.state.roots[self._function_named(func_name or "main")]
    assert isinstance(root.stmt, Block)
    blocks = [item for item in tree.all_references(root.stmt) if isinstance(item, Block)]
    named = [block for block in blocks if block.name_hint == name]
    if len(named) == 1:
        return self._block_rv(self.state.sref_of(named[0]))
    if named:
        raise BlockNotFoundError(
            self.state, f"{len(named)} blocks of {func_name} are called {name!r}",
            tuple([self.state.sref_of(block) for block in named]),
            "give them names of their own with T.block(name), or reach one from another block",
        )  # fmt: skip
    names = [block.name_hint for block in blocks]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(names[:12])
    raise BlockNotFoundError(
        self.state, f"there is no block {name!r} in {func_name}; there are {shown}", None, hint
    )


@primitive("GetLoops", "block", pure=True)
def get_loops(self: Schedule, block: BlockRV | str) -> list[LoopRV]:
    """The loops around a block inside its scope, outermost first."""
    return self._loop_rvs(tree.loops_above(self._sref(block)))


@primitive("GetChildBlocks", "block_or_loop", pure=True)
def get_child_blocks(self: Schedule, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
    """The blocks inside a block or loop that are in no other block inside it."""
    stmt = self._sref(block_or_loop).stmt
    assert isinstance(stmt, For | Block)
    return self._block_rvs([realize.block for realize in tree.child_realizes(stmt)])


@primitive("GetProducers", "block", pure=True)
def get_producers(self: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks of the scope that write what the block reads (or writes again)."""
    sref = self._sref(block)
    scope = checks.scope_root(self.state, sref)
    assert isinstance(sref.stmt, Block)
    assert isinstance(scope.stmt, Block)
    return self._block_rvs(dependence.producers_of(sref.stmt, scope.stmt))


@primitive("GetConsumers", "block", pure=True)
def get_consumers(self: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks of the scope that read (or write again) what the block writes."""
    sref = self._sref(block)
    scope = checks.scope_root(self.state, sref)
    assert isinstance(sref.stmt, Block)
    assert isinstance(scope.stmt, Block)
    return self._block_rvs(dependence.consumers_of(sref.stmt, scope.stmt))


@primitive("GetOutputBlocks", "scope_block", pure=True)
def get_output_blocks(self: Schedule, scope_block: BlockRV | str) -> list[BlockRV]:
    """The blocks inside a scope that write memory which is not allocated inside of it.

    Those in other blocks are among them, after the blocks that they are in.
    """
    scope = self._sref(scope_block).stmt
    assert isinstance(scope, Block)
    blocks = [item for item in tree.all_references(scope) if isinstance(item, Block)]
    inside = {buffer.data for block in blocks for buffer in block.alloc_buffers}
    for block in blocks:
        for match in block.match_buffers:
            if match.source.buffer.data in inside:
                inside.add(match.buffer.data)
    return self._block_rvs(
        [b for b in blocks[1:] if any(r.buffer.data not in inside for r in b.writes)]
    )


@primitive("EnterPostproc")
def enter_postproc(self: Schedule) -> None:
    """Mark the place in the trace from which on calls are post-processing."""
