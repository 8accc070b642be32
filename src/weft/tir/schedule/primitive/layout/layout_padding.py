"""How the padding that a layout introduces gets its value.

- Nothing writes the buffer (an input): its padding is assumed to hold the value (``T.assume``).
- A producer writes the elements in order and has no other effect: it runs over the new layout and
  writes the value into padding (``T.if_then_else``).
- Else a block after the last write fills the padding.

The producer is changed only if its order does not matter and it surely writes each element of the
new layout: it is alone in serial loops, has no conditions, and reads of the buffer only the element
that it writes. (TVM 0.20 looks at the loops alone and drops other statements in them.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.arith.deep_equal import all_deep_equal, expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Visitor, collect, substitute
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, IterVar, Var
from weft.tir.index_map import IndexMap
from weft.tir.intrinsic import CallEffectKind, assume, effect_of
from weft.tir.schedule import rewrite
from weft.tir.schedule.primitive.cache.cache_stage import points
from weft.tir.schedule.primitive.layout.layout_rewrite import LayoutPlan
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    LetStmt,
    SeqStmt,
    Stmt,
)


@dataclass
class Write:
    """A store of the buffer: the loops its indices come from, and the block around it."""

    store: BufferStore
    loops: list[For]
    realize: BlockRealize | None
    row_major: bool


class _Writes(Visitor):
    """Collects the stores of a buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.found: list[Write] = []
        self.loops: list[For] = []
        self.depths: dict[Var, tuple[int, int]] = {}
        self.values: dict[Var, PrimExpr] = {}
        self.realize: BlockRealize | None = None

    def visit_PrimExpr(self, node: PrimExpr) -> None:
        del node

    def visit_Block(self, node: Block) -> None:
        if self.buffer.data not in rewrite.variables_of(node):
            return
        if node.init is not None:
            self.visit(node.init)
        self.visit(node.body)

    def visit_For(self, node: For) -> None:
        depth = len(self.loops)
        self.depths[node.loop_var] = (depth, depth)
        self.loops.append(node)
        self.visit(node.body)
        self.loops.pop()
        del self.depths[node.loop_var]

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.define(node.var, node.value)
        self.visit(node.body)

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        for axis, value in zip(node.block.iter_vars, node.iter_values, strict=True):
            self.define(axis.var, value)
        outer, self.realize = self.realize, node
        self.visit(node.block)
        self.realize = outer

    def define(self, var: Var, value: PrimExpr) -> None:
        """A variable with a value, which may depend on loops."""
        depths = self.loops_of([value])
        if depths is not None:
            self.depths[var] = depths
            self.values[var] = substitute(value, self.values)

    def loops_of(self, exprs: Sequence[PrimExpr]) -> tuple[int, int] | None:
        """The depths of the outermost and the innermost loop that expressions depend on."""
        depths = [self.depths[var] for var in collect(list(exprs), Var) if var in self.depths]
        if not depths:
            return None
        return min([low for low, _ in depths]), max([high for _, high in depths])

    def visit_BufferStore(self, node: BufferStore) -> None:
        if node.buffer is not self.buffer:
            return
        depths = self.loops_of(node.indices)
        loops = [] if depths is None else self.loops[depths[0] : depths[1] + 1]
        indices = substitute(list(node.indices), self.values)
        self.found.append(
            Write(node, loops, self.realize, _is_row_major(loops, self.buffer, indices))
        )


def _is_row_major(loops: Sequence[For], buffer: Buffer, indices: Sequence[PrimExpr]) -> bool:
    """Whether plain nested loops run over the whole buffer, axis by axis."""
    if not loops or len(loops) != len(buffer.shape):
        return False
    for depth, (loop, extent, index) in enumerate(zip(loops, buffer.shape, indices, strict=True)):
        plain = loop.kind == ForKind.SERIAL and not loop.annotations and loop.thread_binding is None
        nested = depth + 1 == len(loops) or loop.body is loops[depth + 1]
        whole = op.is_const_int(loop.min, 0) and expr_deep_equal(loop.extent, extent)
        if not (index is loop.loop_var and plain and nested and whole):
            return False
    return True


@deep_recursion
def plan_padding(
    scope: Block, old: Buffer, new: Buffer, inverse: IndexMap, padding: PrimExpr, pad: IndexMap
) -> LayoutPlan:
    """Where and how the padding of ``new`` gets the value of ``pad``."""
    work = _Writes(old)
    work.visit(scope)
    fill = _Fill(old, new, inverse, padding, pad)
    if not work.found:
        return LayoutPlan(prologue=fill.assumption())
    plan = LayoutPlan()
    for write in work.found:
        if write.row_major and id(write.loops[0]) not in plan.replaced:
            replacement = fill.replacement(write)
            if replacement is not None:
                plan.replaced[id(write.loops[0])], reuse = replacement
                plan.reuse.update(reuse)
    if not plan.replaced:
        last = work.found[-1]
        place = last.loops[0] if last.loops else last.realize
        plan.after[id(place)] = fill.block()
    return plan


class _Fill:
    """The statements that give padding its value."""

    def __init__(
        self, old: Buffer, new: Buffer, inverse: IndexMap, padding: PrimExpr, pad: IndexMap
    ) -> None:
        self.old, self.new, self.inverse, self.padding, self.pad = old, new, inverse, padding, pad

    def fresh(self, prefix: str = "") -> list[Var]:
        """New variables for the indices of the new layout."""
        axes = self.inverse.initial_indices
        return [Var(prefix + axis.name, axis.dtype) for axis in axes]

    def is_padding(self, indices: Sequence[Var]) -> PrimExpr:
        """The condition under which these indices are those of padding."""
        mapping = dict(zip(self.inverse.initial_indices, indices, strict=True))
        return substitute(self.padding, mapping)

    def originals(self, indices: Sequence[Var]) -> list[PrimExpr]:
        """The old indices of the element at new ones."""
        mapping = dict(zip(self.inverse.initial_indices, indices, strict=True))
        return [substitute(index, mapping) for index in self.inverse.final_indices]

    def value(self, indices: Sequence[Var]) -> PrimExpr:
        """What padding holds at these indices."""
        return self.pad.map_indices(indices)[0]

    def axes(self, variables: Sequence[Var]) -> list[IterVar]:
        """Data-parallel axes over the new shape."""
        return [
            IterVar(Range.from_min_extent(IntImm(var.dtype, 0), extent), var, IterVar.DataPar)
            for var, extent in zip(variables, self.new.shape, strict=True)
        ]

    def nest(self, loops: Sequence[Var], body: Stmt) -> Stmt:
        """Loops over the new shape around a statement."""
        for var, extent in zip(reversed(loops), reversed(self.new.shape), strict=True):
            body = For(var, op.const(0, var.dtype), extent, ForKind.SERIAL, body)
        return body

    def assumption(self) -> Stmt:
        """The promise that the padding of an input holds its value."""
        loops, axes = self.fresh(), self.fresh("v_")
        held = op.equal(BufferLoad(self.new, axes), self.value(axes))
        body = Evaluate(assume(op.logical_or(op.logical_not(self.is_padding(axes)), held)))
        block = Block(
            self.axes(axes),
            [points(self.new, axes)],
            [],
            f"buffer_{self.new.name}_assumptions",
            body,
        )
        return self.nest(loops, BlockRealize(loops, op.const(True), block))

    def block(self) -> Stmt:
        """A block that writes the padding alone."""
        loops, axes = self.fresh(), self.fresh("v_")
        value = self.value(axes)
        reads = [points(load.buffer, load.indices) for load in collect(value, BufferLoad)]
        block = Block(
            self.axes(axes),
            reads,
            [points(self.new, axes)],
            f"buffer_{self.new.name}_padding",
            BufferStore(self.new, value, axes),
        )
        return self.nest(loops, BlockRealize(loops, self.is_padding(loops), block))

    def replacement(self, write: Write) -> tuple[Stmt, rewrite.Reuse] | None:
        """The loops of a producer over the new layout; None if they cannot be changed so."""
        body = write.loops[-1].body
        if collect(self.pad.final_indices, BufferLoad) or not _has_no_other_effect(body, write):
            return None
        loops = self.fresh()
        names = [loop.loop_var for loop in write.loops]
        mapping: dict[PrimExpr, PrimExpr] = dict(zip(names, self.originals(loops), strict=True))
        stores = loops
        inside = any(realize is write.realize for realize in collect(body, BlockRealize))
        replaced: BlockRealize | None = None
        if inside and write.realize is not None and write.realize.block.iter_vars:
            axes = self.fresh("v_")
            replaced = self.realize(write, set(names), loops, axes)
            if replaced is not None:
                stores = axes
                mapping.update(zip(write.store.indices, self.originals(axes), strict=True))
            elif set(names) & set(collect(list(write.realize.iter_values), Var)):
                return None
        work = _Producer(self, write, replaced, stores, mapping)
        new_body = work.visit(body)
        return self.nest(loops, new_body), work.reuse

    def realize(
        self, write: Write, names: set[Var], loops: Sequence[Var], axes: Sequence[Var]
    ) -> BlockRealize | None:
        """The realization with axes over the new layout; None if the old ones do not index."""
        realize = write.realize
        assert realize is not None
        old = realize.block.iter_vars
        first = next((i for i, axis in enumerate(old) if axis.var is write.store.indices[0]), None)
        count = len(write.store.indices)
        if first is None or first + count > len(old):
            return None
        for axis, index in zip(old[first : first + count], write.store.indices, strict=True):
            if axis.var is not index or axis.iter_type != IterVar.DataPar:
                return None
        kept = [*realize.iter_values[:first], *realize.iter_values[first + count :]]
        if names & set(collect(kept, Var)):
            return None
        values = [*realize.iter_values[:first], *loops, *realize.iter_values[first + count :]]
        every = [*old[:first], *self.axes(axes), *old[first + count :]]
        return realize.with_(iter_values=values, block=realize.block.with_(iter_vars=every))


def _has_no_other_effect(body: Stmt, write: Write) -> bool:
    """Whether ``body`` only stores the element, unconditionally, and reads no other element."""
    stores = collect(body, BufferStore)
    if any(not _same(store, write.store) for store in stores):
        return False
    if any(not _same(load, write.store) for load in _loads_of(body, write.store.buffer)):
        return False
    if len(collect(body, BlockRealize)) > 1:
        return False
    taken = {loop.loop_var for loop in write.loops}
    for realize in collect(body, BlockRealize):
        block = realize.block
        if not op.is_const_int(realize.predicate, 1):
            return False
        if block.alloc_buffers or block.match_buffers:
            return False
        taken |= {axis.var for axis in block.iter_vars if axis.var in write.store.indices}
    for loop in collect(body, For):
        if taken & set(collect([loop.min, loop.extent], Var)):
            return False
    for call in collect(body, Call):
        if effect_of(call) not in (
            CallEffectKind.Pure,
            CallEffectKind.ReadState,
            CallEffectKind.ExprAnnotation,
        ):
            return False
    return _is_plain(body)


def _loads_of(body: Stmt, buffer: Buffer) -> list[BufferLoad]:
    return [load for load in collect(body, BufferLoad) if load.buffer is buffer]


def _same(access: BufferLoad | BufferStore, store: BufferStore) -> bool:
    if access.buffer is not store.buffer:
        return False
    return all_deep_equal(access.indices, store.indices)


def _is_plain(stmt: Stmt) -> bool:
    """Whether there are only loops, blocks, sequences and stores.

    The value of a let would be computed for the padding too, where its loads may not exist.
    """
    if isinstance(stmt, SeqStmt):
        return all(_is_plain(item) for item in stmt.seq)
    if isinstance(stmt, For):
        return _is_plain(stmt.body)
    if isinstance(stmt, BlockRealize):
        block = stmt.block
        return _is_plain(block.body) and (block.init is None or _is_plain(block.init))
    return isinstance(stmt, BufferStore)


class _Producer(rewrite.BlockMutator):
    """The body of a producer over the new layout: loads stay in the old one."""

    def __init__(
        self,
        fill: _Fill,
        write: Write,
        replaced: BlockRealize | None,
        stores: Sequence[Var],
        mapping: dict[PrimExpr, PrimExpr],
    ) -> None:
        super().__init__()
        self.fill, self.write, self.replaced, self.stores = fill, write, replaced, stores
        self.mapping = mapping

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.mapping.get(node, node)

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return node

    def visit_BlockRealize(self, node: BlockRealize) -> BlockRealize:
        replaced = self.replaced
        if replaced is None or id(node) != id(self.write.realize):
            return self.visit_default(node)
        block = node.block.with_(iter_vars=())
        rebuilt = self.visit_default(block).with_(iter_vars=replaced.block.iter_vars)
        self.reuse[node.block] = rebuilt
        return node.with_(iter_values=replaced.iter_values, block=rebuilt)

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        value = self.visit(node.value)
        stores = self.stores
        guarded = op.if_then_else(self.fill.is_padding(stores), self.fill.value(stores), value)
        return node.with_(buffer=self.fill.new, value=guarded, indices=list(stores))
