"""Tensors made from numbers, and copies: filled, counted, triangular, converted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.ir.expr import Extent, FloatImm, IntImm, PrimExpr
from weft.relax import op
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.dtypes import held_number
from weft.relax.frontend.torch.operators.pointwise import number
from weft.relax.frontend.torch.registry import Converter, converter
from weft.relax.frontend.torch.values import Operand, Scalar
from weft.support.dtype import DataType


def filled(context: Context, value: Operand) -> Expr:
    """A tensor of the result's shape and type; the value is a number, symbolic, or a 0-d tensor."""
    dtype = context.dtype
    if isinstance(value, Expr) and not isinstance(value, PrimValue):
        return op.broadcast_to(context.cast(value, dtype), context.shape)
    if isinstance(value, PrimValue):
        value = value.value
    if isinstance(value, IntImm | FloatImm):
        value = value.value
    if not isinstance(value, PrimExpr):
        return op.full(context.shape, const(held_number(value, dtype), dtype), dtype)
    kind = "int64" if dtype == "bool" else dtype
    zeros = context.emit(op.zeros(context.shape, kind))
    return context.cast(context.emit(op.add(zeros, context.operand(value, kind))), dtype)


@converter("aten.full.default", "aten.full_like.default", "aten.fill.Scalar", "aten.fill.Tensor")
def full(context: Context, like: Expr | Sequence[Extent], fill_value: Operand, **_: object) -> Expr:
    """One value everywhere."""
    return filled(context, fill_value)


@converter("aten.new_full.default")
def new_full(
    context: Context, self: Expr, size: Sequence[Extent], fill_value: Operand, **_: object
) -> Expr:
    """One value everywhere."""
    return filled(context, fill_value)


def _constant(value: float) -> Converter:
    def convert(context: Context, *_: object, **__: object) -> Expr:
        return filled(context, value)

    return convert


converter("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default",
          "aten.zero.default", "aten.empty.memory_format", "aten.empty_like.default",
          "aten.new_empty.default", "aten.empty_strided.default", "aten.new_empty_strided.default",
          "aten.empty_permuted.default")(_constant(0))  # fmt: skip
converter("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")(_constant(1))


@converter("aten.scalar_tensor.default")
def scalar_tensor(context: Context, s: Operand, dtype: str | None = None) -> Expr:
    """A tensor without dimensions."""
    return filled(context, s)


@converter("aten.arange.start_step")
def arange_start_step(
    context: Context, start: Scalar, end: Scalar, step: Scalar = 1, **_: object
) -> Expr:
    """``start, start + step, ...``: integers exactly, floats in float64 and rounded once."""
    dtype, extent = context.dtype, context.shape[0]
    kind = "int64" if DataType(dtype).is_integral else "float64"
    count = context.emit(op.arange(extent, dtype="int64"))
    steps = context.emit(op.multiply(context.cast(count, kind), context.operand(step, kind)))
    return context.cast(context.emit(op.add(steps, context.operand(start, kind))), dtype)


@converter("aten.arange.start")
def arange_start(context: Context, start: Scalar, end: Scalar, **_: object) -> Expr:
    """``start, start + 1, ...``."""
    return arange_start_step(context, start, end)


@converter("aten.arange.default")
def arange(context: Context, end: Scalar, **_: object) -> Expr:
    """``0, 1, ...``."""
    return arange_start_step(context, 0, end)


@converter("aten.linspace.default")
def linspace(context: Context, start: Scalar, end: Scalar, steps: Extent, **_: object) -> Expr:
    """``steps`` numbers from start to end, counted from the nearer one, as PyTorch."""
    return _spaced(context, start, end, steps, context.dtype)


@converter("aten.logspace.default")
def logspace(
    context: Context, start: Scalar, end: Scalar, steps: Extent, base: float = 10.0, **_: object
) -> Expr:
    """``base`` to the powers that ``linspace`` gives."""
    values = _spaced(context, start, end, steps, "float64")
    powers = context.emit(op.power(const(float(base), "float64"), values))
    return context.cast(powers, context.dtype)


def _spaced(context: Context, start: Scalar, end: Scalar, steps: Extent, dtype: str) -> Expr:
    low, high = number(start, "float64"), number(end, "float64")
    return context.emit(op.linspace(low, high, steps, dtype))


@converter("aten.eye.default", "aten.eye.m")
def eye(context: Context, n: Extent, m: Extent | None = None, **_: object) -> Expr:
    """Ones on the diagonal."""
    return op.eye(n, n if m is None else m, 0, context.dtype)


@converter("aten.tril.default")
def tril(context: Context, self: Expr, diagonal: int = 0) -> Expr:
    """The elements up to a diagonal; 0 elsewhere."""
    return op.tril(self, diagonal)


@converter("aten.triu.default")
def triu(context: Context, self: Expr, diagonal: int = 0) -> Expr:
    """The elements from a diagonal on; 0 elsewhere."""
    return op.triu(self, diagonal)


@converter("aten.tril_indices.default")
def tril_indices(context: Context, row: int, col: int, offset: int = 0, **_: object) -> Expr:
    """The places of the lower triangle, a row of row numbers and one of columns."""
    return const(np.stack(np.tril_indices(row, offset, col)).astype(context.dtype))


@converter("aten.triu_indices.default")
def triu_indices(context: Context, row: int, col: int, offset: int = 0, **_: object) -> Expr:
    """The places of the upper triangle."""
    return const(np.stack(np.triu_indices(row, offset, col)).astype(context.dtype))


@converter("aten.clone.default", "aten.real.default")
def clone(context: Context, self: Expr) -> Expr:
    """The tensor itself: values are never written over."""
    return self


@converter("aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device",
           "aten.type_as.default", "aten.to.other",
           "prims.convert_element_type.default")  # fmt: skip
def to_copy(context: Context, self: Expr, *_: object, **__: object) -> Expr:
    """The tensor in the data type that torch deduced."""
    return context.cast(self, context.dtype)


@converter("aten.copy.default")
def copy(context: Context, self: Expr, src: Expr, **_: object) -> Expr:
    """``src`` in the shape and data type of ``self``."""
    return op.broadcast_to(context.cast(src, context.dtype), context.shape)


@converter("aten.resize_.default", "aten.resize.default")
def resize(context: Context, self: Expr, size: Sequence[Extent], **_: object) -> Expr:
    """The first elements in another shape; what torch leaves undefined is 0."""
    shape = context.shape
    have, want = math.prod(context.dims(self)), math.prod(shape)
    flat = context.emit(op.reshape(self, [have]))
    if not context.static([have, want]) or want > have:
        room = context.emit(op.zeros([want], context.dtype))
        flat = context.emit(op.concat([flat, room], 0))
    return op.reshape(context.emit(op.strided_slice(flat, [0], [0], [want])), shape)
