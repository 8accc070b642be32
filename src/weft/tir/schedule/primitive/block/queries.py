"""Finding blocks and loops."""

from __future__ import annotations

import difflib

from weft.tir.schedule import checks, dependence, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import BlockNotFoundError
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.stmt import Block


def _with_function(self: Session, arguments: dict[str, object]) -> None:
    if arguments["func_name"] is None:
        arguments["func_name"] = self._default_function().name_hint


@primitive("GetBlock", pure=True, canonical=_with_function)
def get_block(self: Session, name: str, func_name: str | None = None) -> BlockRV:
    """Return the block of a name.

    Args:
        name: the block's name, as in ``T.block(name)``; "root" is the block around all others.
        func_name: the function to look in. Left out, it is the one that ``work_on`` chose, or the
            only function, or ``main``.

    Raises:
        BlockNotFoundError: no block has the name, or several have.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.get_block("B")
    BlockRV(B)
    """
    root = self.state.roots[self._function_named(func_name or "main")]
    blocks = [item for item in tree.all_references(tree.block_of(root)) if isinstance(item, Block)]
    named = [block for block in blocks if block.name_hint == name]
    if len(named) == 1:
        return self._block_rv(self.state.sref_of(named[0]))
    if named:
        raise BlockNotFoundError(
            self.state,
            f"{len(named)} blocks of {func_name} are called {name!r}",
            tuple([self.state.sref_of(block) for block in named]),
            "give them names of their own with T.block(name), or reach one from another block",
        )
    names = [block.name_hint for block in blocks]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(names[:12])
    raise BlockNotFoundError(
        self.state, f"there is no block {name!r} in {func_name}; there are {shown}", None, hint
    )


@primitive("GetLoops", "block", pure=True)
def get_loops(self: Session, block: BlockRV | str) -> list[LoopRV]:
    """Return the loops around a block, outermost first, up to the next block around it.

    Args:
        block: the block, or its name.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.get_loops("B")
    [LoopRV(i), LoopRV(j)]
    """
    return self._loop_rvs(tree.loops_above(self._sref(block)))


@primitive("GetChildBlocks", "block_or_loop", pure=True)
def get_child_blocks(self: Session, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
    """Return the blocks directly inside a block or loop: those in no other block inside it.

    Args:
        block_or_loop: the block or loop to look into.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.get_child_blocks(sch.get_block("root"))
    [BlockRV(B), BlockRV(C)]
    """
    stmt = tree.stmt_of(self._sref(block_or_loop))
    return self._block_rvs([realize.block for realize in tree.child_realizes(stmt)])


@primitive("GetProducers", "block", pure=True)
def get_producers(self: Session, block: BlockRV | str) -> list[BlockRV]:
    """Return the blocks that write what a block reads, or that write what it writes before it does.

    Only blocks in the same scope, the next block around it, are returned.

    Args:
        block: the block, or its name.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.get_producers("C")
    [BlockRV(B)]
    """
    sref = self._sref(block)
    scope = checks.scope_root(self.state, sref)
    return self._block_rvs(dependence.producers_of(tree.block_of(sref), tree.block_of(scope)))


@primitive("GetConsumers", "block", pure=True)
def get_consumers(self: Session, block: BlockRV | str) -> list[BlockRV]:
    """Return the blocks that read what a block writes, or that write it again after it does.

    Only blocks in the same scope, the next block around it, are returned.

    Args:
        block: the block, or its name.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.get_consumers("B")
    [BlockRV(C)]
    """
    sref = self._sref(block)
    scope = checks.scope_root(self.state, sref)
    return self._block_rvs(dependence.consumers_of(tree.block_of(sref), tree.block_of(scope)))


@primitive("GetOutputBlocks", "scope_block", pure=True)
def get_output_blocks(self: Session, scope_block: BlockRV | str) -> list[BlockRV]:
    """Return the blocks inside a scope that write memory which the scope does not allocate itself.

    A block that stands inside another one of the result comes after it.

    Args:
        scope_block: the block to look into, or its name; "root" gives the blocks that write the
            function's results.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.get_output_blocks("root")
    [BlockRV(C)]
    """
    scope = tree.block_of(self._sref(scope_block))
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
def enter_postproc(self: Session) -> None:
    """Mark in the trace that the calls from here on are post-processing.

    The program does not change. Replaying a trace with ``remove_postproc=True`` leaves out what
    follows the mark.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> sch.enter_postproc()
    >>> print(sch.trace)
    # from tvm import tir
    def apply_trace(sch: tir.Schedule) -> None:
      sch.enter_postproc()
    """
