"""What each iteration of a loop has of a buffer to itself.

In ``for i in T.parallel(16): for j in range(48): B[i * 48 + j] = A[i * 48 + j] + C[j]`` iteration i
touches elements ``48 * i`` to ``48 * i + 47`` of A and B: a slab of 48 along axis 0. C has none.
Iterations of two loops that have the same slabs of what one of them writes depend on each other
only where they have the same number, so that both loops may be one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Visitor, collect, substitute
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Var
from weft.tir.stmt import Allocate, Block, BlockRealize, BufferStore, For


@dataclass(frozen=True)
class Slab:
    """Iteration i has ``size * i`` to ``size * (i + 1) - 1`` of an axis, and all of the others."""

    axis: int
    size: int

    def times(self, count: int) -> Slab:
        """The slab of ``count`` iterations that follow each other."""
        return Slab(self.axis, self.size * count)


@dataclass
class LoopAccesses:
    """The buffers of a loop that are there before it, known by their data variables."""

    buffers: dict[Var, Buffer] = field(default_factory=dict)
    slabs: dict[Var, frozenset[Slab]] = field(default_factory=dict)
    """Of each, what is true of all accesses; empty if iterations share elements."""
    written: set[Var] = field(default_factory=set)


@deep_recursion
def loop_accesses(loop: For) -> LoopAccesses:
    """The accesses of a loop from 0 on.

    >>> from weft import te, tir
    >>> x = te.placeholder((16,), name="A")
    >>> y = te.compute((64,), lambda i: x[i % 16], name="B")
    >>> sch = tir.Schedule(te.create_prim_func([x, y]))
    >>> loop = sch.get(sch.split(sch.get_loops("B")[0], [4, 16])[0])
    >>> found = loop_accesses(loop)
    >>> {found.buffers[var].name: sorted(slabs, key=str) for var, slabs in found.slabs.items()}
    {'B': [Slab(axis=0, size=16)], 'A': []}
    """
    collector = _Accesses(loop)
    collector.visit(loop)
    return collector.found


class _Accesses(Visitor):
    """Collects accesses on the way down, with the axes of blocks replaced by what binds them."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.analyzer = Analyzer()
        self.axes: dict[Any, PrimExpr] = {}
        self.inner: set[Var] = set()
        self.found = LoopAccesses()

    def visit_For(self, loop: For) -> None:
        """Every loop's range helps to bound indices."""
        self.visit(loop.extent)
        first = substitute(loop.min, self.axes)
        self.analyzer.bind(
            loop.loop_var, Range.from_min_extent(first, substitute(loop.extent, self.axes))
        )
        self.visit(loop.body)

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        """A block: its axes, memory of its own, and what it says of memory behind its body."""
        block: Block = realize.block
        for item, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.axes[item.var] = substitute(value, self.axes)
        self.inner.update(buffer.data for buffer in block.alloc_buffers)
        for match in block.match_buffers:  # what the body does with it is not looked at
            self.inner.add(match.buffer.data)
            self.shared(match.source.buffer)
        for part in (realize.predicate, block.init, block.body):
            if part is not None:
                self.visit(part)

    def visit_Allocate(self, node: Allocate) -> None:
        """Memory of one iteration's own."""
        self.inner.add(node.buffer_var)
        self.visit(node.body)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        """An element is read."""
        self.access(load.buffer, load.indices)
        self.visit(load.indices)

    def visit_BufferStore(self, store: BufferStore) -> None:
        """An element is written."""
        self.access(store.buffer, store.indices)
        self.found.written.add(store.buffer.data)
        self.visit(store.indices)
        self.visit(store.value)

    def visit_Call(self, call: Call) -> None:
        """An address that is taken may be read and written at any place."""
        takes_address = getattr(call.op, "name", "") == "tir.address_of"
        for arg in call.args:
            if isinstance(arg, Buffer):
                self.shared(arg)
            elif isinstance(arg, BufferLoad) and takes_address:
                self.shared(arg.buffer)
            elif isinstance(arg, Var) and arg.dtype == "handle":
                self.found.slabs[arg] = frozenset()
                self.found.written.add(arg)
        self.visit_default(call)

    def shared(self, buffer: Buffer) -> None:
        """All iterations may read and write all of a buffer."""
        self.found.buffers[buffer.data] = buffer
        self.found.slabs[buffer.data] = frozenset()
        self.found.written.add(buffer.data)

    def access(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
        """Narrow the slabs of a buffer down to those that this access agrees with."""
        if buffer.data in self.inner:
            return
        known = self.found.buffers.setdefault(buffer.data, buffer)
        before = self.found.slabs.get(buffer.data)
        if known is not buffer:  # two views of one memory
            self.found.slabs[buffer.data] = frozenset()
        elif before is None or before:
            mine = self.slabs_of([substitute(index, self.axes) for index in indices])
            self.found.slabs[buffer.data] = mine if before is None else before & mine

    def slabs_of(self, indices: Sequence[PrimExpr]) -> frozenset[Slab]:
        """The axes of which one access stays in the iteration's own slab."""
        sizes = [self.size_of(index) for index in indices]
        return frozenset(Slab(axis, size) for axis, size in enumerate(sizes) if size > 0)

    def size_of(self, index: PrimExpr) -> int:
        """The step of an index from one iteration to the next, if it goes no further; else 0."""
        here = self.loop.loop_var
        if here not in collect(index, Var):
            return 0
        following = substitute(index, {here: here + 1})
        step = self.analyzer.simplify(following - index)
        if not isinstance(step, IntImm) or step.value < 1:
            return 0
        bound = self.analyzer.const_int_bound(
            self.analyzer.simplify(index - here * step.value)
        )
        is_own = bound.min_value >= 0 and bound.max_value < step.value
        return int(step.value) if is_own else 0


def bytes_of(buffer: Buffer) -> int:
    """The size of a buffer; 0 where it is not known."""
    sizes = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    if len(sizes) < len(buffer.shape):
        return 0
    return functools.reduce(lambda a, b: a * b, sizes, 1) * buffer.dtype.itemsize
