"""What a script may leave out: the root block, and the regions that blocks read and write."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import IntImm, Range
from weft.ir.functor import Mutator, collect
from weft.ir.node import Array
from weft.ir.structural import structural_equal
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer
from weft.tir.expr import BufferLoad, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, MatchBufferRegion

DETECT = "tir.script_parsing_detect_access"


@deep_recursion
def complete(func: PrimFunc, root_buffers: Sequence[Buffer]) -> PrimFunc:
    """Add the root block and the missing regions."""
    body = func.body
    has_root = (
        not root_buffers and isinstance(body, BlockRealize) and not body.block.iter_vars
    )
    buffers = [*func.buffer_map.values(), *root_buffers]
    completer = _Completer(buffers, has_root)
    body = completer.visit(body)
    if (completer.contains_block or root_buffers) and not has_root:
        root = Block((), (), (), "root", body, None, root_buffers)
        body = BlockRealize((), IntImm("bool", 1), root)
    return func.with_(body=body)


class _Completer(Mutator):
    """Replaces the detection mark of a block by what ``access_regions`` finds."""

    def __init__(self, buffers: list[Buffer], is_root: bool) -> None:
        super().__init__()
        self.buffers = buffers
        self.is_root = is_root
        self.contains_block = False

    def visit_Block(self, block: Block) -> Block:
        self.contains_block = True
        is_root, self.is_root = self.is_root, False
        added = [*block.alloc_buffers, *[match.buffer for match in block.match_buffers]]
        self.buffers.extend(added)
        made: Block = self.visit_default(block)
        del self.buffers[len(self.buffers) - len(added) :]
        if DETECT not in made.annotations:
            return made
        mask = int(made.annotations[DETECT])
        rest = type(made.annotations)(
            {key: value for key, value in made.annotations.items() if key != DETECT}
        )
        if is_root:
            return made.with_(annotations=rest)
        reads, writes = access_regions(made, self.buffers)
        return made.with_(
            annotations=rest,
            reads=reads if mask & 1 else made.reads,
            writes=writes if mask & 2 else made.writes,
        )


def access_regions(block: Block, buffers: Sequence[Buffer]) -> tuple[Array, Array]:
    """The regions that ``block`` reads and writes, by ``weft.tir.analysis``' detection."""
    return _simple_regions(block)


def _simple_regions(block: Block) -> tuple[Array, Array]:
    """Exact where indices depend on the block's axes only, else the whole dimension."""
    inner = {loop.loop_var for loop in collect(block.body, For)}
    inner |= {axis.var for nested in collect(block.body, Block) for axis in nested.iter_vars}
    local = set(block.alloc_buffers)
    for nested in collect(block.body, Block):
        local.update(nested.alloc_buffers)
    parts = [block.body] if block.init is None else [block.init, block.body]
    writes: dict[Buffer, list[Range]] = {}
    reads: dict[Buffer, list[Range]] = {}
    for part in parts:
        for store in collect(part, BufferStore):
            _merge(writes, store.buffer, store.indices, inner)
        for load in collect(part, BufferLoad):
            _merge(reads, load.buffer, load.indices, inner)
        if collect(part, MatchBufferRegion):
            raise IRValueError(
                f"block {block.name_hint!r}: T.reads and T.writes must be written where a block "
                "inside uses match_buffer"
            )
    skipped = set(writes) if block.init is not None else set()
    return (
        Array([BufferRegion(b, r) for b, r in reads.items() if b not in local | skipped]),
        Array([BufferRegion(b, r) for b, r in writes.items() if b not in local]),
    )


def _merge(found: dict[Buffer, list[Range]], buffer: Buffer, indices: Array, inner: set[Var]) -> None:
    ranges = [
        Range.from_min_extent(IntImm(size.dtype, 0), size)
        if inner.intersection(collect(index, Var))
        else Range.from_min_extent(index, IntImm(index.dtype, 1))
        for index, size in zip(indices, buffer.shape, strict=True)
    ]
    old = found.get(buffer)
    if old is None:
        found[buffer] = ranges
        return
    for axis, (mine, new) in enumerate(zip(old, ranges, strict=True)):
        if not structural_equal(mine, new):
            size = buffer.shape[axis]
            old[axis] = Range.from_min_extent(IntImm(size.dtype, 0), size)


