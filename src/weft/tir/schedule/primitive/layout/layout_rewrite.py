"""Rewrites the accesses of a buffer to another layout, with simple indices.

New indices are simplified as maps of the loops and block axes around them, under the conditions of
the branches they stand in. The regions of the blocks that access the buffer are derived anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.conjunction import conjunction
from weft.arith.data import has_data
from weft.arith.iter_map import IterMapLevel, iter_map_simplify
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_read_write_region
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Call, Var, is_call
from weft.tir.index_map import IndexMap
from weft.tir.schedule import rewrite
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, SeqStmt, Stmt, seq


@dataclass
class LayoutPlan:
    """How padding is filled: statements that are replaced, and new ones.

    ``replaced`` is by the identity of a loop, ``after`` by that of a loop or block realization;
    ``reuse`` has the blocks inside of the replacements.
    """

    prologue: Stmt | None = None
    replaced: dict[int, Stmt] = field(default_factory=dict)
    after: dict[int, Stmt] = field(default_factory=dict)
    reuse: rewrite.Reuse = field(default_factory=dict)


class IndexContext(rewrite.BlockMutator):
    """A mutator that knows the loops, block axes and conditions around what it visits."""

    def __init__(self, domains: Mapping[Var, Range] | None = None) -> None:
        super().__init__()
        self.domains = dict(domains or {})
        self.conditions: list[PrimExpr] = []

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return node

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        items = [self.visit(item) for item in node.seq]
        same = all(new is old for new, old in zip(items, node.seq, strict=True))
        return node if same else seq(*items)

    def visit_For(self, node: For) -> Stmt:
        self.domains[node.loop_var] = node.domain
        return self.visit_default(node)

    def visit_Block(self, node: Block) -> Block:
        for axis in node.iter_vars:
            if axis.dom is not None:
                self.domains[axis.var] = axis.dom
        return super().visit_Block(node)

    @contextmanager
    def under(self, condition: PrimExpr) -> Iterator[None]:
        """The conditions with one more."""
        self.conditions.append(condition)
        try:
            with self.apart(tuple(self.conditions)):
                yield
        finally:
            self.conditions.pop()

    def visit_IfThenElse(self, node: IfThenElse) -> IfThenElse:
        condition = self.visit(node.condition)
        with self.under(condition):
            then_case = self.visit(node.then_case)
        other = None if node.else_case is None else self.visit(node.else_case)
        return node.with_(condition=condition, then_case=then_case, else_case=other)

    def visit_Call(self, node: Call) -> Call:
        if not is_call(node, "if_then_else"):
            return self.visit_default(node)
        condition = self.visit(node.args[0])
        if has_data(condition):  # it says nothing about indices
            args = [condition, self.visit(node.args[1]), self.visit(node.args[2])]
            same = all(new is old for new, old in zip(args, node.args, strict=True))
            return node if same else Call(node.dtype, node.op, args)
        with self.under(condition):
            value = self.visit(node.args[1])
        with self.under(op.logical_not(condition)):
            other = self.visit(node.args[2])
        args = [condition, value, other]
        same = all(new is old for new, old in zip(args, node.args, strict=True))
        return node if same else Call(node.dtype, node.op, args)

    def simple(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Indices simplified as a map of the loops and axes; a variable stays one."""
        if all(isinstance(index, (Var, IntImm)) for index in indices):
            return list(indices)
        used = collect(list(indices), Var)
        domains = {var: self.domains[var] for var in used if var in self.domains}
        condition = conjunction(self.conditions)
        analyzer = analyzer_of(domains)
        simplified = iter_map_simplify(
            indices, domains, condition, IterMapLevel.Surjective, analyzer=analyzer
        )
        return [
            old if isinstance(new, IntImm) and isinstance(old, Var) else new
            for old, new in zip(indices, simplified, strict=True)
        ]


class LayoutRewriter(rewrite.BufferMutator, IndexContext):
    """Accesses of ``old`` become accesses of ``new`` through the layout."""

    def __init__(self, old: Buffer, new: Buffer, layout: IndexMap, plan: LayoutPlan) -> None:
        super().__init__()
        self.old, self.new, self.layout, self.plan = old, new, layout, plan
        self.analyzer = Analyzer()
        self.replaced = dict(plan.replaced)

    def moved(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Old indices as new ones."""
        return self.simple(self.layout.map_indices(indices, analyzer=self.analyzer))

    def visit_For(self, node: For) -> Stmt:
        replacement = self.replaced.pop(id(node), None)
        loop = super().visit_For(node) if replacement is None else self.visit(replacement)
        return self.followed(node, loop)

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        return self.followed(node, self.visit_default(node))

    def followed(self, node: Stmt, rewritten: Stmt) -> Stmt:
        """A statement and the statement that the plan puts after it."""
        after = self.plan.after.get(id(node))
        return rewritten if after is None else seq(rewritten, self.visit(after))

    def visit_Block(self, node: Block) -> Block:
        if self.old.data not in rewrite.variables_of(node):
            return node
        block = super().visit_Block(node)
        mine = [region for region in (*block.reads, *block.writes) if self._is_mine(region)]
        if not mine:
            return block
        reads, writes = get_block_read_write_region(block, {self.new.data: self.new})
        final = block.with_(
            reads=self._regions(block.reads, reads), writes=self._regions(block.writes, writes)
        )
        self.reuse[node] = final
        return final

    def _is_mine(self, region: BufferRegion) -> bool:
        return region.buffer is self.old or region.buffer is self.new

    def _regions(
        self, declared: Sequence[BufferRegion], derived: Sequence[BufferRegion]
    ) -> list[BufferRegion]:
        """The declared regions with the derived one of the buffer (all of it where none is)."""
        regions: list[BufferRegion] = []
        for region in declared:
            if not self._is_mine(region):
                regions.append(region)
            elif not any(item.buffer is self.new for item in regions):
                everything = BufferRegion.full_region(self.new)
                regions.append(derived[0] if derived else everything)
        return regions


@deep_recursion
def rewrite_layout(
    scope: Block, old: Buffer, new: Buffer, layout: IndexMap, plan: LayoutPlan
) -> tuple[Block, rewrite.Reuse]:
    """``scope`` with the buffer in its new layout, and which block became which."""
    work = LayoutRewriter(old, new, layout, plan)
    new_scope = work.visit(scope)
    assert isinstance(new_scope, Block)
    if plan.prologue is not None:
        final = new_scope.with_(body=seq(work.visit(plan.prologue), new_scope.body))
        work.reuse[scope] = new_scope = final
    return new_scope, rewrite.merged(plan.reuse, work.reuse)


@deep_recursion
def simplify_accesses(block: Block) -> Block:
    """A block whose accesses and regions have simple indices, for the domains of its axes."""
    simplified = _AccessSimplifier().visit(block)
    assert isinstance(simplified, Block)
    return simplified


class _AccessSimplifier(IndexContext):
    def visit_BufferLoad(self, node: BufferLoad) -> BufferLoad:
        return node.with_(indices=self.simple(self.visit(node.indices)))

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        value, indices = self.visit(node.value), self.visit(node.indices)
        return node.with_(value=value, indices=self.simple(indices))

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        lows = self.simple([rng.min for rng in node.region])
        ranges = [
            Range.from_min_extent(low, op.cast(low.dtype, rng.extent))
            for low, rng in zip(lows, node.region, strict=True)
        ]
        return node.with_(region=ranges)
