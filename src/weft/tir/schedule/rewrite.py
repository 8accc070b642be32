"""Rewriting subtrees of a schedule so that references to blocks survive.

Every rewrite here returns the new statement and a table old block -> new block: what
``ScheduleState.replace`` takes as ``block_sref_reuse``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map import IterMapLevel, detect_iter_map, iter_map_simplify
from weft.arith.iter_map.detect import indices_of
from weft.ir import functor
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, Visitor, collect, contains
from weft.ir.node import Node, fact
from weft.ir.summary import identities
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import BinaryExpr, Var
from weft.tir.function import OPERATORS
from weft.tir.schedule import flags
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, Stmt

Reuse = dict[Block, Block]


class _Uses(Visitor):
    """Collects the variables that occur below a node (definitions too)."""

    def __init__(self) -> None:
        self.found: set[Var] = set()

    def visit(self, node: Any) -> None:
        """Enter what holds blocks; collect the variables of anything else at once."""
        if isinstance(node, (Block, For, Buffer)):
            self.found |= variables_of(node)  # most are the same objects after an edit
        elif contains(node, Block):
            super().visit(node)
        else:
            self.found.update(collect(node, Var))


def _uses(node: Node) -> frozenset[Var]:
    collector = _Uses()
    Visitor.visit_default(collector, node)
    return frozenset(collector.found)


def variables_of(node: Block | For | Buffer) -> frozenset[Var]:
    """Every variable that occurs in a block, loop or buffer; derived once per object."""
    return fact(node, "schedule.variables", _uses)


class BlockMutator(Mutator):
    """A mutator that remembers which block became which."""

    reuse: Reuse

    def __init__(self) -> None:
        self.reuse = {}

    def visit_Block(self, node: Block) -> Block:
        block = self.visit_default(node)
        if block is not node:
            self.reuse[node] = block
        return block


class BufferMutator(BlockMutator):
    """A mutator that makes what accesses the buffer ``old`` access ``new``, at other indices."""

    old: Buffer
    new: Buffer

    def moved(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """Indices of the old buffer as those of the new one."""
        raise NotImplementedError

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return self.new if node is self.old else node

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        return node if node.buffer is self.old else self.visit_default(node)

    def visit_BufferLoad(self, node: BufferLoad) -> BufferLoad:
        indices = self.visit(node.indices)
        if node.buffer is not self.old:
            return node if indices is node.indices else node.with_(indices=indices)
        return node.with_(buffer=self.new, indices=self.moved(indices))

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        value, indices = self.visit(node.value), self.visit(node.indices)
        if node.buffer is not self.old:
            return node.with_(value=value, indices=indices)
        return node.with_(buffer=self.new, value=value, indices=self.moved(indices))


class Substitution(BlockMutator):
    """Replaces variables and buffers by identity; blocks without them stay the same."""

    def __init__(self, mapping: Mapping[Var, Node] | Mapping[Buffer, Node]) -> None:
        super().__init__()
        self.mapping = {id(key): value for key, value in mapping.items()}
        self.skip_all_but(identities(list(mapping)))

    def visit_Var(self, node: Var) -> object:
        return self.mapping.get(id(node), node)

    def visit_Buffer(self, node: Buffer) -> object:
        replacement = self.mapping.get(id(node))
        return self.visit_default(node) if replacement is None else replacement

    def visit_BinaryExpr(self, node: BinaryExpr) -> PrimExpr:
        """Fold an operation on constants that the substitution brought; keep other forms."""
        expr = self.visit_default(node)
        function = OPERATORS.get(node.KIND)
        brought = expr is not node and (
            (isinstance(expr.a, IntImm) and expr.a is not node.a)
            or (isinstance(expr.b, IntImm) and expr.b is not node.b)
        )
        return function(expr.a, expr.b) if brought and function is not None else expr


@deep_recursion
def substitute(
    stmt: Stmt, mapping: Mapping[Var, Node] | Mapping[Buffer, Node]
) -> tuple[Stmt, Reuse]:
    """``stmt`` with variables and buffers replaced by identity."""
    work = Substitution(mapping)
    substituted: Stmt = work.visit(stmt)
    return substituted, work.reuse


class _Predicate(BlockMutator):
    """Adds a condition to the nearest block realizations."""

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__()
        self.condition = condition

    def visit_BlockRealize(self, node: BlockRealize) -> BlockRealize:
        return node.with_(predicate=op.logical_and(node.predicate, self.condition))


@deep_recursion
def add_predicate(stmt: Stmt, condition: PrimExpr) -> Stmt:
    """``stmt`` whose nearest blocks run only where ``condition`` holds too."""
    return _Predicate(condition).visit(stmt)


class _SimpleBindings(BlockMutator):
    """Simplifies the values of blocks' axes as maps of the loops around them."""

    def __init__(self, loops: Mapping[Var, Range], preserve_unit_iters: bool) -> None:
        super().__init__()
        self.loops = dict(loops)
        self.keep_units = preserve_unit_iters

    def visit_For(self, node: For) -> For:
        self.loops[node.loop_var] = node.domain
        body = self.visit(node.body)
        del self.loops[node.loop_var]
        return node.with_(body=body)

    def visit_BlockRealize(self, node: BlockRealize) -> BlockRealize:
        if not node.iter_values:  # an opaque block sees the loops directly
            return node.with_(block=self.visit(node.block))
        analyzer = Analyzer()
        iter_map = detect_iter_map(
            node.iter_values,
            self.loops,
            node.predicate,
            IterMapLevel.Surjective,
            not self.keep_units,
            analyzer=analyzer,
        )
        if iter_map.indices:
            realize = node.with_(iter_values=indices_of(iter_map, analyzer))
            # The map decides whether bindings are affine. A predicate still uses the bindings as
            # they were; with one, the map of the simpler bindings is computed again when needed.
            if self.keep_units and op.is_const_int(node.predicate, 1):
                flags.remember_map(realize, self.loops, iter_map)
            return realize
        if op.is_const_int(node.predicate, 1):
            return node
        # A map without the predicate is a map with it, too.
        values = iter_map_simplify(
            node.iter_values, self.loops, True, IterMapLevel.Surjective, not self.keep_units
        )
        return node.with_(iter_values=values)


@deep_recursion
def simplify_bindings(
    stmt: Stmt, loops: Mapping[Var, Range], preserve_unit_iters: bool = True
) -> tuple[Stmt, Reuse]:
    """``stmt`` with simpler bindings; ``loops`` are the loops around it."""
    work = _SimpleBindings(loops, preserve_unit_iters)
    simplified: Stmt = work.visit(stmt)
    return simplified, work.reuse


def merged(*tables: Reuse) -> Reuse:
    """One table for rewrites made one after the other."""
    both: Reuse = {}
    for table in tables:
        both = {old: table.get(new, new) for old, new in both.items()}
        known = set(both.values())
        both.update({old: new for old, new in table.items() if new not in known})
    return both


def under_copies(realize: BlockRealize, loops: Sequence[For]) -> Stmt:
    """The realization under loops like ``loops``, with variables of their own."""
    renamed = {loop.loop_var: loop.loop_var.copy_with_suffix("") for loop in loops}
    values, predicate = functor.substitute([realize.iter_values, realize.predicate], renamed)
    body: Stmt = realize.with_(iter_values=values, predicate=predicate)
    for loop in reversed(loops):
        binding = loop.thread_binding
        if binding is not None:
            binding = binding.with_(var=binding.var.copy_with_suffix(""))
        low, extent = functor.substitute([loop.min, loop.extent], renamed)
        body = loop.with_(
            loop_var=renamed[loop.loop_var],
            min=low,
            extent=extent,
            body=body,
            thread_binding=binding,
        )
    return body
