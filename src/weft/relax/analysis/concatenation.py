"""Finds PrimFuncs that concatenate, and makes PrimFuncs write into part of a larger tensor."""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, Range
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Call
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, MatchBufferRegion
from weft.tir.stmt_functor import renew_defs


def concatenated_axis(func: PrimFunc) -> int | None:
    """The axis along which a PrimFunc concatenates its arguments; None if it does something else.

    All shapes must be constant, and the one block of the PrimFunc must copy the arguments one after
    the other into the last buffer. The loops around the block do not matter: a schedule may have
    changed them.
    """
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    blocks = [block for block in collect(func.body, Block) if block.iter_vars]
    if len(buffers) != len(func.params) or len(blocks) != 1:
        return None
    [block], [*sources, target], store = blocks, buffers, blocks[0].body
    axis = _axis_of([_extents(source) for source in sources], _extents(target))
    if axis is None or not isinstance(store, BufferStore) or store.buffer is not target:
        return None
    begin = 0
    for source in sources:
        if not _is_copied(block, store, source, axis, begin):
            return None
        begin += _extents(source)[axis]
    return axis


def extents_along(func: PrimFunc, axis: int) -> list[int]:
    """The extent of each buffer of a concatenation along ``axis``, the result's last."""
    return [_extents(func.buffer_map[param])[axis] for param in func.params]


def _extents(buffer: Buffer) -> list[int]:
    """The shape of a buffer as integers; empty if an extent is symbolic."""
    known = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    return known if len(known) == len(buffer.shape) else []


def _axis_of(parts: Sequence[list[int]], whole: list[int]) -> int | None:
    """The axis along which the parts' extents add up to the whole's; all others must be equal."""
    for axis, extent in enumerate(whole):
        rest = [part[:axis] + part[axis + 1 :] for part in parts if len(part) == len(whole)]
        fits = len(rest) == len(parts) > 1 and 0 not in whole
        if fits and all(shape == whole[:axis] + whole[axis + 1 :] for shape in rest):
            return axis if sum(part[axis] for part in parts) == extent else None
    return None


def _is_copied(block: Block, store: BufferStore, source: Buffer, axis: int, begin: int) -> bool:
    """Whether the store copies ``source`` to the part of the target that starts at ``begin``."""
    analyzer = Analyzer()
    axes = [item.var for item in block.iter_vars]
    if [index for index in store.indices if index not in axes] or len(axes) != len(store.indices):
        return False
    for item in block.iter_vars:
        assert item.dom is not None
        mine = item.var is store.indices[axis]
        count = expect(source.shape[axis], IntImm).value
        first, extent = [op.const(n, item.var.dtype) for n in (begin, count)]
        analyzer.bind(item.var, Range.from_min_extent(first, extent) if mine else item.dom)
    value = analyzer.simplify(store.value)
    if not isinstance(value, BufferLoad) or value.buffer is not source:
        return False
    place = [index - begin * (d == axis) for d, index in enumerate(store.indices)]
    return all(map(analyzer.can_prove_equal, value.indices, place))


def into_part(func: PrimFunc, axis: int, begin: int, extent: int) -> PrimFunc | None:
    """The PrimFunc changed so that it writes its result into part of a larger buffer.

    Its last buffer becomes ``extent`` long along ``axis``; the old buffer is the part of it that
    starts at ``begin``, and the rest is not touched. None if the PrimFunc uses the buffer's
    address, so that changed indices would not be enough.
    """
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    part = func.buffer_map.get(func.params[-1]) if func.params else None
    if root is None or part is None or part.strides or not _extents(part):
        return None
    if any(block.match_buffers for block in collect(func.body, Block)):
        return None
    given: list[object] = [arg for call in collect(func.body, Call) for arg in call.args]
    if any(arg is part or arg is part.data for arg in given):
        return None
    shape = [extent if d == axis else size for d, size in enumerate(_extents(part))]
    whole = part.with_(
        data=type(part.data)(part.data.name, part.data.type_annotation),
        shape=[op.const(size, "int64") for size in shape],
        name=f"{part.name}_whole",
    )
    region = [
        Range.from_min_extent(op.const(begin * (d == axis), "int64"), op.const(size, "int64"))
        for d, size in enumerate(_extents(part))
    ]
    match = MatchBufferRegion(part, BufferRegion(whole, region))
    body = func.body.with_(block=root.with_(match_buffers=[match]))
    buffers = {**dict(func.buffer_map.items()), func.params[-1]: whole}
    return renew_defs(func.with_(body=body, buffer_map=buffers))
