"""Adds what a script may leave out: the root block, and the regions of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.expr import IntImm
from weft.ir.functor import Mutator
from weft.ir.node import Array
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.analysis.block_access_region import get_block_access_region
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, DeclBuffer

DETECT = "tir.script_parsing_detect_access"


@deep_recursion
def complete(func: PrimFunc, root_buffers: Sequence[Buffer], adds_root: bool = True) -> PrimFunc:
    """Add the root block (unless told not to) and the missing regions."""
    body = func.body
    has_root = not root_buffers and isinstance(body, BlockRealize) and not body.block.iter_vars
    buffers = [*func.buffer_map.values(), *root_buffers]
    completer = _Completer(buffers, has_root)
    body = completer.visit(body)
    wanted = root_buffers or (completer.contains_block and adds_root)
    if wanted and not has_root:
        root = Block((), (), (), "root", body, None, root_buffers)
        body = BlockRealize((), IntImm("bool", 1), root)
    return func.with_(body=body)


class _Completer(Mutator):
    """Replaces the mark of a block without regions by what ``access_regions`` finds."""

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
        rebuilt: Block = self.visit_default(block)
        del self.buffers[len(self.buffers) - len(added) :]
        if DETECT not in rebuilt.annotations:
            return rebuilt
        mask = int(rebuilt.annotations[DETECT])
        rest = type(rebuilt.annotations)(
            {key: value for key, value in rebuilt.annotations.items() if key != DETECT}
        )
        if is_root:
            return rebuilt.with_(annotations=rest)
        reads, writes = access_regions(rebuilt, self.buffers)
        return rebuilt.with_(
            annotations=rest,
            reads=reads if mask & 1 else rebuilt.reads,
            writes=writes if mask & 2 else rebuilt.writes,
        )

    def visit_DeclBuffer(self, node: DeclBuffer) -> Any:
        """Blocks inside may access the buffer, unless its memory has another buffer already."""
        data = node.buffer.data
        if any(buffer.data is data for buffer in self.buffers):
            return self.visit_default(node)
        self.buffers.append(node.buffer)
        rebuilt = self.visit_default(node)
        self.buffers.pop()
        return rebuilt


def access_regions(
    block: Block, buffers: Sequence[Buffer]
) -> tuple[Array[BufferRegion], Array[BufferRegion]]:
    """The regions that ``block`` reads and writes; every access must go through a buffer."""
    regions = get_block_access_region(block, {buffer.data: buffer for buffer in buffers})
    reads, writes, opaque = regions
    if opaque:
        names = ", ".join([region.buffer.name for region in opaque])
        raise IRValueError(
            f"block {block.name_hint!r} accesses {names} through a pointer: write T.reads and "
            "T.writes by hand"
        )
    return reads, writes
