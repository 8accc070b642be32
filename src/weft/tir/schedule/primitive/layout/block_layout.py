"""transform_block_layout maps the axes of a block, and the loops around it, by an index map.

The block gets one axis ``v0, v1, ...`` and one loop ``ax0, ax1, ...`` for each index of the map;
in its body, the inverse of the map replaces the old axes. The instances run in another order, so
the block must be complete or a reduction; the map is bijective, and no new axis is a mixture of
reduction axes and others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.support.errors import TVMError
from weft.tir import op
from weft.tir.expr import IterVar, Var
from weft.tir.index_map import IndexMap
from weft.tir.schedule import checks, independence, rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.cache_stage import region_text
from weft.tir.schedule.primitive.layout.layout_rewrite import simplify_accesses
from weft.tir.schedule.primitive.layout.transform_layout import (
    default_index_dtype,
    with_dtype,
    with_known,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import check_self_contained, is_remap
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, For, ForKind, Stmt


class BlockNestError(ScheduleFailure):
    """The block is not alone in its loops, each bound to one axis."""


class BlockMapError(ScheduleFailure):
    """The map does not fit the axes of the block, or is not bijective."""


class MixedAxisError(ScheduleFailure):
    """An axis would be made of a reduction axis and another one."""


def _index_map(self: Session, arguments: dict[str, Any]) -> None:
    block, index_map = self.get(arguments["block"]), arguments["index_map"]
    if not isinstance(index_map, IndexMap):
        arguments["index_map"] = IndexMap.from_func(
            index_map, len(block.iter_vars), index_dtype=default_index_dtype(block)
        )


def check_stores_apart(state: ScheduleState, sref: StmtSRef) -> None:
    """No two instances access one element of what the block writes: they run in another order."""
    block = tree.block_of(sref)
    pinned = independence.pinned_axes(block)
    for axis in block.iter_vars:
        if axis.iter_type == IterVar.DataPar and axis.var not in pinned and state.enable_check:
            places = ", ".join([region_text(region) for region in block.writes])
            raise BlockMapError(
                state,
                f"instances of {name_of(sref)} that differ in {axis.var.name} may access the same "
                f"elements of {places}: their order matters",
                sref,
            )


@primitive("TransformBlockLayout", "block index_map", canonical=_index_map)
def transform_block_layout(self: Session, block: BlockRV | str, index_map: Any) -> None:
    """Give a block other axes, and other loops around it, by a map of the old ones.

    Args:
        block: the block, or its name; it is alone in its loops.
        index_map: from the old axes to the new ones: a function, or an IndexMap. It must be
            bijective.

    Raises:
        BlockMapError: the map does not fit the axes, is not bijective, or would change the order in
            which the block uses the same elements.
        BlockNestError: the block's axes are not each a loop of their own, with nothing else inside.
        MixedAxisError: a new axis would mix a spatial axis with a reduction.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> sch.transform_block_layout("B", lambda i, j: (i * 32 + j,))
    >>> [sch.get(loop).extent.value for loop in sch.get_loops("B")]
    [256]
    """
    state, sref = self.state, self._sref(block)
    scope = checks.scope_root(state, sref)
    loops = tree.loops_above(sref)
    realize = tree.realize_of(state, sref)
    _check_nest(state, sref, realize, loops)
    checks.check_complete_or_reduction_block(state, sref, scope)
    check_self_contained(state, sref, loops)
    check_stores_apart(state, sref)
    layout = with_known(self, index_map)
    old = realize.block
    if len(layout.initial_indices) != len(old.iter_vars):
        raise BlockMapError(
            state,
            f"{name_of(sref)} has {len(old.iter_vars)} axes, the map takes "
            f"{len(layout.initial_indices)}: {layout.to_python_string()}",
            sref,
        )
    if old.iter_vars:
        layout = with_dtype(layout, old.iter_vars[0].var.dtype)
    axes, originals = _new_axes(state, sref, old, layout)
    mapping = {axis.var: value for axis, value in zip(old.iter_vars, originals, strict=True)}
    bare = old.with_(iter_vars=())
    inner, reuse = rewrite.substitute(bare, mapping)
    assert isinstance(inner, Block)
    new_block = simplify_accesses(inner.with_(iter_vars=axes))
    variables = [Var(f"ax{i}", axis.var.dtype) for i, axis in enumerate(axes)]
    body: Stmt = BlockRealize(variables, op.const(True), new_block)
    for var, axis in zip(reversed(variables), reversed(axes), strict=True):
        assert axis.dom is not None
        body = For(var, IntImm(var.dtype, 0), axis.dom.extent, ForKind.SERIAL, body)
    reuse.pop(bare, None)
    reuse[old] = new_block
    if loops:
        state.replace(loops[0], body, reuse)
    else:
        _replace_realize(state, scope, realize, body, reuse)


def _replace_realize(
    state: ScheduleState, scope: StmtSRef, realize: BlockRealize, body: Stmt, reuse: rewrite.Reuse
) -> None:
    """Replace a block without loops by loops around a block."""

    class Put(rewrite.BlockMutator):
        def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
            return body if node is realize else node

    assert isinstance(scope.stmt, Block)
    new_scope = scope.stmt.with_(body=Put().visit(scope.stmt.body))
    state.replace(scope, new_scope, {**reuse, scope.stmt: new_scope})


def _check_nest(
    state: ScheduleState, sref: StmtSRef, realize: BlockRealize, loops: Sequence[StmtSRef]
) -> None:
    count = tree.alone_in(sref, loops[::-1])
    if count < len(loops):
        shared = loops[-1 - count]
        raise BlockNestError(
            state, f"{name_of(sref)} is not all that {name_of(shared)} runs", (shared, sref)
        )
    used = set(realize.iter_values)
    for loop in loops:
        assert isinstance(loop.stmt, For)
        if loop.stmt.loop_var not in used and not op.is_const_int(loop.stmt.extent, 1):
            raise BlockNestError(
                state, f"{name_of(loop)} is bound to no axis of {name_of(sref)}", (loop, sref)
            )
    if not is_remap(realize, loops):
        values = ", ".join([str(value) for value in realize.iter_values])
        raise BlockNestError(
            state,
            f"the axes of {name_of(sref)} are not each a loop over its domain, without a "
            f"predicate: they are {values}",
            sref,
            "do this before loops are split or fused",
        )
    for axis in realize.block.iter_vars:
        if axis.dom is None or not op.is_const_int(axis.dom.min, 0):
            raise BlockNestError(state, f"axis {axis.var.name} does not start at 0", sref)


def _new_axes(
    state: ScheduleState, sref: StmtSRef, block: Block, layout: IndexMap
) -> tuple[list[IterVar], list[PrimExpr]]:
    """The new axes, and the old ones as expressions of them."""
    extents = [axis.dom.extent for axis in block.iter_vars if axis.dom is not None]
    try:
        inverse = layout.inverse(extents)
        shape = layout.map_shape(extents)
    except TVMError as error:
        raise BlockMapError(
            state,
            f"{layout.to_python_string()} is no bijective affine map of the axes of "
            f"{name_of(sref)}: {str(error).splitlines()[0]}",
            sref,
        ) from None
    kinds = {
        var: axis.iter_type
        for var, axis in zip(layout.initial_indices, block.iter_vars, strict=True)
    }
    axes = []
    for position, (index, extent) in enumerate(zip(layout.final_indices, shape, strict=True)):
        mixed = {kinds[var] for var in collect(index, Var) if var in kinds}
        kind = IterVar.DataPar
        if not op.is_const_int(extent, 1):
            if len(mixed) != 1:
                names = ", ".join([var.name for var in collect(index, Var) if var in kinds])
                raise MixedAxisError(
                    state, f"index {index} mixes axes of several kinds: {names}", sref
                )
            kind = mixed.pop()
        var = Var(f"v{position}", index.dtype)
        dom = Range.from_min_extent(IntImm(var.dtype, 0), op.cast(var.dtype, extent))
        axes.append(IterVar(dom, var, kind))
    return axes, list(inverse.map_indices([axis.var for axis in axes]))
