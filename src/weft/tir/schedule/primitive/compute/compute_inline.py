"""compute_inline replaces loads of what a block computes by the expressions that it computes.

The block stores ``T[f(v)] = value(v)`` with an invertible ``f``. A load ``T[x]`` becomes
``value(f^-1(x))``; the block and its buffer are removed. That is legal in a stage pipeline:
what the block reads is unchanged when its consumers run, and it has written all that they read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map import IterMapLevel, detect_iter_map, inverse_affine_iter_map
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect, substitute
from weft.ir.structural import structural_key
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_read_write_region
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Let, Var
from weft.tir.schedule import checks, dependence, rewrite, surgery, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.reused_memory import check_values_stay
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BufferStore

Value = Callable[[Sequence[PrimExpr]], PrimExpr]


class HasInitError(ScheduleFailure):
    """The block has an init: its buffer is written more than once."""

    hint = "only blocks that compute each element in one statement can be inlined"


class SingleBufferError(ScheduleFailure):
    """The block writes several buffers, or reads not just one that the scope computes."""


class InlineBodyError(ScheduleFailure):
    """The body of the block is not of the form that can be inlined."""


class OpaqueAccessError(ScheduleFailure):
    """The buffer is used through its pointer, a match_buffer, or otherwise than by loads."""

    hint = "only T[...] in expressions can be replaced by its value"


@primitive("ComputeInline", "block")
def compute_inline(self: Session, block: BlockRV | str) -> None:
    """Compute a block's elements where they are read; the block and its buffer disappear.

    Args:
        block: the block, or its name. It computes each element of one buffer in one statement, and
            the buffer is no result of the function.

    Raises:
        IncompleteBlockError: the block is a reduction, or not all of it is known.
        OutputBlockError: the buffer is a result of the function.
        InlineBodyError: the block is not one statement, or the element it stores cannot be solved
            for its axes.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.compute_inline("B")
    >>> sch.get_child_blocks(sch.get_block("root"))
    [BlockRV(C)]
    """
    sref = self._sref(block)
    state = self.state
    scope = checks.scope_root(state, sref)
    check_no_init(state, sref)
    buffer = single_write(state, sref)
    checks.check_not_output_block(state, sref, scope)
    checks.check_complete_block(state, sref, scope)
    checks.scope_root(state, sref, stage_pipeline=True)
    consumers = dependence.consumers_of(tree.block_of(sref), tree.block_of(scope))
    users = [state.sref_of(block) for block in consumers]
    check_values_stay(state, sref, tree.lowest_common_ancestor([sref, *users]))
    store = single_store(state, sref)
    value = _value_at(state, sref, store)
    left = surgery.edited(tree.block_of(scope), {id(sref.stmt): None}, surgery.path_up(sref, scope))
    if left is None:
        raise surgery.only_leaf(state, sref, scope)
    work = Inliner(buffer, value, regions_of(tree.block_of(sref)))
    new_scope = work.run(left)
    check_gone(state, scope, new_scope, buffer)
    state.replace(scope, new_scope, work.reuse)


def check_no_init(state: ScheduleState, sref: StmtSRef) -> None:
    """The block has no init."""
    if tree.block_of(sref).init is not None:
        raise HasInitError(state, f"{name_of(sref)} has an init", sref)


def single_write(state: ScheduleState, sref: StmtSRef) -> Buffer:
    """The one buffer that the block writes."""
    writes = tree.block_of(sref).writes
    if len(writes) != 1:
        names = ", ".join([region.buffer.name for region in writes]) or "none"
        raise SingleBufferError(
            state, f"{name_of(sref)} writes {len(writes)} regions ({names}), expected one", sref
        )
    return writes[0].buffer


def single_store(state: ScheduleState, sref: StmtSRef) -> BufferStore:
    """The store that is the whole body of the block, an element at a time."""
    body = tree.block_of(sref).body
    if not isinstance(body, BufferStore):
        raise InlineBodyError(
            state,
            f"the body of {name_of(sref)} is a {type(body).__name__}, expected one store",
            sref,
        )
    if body.predicate is not None or any(index.dtype.lanes != 1 for index in body.indices):
        raise InlineBodyError(state, f"{name_of(sref)} stores vectors, expected elements", sref)
    return body


def regions_of(block: Block) -> dict[Var, Buffer]:
    """The buffers that the signature of a block names, by their data variables."""
    regions: list[BufferRegion] = [*block.reads, *block.writes]
    buffers = {region.buffer.data: region.buffer for region in regions}
    buffers.update({buffer.data: buffer for buffer in block.alloc_buffers})
    return buffers


def check_gone(state: ScheduleState, scope: StmtSRef, new_scope: Block, buffer: Buffer) -> None:
    """No use of the buffer is left in the new scope."""
    if buffer.data in rewrite.variables_of(new_scope):
        users = [b for b in collect(new_scope, Block) if _uses(b, buffer)]
        names = ", ".join(dict.fromkeys([b.name_hint for b in users])) or name_of(scope)
        raise OpaqueAccessError(
            state,
            f"{buffer.name} is used by {names} in another way than by loads of elements",
            scope,
        )


def _uses(block: Block, buffer: Buffer) -> bool:
    inner = collect(block.body, Block)
    below = any(buffer.data in rewrite.variables_of(item) for item in inner)
    return buffer.data in rewrite.variables_of(block) and not below


# ---- the value as a function of the indices


def _value_at(state: ScheduleState, sref: StmtSRef, store: BufferStore) -> Value:
    """What the buffer holds at given indices, as an expression."""
    block = tree.block_of(sref)
    surgery.check_self_contained(state, sref, tree.loops_above(sref))
    surgery.check_pure(state, sref, [store.value, *store.indices])
    keys = _plain_axes(block, store)
    value = store.value
    if keys is None:
        keys = [Var(f"ph_{i}", index.dtype) for i, index in enumerate(store.indices)]
        value = substitute(value, _inverse(state, sref, store, keys))
    copied = bool(collect(value, Let))

    def value_at(indices: Sequence[PrimExpr]) -> PrimExpr:
        pairs = zip(keys, indices, strict=True)
        element = substitute(value, {key: op.cast(key.dtype, index) for key, index in pairs})
        return _with_new_lets(element) if copied else element

    return value_at


def _with_new_lets(expr: PrimExpr) -> PrimExpr:
    """A copy in which every let binds a variable of its own."""
    fresh = {let.var: let.var.copy_with_suffix("") for let in collect(expr, Let)}
    renamed = substitute(expr, fresh)
    return renamed if not fresh else _LetVars(fresh).visit(renamed)


class _LetVars(rewrite.BlockMutator):
    """Renames the variables that lets bind."""

    def __init__(self, fresh: Mapping[Var, Var]) -> None:
        super().__init__()
        self.fresh = fresh

    def visit_Let(self, node: Let) -> Let:
        let = self.visit_default(node)
        return let.with_(var=self.fresh.get(let.var, let.var))


def _plain_axes(block: Block, store: BufferStore) -> list[Var] | None:
    """The axes in the order of the indices; None if an index is no axis by itself."""
    if len(block.iter_vars) != len(store.indices):
        return None
    for axis, index in zip(block.iter_vars, store.indices, strict=True):
        if index is axis.var:
            continue
        dom = surgery.domain(axis)
        unit = op.is_const_int(dom.min, 0) and op.is_const_int(dom.extent, 1)
        if not (unit and op.is_const_int(index, 0)):
            return None
    return [axis.var for axis in block.iter_vars]


def _inverse(
    state: ScheduleState, sref: StmtSRef, store: BufferStore, outputs: Sequence[Var]
) -> dict[Var, PrimExpr]:
    """Each axis of the block as a function of the store's indices."""
    axes = tree.block_of(sref).iter_vars
    analyzer = Analyzer()
    iter_map = detect_iter_map(
        store.indices,
        surgery.domains_of(axes),
        True,
        IterMapLevel.Bijective,
        simplify_trivial_iterators=False,
        analyzer=analyzer,
    )
    if not iter_map.indices and store.indices:
        shown = ", ".join([str(index) for index in store.indices])
        raise InlineBodyError(
            state,
            f"{name_of(sref)} stores to {store.buffer.name}[{shown}], which is no bijective "
            "affine map of its axes",
            sref,
        )
    inverse = dict(inverse_affine_iter_map(iter_map.indices, outputs))
    for axis in axes:
        dom = surgery.domain(axis)
        if axis.var not in inverse or analyzer.can_prove_equal(dom.extent, op.const(1)):
            inverse[axis.var] = dom.min
    return {var: op.cast(var.dtype, expr) for var, expr in inverse.items()}


# ---- the consumers


class Inliner(rewrite.BlockMutator):
    """Replaces loads of a buffer by values, if given, and updates the regions of blocks."""

    def __init__(self, buffer: Buffer, value: Value | None, buffers: Mapping[Var, Buffer]) -> None:
        super().__init__()
        self.data, self.value = buffer.data, value
        self.buffers = dict(buffers)
        self.root: Block | None = None
        self.values: dict[tuple[object, ...], PrimExpr] = {}
        self.expression: object = None
        """The outermost expression (its walk) to which ``values`` belong."""

    @deep_recursion
    def run(self, root: Block) -> Block:
        """The scope without the buffer."""
        self.root = root
        self.buffers.update(regions_of(root))
        scope: Block = self.visit(root)
        self.reuse.pop(root, None)
        kept = [buffer for buffer in scope.alloc_buffers if buffer.data is not self.data]
        return scope.with_(alloc_buffers=kept)

    def visit_Block(self, node: Block) -> Block:
        if self.data not in rewrite.variables_of(node):
            return node
        around = self.buffers
        self.buffers = {**around, **regions_of(node)}
        block = self.visit_default(node)
        if node is not self.root:
            block = with_regions(block, self.data, self.buffers)
            self.reuse[node] = block
        self.buffers = around
        return block

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        load = self.visit_default(node)
        if self.value is None or load.buffer.data is not self.data or load.predicate is not None:
            return load
        if any(index.dtype.lanes != 1 for index in load.indices):
            return load
        return self.value_of(self.value, load.indices)

    def value_of(self, value: Value, indices: Sequence[PrimExpr]) -> PrimExpr:
        """The value at an index; one object where an expression loads it several times.

        With a copy for each load, each of a chain of stages ``b[i] = a[i] * a[i]`` would double
        the size of the expression.
        """
        if self.expression is not self._walk:
            self.expression, self.values = self._walk, {}
        key = tuple([id(at) if isinstance(at, Var) else structural_key(at) for at in indices])
        known = self.values.get(key)
        if known is None:
            known = self.values[key] = value(indices)
        return known


def with_regions(block: Block, data: Var, buffers: Mapping[Var, Buffer]) -> Block:
    """A block that no longer uses a buffer it declared to access, with its regions derived anew.

    A declared region of another buffer stays if no access in the block explains it: the block may
    pass a pointer to it to a call.
    """
    if not any(region.buffer.data is data for region in [*block.reads, *block.writes]):
        return block
    actual = get_block_read_write_region(block, buffers)
    reads, writes = (
        [*new, *_unseen(old, new, data)]
        for old, new in zip((block.reads, block.writes), actual, strict=True)
    )
    return block.with_(reads=reads, writes=writes)


def _unseen(
    old: Sequence[BufferRegion], new: Sequence[BufferRegion], data: Var
) -> list[BufferRegion]:
    seen = {region.buffer.data for region in new} | {data}
    return [region for region in old if region.buffer.data not in seen]
