"""8-bit floats: casts, what only moves elements, and scaled products."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend import float_codes
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.float8_tensors import FLOAT8, FLOAT8_TYPES, encoding, values_of
from weft.relax.frontend.torch.registry import CONVERTERS, Converter, converter
from weft.support.errors import UnsupportedError

MOVING: Final = """
    view.default _unsafe_view.default reshape.default flatten.using_ints unflatten.int
    view_copy.default view_as.default alias.default detach.default contiguous.default clone.default
    lift_fresh_copy.default expand.default permute.default transpose.int t.default mT.default
    squeeze.default squeeze.dim squeeze.dims unsqueeze.default repeat.default select.int
    slice.Tensor split.Tensor split_with_sizes.default chunk.default unbind.int narrow.default
    index.Tensor index_select.default gather.default flip.default cat.default stack.default
    view.dtype embedding.default
"""
"""Operators that do to bits what they do to floats."""


def _as_bits(name: str) -> Converter:
    return lambda context, *args, **keywords: CONVERTERS[name](context, *args, **keywords)


for _name in MOVING.split():
    CONVERTERS[f"aten.{_name}{FLOAT8}"] = _as_bits(f"aten.{_name}")


@converter(*(f"{name}{FLOAT8}" for name in (
    "aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device",
    "prims.convert_element_type.default",
)))  # fmt: skip
def to_copy(context: Context, self: Expr, *_: object, **__: object) -> Expr:
    """Another type: from codes, to codes, or from one kind of codes to another."""
    source, target = _dtype(context, 0), context.node.meta["val"].dtype
    if source is target:
        return self
    values = _decoded(context, self, source)
    if target not in FLOAT8_TYPES:
        return context.cast(values, context.dtype)
    return float_codes.encode(context, values, encoding(target), const)


def _dtype(context: Context, place: int) -> torch.dtype:
    """The data type in torch of an argument."""
    dtype: torch.dtype = context.node.args[place].meta["val"].dtype
    return dtype


def _decoded(context: Context, codes: Expr, dtype: torch.dtype) -> Expr:
    """The values of codes as float32; a tensor of another type is itself."""
    if dtype not in FLOAT8_TYPES:
        return codes
    return float_codes.decode(context, codes, const(np.copy(values_of(dtype))))


@converter(f"aten._scaled_mm.default{FLOAT8}")
def scaled_mm(
    context: Context,
    self: Expr,
    mat2: Expr,
    scale_a: Expr,
    scale_b: Expr,
    bias: Expr | None = None,
    scale_result: Expr | None = None,
    *_: object,
    **__: object,
) -> Expr:
    """The product of two matrices with a scale each, or one for each row and column."""
    emit = context.emit
    first = _decoded(context, self, _dtype(context, 0))
    second = _decoded(context, mat2, _dtype(context, 1))
    result = emit(op.matmul(first, second))
    for scale, allowed in ((scale_a, (None, 1)), (scale_b, (1, None))):
        result = emit(op.multiply(result, _fitting(context, scale, allowed)))
    if bias is not None:
        result = emit(op.add(result, context.cast(bias, "float32")))
    if scale_result is not None:
        result = emit(op.multiply(result, scale_result))
    target = context.node.meta["val"].dtype
    if target in FLOAT8_TYPES:
        return float_codes.encode(context, result, encoding(target), const)
    return context.cast(result, context.dtype)


def _fitting(context: Context, scale: Expr, allowed: tuple[int | None, ...]) -> Expr:
    """A scale that multiplies the product; UnsupportedError for those of blocks."""
    dims = context.dims(scale)
    fits = len(dims) == 2 and all(
        wanted is None or extent == wanted for extent, wanted in zip(dims, allowed, strict=True)
    )
    if fits or all(extent == 1 for extent in dims):
        return scale
    raise UnsupportedError(
        f"_scaled_mm: expected a scale for each row and column, or one for all, got {dims}; "
        "multiply the factors by their scales before the product"
    )
