"""Finds PrimFuncs that concatenate, and makes PrimFuncs write into part of a larger tensor."""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr, Range
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

    All extents along the axis must be constant, and the one block of the PrimFunc must copy the
    arguments one after the other into the last buffer. The loops around the block do not matter: a
    schedule may have changed them.
    """
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    blocks = [block for block in collect(func.body, Block) if block.iter_vars]
    if len(buffers) != len(func.params) or len(blocks) != 1:
        return None
    [block], [*sources, target], store = blocks, buffers, blocks[0].body
    axis = _axis_of([source.shape for source in sources], target.shape)
    if axis is None or not isinstance(store, BufferStore) or store.buffer is not target:
        return None
    begin = 0
    for source in sources:
        if not _is_copied(block, store, source, axis, begin):
            return None
        begin += expect(source.shape[axis], IntImm).value
    return axis


def extents_along(func: PrimFunc, axis: int) -> list[int]:
    """The extent of each buffer of a concatenation along ``axis``, the result's last."""
    buffers = [func.buffer_map[param] for param in func.params]
    return [expect(buffer.shape[axis], IntImm).value for buffer in buffers]


def _axis_of(parts: Sequence[Sequence[PrimExpr]], whole: Sequence[PrimExpr]) -> int | None:
    """The axis along which the parts' extents add up to the whole's; all others must be equal."""
    alike = len(parts) > 1 and all(len(part) == len(whole) for part in parts)
    if not alike or any(isinstance(extent, IntImm) and not extent.value for extent in whole):
        return None
    for axis in range(len(whole)):
        if all(_are_equal(part, whole, axis) for part in parts):
            total, *sizes = [shape[axis] for shape in (whole, *parts)]
            known = [size.value for size in sizes if isinstance(size, IntImm)]
            fits = len(known) == len(sizes) and _is_same(total, IntImm(total.dtype, sum(known)))
            return axis if fits else None
    return None


def _are_equal(part: Sequence[PrimExpr], whole: Sequence[PrimExpr], axis: int) -> bool:
    """Whether two shapes have the same extents, except along ``axis``."""
    pairs = zip(part, whole, strict=True)
    return all(d == axis or _is_same(*pair) for d, pair in enumerate(pairs))


def _is_same(extent: PrimExpr, other: PrimExpr) -> bool:
    if isinstance(extent, IntImm) and isinstance(other, IntImm):
        return extent.value == other.value
    return expr_deep_equal(extent, other)


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
    if root is None or part is None or part.strides:
        return None
    if any(block.match_buffers for block in collect(func.body, Block)):
        return None
    given: list[object] = [arg for call in collect(func.body, Call) for arg in call.args]
    if any(arg is part or arg is part.data for arg in given):
        return None
    shape = [
        op.const(extent, "int64") if d == axis else op.cast("int64", size)
        for d, size in enumerate(part.shape)
    ]
    whole = part.with_(
        data=type(part.data)(part.data.name, part.data.type_annotation),
        shape=shape,
        name=f"{part.name}_whole",
    )
    region = [
        Range.from_min_extent(op.const(begin * (d == axis), "int64"), op.cast("int64", size))
        for d, size in enumerate(part.shape)
    ]
    match = MatchBufferRegion(part, BufferRegion(whole, region))
    body = func.body.with_(block=root.with_(match_buffers=[match]))
    buffers = {**dict(func.buffer_map.items()), func.params[-1]: whole}
    return renew_defs(func.with_(body=body, buffer_map=buffers))
