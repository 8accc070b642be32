"""The part of a buffer that a statement accesses over all iterations of its loops.

The regions of all loads (or stores) are united to one range for each axis, which bounds everything
accessed. Conditions narrow the loops around an access. It is TVM's ``DomainTouched``.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.arith.analyzer import Analyzer
from weft.arith.int_set import eval_set, union
from weft.arith.interval import IntervalSet, as_int_set
from weft.ir.expr import Range
from weft.ir.functor import Visitor
from weft.ir.node import Array, Node
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.analysis.condition_domains import narrowed_domains
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Var
from weft.tir.stmt import BlockRealize, BufferStore, For, IfThenElse, LetStmt, Stmt


@deep_recursion
def domain_touched(
    stmt: Stmt, buffer: Buffer, consider_loads: bool = True, consider_stores: bool = True
) -> Array[Range]:
    """The range of each axis that the loads, the stores or both touch; empty if there are none.

    An axis of unknown bounds gets the buffer's own range.
    """
    if not consider_loads and not consider_stores:
        raise IRValueError("domain_touched: consider loads, stores or both, not neither")
    visitor = _Touched(buffer, consider_loads, consider_stores)
    visitor.visit(stmt)
    ranges = []
    for axis, sets in zip(buffer.shape, visitor.axes, strict=True):
        if not sets:
            return Array()
        whole = Range.from_min_extent(axis * 0, axis)
        ranges.append(union(sets, visitor.analyzer).cover_range(whole, visitor.analyzer))
    return Array(ranges)


class _Touched(Visitor):
    """Collects the sets of every index of the accesses of one buffer."""

    def __init__(self, buffer: Buffer, loads: bool, stores: bool) -> None:
        self.buffer = buffer
        self.loads = loads
        self.stores = stores
        self.axes: list[list[IntervalSet]] = [[] for _ in buffer.shape]
        self.domains: Mapping[Var, IntervalSet] = {}
        self.analyzer = Analyzer()

    def touch(self, access: BufferLoad | BufferStore) -> None:
        """Record an access."""
        if access.buffer is self.buffer:
            for sets, index in zip(self.axes, access.indices, strict=True):
                sets.append(eval_set(index, self.domains, self.analyzer))

    def under(self, domains: Mapping[Var, IntervalSet], *parts: Node | None) -> None:
        """Visit parts with other domains of the variables."""
        outer, self.domains = self.domains, domains
        for part in parts:
            if part is not None:
                self.visit(part)
        self.domains = outer

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        if self.loads:
            self.touch(node)
        self.visit_default(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        if self.stores:
            self.touch(node)
        self.visit_default(node)

    def visit_For(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        run = as_int_set(node.domain, self.analyzer)
        self.under({**self.domains, node.loop_var: run}, node.body)

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        self.visit(node.iter_values)
        self.visit(node.predicate)
        block = node.block
        domains = dict(narrowed_domains(self.domains, node.predicate, self.analyzer))
        axes = [axis.var for axis in block.iter_vars]
        for axis, value in zip(axes, node.iter_values, strict=True):
            domains[axis] = eval_set(value, domains, self.analyzer)
        self.under(domains, block.init, block.body)

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        known = eval_set(node.value, self.domains, self.analyzer)
        self.under({**self.domains, node.var: known}, node.body)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        for branch, negated in ((node.then_case, False), (node.else_case, True)):
            domains = narrowed_domains(self.domains, node.condition, self.analyzer, negated=negated)
            self.under(domains, branch)
