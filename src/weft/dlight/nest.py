"""What default schedules ask about a block: its axes, what it reads, how it accumulates.

Indices are simplified over the ranges of the axes, so that ``x[(j // 64 + i) % 128]`` with j below
64 and i below 128 reads ``x[i]``. Nothing here changes a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, mentions, substitute
from weft.ir.op import Op
from weft.support.lazy_property import lazy_property
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.byte_pairs import exact_axes_of
from weft.tir.expr import Call, IterType, IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.joined_index import walks
from weft.tir.schedule import tree
from weft.tir.schedule.errors import BlockNotFoundError
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.size_hints import likely_size, size_hints_of
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)

_ONE_OPERATION: Final = (Op.get("tir.fabs"),)
"""Functions that are as cheap as an addition."""


@dataclass(frozen=True)
class Access:
    """One load: the buffer, and its indices over the axes of the block, simplified."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]

    def uses(self, axis: Var) -> bool:
        """Whether the element that is read depends on an axis."""
        return mentions(self.indices, axis)

    def walks(self, axis: Var) -> bool:
        """Whether an axis moves along the buffer: not in ``x[table[axis]]``, where it chooses."""
        tables = [load for index in self.indices for load in collect(index, BufferLoad)]
        return self.uses(axis) and not any(mentions(table.indices, axis) for table in tables)

    def stride_one(self, axis: Var) -> bool:
        """Whether the next value of the axis is the next element: ``x[i, axis + k]``."""
        if not self.indices or mentions(self.indices[:-1], axis):
            return False
        rest = Analyzer().simplify(op.subtract(self.indices[-1], axis))
        return not mentions(rest, axis)

    def step(self, axis: Var) -> int | None:
        """The distance in elements when the axis grows by one; None if that is not constant."""
        place: PrimExpr = op.const(0, axis.dtype)
        for size, index in zip(self.buffer.shape, self.indices, strict=True):
            place = op.add(op.multiply(place, size), index)
        after = substitute(place, {axis: op.add(axis, 1)})
        distance = Analyzer().simplify(op.subtract(after, place))
        return distance.value if isinstance(distance, IntImm) and not self.buffer.strides else None

    def depth(self, axis: Var) -> int:
        """How far from the last dimension an axis is used; a large number if it is not."""
        innermost_first = enumerate(reversed(self.indices))
        depths = [depth for depth, index in innermost_first if axis in collect(index, Var)]
        return min(depths, default=len(self.indices))

    def position(self, axis: Var) -> int | None:
        """The dimension whose index is the axis itself, if no other depends on it."""
        users = [d for d, index in enumerate(self.indices) if axis in collect(index, Var)]
        return users[0] if len(users) == 1 and self.indices[users[0]] is axis else None


class Nest:
    """One block of a schedule."""

    def __init__(self, sch: Schedule, block: BlockRV) -> None:
        stmt = sch.get(block)
        assert isinstance(stmt, Block)
        self.rv, self.block, self._module = block, stmt, sch.mod
        self.axes: tuple[IterVar, ...] = tuple(stmt.iter_vars)

    @property
    def spatial(self) -> list[Var]:
        """The axes of the result."""
        return [axis.var for axis in self.axes if axis.iter_type == IterType.DataPar]

    @property
    def reduced(self) -> list[Var]:
        """The axes of the reduction."""
        return [axis.var for axis in self.axes if axis.iter_type == IterType.CommReduce]

    @property
    def ordered(self) -> list[Var]:
        """The axes of a scan, whose steps run one after the other."""
        return [axis.var for axis in self.axes if axis.iter_type == IterType.Ordered]

    @property
    def is_plain(self) -> bool:
        """Whether all axes are spatial or reduced and none is empty, and the body only stores."""
        return not self.ordered and self._only_stores

    @property
    def is_scan(self) -> bool:
        """Whether the block is a scan along one axis, with an init, and the body only stores."""
        is_ordered = len(self.ordered) == 1 and not self.reduced
        return is_ordered and self.block.init is not None and self._only_stores

    @lazy_property
    def _only_stores(self) -> bool:
        """Whether no axis is empty or of another kind than these, and the body only stores."""
        kinds = (IterType.DataPar, IterType.CommReduce, IterType.Ordered)
        inside = collect(self.block.body, (For, While, BlockRealize, Evaluate))
        return (
            all(axis.iter_type in kinds for axis in self.axes)
            and all(self.extent(axis.var) != 0 for axis in self.axes)
            and not inside
            and not self.block.match_buffers
            and bool(self.stores)
        )

    @property
    def is_reduction(self) -> bool:
        """Whether the block has an init and accumulates."""
        return self.block.init is not None and bool(self.reduced)

    @property
    def is_spatial(self) -> bool:
        """Whether each instance writes one element of its own."""
        return self.is_plain and not self.reduced and self.block.init is None

    @lazy_property
    def stores(self) -> list[BufferStore]:
        """The stores of the body."""
        return _stores(self.block.body)

    @lazy_property
    def loads(self) -> list[Access]:
        """The loads of the body, except those of the value that it accumulates."""
        written = {store.buffer for store in self.stores}
        return [
            Access(load.buffer, tuple([self.simplified(index) for index in load.indices]))
            for load in collect(self.block.body, BufferLoad)
            if load.buffer not in written
        ]

    @lazy_property
    def calls(self) -> int:
        """The number of calls of functions in the body, which make it costly to compute twice."""
        return sum(1 for call in collect(self.block.body, Call) if call.op not in _ONE_OPERATION)

    def analyzer(self) -> Analyzer:
        """An analyzer that knows the ranges of the axes."""
        analyzer = Analyzer()
        for axis in self.axes:
            if axis.dom is not None:
                analyzer.bind(axis.var, axis.dom)
        return analyzer

    def extent(self, axis: Var) -> int | None:
        """The size of an axis; None if it is symbolic."""
        for item in self.axes:
            if item.var is axis and item.dom is not None:
                return item.dom.extent.value if isinstance(item.dom.extent, IntImm) else None
        return None

    def likely_extent(self, axis: Var | None) -> int | None:
        """What the size of an axis usually is: its extent, or what the size hints say of it.

        1 where there is no axis, None where nothing is known.
        """
        if axis is None:
            return 1
        domains = [item.dom for item in self.axes if item.var is axis and item.dom is not None]
        return likely_size(domains[0].extent, self._hints) if domains else None

    @lazy_property
    def _hints(self) -> dict[str, int]:
        functions = [f for f in self._module.functions.values() if isinstance(f, PrimFunc)]
        return {name: size for func in functions for name, size in size_hints_of(func).items()}

    def exact_byte_pairs(self, buffer: Buffer) -> tuple[int, ...]:
        """The axes of a weight along which int16 holds its products with bytes in pairs."""
        functions = [f for f in self._module.functions.values() if isinstance(f, PrimFunc)]
        return tuple([axis for func in functions for axis in exact_axes_of(func, buffer)])

    def result_axes(self) -> list[Var] | None:
        """The axes in the order in which they index the result; None if an index is no axis.

        ``y[i // 7, i % 7]`` with rows of 7 counts as indexed by ``i``.
        """
        if len({store.buffer for store in self.stores}) != 1:
            return None
        store = self.stores[0]
        simple = [self.simplified(index) for index in store.indices]
        indices = [index for index, _ in walks(simple, store.buffer.shape)]
        axes = [index for index in indices if isinstance(index, Var)]
        constant = [index for index in indices if isinstance(index, IntImm)]
        if len(axes) + len(constant) != len(indices) or len(set(axes)) != len(axes):
            return None
        return axes if set(axes) <= set(self.spatial) else None

    def simplified(self, index: PrimExpr) -> PrimExpr:
        """A simplified index, in which an axis with one value is replaced by that value."""
        return self._ranges.simplify(index)

    @lazy_property
    def _ranges(self) -> Analyzer:
        return self.analyzer()


def _stores(stmt: Stmt) -> list[BufferStore]:
    if isinstance(stmt, BufferStore):
        return [stmt]
    if isinstance(stmt, SeqStmt):
        return [store for item in stmt.seq for store in _stores(item)]
    if isinstance(stmt, LetStmt):
        return _stores(stmt.body)
    if isinstance(stmt, IfThenElse):
        rest = [] if stmt.else_case is None else _stores(stmt.else_case)
        return [*_stores(stmt.then_case), *rest]
    return []


def blocks_of(sch: Schedule) -> list[BlockRV]:
    """The blocks of the function, in the order of the program; none if it is a block itself.

    Such a function has no block ``root``: a sort, and others whose loops are no tensor expression.
    """
    try:
        blocks: list[BlockRV] = sch.get_child_blocks(sch.get_block("root"))
    except BlockNotFoundError:
        return []
    return blocks


def loops_of(sch: Schedule, nest: Nest, skip: int = 0) -> dict[Var, LoopRV]:
    """Axis -> the loop that runs it, of the loops around the block without the ``skip`` outermost.

    An axis that none of these runs (its size is 1, or an outer loop runs it) is left out, and so
    is one that several run.
    """
    reference = sch.get_sref(nest.rv)
    above = None if reference is None or reference.parent is None else reference.parent.stmt
    assert reference is not None
    assert above is not None
    realizes = tree.child_realizes(above)
    [values] = [item.iter_values for item in realizes if item.block is reference.stmt]
    loops = {sch.get(loop).loop_var: loop for loop in sch.get_loops(nest.rv)[skip:]}
    by_axis = {}
    for axis, value in zip(nest.axes, values, strict=True):
        running = [loops[var] for var in collect(value, Var) if var in loops]
        if len(running) == 1:
            by_axis[axis.var] = running[0]
    return by_axis


def product(values: Sequence[int | None]) -> int | None:
    """The product of sizes; None if one is not known."""
    total = 1
    for value in values:
        if value is None:
            return None
        total *= value
    return total
