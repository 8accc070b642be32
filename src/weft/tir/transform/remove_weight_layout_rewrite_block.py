"""RemoveWeightLayoutRewriteBlock: weights are expected in the layout that a schedule gave them.

A schedule that rewrites the layout of a weight leaves a block that copies it, marked
``meta_schedule_layout_rewrite_preproc``. Here the copy goes away: a weight that is a parameter has
to be given in its new layout, one that is a constant is rearranged now.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from weft.ir.expr import IntImm
from weft.ir.functor import collect, substitute
from weft.runtime.ndarray import NDArray
from weft.support.errors import IRValueError
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap
from weft.tir.stmt import AllocateConst, Block, BufferStore, Evaluate, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass

MARK: Final = "meta_schedule_layout_rewrite_preproc"


class _Copy(NamedTuple):
    """What a marked block does: it copies a weight by an index map into another buffer."""

    weight: Buffer
    rewritten: Buffer
    index_map: IndexMap


def with_weights_in_their_layout(func: PrimFunc, skip_ndarray_rewrite: bool = False) -> PrimFunc:
    """The function whose weights are expected in the layout that marked blocks give them.

    Args:
        func: the function.
        skip_ndarray_rewrite: constants get their new shape alone, not their new order: enough to
            measure how long a program takes.
    """
    copies = [_copy_of(block) for block in collect(func.body, Block) if _is_marked(block)]
    if not copies:
        return func
    body = _Remover(copies, skip_ndarray_rewrite).visit(func.body)
    constants = {constant.buffer_var for constant in collect(func.body, AllocateConst)}
    views: dict[Buffer, Buffer] = {
        copy.rewritten: copy.rewritten.with_(data=copy.weight.data, name=copy.weight.data.name)
        for copy in copies
        if copy.weight.data in constants
    }
    by_weight = {copy.weight: copy.rewritten for copy in copies}
    buffer_map = {var: by_weight.get(buffer, buffer) for var, buffer in func.buffer_map.items()}
    return func.with_(body=substitute(body, views), buffer_map=buffer_map)


def _is_marked(block: Block) -> bool:
    return bool(block.annotations.get(MARK))


def _copy_of(block: Block) -> _Copy:
    store = block.body
    if isinstance(store, BufferStore) and isinstance(store.value, BufferLoad):
        load = store.value
        axes = [index for index in load.indices if isinstance(index, Var)]
        if len(axes) == len(load.indices):
            return _Copy(load.buffer, store.buffer, IndexMap(axes, store.indices))
    raise IRValueError(
        f"RemoveWeightLayoutRewriteBlock: block {block.name_hint}: expected a copy of a buffer, "
        f"element by element, under the annotation {MARK}"
    )


class _Remover(StmtMutator):
    """Takes the marked blocks out, and rearranges the constants that they copy."""

    def __init__(self, copies: list[_Copy], skip_ndarray_rewrite: bool) -> None:
        self.skip_ndarray_rewrite = skip_ndarray_rewrite
        self.rewritten = {copy.rewritten for copy in copies}
        self.by_data = {copy.weight.data: copy for copy in copies}

    def visit_Block(self, block: Block) -> Stmt:
        if _is_marked(block):
            return block.with_(body=Evaluate(0), reads=(), writes=())
        kept = [buffer for buffer in block.alloc_buffers if buffer not in self.rewritten]
        result = self.visit_default(block)
        return result.with_(alloc_buffers=kept)

    def visit_AllocateConst(self, constant: AllocateConst) -> Stmt:
        constant = self.visit_default(constant)
        copy = self.by_data.get(constant.buffer_var)
        if copy is None:
            return constant
        data: NDArray = constant.data
        if self.skip_ndarray_rewrite:
            mapped = copy.index_map.map_shape(data.shape)
            shape = [extent.value for extent in mapped if isinstance(extent, IntImm)]
            moved = NDArray(np.resize(data.numpy(), shape), data.dtype)
        else:
            moved = copy.index_map.map_ndarray(data)
        return constant.with_(data=moved, extents=moved.shape)


RemoveWeightLayoutRewriteBlock = define_pass(
    "RemoveWeightLayoutRewriteBlock", with_weights_in_their_layout
)
