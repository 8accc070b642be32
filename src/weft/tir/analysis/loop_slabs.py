"""Finds buffers of which each iteration of a loop accesses a slab of its own.

In ``for i in T.parallel(16): for j in range(48): B[i * 48 + j] = A[i * 48 + j] + C[j]`` iteration i
accesses elements ``48 * i`` to ``48 * i + 47`` of A and B: a slab of size 48 along axis 0. C has
no slabs: all iterations share it. If two loops have the same slabs of every buffer that one of them
writes, iteration i of the second depends on iteration i of the first only, so the loops can be
fused.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Visitor, mentions, substitute
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Var, is_call
from weft.tir.stmt import Allocate, Block, BlockRealize, BufferStore, For


@dataclass(frozen=True)
class Slab:
    """Iteration i accesses ``size * i`` to ``size * (i + 1) - 1`` along ``axis``."""

    axis: int
    size: int

    def times(self, count: int) -> Slab:
        """The slab of ``count`` consecutive iterations."""
        return Slab(self.axis, self.size * count)


@dataclass
class LoopAccesses:
    """The accesses of a loop to buffers from outside of it, keyed by their data variables."""

    buffers: dict[Var, Buffer] = field(default_factory=dict)
    slabs: dict[Var, frozenset[Slab]] = field(default_factory=dict)
    """The slabs to which all accesses of a buffer keep; empty if iterations share elements."""
    written: set[Var] = field(default_factory=set)


@deep_recursion
def loop_accesses(loop: For) -> LoopAccesses:
    """The accesses of a loop that starts at 0.

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
    """Collects accesses, with the axes of blocks replaced by the values they are bound to."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.analyzer = Analyzer()
        self.axes: dict[Any, PrimExpr] = {}
        self.inner: set[Var] = set()
        self.found = LoopAccesses()

    def visit_For(self, loop: For) -> None:
        """Bind the loop variable to its range, so that indices can be bounded."""
        self.visit(loop.extent)
        first = substitute(loop.min, self.axes)
        self.analyzer.bind(
            loop.loop_var, Range.from_min_extent(first, substitute(loop.extent, self.axes))
        )
        self.visit(loop.body)

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        """A block: bind its axes, and note its own buffers and the sources of its views."""
        block: Block = realize.block
        for item, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.axes[item.var] = substitute(value, self.axes)
        self.inner.update(buffer.data for buffer in block.alloc_buffers)
        for match in block.match_buffers:  # accesses through a view are not analysed
            self.inner.add(match.buffer.data)
            self.shared(match.source.buffer)
        for part in (realize.predicate, block.init, block.body):
            if part is not None:
                self.visit(part)

    def visit_Allocate(self, node: Allocate) -> None:
        """Memory that each iteration has for itself."""
        self.inner.add(node.buffer_var)
        self.visit(node.body)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        """Record a read."""
        self.access(load.buffer, load.indices)
        self.visit(load.indices)

    def visit_BufferStore(self, store: BufferStore) -> None:
        """Record a write."""
        self.access(store.buffer, store.indices)
        self.found.written.add(store.buffer.data)
        self.visit(store.indices)
        self.visit(store.value)

    def visit_Call(self, call: Call) -> None:
        """A buffer whose address is taken may be read and written anywhere."""
        takes_address = is_call(call, "address_of")
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
        """Record that all iterations may read and write the whole buffer."""
        self.found.buffers[buffer.data] = buffer
        self.found.slabs[buffer.data] = frozenset()
        self.found.written.add(buffer.data)

    def access(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
        """Keep only the slabs of a buffer that this access stays in, too."""
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
        """The slabs in which an access stays: one for each axis whose index does."""
        sizes = [self.size_of(index) for index in indices]
        return frozenset(Slab(axis, size) for axis, size in enumerate(sizes) if size > 0)

    def size_of(self, index: PrimExpr) -> int:
        """The step of an index between iterations, if it stays below that within one; else 0."""
        here = self.loop.loop_var
        if not mentions(index, here):
            return 0
        following = substitute(index, {here: here + 1})
        step = self.analyzer.simplify(following - index)
        if not isinstance(step, IntImm) or step.value < 1:
            return 0
        bound = self.analyzer.const_int_bound(self.analyzer.simplify(index - here * step.value))
        is_own = bound.min_value >= 0 and bound.max_value < step.value
        return int(step.value) if is_own else 0


def bytes_of(buffer: Buffer) -> int:
    """The size of a buffer in bytes; 0 if it is not constant."""
    sizes = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    if len(sizes) < len(buffer.shape):
        return 0
    return functools.reduce(lambda a, b: a * b, sizes, 1) * buffer.dtype.itemsize
