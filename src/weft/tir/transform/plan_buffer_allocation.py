"""PlanAndUpdateBufferAllocationLocation allocates a buffer in the innermost loop that may own it.

A buffer that a block allocates moves into the loop that holds all its accesses if each iteration
is proved to write, before it reads, every element that it reads: then each iteration, and so each
thread of a parallel loop, can have memory of its own. The proof is syntactic: one first,
unconditional store whose index is, in every dimension, the loop that runs over the whole extent,
or the same expression as in all other accesses, or covers without gaps an interval in which all
other accesses stay; or several such stores of one block that follow each other along one
dimension. A fused loop counts as the loops that its quotients and remainders are. A store counts
as unconditional if its guard only keeps it inside the buffer, as the guard of a tail does: no
access is outside, so a store to a whole dimension covers them all. Local memory moves into the
loops over the threads that own it, shared memory into those over blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.conjunction import conjuncts
from weft.arith.linear import detect_linear_equation
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, Visitor, collect, contains, substitute
from weft.ir.node import Array, Node
from weft.ir.structural import structural_equal
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import LE, LT, Call, FloorDiv, FloorMod, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    MatchBufferRegion,
    Stmt,
    While,
)
from weft.tir.transform.fused_digits import unfused
from weft.tir.transform.prim_func_pass import define_pass, rewrite_body
from weft.tir.transform.threads.thread_scope import binding_of, scope_of


@dataclass(frozen=True)
class _Access:
    """One load or store: the loops, blocks and branches around it, and its indices."""

    path: tuple[Node, ...]
    indices: tuple[PrimExpr, ...] | None
    is_read: bool
    of_reduction: bool
    reducing: frozenset[int] = frozenset()
    """Of an access in ``init``: the loop variables (by id) of the block's axes that accumulate."""


class _Accesses(Visitor):
    """Every access of some buffers in program order, block axes replaced by their values."""

    def __init__(self, buffers: Iterable[Buffer]) -> None:
        self.path: list[Node] = []
        self.found: dict[int, list[_Access]] = {id(buffer): [] for buffer in buffers}
        self.known: dict[int, tuple[PrimExpr, PrimExpr]] = {}
        """Index (by id) -> itself, so that it lives, and what ``exact`` makes of it."""
        self.values: dict[Var, PrimExpr] = {}
        self.initialised: list[int] = []
        self.reducing: frozenset[int] = frozenset()
        self.analyzer = Analyzer()

    def touch(self, buffer: Buffer, indices: Sequence[Any], is_read: bool) -> None:
        accesses = self.found.get(id(buffer))
        if accesses is None:
            return
        exact = None if indices is None else tuple([self.exact(index) for index in indices])
        access = _Access(
            tuple(self.path), exact, is_read, id(buffer) in self.initialised, self.reducing
        )
        accesses.append(access)

    def exact(self, index: PrimExpr) -> PrimExpr:
        """An index over loops; what split and fused loops divided is one sum again.

        Of a fused loop ``f``: ``f // 8 * 8 + f % 8`` -> ``f``.
        """
        known = self.known.get(id(index))
        if known is None:
            over_loops: PrimExpr = substitute(index, self.values)
            if contains(over_loops, (FloorDiv, FloorMod)):
                over_loops = self.analyzer.simplify(over_loops)
            known = self.known[id(index)] = index, over_loops
        return known[1]

    def visit_For(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        self.inside(loop, loop.body)

    def inside(self, scope: Node, body: Any) -> None:
        self.path.append(scope)
        self.visit(body)
        self.path.pop()

    def visit_IfThenElse(self, stmt: IfThenElse) -> None:
        self.visit(stmt.condition)
        self.inside(stmt, [stmt.then_case, *([stmt.else_case] if stmt.else_case else [])])

    def visit_While(self, stmt: While) -> None:
        self.inside(stmt, [stmt.condition, stmt.body])

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        self.visit(realize.iter_values)
        block = realize.block
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.values[axis.var] = substitute(value, self.values)
        conditional = not isinstance(realize.predicate, IntImm)
        if conditional:
            self.visit(realize.predicate)
            self.path.append(realize)
        self.path.append(block)
        before = len(self.initialised)
        if block.init is not None:
            self.reducing = frozenset(
                id(var)
                for axis in block.iter_vars
                if axis.accumulates
                for var in collect(self.values[axis.var], Var)
            )
            self.visit(block.init)
            self.reducing = frozenset()
            self.initialised.extend(id(store.buffer) for store in collect(block.init, BufferStore))
        self.visit(block.match_buffers)
        self.visit(block.body)
        del self.initialised[before:]
        self.path.pop()
        if conditional:
            self.path.pop()

    def visit_MatchBufferRegion(self, match: MatchBufferRegion) -> None:
        """The block may read all of the region: note its first and its last element as loads."""
        region = match.source.region
        for corner in (
            [part.min for part in region],
            [op.subtract(op.add(part.min, part.extent), 1) for part in region],
        ):
            self.touch(match.source.buffer, corner, True)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.visit(load.indices)
        self.touch(load.buffer, load.indices, True)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit(store.value)
        self.visit(store.indices)
        self.touch(store.buffer, store.indices, False)


def _common_path(accesses: list[_Access]) -> list[Node]:
    shared = list(accesses[0].path)
    for access in accesses[1:]:
        count = 0
        while count < min(len(shared), len(access.path)) and shared[count] is access.path[count]:
            count += 1
        del shared[count:]
    return shared


def _is_private(scope: For, depth: int, buffer: Buffer, accesses: list[_Access]) -> bool:
    """Whether each iteration of ``scope`` writes all that it reads (module docstring)."""
    first = accesses[0]
    inner = first.path[depth + 1 :]
    if first.is_read or first.indices is None:
        return False
    around = [item for item in first.path[: depth + 1] if isinstance(item, For)]
    if any(id(loop.loop_var) in first.reducing for loop in around):
        return False  # init runs in the first iteration only: the others read what it wrote
    if any(isinstance(item, (IfThenElse, While)) for item in inner):
        return False
    guards = [item.predicate for item in inner if isinstance(item, BlockRealize)]
    if not all(_says_inside(guard, first.indices, buffer) for guard in guards):
        return False
    if not all(_is_later(first, access, depth, buffer) for access in accesses[1:]):
        return False
    fused = {id(loop.loop_var): loop for loop in inner if isinstance(loop, For)}
    indices, loops = unfused(first.indices, fused)
    used: set[int] = set()
    together = _stored_together(accesses)
    for axis, index in enumerate(indices):
        same = first.indices[axis]
        if isinstance(index, Var) and id(index) in loops:
            if _covers(loops[id(index)], buffer.shape[axis]):
                continue
        elif all(structural_equal(same, a.indices[axis]) for a in accesses if a.indices):
            continue
        mine = {id(var) for var in collect(index, Var)} & loops.keys()
        written = together.get(axis) or _interval([loops[key] for key in mine], index)
        if written is None or mine & used:
            return False
        if not _is_whole(*written, buffer.shape[axis]):  # else no access is outside
            if not all(_stays(a, axis, *written) for a in accesses[1:]):
                return False
        used |= mine  # a variable in two dimensions writes a diagonal
    return True


def _is_later(first: _Access, access: _Access, depth: int, buffer: Buffer) -> bool:
    """Whether an access comes after the first store, if it reads what that stores.

    It does in another nest; in the same one, if it does in each round of their innermost loop.
    """
    inner = first.path[depth + 1 :]
    if access.indices is None:
        return False
    same_nest = access.path[depth + 1 : depth + 2] == inner[:1]
    if not (access.is_read and same_nest and inner) or access.of_reduction:
        return True
    both = _common_path([first, access])
    shared = [at for at, item in enumerate(both) if at > depth and isinstance(item, For)]
    if not shared:
        return False
    loop = both[shared[-1]]
    assert isinstance(loop, For)
    return _is_private(loop, shared[-1], buffer, [first, access])


def _stored_together(accesses: list[_Access]) -> dict[int, tuple[PrimExpr, PrimExpr]]:
    """By axis ``(first, extent)`` of what stores of one block set one after the other.

    They are at constant places of one dimension that follow each other, and agree in the rest.
    """
    first, count = accesses[0], 1
    assert first.indices is not None
    for access in accesses[1:]:
        if access.is_read or access.path != first.path or access.indices is None:
            break
        count += 1
    axes = {
        axis
        for access in accesses[1:count]
        for axis, index in enumerate(access.indices or ())
        if not structural_equal(index, first.indices[axis])
    }
    if count == 1 or len(axes) != 1:
        return {}
    [axis] = axes
    places = [access.indices[axis] for access in accesses[:count] if access.indices]
    values = [place.value if isinstance(place, IntImm) else None for place in places]
    follows = values[0] is not None and values == list(range(values[0], values[0] + count))
    return {axis: (places[0], op.const(count, places[0].dtype))} if follows else {}


def _says_inside(guard: PrimExpr, indices: tuple[PrimExpr, ...], buffer: Buffer) -> bool:
    """Whether a guard only asks whether the element lies below the extents of the buffer."""
    analyzer = Analyzer()
    return all(
        isinstance(part, (LT, LE))
        and any(
            (limit := _limit(part, index, analyzer)) is not None
            and _is_at_most(analyzer, extent, limit)
            for index, extent in zip(indices, buffer.shape, strict=True)
        )
        for part in conjuncts(guard)
    )


def _limit(test: LT | LE, index: PrimExpr, analyzer: Analyzer) -> PrimExpr | None:
    """What a guard says that ``index`` is below; None if it does not speak of ``index``.

    It is ``n`` of ``i < n``, and ``n + 1`` of ``i <= n`` and ``n - 2`` of ``i + 2 < n``, which
    simplified guards have.
    """
    more = analyzer.simplify(op.subtract(test.a, index))
    if not isinstance(more, IntImm):
        return None
    return op.add(test.b, int(isinstance(test, LE)) - more.value)


def _is_at_most(analyzer: Analyzer, extent: PrimExpr, limit: PrimExpr) -> bool:
    """Whether what is below an extent is below a limit, too; nothing is below an extent of 0."""
    return analyzer.can_prove_equal(extent, limit) or analyzer.can_prove(
        op.less_equal(extent, op.max(limit, op.const(0, limit.dtype)))
    )


def _interval(loops: list[For], index: PrimExpr) -> tuple[PrimExpr, PrimExpr] | None:
    """``(first, extent)`` of the values of ``index`` over loops; None if they have gaps.

    The loop with the longest steps may be of unknown extent.
    """
    if contains(index, (BufferLoad, Call)):
        return None
    coefficients = detect_linear_equation(index, [loop.loop_var for loop in loops])
    strides = [item.value if isinstance(item, IntImm) else 0 for item in coefficients[:-1]]
    if not coefficients or not all(stride > 0 for stride in strides):
        return None
    count: PrimExpr = op.const(1, index.dtype)
    for stride, loop in sorted(zip(strides, loops, strict=True), key=lambda pair: pair[0]):
        if not op.is_const_int(loop.min, 0) or not isinstance(count, IntImm):
            return None
        if stride > count.value or (isinstance(loop.extent, IntImm) and loop.extent.value < 1):
            return None
        count = op.add(count, op.multiply(op.subtract(loop.extent, 1), stride))
    return coefficients[-1], count


def _is_whole(first: PrimExpr, count: PrimExpr, extent: PrimExpr) -> bool:
    """Whether an interval holds a whole dimension."""
    return op.is_const_int(first, 0) and Analyzer().can_prove(op.greater_equal(count, extent))


def _stays(access: _Access, axis: int, first: PrimExpr, extent: PrimExpr) -> bool:
    """Whether an access is proved to lie in ``[first, first + extent)`` along one dimension."""
    assert access.indices is not None
    if not isinstance(extent, IntImm):
        return False
    loops = [item for item in access.path if isinstance(item, For)]
    analyzer = analyzer_of({loop.loop_var: loop.domain for loop in loops})
    distance = analyzer.simplify(op.subtract(access.indices[axis], first))
    bound = analyzer.const_int_bound(distance)
    return bool(bound.min_value >= 0 and bound.max_value < extent.value)


def _covers(loop: For, extent: PrimExpr) -> bool:
    return (
        isinstance(loop.min, IntImm)
        and loop.min.value == 0
        and (loop.extent is extent or bool(loop.extent == extent))
    )


class _Owners(Visitor):
    def __init__(self) -> None:
        self.owned: list[tuple[Buffer, Block]] = []

    def visit_Block(self, block: Block) -> None:
        self.owned.extend((buffer, block) for buffer in block.alloc_buffers)
        self.visit_default(block)


class _Place(Mutator):
    def __init__(self, moved: dict[int, list[Buffer]], gone: set[int]) -> None:
        super().__init__()
        self.moved, self.gone = moved, gone

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def visit_Block(self, block: Block) -> Block:
        visited: Block = self.visit_default(block)
        kept = [buffer for buffer in block.alloc_buffers if id(buffer) not in self.gone]
        if len(kept) == len(block.alloc_buffers):
            return visited
        return visited.with_(alloc_buffers=Array(kept))

    def visit_For(self, loop: For) -> For:
        visited: For = self.visit_default(loop)
        added = self.moved.get(id(loop))
        if not added:
            return visited
        block = Block((), (), (), "", visited.body, None, added)
        return visited.with_(body=BlockRealize((), IntImm(DataType("bool"), 1), block))


def shared_pointers(body: Stmt) -> set[int]:
    """Data variables that calls use, or several buffers: their buffers stay as they are."""
    pointers = {
        id(arg)
        for call in collect(body, Call)
        for arg in call.args
        if isinstance(arg, Var) and arg.dtype.is_handle
    }
    return pointers | {id(decl.buffer.data) for decl in collect(body, DeclBuffer)}


def plan_buffer_allocation(func: PrimFunc) -> PrimFunc:
    """The function with its block allocations moved inwards where that is sound."""
    owners = _Owners()
    owners.visit(func.body)
    if not owners.owned:
        return func
    accesses = _Accesses([buffer for buffer, _owner in owners.owned])
    accesses.visit(func.body)
    shared = shared_pointers(func.body)
    moved: dict[int, list[Buffer]] = {}
    gone: set[int] = set()
    for buffer, owner in owners.owned:
        sites = accesses.found[id(buffer)]
        target = None
        if sites and id(buffer.data) not in shared:
            target = _target(buffer, owner, sites)
        if target is not None:
            moved.setdefault(id(target), []).append(buffer)
            gone.add(id(buffer))
    return rewrite_body(func, _Place(moved, gone)) if gone else func


def _target(buffer: Buffer, owner: Block, accesses: list[_Access]) -> For | None:
    """The innermost loop inside the owner where the buffer is private; None: it stays."""
    common = _common_path(accesses)
    best = None
    inside = False
    for depth, scope in enumerate(common):
        inside = inside or scope is owner
        if not inside or not isinstance(scope, For):
            continue
        if _is_owner(scope, buffer) or _is_private(scope, depth, buffer, accesses):
            best = scope
    return best


def _is_owner(loop: For, buffer: Buffer) -> bool:
    """Whether each index of a loop over threads (or blocks) has such memory for itself."""
    binding = binding_of(loop)
    if binding is None:
        return False
    return scope_of(buffer) == "local" or (scope_of(buffer) == "shared" and binding.is_block)


PlanAndUpdateBufferAllocationLocation = define_pass(
    "PlanAndUpdateBufferAllocationLocation", plan_buffer_allocation
)
