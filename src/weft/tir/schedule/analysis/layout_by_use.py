"""The layout of a buffer in which a nest of loops reads it from one end to the other.

Source: TVM's ``SuggestIndexMap`` (MetaSchedule, Shao et al., NeurIPS 2022), as Ansor rewrites the
layout of weights (Zheng et al., OSDI 2020, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map import (
    IterMapLevel,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
)
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.index_map import IndexMap
from weft.tir.stmt import For


class _Digit(NamedTuple):
    """A part of the flat index: ``loop // step % extent``."""

    loop: Var
    step: int
    extent: int


def suggest_index_map(
    buffer: Buffer, indices: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr | bool
) -> IndexMap | None:
    """The index map after which an access goes through the buffer in the order of the loops.

    Args:
        buffer: the buffer; its shape must be constant.
        indices: where it is accessed, over the variables of the loops.
        loops: the loops around the access, outermost first.
        predicate: what guards the access.

    Returns:
        A map from the indices of the buffer to those of the new layout, one for each digit of the
        flat index that a loop runs, in the order of the loops; None where the indices are no digits
        of loops.

    >>> from weft import tir
    >>> i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    >>> nest = [tir.For(v, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(0)) for v in (i, j)]
    >>> suggest_index_map(tir.decl_buffer((4, 4)), [j, i], nest, True).map_indices([i, j])
    [j, i]
    """
    shape = [size.value if isinstance(size, IntImm) else None for size in buffer.shape]
    digits = _digits(buffer, indices, loops, as_prim_expr(predicate))
    if not digits or None in shape:
        return None
    place = {loop.loop_var: number for number, loop in enumerate(loops)}
    order = sorted(
        range(len(digits)), key=lambda item: (place[digits[item].loop], -digits[item].step)
    )
    sizes = [int(size) for size in shape if size is not None]
    extents = [digit.extent for digit in digits]
    new_extents = [extents[item] for item in order]

    def forward(*old: Var) -> list[PrimExpr]:
        parts = _unflattened(_flattened(old, sizes), extents, _bounded(old, sizes))
        return [parts[item] for item in order]

    def backward(*new: Var) -> list[PrimExpr]:
        parts = [new[order.index(item)] for item in range(len(order))]
        return _unflattened(_flattened(parts, extents), sizes, _bounded(new, new_extents))

    dtype = str(indices[0].dtype)
    inverse = IndexMap.from_func(backward, len(digits), index_dtype=dtype)
    return IndexMap.from_func(forward, len(sizes), inverse, index_dtype=dtype)


def _digits(
    buffer: Buffer, indices: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr
) -> list[_Digit]:
    """The digits of the flat index, most significant first; none if it is not made of such."""
    sizes = [size.value for size in buffer.shape if isinstance(size, IntImm)]
    if len(sizes) != len(indices):
        return []
    flat = Analyzer().simplify(_flattened(indices, sizes))
    ranges = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    result = detect_iter_map([flat], ranges, predicate, IterMapLevel.Surjective)
    digits: list[_Digit] = []
    if not result.indices or not all(_collect(item, digits) for item in result.indices[0].args):
        return []
    return digits


def _collect(split: IterSplitExpr, digits: list[_Digit]) -> bool:
    """Add the digits of a split; False if one is not constant."""
    source = split.source.source
    if isinstance(source, IterSumExpr):
        return all(_collect(item, digits) for item in source.args)
    step, extent = split.lower_factor, split.extent
    if not (isinstance(source, Var) and isinstance(step, IntImm) and isinstance(extent, IntImm)):
        return False
    digits.append(_Digit(source, step.value, extent.value))
    return True


def _flattened(indices: Sequence[PrimExpr], sizes: Sequence[int]) -> PrimExpr:
    flat: PrimExpr = op.const(0, indices[0].dtype) if indices else op.const(0, "int32")
    for index, size in zip(indices, sizes, strict=True):
        flat = op.add(op.multiply(flat, op.const(size, index.dtype)), index)
    return flat


def _unflattened(flat: PrimExpr, sizes: Sequence[int], analyzer: Analyzer) -> list[PrimExpr]:
    parts: list[PrimExpr] = []
    for size in reversed(sizes):
        flat = analyzer.simplify(flat)
        extent = op.const(size, flat.dtype)
        parts.insert(0, analyzer.simplify(op.floormod(flat, extent)))
        flat = op.floordiv(flat, extent)
    return parts


def _bounded(variables: Sequence[Var], sizes: Sequence[int]) -> Analyzer:
    analyzer = Analyzer()
    for var, size in zip(variables, sizes, strict=True):
        analyzer.bind(var, Range.from_min_extent(op.const(0, var.dtype), op.const(size, var.dtype)))
    return analyzer
