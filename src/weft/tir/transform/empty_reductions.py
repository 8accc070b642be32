"""Makes reductions over no elements give the identity; the first step of LowerInitBlock.

The ``init`` of a reduction runs at the first value of its axes, so it never runs if a loop over
them has no iteration. This pass inserts the ``init`` for that case, before the outermost loop that
only drives reduction axes: inside of a copy of the other loops, guarded by "an extent is 0".

Before: ``for i in range(4): for k in range(n): with T.block("C"): ...``
After: ``for i in range(4): if n <= 0: with T.block("C_init"): C[i] = 0`` and the loop over k.

Nothing is inserted if all extents are known to be positive. The interpreter applies the pass, too.
"""

from __future__ import annotations

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, conjuncts_without
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, For, ForKind, IfThenElse, Stmt, seq
from weft.tir.transform.prim_func_pass import StmtMutator, rewrite_body


class _Nest:
    """A reduction block and the loops around it, up to the next block, outermost first."""

    def __init__(self, realize: BlockRealize, loops: list[For]) -> None:
        self.realize = realize
        self.loops = loops
        reducing, spatial = set(), set()
        pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
        for axis, value in pairs:
            used = set(collect(value, Var))
            if axis.accumulates:
                reducing |= used
            else:
                spatial |= used
        self.reduction = [loop for loop in loops if loop.loop_var in reducing - spatial]

    def can_be_empty(self) -> bool:
        """Whether a loop of the reduction may have no iteration."""
        return bool(self._conditions())

    def _conditions(self) -> list[PrimExpr]:
        conditions: list[PrimExpr] = []
        for loop in self.reduction:
            if isinstance(loop.extent, IntImm):
                if loop.extent.value <= 0:
                    return [op.const(True, "bool")]
            elif Analyzer().const_int_bound(loop.extent).min_value <= 0:
                conditions.append(op.less_equal(loop.extent, op.const(0, loop.extent.dtype)))
        return conditions

    def fallback(self) -> Stmt | None:
        """The statement that runs the init for every output element if an extent is 0.

        None if it cannot be written, since an extent depends on another loop of the nest.
        """
        inner = self.loops[self.loops.index(self.reduction[0]) :]
        bound = {loop.loop_var for loop in inner}
        conditions = self._conditions()
        kept = [loop for loop in inner if loop not in self.reduction]
        free = [*conditions, *[part for loop in kept for part in (loop.min, loop.extent)]]
        if [1 for part in free if bound & set(collect(part, Var))]:
            return None
        body: Stmt = self._init_block()
        renamed = {loop.loop_var: Var(loop.loop_var.name, loop.loop_var.dtype) for loop in kept}
        body = substitute(body, renamed)
        for loop in reversed(kept):
            body = For(renamed[loop.loop_var], loop.min, loop.extent, ForKind.SERIAL, body)
        if isinstance(conditions[0], IntImm):
            return body
        return IfThenElse(op.any(*conditions), body)

    def _init_block(self) -> BlockRealize:
        block = self.realize.block
        axes, values, renamed = [], [], {}
        for axis, value in zip(block.iter_vars, self.realize.iter_values, strict=True):
            if not axis.accumulates:
                fresh = Var(axis.var.name, axis.var.dtype)
                renamed[axis.var] = fresh
                axes.append(axis.with_(var=fresh))
                values.append(value)
        assert block.init is not None
        init_block = Block(
            axes,
            [],
            substitute(block.writes, renamed),
            f"{block.name_hint}_init",
            substitute(block.init, renamed),
        )
        return BlockRealize(values, self._spatial_predicate(), init_block)

    def _spatial_predicate(self) -> PrimExpr:
        """The parts of the predicate that do not use the reduction's loops."""
        reducing = {loop.loop_var for loop in self.reduction}
        return conjunction(conjuncts_without(self.realize.predicate, reducing))


class _Insert(StmtMutator):
    """Inserts the fallbacks before the outermost reduction loops."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: list[For] = []
        self.before: dict[For, list[Stmt]] = {}

    def visit_Block(self, block: Block) -> Stmt:
        outer, self.loops = self.loops, []
        visited: Stmt = self.visit_default(block)
        self.loops = outer
        return visited

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        if realize.block.init is not None and self.loops:
            nest = _Nest(realize, list(self.loops))
            if nest.reduction and nest.can_be_empty() and not _thread_bound(nest.loops):
                fallback = nest.fallback()
                if fallback is not None:
                    self.before.setdefault(nest.reduction[0], []).append(fallback)
        return self.visit_default(realize)

    def visit_For(self, loop: For) -> Stmt:
        self.loops.append(loop)
        visited: Stmt = self.visit_default(loop)
        self.loops.pop()
        return seq(*self.before.pop(loop, []), visited)


def _thread_bound(loops: list[For]) -> bool:
    return any(loop.kind == ForKind.THREAD_BINDING for loop in loops)


def initialise_empty_reductions(func: PrimFunc) -> PrimFunc:
    """The function, with the identity written where a reduction has no element."""
    return rewrite_body(func, _Insert())
