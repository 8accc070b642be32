"""blockize: a subtree of loops, or neighbouring blocks, as one block.

The values of a block's axes are divided into ``outer * extent + inner`` (``subspace_divide``): the
new outer block has the outer parts as axes, the old block inside of it the inner ones. An init goes
to the outer block.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.int_set import as_int_set, union
from weft.ir.expr import Range
from weft.ir.functor import substitute
from weft.support.errors import IRTypeError
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import Var
from weft.tir.schedule import rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import RootBlockError, name_of
from weft.tir.schedule.primitive.block.block_division import (
    BlockizeInitError,
    BlockizeNestError,
    BlockizeOuterError,
    Division,
    blockized,
    divide,
    relaxed,
    substituted,
)
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import domains_of
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import Block, BlockRealize, For, SeqStmt, Stmt, seq


@primitive("Blockize", "target")
def blockize(
    self: Session, target: LoopRV | list[BlockRV], preserve_unit_iters: bool = True
) -> BlockRV:
    """Make one block of a loop and all inside it, or of several blocks that stand side by side.

    The new block hides what is in it: the blocks around see only which regions it reads and writes.

    Args:
        target: the loop, or a list of blocks.
        preserve_unit_iters: keep axes of extent 1 in what the new block's axes are bound to.

    Returns:
        The new block, ``<name>_o``. A block under the loop keeps its name and its BlockRV.

    Raises:
        BlockizeNestError: there is more than one block under the loop, or the blocks are not side
            by side.
        SubspaceError: the axes of the block do not divide into loops outside and inside.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> row = sch.blockize(sch.get_loops("B")[1])
    >>> sch.get(row).reads[0].region
    [I.Range.from_min_extent(v_i_o, 1), I.Range(0, 32)]
    """
    state = self.state
    if isinstance(target, LoopRV):
        at = self._sref(target)
        realize, reuse = blockized(state, at, preserve_unit_iters)
        state.replace(at, realize, reuse)
        return self._block_rv(realize.block)
    if not isinstance(target, (list, tuple)) or not target:
        raise IRTypeError(
            f"sch.blockize: target: expected a LoopRV or a list of BlockRV, got {target!r}"
        )
    srefs = [self._sref(self._block_named(b)) for b in target]
    return self._block_rv(_blockize_several(state, srefs, preserve_unit_iters))


# ---- several blocks side by side


def _blockize_several(
    state: ScheduleState, srefs: Sequence[StmtSRef], preserve_unit_iters: bool
) -> Block:
    place, ordered, low = _neighbours(state, srefs)
    bodies: list[Stmt] = []
    first: Division | None = None
    regions: tuple[list[BufferRegion], list[BufferRegion]] = ([], [])
    reuse: rewrite.Reuse = {}
    for sref in ordered:
        _check_no_reduction(state, sref)
        inner = tree.loops_above(sref, stop=place)
        axes = None if first is None else first.outer_axes
        division = divide(state, sref, inner, preserve_unit_iters, axes)
        if first is None:
            first = division
        _check_same_outer(state, (ordered[0], sref), first, division)
        body, inside = _inner_part(state, sref, inner, division, regions)
        bodies.append(body)
        reuse.update(inside)
    assert first is not None
    names = "_".join([tree.block_of(sref).name_hint for sref in ordered])
    outer = Block(
        first.outer_axes, _united(regions[0]), _united(regions[1]), f"outer_{names}_", seq(*bodies)
    )
    realize = BlockRealize(first.outer_values, first.outer_condition, outer)
    old = tree.stmt_of(place)
    items = _items(old)
    parent = old.with_(body=seq(*items[:low], realize, *items[low + len(ordered) :]))
    if isinstance(old, Block) and isinstance(parent, Block):
        reuse[old] = parent
    state.replace(place, parent, reuse)
    return outer


def _items(stmt: For | Block) -> Sequence[Stmt]:
    return stmt.body.seq if isinstance(stmt.body, SeqStmt) else [stmt.body]


def _neighbours(
    state: ScheduleState, srefs: Sequence[StmtSRef]
) -> tuple[StmtSRef, list[StmtSRef], int]:
    """Where the blocks stand side by side, the blocks in program order, the place of the first."""
    root = next((sref for sref in srefs if sref.parent is None), None)
    if root is not None:
        raise RootBlockError(state, "the root block cannot be part of a block", root)
    alone = len(srefs) == 1
    place = srefs[0].parent if alone else tree.lowest_common_ancestor(srefs)
    assert place is not None
    old = tree.stmt_of(place)
    by_position: dict[int, StmtSRef] = {}
    for sref in srefs:
        path = {id(sref.stmt), *[id(item.stmt) for item in tree.loops_above(sref, stop=place)]}
        for position, item in enumerate(_items(old)):
            node = item.block if isinstance(item, BlockRealize) else item
            if id(node) in path and _holds_only(node, sref):
                by_position.setdefault(position, sref)
    positions = sorted(by_position)
    if len(by_position) < len(srefs) or positions[-1] - positions[0] + 1 != len(srefs):
        names = ", ".join([tree.block_of(sref).name_hint for sref in srefs])
        raise BlockizeNestError(
            state,
            f"blocks {names} do not stand side by side in {name_of(place)}",
            tuple(srefs),
            "each must be alone in its loops, and no other block between them",
        )
    return place, [by_position[position] for position in positions], positions[0]


def _holds_only(node: Stmt, sref: StmtSRef) -> bool:
    if node is sref.stmt:
        return True
    if not isinstance(node, For) or not tree.is_only_loops_and_blocks(node):
        return False
    inside = tree.child_realizes(node)
    return len(inside) == 1 and inside[0].block is sref.stmt


def _check_no_reduction(state: ScheduleState, sref: StmtSRef) -> None:
    block = tree.block_of(sref)
    reduces = [axis for axis in block.iter_vars if axis.accumulates]
    if block.init is not None and reduces:
        raise BlockizeInitError(
            state,
            f"{name_of(sref)} has an init and the reduction axis {reduces[0].var.name}",
            sref,
            "decompose the reduction first, or blockize a loop around this block alone",
        )


def _check_same_outer(
    state: ScheduleState, srefs: tuple[StmtSRef, StmtSRef], first: Division, other: Division
) -> None:
    analyzer = Analyzer()
    mine = [*first.outer_values, first.outer_condition]
    its = [*other.outer_values, other.outer_condition]
    same = len(mine) == len(its) and all(
        expr_deep_equal(a, b) or analyzer.can_prove_equal(a, b)
        for a, b in zip(mine, its, strict=True)
    )
    kinds = [[axis.iter_type for axis in tree.block_of(sref).iter_vars] for sref in srefs]
    if not same or kinds[0] != kinds[1]:
        shown = [", ".join([str(value) for value in values]) for values in (mine, its)]
        raise BlockizeOuterError(
            state,
            f"the outer axes of {name_of(srefs[0])} are ({shown[0]}), those of "
            f"{name_of(srefs[1])} ({shown[1]})",
            srefs,
        )


def _inner_part(
    state: ScheduleState,
    sref: StmtSRef,
    inner: Sequence[StmtSRef],
    division: Division,
    regions: tuple[list[BufferRegion], list[BufferRegion]],
) -> tuple[Stmt, rewrite.Reuse]:
    """A block with its loops, inside of the outer block; adds what it accesses to ``regions``."""
    old = tree.block_of(sref)
    block, reuse = substituted(old, division)
    pairs = zip(division.outer_values, division.outer_axes, strict=True)
    of_loop = {value: axis.var for value, axis in pairs if isinstance(value, Var)}
    axes = [axis.with_(dom=substitute(axis.dom, of_loop)) for axis in division.inner_axes]
    domains = domains_of(axes) | tree.domains(inner)
    regions[0].extend(relaxed(block.reads, domains))
    regions[1].extend(relaxed(block.writes, domains))
    inside = block.with_(iter_vars=axes)
    body: Stmt = BlockRealize(division.inner_values, division.inner_condition, inside)
    for item in reversed(inner):
        loop = loop_of(item)
        body = loop.with_(extent=substitute(loop.extent, of_loop), body=body)
    return body, {**reuse, old: inside}


def _united(regions: Sequence[BufferRegion]) -> list[BufferRegion]:
    """One region for each buffer: the box around all of its regions."""
    analyzer = Analyzer()
    by_buffer: dict[Buffer, list[BufferRegion]] = {}
    for region in regions:
        by_buffer.setdefault(region.buffer, []).append(region)
    boxes = []
    for buffer, parts in by_buffer.items():
        ranges = []
        for dimension, extent in enumerate(buffer.shape):
            sets = [as_int_set(part.region[dimension], analyzer) for part in parts]
            ranges.append(union(sets, analyzer).cover_range(Range(extent), analyzer))
        boxes.append(BufferRegion(buffer, ranges))
    return boxes
