"""cache_index computes expressions of a block's axes once, before the block, which loads them.

Candidates are the largest pure expressions in the block's stores; one that occurs fewer times than
the threshold is broken into its parts. Expressions that simplify to the same count as one. What
could trap where the block would not have computed it (a division by something that may be 0) is no
candidate: the stage computes for all values of the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.common_subexpr import children
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.int_set import eval_set
from weft.arith.interval import as_int_set
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, Visitor, collect, substitute
from weft.ir.type import PointerType, PrimType
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Broadcast, Call, Div, FloorDiv, FloorMod, IterVar, Let, Mod, Ramp, Var
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.schedule import checks, rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.primitive.cache.cache_stage import (
    Place,
    body_items,
    check_storage_scope,
    edit_scope,
    members_of,
    points,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, seq

DIVISIONS = (Div, Mod, FloorDiv, FloorMod)


@primitive("CacheIndex", "block")
def cache_index(
    self: Session, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0
) -> list[BlockRV]:
    """Compute index expressions of a block beforehand, into buffers that the block reads.

    Args:
        block: the block, or its name.
        storage_scope: where the buffers of indices lie.
        cse_thresh: how often an expression must occur to be computed beforehand; 0 takes all, each
            as large as possible.

    Returns:
        The blocks that compute the indices; none, if there is nothing to compute.

    >>> from weft import te, tir
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.compute((16,), lambda i: A[i // 4] + A[i // 4], name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> sch.cache_index("B", "global")
    [BlockRV(index_0)]
    """
    state, sref = self.state, self._sref(block)
    check_storage_scope(state, storage_scope)
    if cse_thresh < 0:
        raise IRValueError(f"cache_index: cse_thresh: expected at least 0, got {cse_thresh}")
    scope = checks.scope_root(state, sref)
    stmt = tree.block_of(sref)
    extents = _axis_extents(state, sref, scope)
    terms = _Terms(extents, _outside(state, scope))
    chosen: list[PrimExpr] = []
    for store in _stores(stmt):
        _choose(terms, store, cse_thresh, chosen)
    if not chosen:
        return []
    chosen.sort(key=terms.size_of, reverse=True)
    stages = [_stage(state, sref, expr, i, storage_scope, extents) for i, expr in enumerate(chosen)]
    redirect = _LookUp(terms, stages)
    position = next(
        i for i, item in enumerate(body_items(tree.block_of(scope))) if id(stmt) in members_of(item)
    )
    nests = seq(*[stage.stmt for stage in stages])
    buffers = [stage.buffer for stage in stages]
    edit_scope(state, scope, redirect, [stmt], [(Place(scope, position), nests)], buffers)
    return self._block_rvs([stage.block for stage in stages])


# ---- which axes can be enumerated


def _axis_extents(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> dict[Var, PrimExpr]:
    """For each axis whose values come from loops alone, one more than its largest value."""
    realize = tree.realize_of(state, sref)
    loops = tree.domains(tree.loops_above(sref))
    outer = tree.analyzer_above(scope)
    extents: dict[Var, PrimExpr] = {}
    for var, value in tree.bindings_of(realize).items():
        used = collect(value, Var)
        ranges = [loops[item] for item in used if item in loops]
        if collect(value, (BufferLoad, Call)) or any(
            item in loops for rng in ranges for item in collect([rng.min, rng.extent], Var)
        ):
            continue
        part = eval_set(as_int_set(value, outer), loops, outer)
        if part.is_bounded and outer.can_prove(op.greater_equal(part.min_value, 0)):
            extents[var] = outer.simplify(op.add(part.max_value, 1))
    return extents


def _outside(state: ScheduleState, scope: StmtSRef) -> set[Var]:
    """The variables that have one value while the scope runs."""
    func = state.function_of(scope)[1]
    shapes = [buffer.shape for buffer in func.buffer_map.values()]
    outside = {*func.params, *collect(shapes, Var)}
    item: StmtSRef | None = scope
    while item is not None:
        if isinstance(item.stmt, For):
            outside.add(item.stmt.loop_var)
        elif isinstance(item.stmt, Block):
            outside.update([axis.var for axis in item.stmt.iter_vars])
        item = item.parent
    return outside


class _Stores(Visitor):
    """The stores of a block itself, not those of blocks inside it."""

    def __init__(self) -> None:
        self.found: list[BufferStore] = []

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        del node

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.found.append(node)


def _stores(block: Block) -> list[BufferStore]:
    work = _Stores()
    work.visit(block.body)
    return work.found


# ---- which expressions are computed ahead


class _Facts(NamedTuple):
    size: int
    variables: frozenset[Var]
    eligible: bool
    """Pure, of enumerable axes (or what is known outside), and never trapping."""


class _Terms:
    """Facts and normal forms of expressions, each found once."""

    def __init__(self, axes: dict[Var, PrimExpr], outside: set[Var]) -> None:
        self.axes, self.outside = axes, outside
        self.analyzer = Analyzer()
        self.known: dict[int, tuple[PrimExpr, _Facts]] = {}
        self.normal: dict[int, tuple[PrimExpr, PrimExpr]] = {}

    def facts(self, expr: PrimExpr) -> _Facts:
        """The facts of an expression."""
        entry = self.known.get(id(expr))
        if entry is None:
            entry = self.known[id(expr)] = (expr, self._facts(expr))
        return entry[1]

    def _facts(self, expr: PrimExpr) -> _Facts:
        if isinstance(expr, Var):
            return _Facts(1, frozenset([expr]), expr in self.axes or expr in self.outside)
        size, variables, pure = 1, frozenset[Var](), _is_harmless(expr)
        for child in children(expr):
            inner = self.facts(child)
            size += inner.size
            variables |= inner.variables
            pure = pure and inner.eligible
        return _Facts(size, variables, pure)

    def size_of(self, expr: PrimExpr) -> int:
        """How many nodes an expression has."""
        return self.facts(expr).size

    def is_candidate(self, expr: PrimExpr) -> bool:
        """Whether the expression may be computed ahead."""
        facts = self.facts(expr)
        return (
            facts.eligible and facts.size > 1 and not self.axes.keys().isdisjoint(facts.variables)
        )

    def normal_form(self, expr: PrimExpr) -> PrimExpr:
        """The expression, simplified."""
        entry = self.normal.get(id(expr))
        if entry is None:
            entry = self.normal[id(expr)] = (expr, self.analyzer.simplify(expr))
        return entry[1]

    def same(self, first: PrimExpr, second: PrimExpr) -> bool:
        """Whether two expressions are the same when simplified."""
        if first is second:
            return True
        if first.dtype != second.dtype:
            return False
        if self.facts(first).variables != self.facts(second).variables:
            return False
        return expr_deep_equal(first, second) or expr_deep_equal(
            self.normal_form(first), self.normal_form(second)
        )

    def outermost(self, expr: PrimExpr, collected: list[PrimExpr]) -> None:
        """Collect the largest candidates in an expression."""
        if self.is_candidate(expr):
            collected.append(expr)
            return
        for child in children(expr):
            self.outermost(child, collected)


def _is_harmless(expr: PrimExpr) -> bool:
    """Whether computing the node (not its operands) has no effect, reads nothing, cannot trap."""
    if expr.dtype.lanes != 1 or isinstance(expr, (BufferLoad, Let, Ramp, Broadcast)):
        return False
    if isinstance(expr, Call):
        return effect_of(expr) in (CallEffectKind.Pure, CallEffectKind.ExprAnnotation)
    if isinstance(expr, DIVISIONS) and expr.dtype.is_integral:
        return isinstance(expr.b, IntImm) and expr.b.value > 0
    return True


@deep_recursion
def _choose(terms: _Terms, store: BufferStore, threshold: int, chosen: list[PrimExpr]) -> None:
    """Add the expressions of a store that are to be computed ahead."""
    counts = _counted(terms, store, threshold)
    wanted = [expr for expr, count in counts if count >= threshold]

    def visit(expr: PrimExpr) -> None:
        for child in children(expr):
            visit(child)
        for candidate in wanted:
            if terms.same(expr, candidate) and not _has(terms, chosen, candidate):
                chosen.append(candidate)

    visit(store.value)


def _has(terms: _Terms, exprs: Sequence[PrimExpr], wanted: PrimExpr) -> bool:
    for expr in exprs:
        if terms.same(expr, wanted):
            return True
    return False


def _counted(terms: _Terms, store: BufferStore, threshold: int) -> list[tuple[PrimExpr, int]]:
    """Candidates with how often they occur, the largest first; rare ones broken into parts."""
    candidates: list[PrimExpr] = []
    for expr in (store.value, *store.indices):
        terms.outermost(expr, candidates)
    counts: list[tuple[PrimExpr, int]] = []
    for expr in candidates:
        _count(terms, counts, expr, 1)
    position = 0
    while position < len(counts):
        expr, count = counts[position]
        if count < threshold:
            parts: list[PrimExpr] = []
            for child in children(expr):
                terms.outermost(child, parts)
            for part in parts:
                _count(terms, counts, part, count)
        position += 1
    return counts


def _count(terms: _Terms, counts: list[tuple[PrimExpr, int]], expr: PrimExpr, times: int) -> None:
    for position, (known, count) in enumerate(counts):
        if terms.same(known, expr):
            counts[position] = (known, count + times)
            return
    size = terms.size_of(expr)
    place = sum(1 for known, _ in counts if terms.size_of(known) >= size)
    counts.insert(place, (expr, times))


# ---- the stages


class _Stage(NamedTuple):
    expr: PrimExpr
    axes: list[Var]
    buffer: Buffer
    block: Block
    stmt: Stmt


def _stage(
    state: ScheduleState,
    sref: StmtSRef,
    expr: PrimExpr,
    number: int,
    storage_scope: str,
    extents: dict[Var, PrimExpr],
) -> _Stage:
    """Loops around a block that stores the values of ``expr`` for all values of its axes."""
    bindings = tree.bindings_of(tree.realize_of(state, sref))
    used = [var for var in collect(expr, Var) if var in extents]
    ranges = tree.domains(tree.loops_above(sref))
    outer = [var for var in collect([bindings[var] for var in used], Var) if var in ranges]
    loops = {var: Var(f"ax{i}", var.dtype) for i, var in enumerate(outer)}
    axes = [Var(f"v{i}", var.dtype) for i, var in enumerate(used)]
    buffer = _index_buffer(number, expr, [extents[var] for var in used], storage_scope)
    iters = [
        IterVar(Range(op.cast(axis.dtype, extents[var])), axis, IterVar.DataPar)
        for var, axis in zip(used, axes, strict=True)
    ]
    value = substitute(expr, dict(zip(used, axes, strict=True)))
    block = Block(
        iters, [], [points(buffer, axes)], f"index_{number}", BufferStore(buffer, value, axes)
    )
    values = substitute([bindings[var] for var in used], loops)
    stmt: Stmt = BlockRealize(values, op.const(True, "bool"), block)
    for var in reversed(outer):
        rng = ranges[var]
        stmt = For(loops[var], rng.min, rng.extent, ForKind.SERIAL, stmt)
    return _Stage(expr, used, buffer, block, stmt)


def _index_buffer(
    number: int, expr: PrimExpr, shape: Sequence[PrimExpr], storage_scope: str
) -> Buffer:
    name = f"index_var_{number}"
    data = Var(name, PointerType(PrimType(expr.dtype), storage_scope))
    strides = [IntImm("int32", 1)] if len(shape) == 1 else []
    return Buffer(data, expr.dtype, shape, strides, IntImm("int32", 0), name)


class _Replace(Mutator):
    """Puts loads of the computed values in place of an expression and its equals."""

    def __init__(self, terms: _Terms, stage: _Stage) -> None:
        super().__init__()
        self.terms, self.stage = terms, stage
        self.load = BufferLoad(stage.buffer, stage.axes)

    def visit(self, node: Any) -> Any:
        if isinstance(node, PrimExpr) and not isinstance(node, (Var, IntImm)):
            if self.terms.same(node, self.stage.expr):
                return self.load
        return super().visit(node)

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return node


class _LookUp(rewrite.BlockMutator):
    """Makes the stores of the block itself load the values."""

    def __init__(self, terms: _Terms, stages: Sequence[_Stage]) -> None:
        super().__init__()
        self.stages = stages
        self.replace = [_Replace(terms, stage) for stage in stages]

    def visit_Block(self, node: Block) -> Block:
        block = node.with_(
            body=self.visit(node.body),
            reads=[*node.reads, *[points(stage.buffer, stage.axes) for stage in self.stages]],
        )
        self.reuse[node] = block
        return block

    def visit_BlockRealize(self, node: BlockRealize) -> BlockRealize:
        return node

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        for replace in self.replace:
            node = replace.visit_default(node)
        return node
