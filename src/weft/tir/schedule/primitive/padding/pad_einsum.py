"""pad_einsum enlarges the extents of a block to multiples, on padded copies of its buffers.

The copies of what it reads hold 0 in the padding; what it writes goes to a padded copy whose
original part is copied back. Beyond TVM 0.20, a reduction axis is padded only where terms of zeros
are zero and are added, and refused are blocks whose loops run other blocks, or which access only a
part of a padded axis. Other axes may occur in any index (the pixels of a convolution).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import FloatImm, IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.ir.type import PointerType, PrimType
from weft.support.errors import IRTypeError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Add, Cast, IterVar, Mul, Sub, Var
from weft.tir.schedule import checks, independence, rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.cache_stage import points
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import check_pure, check_self_contained, executed_box
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
    seq,
)


class InvalidPaddingError(ScheduleFailure):
    """The padding is not one positive number for each axis of the block."""


class NonEinsumError(ScheduleFailure):
    """The block does not access each buffer with padded axes alone as indices, alone in its loops.

    Or a padded reduction is no sum of products.
    """


def _padding(self: Session, arguments: dict[str, Any]) -> None:
    given = arguments["padding"]
    values = [getattr(item, "value", item) for item in given]
    if any(isinstance(item, bool) or not isinstance(item, int) for item in values):
        raise IRTypeError(f"pad_einsum: padding: expected a list of ints, got {given!r}")
    arguments["padding"] = values


@primitive("PadEinsum", "block", canonical=_padding)
def pad_einsum(self: Session, block: BlockRV | str, padding: Sequence[int]) -> None:
    """Round the extents of a block's axes up to multiples of given numbers.

    Operands are copied into padded buffers before, and results out of them after. What is added to
    a reduction does not change it.

    Args:
        block: the block, or its name: sums of products and alike, in which each padded axis is the
            index of a buffer by itself.
        padding: for each axis, the number whose multiple its extent becomes; 1 leaves it as it is.

    Raises:
        InvalidPaddingError: there is not one positive number for each axis.
        NonEinsumError: the block is no such computation.

    >>> from weft import te, tir
    >>> A, B = te.placeholder((7, 5), name="A"), te.placeholder((5, 7), name="B")
    >>> k = te.reduce_axis((0, 5), name="k")
    >>> C = te.compute((7, 7), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, B, C]))
    >>> sch.pad_einsum("C", [8, 8, 8])
    >>> [sch.get(loop).extent.value for loop in sch.get_loops("C")]
    [8, 8, 8]
    """
    state, sref = self.state, self._sref(block)
    scope = checks.scope_root(state, sref, stage_pipeline=True)
    stmt = tree.block_of(sref)
    if len(padding) != len(stmt.iter_vars) or any(item <= 0 for item in padding):
        raise InvalidPaddingError(
            state,
            f"{name_of(sref)} has {len(stmt.iter_vars)} axes; expected as many positive numbers, "
            f"got {padding}",
            sref,
        )
    loops = tree.loops_above(sref)
    extents = _padded_extents(stmt, padding)
    indices = _einsum(state, sref, stmt, extents)
    if not extents:
        return
    _check_writes(state, sref, stmt, extents)
    top = _nest(state, sref, scope, loops, extents)
    _check_accesses(state, sref, stmt, indices, extents)
    for axis in stmt.iter_vars:
        if axis.var in extents and axis.iter_type != IterVar.DataPar:
            _check_sum(state, sref, stmt, axis)
    copies = _copies(stmt, indices, extents)
    realize = tree.realize_of(state, sref)
    bound = {
        value: extents[axis.var]
        for axis, value in zip(stmt.iter_vars, realize.iter_values, strict=True)
        if axis.var in extents and isinstance(value, Var)
    }
    work = _Padded(stmt, copies, {**extents, **bound})
    item = tree.stmt_of(top)
    padded = work.visit(item)
    before = [_copy(region.buffer, copies, write=False) for region in stmt.reads]
    after = [_copy(region.buffer, copies, write=True) for region in stmt.writes]
    _replace(state, scope, item, [*before, padded, *after], copies.values(), work.reuse)


def _check_writes(
    state: ScheduleState, sref: StmtSRef, block: Block, extents: dict[Var, PrimExpr]
) -> None:
    """Each instance surely stores an element of its own, which it does not read before.

    That is asked for the padded axes: an axis of extent 1 gets more instances.
    """
    axes = [
        axis.with_(dom=Range(0, extents[axis.var])) if axis.var in extents else axis
        for axis in block.iter_vars
    ]
    pinned = independence.pinned_axes(block.with_(iter_vars=axes))
    for axis in block.iter_vars:
        if axis.iter_type == IterVar.DataPar and axis.var not in pinned:
            raise NonEinsumError(
                state,
                f"instances of {name_of(sref)} that differ in {axis.var.name} may store to the "
                "same elements: the added ones would come last",
                sref,
            )
    if collect(block.body, (IfThenElse, While)):
        raise NonEinsumError(
            state,
            f"{name_of(sref)} stores under a condition: what it leaves out would be lost",
            sref,
        )
    outputs = {region.buffer.data for region in block.writes}
    for load in collect(block.init, BufferLoad) if block.init is not None else ():
        if load.buffer.data in outputs:
            raise NonEinsumError(
                state,
                f"the init of {name_of(sref)} reads what {load.buffer.name} held before",
                sref,
            )


def _replace(
    state: ScheduleState,
    scope: StmtSRef,
    item: Stmt,
    stmts: Sequence[Stmt | None],
    buffers: Iterable[Buffer],
    reuse: rewrite.Reuse,
) -> None:
    """Put the statements in the place of ``item`` in the scope, and allocate the buffers."""
    block = tree.block_of(scope)

    def placed(stmt: Stmt) -> Stmt:
        if stmt is item:
            return seq(*[new for new in stmts if new is not None])
        if isinstance(stmt, SeqStmt):
            return seq(*[placed(inner) for inner in stmt.seq])
        body = getattr(stmt, "body", None)
        if body is None or isinstance(stmt, (For, BlockRealize)):
            return stmt
        return stmt.with_(body=placed(body))

    new_scope = block.with_(body=placed(block.body), alloc_buffers=[*block.alloc_buffers, *buffers])
    state.replace(scope, new_scope, {**reuse, block: new_scope})


# ---- the pattern


def _einsum(
    state: ScheduleState, sref: StmtSRef, block: Block, extents: dict[Var, PrimExpr]
) -> dict[Buffer, list[PrimExpr]]:
    """The indices of each buffer the block accesses; an error if it is no einsum."""
    if block.alloc_buffers or block.match_buffers or collect(block.body, BlockRealize):
        raise NonEinsumError(state, f"{name_of(sref)} has blocks, buffers or views inside", sref)
    indices: dict[Buffer, list[PrimExpr]] = {}
    parts = [block.body] if block.init is None else [block.init, block.body]
    accesses: list[BufferLoad | BufferStore] = [
        *collect(parts, BufferLoad),
        *collect(parts, BufferStore),
    ]
    for access in accesses:
        known = indices.setdefault(access.buffer, list(access.indices))
        for first, second in zip(known, access.indices, strict=True):
            if not expr_deep_equal(first, second):
                raise NonEinsumError(
                    state, f"{name_of(sref)} accesses {access.buffer.name} at {first} and {second}",
                    sref,
                )  # fmt: skip
        for index in access.indices:
            if not isinstance(index, Var) and set(collect(index, Var)) & set(extents):
                raise NonEinsumError(
                    state, f"index {index} of {access.buffer.name} in {name_of(sref)} is neither "
                    "an axis nor a constant", sref,
                )  # fmt: skip
    check_pure(state, sref, parts)
    regions = [*block.reads, *block.writes]
    for region in regions:
        if sum(item.buffer is region.buffer for item in regions) > 1:
            raise NonEinsumError(
                state, f"{name_of(sref)} reads and writes {region.buffer.name}", sref,
                "initialise it in the block (T.init)",
            )  # fmt: skip
        if region.buffer not in indices:
            raise NonEinsumError(
                state, f"{name_of(sref)} declares {region.buffer.name}, it does not access it", sref
            )
    for buffer in indices:
        if not any(item.buffer is buffer for item in regions):
            raise NonEinsumError(
                state, f"{name_of(sref)} does not declare that it accesses {buffer.name}", sref
            )
    return indices


def _padded_extents(block: Block, padding: Sequence[int]) -> dict[Var, PrimExpr]:
    """The new extents of the axes that do not divide."""
    analyzer = Analyzer()
    extents: dict[Var, PrimExpr] = {}
    for axis, number in zip(block.iter_vars, padding, strict=True):
        assert axis.dom is not None
        factor = IntImm(axis.dom.extent.dtype, number)
        extent = analyzer.simplify(op.ceildiv(axis.dom.extent, factor) * factor)
        if not analyzer.can_prove_equal(extent, axis.dom.extent):
            extents[axis.var] = extent
    return extents


def _nest(
    state: ScheduleState,
    sref: StmtSRef,
    scope: StmtSRef,
    loops: Sequence[StmtSRef],
    extents: dict[Var, PrimExpr],
) -> StmtSRef:
    """The outermost loop of the block, which is alone in its loops, bound to its padded axes."""
    realize = tree.realize_of(state, sref)
    check_self_contained(state, sref, loops)
    if not op.is_const_int(realize.predicate, 1):
        raise NonEinsumError(state, f"{name_of(sref)} has a predicate: {realize.predicate}", sref)
    count = tree.alone_in(sref, loops[::-1])
    if count < len(loops):
        shared = loops[-1 - count]
        raise NonEinsumError(
            state, f"{name_of(sref)} is not all that {name_of(shared)} runs", (shared, sref)
        )
    box = executed_box(state, sref)
    if box is None or any(
        mine is not axis.dom for mine, axis in zip(box, realize.block.iter_vars, strict=True)
    ):
        raise NonEinsumError(state, f"{name_of(sref)} may not run for all its instances", sref)
    by_var = {loop.stmt.loop_var: loop.stmt for loop in loops if isinstance(loop.stmt, For)}
    values = list(realize.iter_values)
    for axis, value in zip(realize.block.iter_vars, values, strict=True):
        if axis.var not in extents:
            continue
        loop_of = by_var.get(value) if isinstance(value, Var) else None
        uses = [item for item in collect(values, Var) if item is value]
        if (
            loop_of is None
            or axis.dom is None
            or len(uses) != 1
            or not op.is_const_int(loop_of.min, 0)
            or not op.is_const_int(axis.dom.min, 0)
            or not expr_deep_equal(loop_of.extent, axis.dom.extent)
        ):
            raise NonEinsumError(
                state,
                f"axis {axis.var.name} of {name_of(sref)} is {value}, not a loop over its domain",
                sref,
                "pad before loops are split or fused",
            )
    return loops[0]


def _check_accesses(
    state: ScheduleState,
    sref: StmtSRef,
    block: Block,
    indices: dict[Buffer, list[PrimExpr]],
    extents: dict[Var, PrimExpr],
) -> None:
    """A padded buffer is accessed with all of its elements, axis by axis."""
    doms = {axis.var: axis.dom.extent for axis in block.iter_vars if axis.dom is not None}
    written = {region.buffer for region in block.writes}
    analyzer = Analyzer()
    for buffer, places in indices.items():
        if not any(index in extents for index in places if isinstance(index, Var)):
            continue
        seen: set[PrimExpr] = set()
        for index, size in zip(places, buffer.shape, strict=True):
            whole: Any = doms.get(index) if isinstance(index, Var) else None
            if isinstance(index, IntImm):
                whole = IntImm(size.dtype, 1) if index.value == 0 else None
            checked = buffer in written or index in extents or isinstance(index, IntImm)
            if (index in seen and isinstance(index, Var)) or (
                checked and (whole is None or not analyzer.can_prove_equal(whole, size))
            ):
                raise NonEinsumError(
                    state,
                    f"index {index} of {buffer.name} in {name_of(sref)} does not run over "
                    f"the whole axis of {size} elements",
                    sref,
                )
            seen.add(index)


def _check_sum(state: ScheduleState, sref: StmtSRef, block: Block, axis: IterVar) -> None:
    """The padded terms of a reduction axis are zeros that are added."""
    store = block.body
    reason = "the body is no single store"
    if isinstance(store, BufferStore):
        reason = f"{store.value} is not {store.buffer.name} plus a product"
        if block.init is None:
            reason = "it has no init"
        elif isinstance(store.value, Add):
            terms = [store.value.a, store.value.b]
            own = [item for item in terms if _is_load_of(item, store)]
            others = [item for item in terms if not _is_load_of(item, store)]
            if len(own) == 1 and _vanishes(others[0], axis.var):
                return
            doubtful = others[0] if others else store.value
            reason = f"{doubtful} need not be 0 where what {axis.var.name} indexes is"
    raise NonEinsumError(
        state, f"reduction axis {axis.var.name} of {name_of(sref)} cannot be padded: {reason}", sref
    )


def _is_load_of(expr: PrimExpr, store: BufferStore) -> bool:
    return isinstance(expr, BufferLoad) and expr.buffer is store.buffer


def _vanishes(expr: PrimExpr, axis: Var) -> bool:
    """Whether an expression is 0 where all that the axis indexes is 0."""
    if isinstance(expr, BufferLoad):
        return any(index is axis for index in expr.indices)
    if isinstance(expr, Cast):
        return _vanishes(expr.value, axis)
    if isinstance(expr, (Add, Sub)):
        return _vanishes(expr.a, axis) and _vanishes(expr.b, axis)
    if isinstance(expr, Mul):
        left, right = _vanishes(expr.a, axis), _vanishes(expr.b, axis)
        return (left and (right or _is_finite(expr.b))) or (right and _is_finite(expr.a))
    return isinstance(expr, (IntImm, FloatImm)) and expr.value == 0


def _is_finite(expr: PrimExpr) -> bool:
    """Whether 0 times the expression is surely 0: no data in floats, which may be infinite."""
    return isinstance(expr, (IntImm, FloatImm)) or not expr.dtype.is_float


# ---- the padded buffers


def _copies(
    block: Block, indices: dict[Buffer, list[PrimExpr]], extents: dict[Var, PrimExpr]
) -> dict[Buffer, Buffer]:
    """The padded copy of each buffer that an extended axis indexes."""
    copies: dict[Buffer, Buffer] = {}
    for region in (*block.reads, *block.writes):
        buffer, places = region.buffer, indices[region.buffer]
        if not any(isinstance(index, Var) and index in extents for index in places):
            continue
        shape = [
            extents.get(index, size) if isinstance(index, Var) else size
            for index, size in zip(places, buffer.shape, strict=True)
        ]
        name = f"{buffer.name}_pad"
        pointer = PointerType(PrimType(str(buffer.dtype)), buffer.scope())
        copies[buffer] = Buffer(Var(name, pointer), buffer.dtype, shape, (), None, name)
    return copies


def _copy(buffer: Buffer, copies: dict[Buffer, Buffer], *, write: bool) -> Stmt | None:
    """The block that copies a buffer into its padded copy, or back; None without a copy."""
    padded = copies.get(buffer)
    if padded is None:
        return None
    shape = buffer.shape if write else padded.shape
    loops = [Var(f"i{n}", size.dtype) for n, size in enumerate(shape)]
    names = [Var(f"v{n}", size.dtype) for n, size in enumerate(shape)]
    axes = [
        IterVar(Range(size), var, IterVar.DataPar) for var, size in zip(names, shape, strict=True)
    ]
    source, target = (padded, buffer) if write else (buffer, padded)
    value: PrimExpr = BufferLoad(source, names)
    if not write:
        analyzer = Analyzer()
        inside = conjunction(
            op.less(var, size)
            for var, size, new in zip(names, buffer.shape, padded.shape, strict=True)
            if not analyzer.can_prove_equal(size, new)
        )
        value = op.if_then_else(inside, value, op.const(0, value.dtype))
    block = Block(
        axes,
        [points(source, names)],
        [points(target, names)],
        padded.name,
        BufferStore(target, value, names),
    )
    nest: Stmt = BlockRealize(loops, op.const(True), block)
    for loop, size in zip(reversed(loops), reversed(shape), strict=True):
        nest = For(loop, IntImm(loop.dtype, 0), size, ForKind.SERIAL, nest)
    return nest


class _Padded(rewrite.BlockMutator):
    """The block on the padded copies, its axes and loops extended."""

    def __init__(
        self, block: Block, copies: dict[Buffer, Buffer], extents: dict[Var, PrimExpr]
    ) -> None:
        super().__init__()
        self.block, self.copies, self.extents = block, copies, extents

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return self.copies.get(node, node)

    def visit_For(self, node: For) -> For:
        body = self.visit(node.body)
        return node.with_(body=body, extent=self.extents.get(node.loop_var, node.extent))

    def visit_IterVar(self, node: IterVar) -> IterVar:
        extent = self.extents.get(node.var)
        if extent is None or node.dom is None:
            return node
        return node.with_(dom=Range.from_min_extent(node.dom.min, extent))

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        return BufferRegion(self.visit(node.buffer), node.region)
