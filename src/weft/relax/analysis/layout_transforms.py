"""suggest_layout_transforms: suggests layouts of inputs and blocks for new layouts of the outputs.

A block that writes ``B[v0, v1]`` and reads ``A[v1]`` shows which of its axes each dimension of a
buffer uses. If B gets the layout ``lambda i, j: (j, i)``, the block's axes can be reordered in the
same way (``transform_block_layout``), and so can the dimensions of A that use the same axes; then
the block still accesses its buffers in sequence. Best effort: the layout stays for a block that
writes several buffers or holds other blocks, and for a buffer that is read in several ways or in
another order than that of the axes.

Blocks are visited from the last to the first: when the block that writes an intermediate buffer is
visited, the layout that its reader wants is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from weft.arith.iter_map import IterMapLevel, IterMark, detect_iter_map
from weft.ir.expr import PrimExpr, Range
from weft.ir.functor import collect
from weft.support.errors import IRValueError, wrong_type
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap
from weft.tir.stmt import Block, BlockRealize, BufferStore

Suggestion = dict[Block | Buffer, IndexMap]
"""Block or buffer -> the transformation of its axes or dimensions."""

Axes = list[Var | None]
"""For each dimension of a buffer, the data-parallel axis of the block that indexes it, or None."""


def suggest_layout_transforms(
    func: PrimFunc, write_buffer_transforms: Sequence[IndexMap | Callable[..., object]]
) -> dict[Block, Suggestion]:
    """For each block that can follow the outputs' new layouts, how it and its buffers change."""
    outputs = len(write_buffer_transforms)
    if not outputs:
        return {}
    if outputs > len(func.params):
        raise IRValueError(
            f"suggest_layout_transforms: expected a transformation for each output, at most "
            f"{len(func.params)} as the PrimFunc has parameters, got {outputs}"
        )
    buffers = [func.buffer_map[param] for param in func.params[-outputs:]]
    known: dict[Buffer, IndexMap] = {}
    for buffer, given in zip(buffers, write_buffer_transforms, strict=True):
        index_map = _index_map(given, func)
        if len(index_map.initial_indices) != len(buffer.shape):
            raise IRValueError(
                f"suggest_layout_transforms: {buffer.name}: expected an index map of "
                f"{len(buffer.shape)} dimensions, got one of {len(index_map.initial_indices)}"
            )
        known[buffer] = index_map
    return _suggest(func, known)


def _index_map(given: object, func: PrimFunc) -> IndexMap:
    if isinstance(given, IndexMap):
        return given
    if not callable(given):
        raise wrong_type("suggest_layout_transforms: expected a tir.IndexMap or a function", given)
    extents = [extent for buffer in func.buffer_map.values() for extent in buffer.shape]
    dtype = str(extents[0].dtype) if extents else "int64"
    return IndexMap.from_func(given, index_dtype=dtype)


def _suggest(func: PrimFunc, known: dict[Buffer, IndexMap]) -> dict[Block, Suggestion]:
    suggestions: list[tuple[Block, Suggestion]] = []
    for block in reversed(_outer_blocks(func)):
        if len(block.writes) != 1 or block.writes[0].buffer not in known:
            continue
        written = block.writes[0].buffer
        suggestion = _of_block(block, known[written], known)
        if suggestion is not None:
            known.update({k: v for k, v in suggestion.items() if isinstance(k, Buffer)})
            suggestions.append((block, {**suggestion, written: known[written]}))
    return dict(reversed(suggestions))


def _outer_blocks(func: PrimFunc) -> list[Block]:
    """The blocks that are nested in no other block but the root."""
    blocks: list[Block] = collect(func.body, Block)
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    inner = {
        id(below) for block in blocks if block is not root for below in collect(block.body, Block)
    }
    return [block for block in blocks if block is not root and id(block) not in inner]


def _of_block(
    block: Block, transform: IndexMap, known: dict[Buffer, IndexMap]
) -> Suggestion | None:
    """How the axes of a block and the buffers it reads follow the new layout of what it writes."""
    kinds = {axis.iter_type for axis in block.iter_vars}
    if collect(block.body, Block) or kinds - {IterVar.DataPar, IterVar.CommReduce}:
        return None
    axes: Axes = [axis.var for axis in block.iter_vars]
    order = {var: position for position, var in enumerate(axes)}
    accesses = _accesses(block)
    written = accesses.pop(block.writes[0].buffer, None)
    if not _is_sequential(written, order) or written is None or None in written:
        return None
    of_axes = _followed(written, transform, axes)
    if of_axes is None or not _is_bijective(of_axes, block):
        return None
    suggestion: Suggestion = {block: of_axes}
    for buffer in dict.fromkeys(region.buffer for region in block.reads):
        read = accesses.get(buffer)
        if buffer in known or read is None or not _is_sequential(read, order):
            continue
        of_buffer = _followed(written, transform, read)
        if of_buffer is not None:
            suggestion[buffer] = of_buffer
    return suggestion


def _is_sequential(axes: Axes | None, order: Mapping[Var | None, int]) -> bool:
    """Whether the dimensions of a buffer use the axes of the block in their order."""
    places = [order[axis] for axis in axes or () if axis is not None]
    return axes is not None and all(a < b for a, b in itertools.pairwise(places))


def _accesses(block: Block) -> dict[Buffer, Axes | None]:
    """The axes of each buffer; None where two accesses differ or an index mixes axes."""
    domain = {
        axis.var: axis.dom
        for axis in block.iter_vars
        if axis.iter_type == IterVar.DataPar and axis.dom is not None
    }
    nodes = [block.body] if block.init is None else [block.body, block.init]
    axes_of: dict[Buffer, Axes | None] = {}
    accesses: list[BufferLoad | BufferStore] = collect(nodes, (BufferLoad, BufferStore))
    for access in accesses:
        axes = _axes(access.indices, domain)
        if access.buffer in axes_of and not _identical(axes_of[access.buffer], axes):
            axes = None
        axes_of[access.buffer] = axes
    return axes_of


def _identical(left: Axes | None, right: Axes | None) -> bool:
    if left is None or right is None or len(left) != len(right):
        return False
    return all(a is b for a, b in zip(left, right, strict=True))


def _axes(indices: Sequence[PrimExpr], domain: Mapping[Var, Range]) -> Axes | None:
    """The axis that each index uses; None if one uses several axes or has no iteration map."""
    result = detect_iter_map(indices, domain, check_level=IterMapLevel.NoCheck)
    if not result.indices and indices:
        return None
    axes: Axes = []
    for index, plain in zip(result.indices, indices, strict=True):
        sources = [mark.source for mark in collect(index, IterMark)]
        used = dict.fromkeys(source for source in sources if isinstance(source, Var))
        if isinstance(plain, Var) and plain in domain:  # also where it has one value
            used = dict.fromkeys([plain])
        if len(used) > 1:
            return None
        axes.append(next(iter(used), None))
    return axes


def _followed(source: Axes, transform: IndexMap, target: Axes) -> IndexMap | None:
    """The transformation of ``target`` that corresponds to one of ``source``; None if none does.

    Dimensions of the source that the target lacks are dropped, with the results computed from them;
    a result that mixes dropped and kept dimensions has no counterpart. Dimensions that only the
    target has keep their place.
    """
    pairs = list(zip(source, transform.initial_indices, strict=True))
    initial: list[Var] = [index for axis, index in pairs if axis in target]
    final: list[PrimExpr] = []
    for index in transform.final_indices:
        kept = [var in initial for var in collect(index, Var)]
        if any(kept) and not all(kept):
            return None
        if any(kept):
            final.append(index)
    place_in, place_out = 0, 0
    for axis in target:
        if axis is None or axis not in source:
            new = Var("d", initial[0].dtype if initial else "int32")
            initial.insert(place_in, new)
            final.insert(place_out, new)
        place_in += 1
        place_out = min(place_out + 1, len(final))
    return IndexMap(initial, final)


def _is_bijective(index_map: IndexMap, block: Block) -> bool:
    """Whether a transformation maps the axes of a block one to one."""
    axes = zip(index_map.initial_indices, block.iter_vars, strict=True)
    domain = {var: axis.dom for var, axis in axes if axis.dom is not None}
    iter_map = detect_iter_map(index_map.final_indices, domain, True, IterMapLevel.Bijective)
    return bool(iter_map.indices)
