"""The statements of a software pipeline: what fills it, the loop, and what empties it."""

from __future__ import annotations

from collections.abc import Mapping

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.ir.node import Array
from weft.support.errors import UnsupportedError
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_read_write_region
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.constant import is_const_int
from weft.tir.expr import Call, Var
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    Stmt,
    seq,
)
from weft.tir.transform.prim_func_pass import StmtMutator
from weft.tir.transform.software_pipeline import Pipeline


def as_block(body: Stmt, buffers: Mapping[Var, Buffer]) -> Block:
    """A block of the statement with the regions that it uses; the block that it always runs."""
    if isinstance(body, BlockRealize) and is_const_int(body.predicate, 1):
        return body.block
    block = Block([], [], [], "", body)
    reads, writes = get_block_read_write_region(block, buffers)
    return block.with_(reads=reads, writes=writes)


def _always(block: Block) -> BlockRealize:
    return BlockRealize([], op.const(True, "bool"), block)


class _Versions(StmtMutator):
    """Statements use the version of this iteration of each buffer that has several."""

    def __init__(self, versioned: Mapping[Buffer, Buffer], loop: For, whole: bool) -> None:
        self.buffers, self.loop, self.whole = versioned, loop, whole

    def number(self, buffer: Buffer) -> PrimExpr:
        return op.floormod(self.loop.loop_var - self.loop.min, buffer.shape[0])

    def visit_BufferLoad(self, access: BufferLoad | BufferStore) -> BufferLoad | BufferStore:
        access, buffer = self.visit_default(access), self.buffers.get(access.buffer)
        if buffer is None:
            return access
        return access.with_(buffer=buffer, indices=Array([self.number(buffer), *access.indices]))

    visit_BufferStore = visit_BufferLoad

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        region, buffer = self.visit_default(region), self.buffers.get(region.buffer)
        if buffer is None:
            return region
        version = (
            Range(buffer.shape[0]) if self.whole else Range.from_min_extent(self.number(buffer), 1)
        )
        return region.with_(buffer=buffer, region=Array([version, *region.region]))


class _Writer:
    """Writes the three parts of a pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.loop = pipeline, pipeline.loop
        self.analyzer = Analyzer()
        counts = {buffer: pipeline.versions(buffer) for buffer in pipeline.allocated}
        self.versioned = {b: _versioned(b, count) for b, count in counts.items() if count > 1}
        self.steps = sorted(pipeline.steps, key=lambda step: step.order)
        self.buffers = {**pipeline.buffers, **{b.data: b for b in self.versioned.values()}}
        for step in self.steps:
            _check_plain(step.block, self.versioned)

    def write(self) -> BlockRealize:
        loop, depth = self.loop, self.pipeline.depth
        start, stop = loop.min, loop.min + loop.extent
        filled = start + depth
        first, emptied = None, stop
        if depth > 1 and not self.analyzer.can_prove_greater_equal(loop.extent, depth):
            if isinstance(stop, IntImm):
                emptied = op.maximum(stop, filled)
            else:
                first = filled
        parts = [
            self.part(start, filled, unrolled=True),
            self.part(filled, stop, unrolled=False),
            self.part(emptied, stop + depth, unrolled=True, first=first),
        ]
        own = self.pipeline.allocated
        outer = {
            var: buffer for var, buffer in self.buffers.items() if var not in [b.data for b in own]
        }
        block = as_block(seq(*parts), outer)
        allocated = [self.versioned.get(buffer, buffer) for buffer in own]
        return _always(block.with_(alloc_buffers=Array(allocated)))

    def part(
        self, start: PrimExpr, stop: PrimExpr, unrolled: bool, first: PrimExpr | None = None
    ) -> BlockRealize:
        """The steps of the times from ``start`` to ``stop``, from ``first`` on if that is given."""
        loop, extent = self.loop, stop - start
        time: PrimExpr = start
        if self.analyzer.can_prove(extent <= 0):
            return _always(as_block(Evaluate(0), {}))
        is_single = self.analyzer.can_prove(op.equal(extent, 1))
        if not is_single:
            time = Var(loop.loop_var.name, loop.loop_var.dtype)
            self.analyzer.bind(time, Range(start, stop))
        stmts = self.statements(time, None if is_single else start - loop.min, first)
        if is_single or not stmts:
            return _always(as_block(seq(*stmts), self.buffers))
        kind = ForKind.UNROLLED if unrolled else loop.kind
        body = For(time, loop.min, extent, kind, seq(*stmts), None, loop.annotations)
        return _always(as_block(body, self.buffers))

    def statements(
        self, time: PrimExpr, shift: PrimExpr | None, first: PrimExpr | None
    ) -> list[Stmt]:
        """The steps of one time; ``shift``: how much later it is than the loop's, if in a loop."""
        loop, stmts = self.loop, list[Stmt]()
        versions = _Versions(self.versioned, loop, whole=self.pipeline.depth != 1)
        for step in self.steps:
            index = time - step.stage
            inside = op.logical_and(
                self.analyzer.simplify(loop.min <= index), index < loop.min + loop.extent
            )
            if first is not None:
                inside = self.analyzer.simplify(op.logical_and(inside, time >= first))
            if self.analyzer.can_prove(op.logical_not(inside)):
                continue
            block = versions.visit(step.block)
            if shift is not None:
                inside = substitute(inside, {time: time + shift})
                index = index + shift
            block = substitute(block, {loop.loop_var: index})
            stmts.append(BlockRealize([], inside, block))
        return stmts


def _versioned(buffer: Buffer, count: int) -> Buffer:
    """The buffer with a first axis for its versions."""
    shape, strides = buffer.shape, buffer.strides
    if strides:
        strides = Array([strides[0] * shape[0], *strides])
    number = op.const(count, shape[0].dtype if shape else "int32")
    return buffer.with_(shape=Array([number, *shape]), strides=strides)


def _check_plain(block: Block, versioned: Mapping[Buffer, Buffer]) -> None:
    """Raise UnsupportedError where a buffer with versions is used by its address."""
    data = {buffer.data: buffer for buffer in versioned}
    pointers = [arg for call in collect(block, Call) for arg in call.args if isinstance(arg, Var)]
    views = [item.buffer.data for item in collect(block, DeclBuffer)]
    for var in (*pointers, *views):
        if var in data:
            raise UnsupportedError(
                f"InjectSoftwarePipeline: {data[var].name} has a version for each of several "
                "iterations, so its address alone cannot be passed on; load and store its elements"
            )


def pipelined(pipeline: Pipeline) -> BlockRealize:
    """The statements of a pipeline, in a block that allocates its buffers."""
    return _Writer(pipeline).write()
