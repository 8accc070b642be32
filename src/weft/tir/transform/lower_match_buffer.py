"""LowerMatchBuffer: replaces accesses through ``match_buffer`` by accesses of the source buffer.

A load ``B[i]`` of ``B = T.match_buffer(A[2:3, 0:8], (8,))`` becomes ``A[2, i]``: the matched buffer
has the last dimensions of the source; leading ones must have extent 1. Variables in B's strides,
offset or extents are bound to the values for A.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.data import may_change
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, contains
from weft.ir.node import Array
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    Stmt,
)
from weft.tir.transform.prim_func_pass import define_pass, rewrite_body


class _Lower(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.matched: dict[int, BufferRegion] = {}
        self.values: dict[int, PrimExpr] = {}

    def visit_Var(self, var: Var) -> PrimExpr:
        return self.values.get(id(var), var)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        """Bind bounds of a region that read memory to variables: the block may change it."""
        block, lets = realize.block, []
        matches = []
        for match in block.match_buffers:
            ranges = []
            for item in match.source.region:
                low, let = _named(item.min, match.buffer.name)
                extent, other = _named(item.extent, match.buffer.name)
                lets += [pair for pair in (let, other) if pair is not None]
                ranges.append(Range.from_min_extent(low, extent))
            matches.append(match.with_(source=BufferRegion(match.source.buffer, ranges)))
        if not lets:
            return self.visit_default(realize)
        inner = realize.with_(
            predicate=IntImm("bool", 1), block=block.with_(match_buffers=Array(matches))
        )
        body: Stmt = self.visit_default(inner)
        for var, value in reversed(lets):
            body = LetStmt(var, self.visit(value), body)
        always = isinstance(realize.predicate, IntImm) and realize.predicate.value
        return body if always else IfThenElse(self.visit(realize.predicate), body)

    def visit_Block(self, block: Block) -> Block:
        for match in block.match_buffers:
            self.bind(match)
        return self.visit_default(block.with_(match_buffers=Array()))

    def bind(self, match: MatchBufferRegion) -> None:
        """Record the source of a matched buffer and the values of its variables."""
        source: BufferRegion = self.visit(match.source)
        if id(source.buffer) in self.matched:
            outer = self.matched[id(source.buffer)]
            starts = _shift(outer, [r.min for r in source.region])
            pads = [r.extent for r in source.region]
            lead = len(starts) - len(pads)
            units = [IntImm(s.dtype, 1) for s in starts[:lead]]
            ranges = [
                type(outer.region[0]).from_min_extent(s, e)
                for s, e in zip(starts, [*units, *pads], strict=True)
            ]
            source = BufferRegion(outer.buffer, ranges)
        self.matched[id(match.buffer)] = source
        target, origin = match.buffer, source.buffer
        self.values[id(target.data)] = origin.data
        lead = len(source.region) - len(target.shape)
        for mine, dom in zip(target.shape, source.region[lead:], strict=True):
            self.equate(mine, dom.extent, target)
        offset = op.buffer_offset(origin, [r.min for r in source.region])[0]
        self.equate(target.elem_offset, offset, target)
        if target.strides:
            for mine, its in zip(target.strides, row_strides(origin)[lead:], strict=True):
                self.equate(mine, its, target)

    def equate(self, mine: PrimExpr | None, its: PrimExpr, target: Buffer) -> None:
        if isinstance(mine, Var):
            self.values[id(mine)] = op.cast(mine.dtype, its)
        elif isinstance(mine, IntImm) and isinstance(its, IntImm) and mine.value != its.value:
            if mine.value != 0 or mine is not target.elem_offset:
                raise IRValueError(
                    f"match_buffer {target.name}: expected {mine.value}, the source has {its.value}"
                )

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        source = self.matched.get(id(load.buffer))
        load = self.visit_default(load) if source is None else load
        if source is None:
            return load
        return BufferLoad(source.buffer, _shift(source, self.visit(load.indices)), load.predicate)

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        source = self.matched.get(id(store.buffer))
        if source is None:
            return self.visit_default(store)
        indices = _shift(source, self.visit(store.indices))
        return BufferStore(source.buffer, self.visit(store.value), indices, store.predicate)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        source = self.matched.get(id(region.buffer))
        if source is None:
            return self.visit_default(region)
        inner = self.visit(region.region)
        lead = len(source.region) - len(inner)
        moved = [
            type(mine).from_min_extent(op.add(base.min, mine.min), mine.extent)
            for base, mine in zip(source.region[lead:], inner, strict=True)
        ]
        return BufferRegion(source.buffer, [*source.region[:lead], *moved])


def _named(expr: PrimExpr, name: str) -> tuple[PrimExpr, tuple[Var, PrimExpr] | None]:
    """The expression; if it reads memory, a new variable and the pair (variable, expression)."""
    if not may_change(expr):
        return expr, None
    var = Var(f"{name}_start", expr.dtype)
    return var, (var, expr)


def _shift(source: BufferRegion, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
    """Convert indices of the matched buffer to indices of its source."""
    lead = len(source.region) - len(indices)
    fixed = [rng.min for rng in source.region[:lead]]
    moved = [op.add(r.min, i) for r, i in zip(source.region[lead:], indices, strict=True)]
    return [*fixed, *moved]


def row_strides(buffer: Buffer) -> list[PrimExpr]:
    """The strides of a buffer, those of compact row-major order if it has none."""
    if buffer.strides:
        return list(buffer.strides)
    strides: list[PrimExpr] = []
    step: PrimExpr = IntImm(buffer.shape[-1].dtype, 1) if buffer.shape else op.const(1)
    for extent in reversed(buffer.shape):
        strides.append(step)
        step = op.multiply(step, extent)
    return strides[::-1]


def lower_match_buffer(func: PrimFunc) -> PrimFunc:
    """The function without matched buffers inside blocks."""
    return rewrite_body(func, _Lower()) if contains(func.body, MatchBufferRegion) else func


LowerMatchBuffer = define_pass("LowerMatchBuffer", lower_match_buffer)
