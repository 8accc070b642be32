"""Questions about the shape of a scheduled program: what is inside a node, what is around it.

What is inside is answered from the nodes alone. Statements are immutable, so what is derived from
one is kept with it (``Node._cache``): after an edit only the rebuilt path is walked again. What is
around a node is answered by a reference, which knows its parent. References point at ``For`` and at
the block of a ``BlockRealize``; the statements between two of these are called glue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from weft.arith.analyzer import Analyzer
from weft.ir.expr import GlobalVar, IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.ir.node import fact
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)

_BODY: Final = frozenset(
    {For, LetStmt, AttrStmt, AssertStmt, Allocate, AllocateConst, DeclBuffer, BufferRealize, While}
)


def substatements(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside ``stmt``; an init of a block is not among them."""
    kind = type(stmt)
    node: Any = stmt  # which fields it has follows from its class
    if kind is SeqStmt:
        children: tuple[Stmt, ...] = node.seq
        return children
    if kind is BlockRealize:
        return (node.block.body,)
    if kind is Block or kind in _BODY:
        return (node.body,)
    if kind is IfThenElse:
        return (node.then_case,) if node.else_case is None else (node.then_case, node.else_case)
    return ()


def child_references(stmt: For | Block) -> tuple[For | BlockRealize, ...]:
    """The outermost loops and block realizations inside ``stmt``, in program order."""
    return fact(stmt, "schedule.children", nearest)


def nearest(stmt: Stmt) -> tuple[For | BlockRealize, ...]:
    """``child_references`` of any statement, without memory."""
    nearest_nodes: list[For | BlockRealize] = []
    for inner in substatements(stmt):
        if isinstance(inner, (For, BlockRealize)):
            nearest_nodes.append(inner)
        else:
            nearest_nodes.extend(nearest(inner))
    return tuple(nearest_nodes)


def child_realizes(stmt: For | Block) -> tuple[BlockRealize, ...]:
    """The blocks inside ``stmt`` that are in no other block inside it, in program order."""
    return fact(stmt, "schedule.blocks", _realizes)


def _realizes(stmt: For | Block) -> tuple[BlockRealize, ...]:
    realizes: list[BlockRealize] = []
    for inner in child_references(stmt):
        if isinstance(inner, BlockRealize):
            realizes.append(inner)
        else:
            realizes.extend(child_realizes(inner))
    return tuple(realizes)


def is_only_loops_and_blocks(stmt: For | Block) -> bool:
    """Whether only loops, sequences and constants are between ``stmt`` and its blocks."""
    return fact(stmt, "schedule.plain", _is_plain)


def _is_plain(stmt: Stmt) -> bool:
    for inner in substatements(stmt):
        if isinstance(inner, For):
            if not is_only_loops_and_blocks(inner):
                return False
        elif isinstance(inner, (SeqStmt, AllocateConst, DeclBuffer)):
            if not _is_plain(inner):
                return False
        elif not isinstance(inner, BlockRealize):
            return False
    return True


def all_references(stmt: Stmt) -> Iterator[For | Block]:
    """Every loop and block below ``stmt``, itself included, outer ones first."""
    stack: list[Stmt] = [stmt]
    while stack:
        item = stack.pop()
        if isinstance(item, BlockRealize):
            yield item.block
        elif isinstance(item, (For, Block)):
            yield item
        stack.extend(reversed(substatements(item)))


def replace_child(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt | None:
    """``stmt`` with the loop or block ``old`` (by identity) replaced by ``new``.

    Only the glue between ``stmt`` and its nearest loops and blocks is searched. None if ``old`` is
    not there. A block may be replaced by a block (its realization stays), a loop by anything.
    """
    rebuilt = _replaced_inside(stmt, old, new)
    return None if rebuilt is stmt else rebuilt


def _replaced(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    if stmt is old:
        return new
    if isinstance(stmt, BlockRealize):
        return stmt.with_(block=new) if stmt.block is old else stmt
    return stmt if isinstance(stmt, For) else _replaced_inside(stmt, old, new)


def _replaced_inside(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    if isinstance(stmt, SeqStmt):
        items = [_replaced(item, old, new) for item in stmt.seq]
        same = all(mine is its for mine, its in zip(items, stmt.seq, strict=True))
        return stmt if same else stmt.with_(seq=items)
    if isinstance(stmt, IfThenElse):
        other = stmt.else_case
        return stmt.with_(
            then_case=_replaced(stmt.then_case, old, new),
            else_case=None if other is None else _replaced(other, old, new),
        )
    if isinstance(stmt, Block) or type(stmt) in _BODY:
        holder: Any = stmt  # all of them have a body
        return stmt.with_(body=_replaced(holder.body, old, new))
    return stmt


def bindings_of(realize: BlockRealize) -> dict[Var, PrimExpr]:
    """Each axis of the block with the value it is bound to."""
    axes = realize.block.iter_vars
    return {axis.var: value for axis, value in zip(axes, realize.iter_values, strict=True)}


# ---- around a reference


class StmtSRef:
    """A reference to one loop or block of the program; ``stmt`` is None once it has expired."""

    __slots__ = ("__weakref__", "consumer", "parent", "stmt")

    def __init__(self, stmt: For | Block | None, parent: StmtSRef | None) -> None:
        self.stmt = stmt
        self.parent = parent
        self.consumer: object = None
        """The call that removed the statement, once it is gone."""

    @property
    def seq_index(self) -> int:
        """The position in the sequence around the statement; -1 where there is none."""
        if self.parent is None or self.parent.stmt is None:
            return -1
        inside = child_references(self.parent.stmt)
        own = [item.block if isinstance(item, BlockRealize) else item for item in inside]
        return next((i for i, item in enumerate(own) if item is self.stmt), -1) if own[1:] else -1

    @staticmethod
    def inline_mark() -> StmtSRef:
        """The place that means "inlined into every consumer"."""
        return INLINE_MARK

    @staticmethod
    def root_mark() -> StmtSRef:
        """The place that means "where it stands"."""
        return ROOT_MARK

    def same_as(self, other: object) -> bool:
        """Whether both are the same reference."""
        return self is other

    def __repr__(self) -> str:
        return f"StmtSRef({self.stmt!r})"


INLINE_MARK = StmtSRef(None, None)
ROOT_MARK = StmtSRef(None, None)


class SRefTree(Protocol):
    """What the functions of this package need of a ``ScheduleState``."""

    def sref_of(self, stmt: Block | For | BlockRealize) -> StmtSRef:
        """The reference to a statement that is known to be in the program."""

    def function_of(self, sref: StmtSRef) -> tuple[GlobalVar, PrimFunc]:
        """The function in which a reference lies."""


def stmt_of(sref: StmtSRef) -> For | Block:
    """The loop or block of a live reference."""
    assert isinstance(sref.stmt, (For, Block))
    return sref.stmt


def loop_of(sref: StmtSRef) -> For:
    """The loop of a reference to one."""
    assert isinstance(sref.stmt, For)
    return sref.stmt


def block_of(sref: StmtSRef) -> Block:
    """The block of a reference to one."""
    assert isinstance(sref.stmt, Block)
    return sref.stmt


def loops_above(sref: StmtSRef, stop: StmtSRef | None = None) -> list[StmtSRef]:
    """The loops around a reference, outermost first, up to the block around it or ``stop``."""
    loops = []
    item = sref.parent
    while item is not None and isinstance(item.stmt, For) and item is not stop:
        loops.append(item)
        item = item.parent
    return loops[::-1]


def alone_in(sref: StmtSRef, loops: Sequence[StmtSRef]) -> int:
    """How many of the loops, given from the innermost on, run nothing else than the block."""
    inner = sref.stmt
    for count, loop in enumerate(loops):
        assert isinstance(loop.stmt, For)
        body = loop.stmt.body
        if (body.block if isinstance(body, BlockRealize) else body) is not inner:
            return count
        inner = loop.stmt
    return len(loops)


def scope_of(sref: StmtSRef) -> StmtSRef | None:
    """The block around a reference; None of a root block."""
    item = sref.parent
    while item is not None and not isinstance(item.stmt, Block):
        item = item.parent
    return item


def realize_of(state: SRefTree, sref: StmtSRef) -> BlockRealize:
    """The realization of a block."""
    if sref.parent is None:
        body = state.function_of(sref)[1].body
        assert isinstance(body, BlockRealize)
        return body
    assert isinstance(sref.parent.stmt, (For, Block))
    for child in child_references(sref.parent.stmt):
        if isinstance(child, BlockRealize) and child.block is sref.stmt:
            return child
    raise AssertionError("a block is not where its reference says")


def domains(loops: Iterable[StmtSRef]) -> dict[Var, Range]:
    """The range of each loop's variable."""
    stmts = [loop.stmt for loop in loops]
    return {stmt.loop_var: stmt.domain for stmt in stmts if isinstance(stmt, For)}


def lowest_common_ancestor(srefs: Sequence[StmtSRef]) -> StmtSRef:
    """The innermost loop or block around all of the references (one of them, if it is around)."""
    paths: list[list[StmtSRef]] = []
    for sref in srefs:
        path: list[StmtSRef] = []
        item: StmtSRef | None = sref
        while item is not None:
            path.append(item)
            item = item.parent
        paths.append(path[::-1])
    common = paths[0][0]
    for level in zip(*paths, strict=False):
        if any(item is not level[0] for item in level):
            break
        common = level[0]
    return common


def is_conditional(sref: StmtSRef, top: StmtSRef) -> bool:
    """Whether an ``if`` or ``while`` stands between a loop or block and ``top`` around it."""
    item = sref
    while item is not top and item.parent is not None:
        above = item.parent.stmt
        assert isinstance(above, (For, Block))
        if not is_only_loops_and_blocks(above) and not _always_reached(above.body, item.stmt):
            return True
        item = item.parent
    return False


def _always_reached(stmt: Stmt, target: Stmt | None) -> bool:
    node = stmt.block if isinstance(stmt, BlockRealize) else stmt
    if node is target:
        return True
    if isinstance(stmt, (For, BlockRealize, IfThenElse, While)):
        return False
    for inner in substatements(stmt):
        if _always_reached(inner, target):
            return True
    return False


def analyzer_above(sref: StmtSRef) -> Analyzer:
    """An analyzer that knows the loops around and at ``sref``, and the axes of blocks around it."""
    analyzer = Analyzer()
    item: StmtSRef | None = sref
    chain = []
    while item is not None:
        chain.append(item.stmt)
        item = item.parent
    for stmt in reversed(chain):
        if isinstance(stmt, For):
            analyzer.bind(stmt.loop_var, stmt.domain)
        elif isinstance(stmt, Block):
            for axis in stmt.iter_vars:
                if axis.dom is not None:
                    analyzer.bind(axis.var, axis.dom)
    return analyzer


def not_negative(rng: Range, analyzer: Analyzer) -> Range:
    """The range without a negative extent, as that of what a condition leaves empty may be.

    The analyzer knows the loops and axes around it; an extent without them is a size.
    """
    extent, zero = rng.extent, IntImm(rng.extent.dtype, 0)
    if isinstance(extent, IntImm):
        return rng if extent.value >= 0 else Range.from_min_extent(rng.min, zero)
    known = any(analyzer.const_int_bound_is_bound(var) for var in collect(extent, Var))
    if not known or analyzer.can_prove_greater_equal(extent, 0):
        return rng
    return Range.from_min_extent(rng.min, analyzer.simplify(op.maximum(extent, zero)))
