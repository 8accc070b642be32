"""Weights of few bits in the order of PyTorch's kernels for CPUs: torchao's int4 and int8 layers.

A weight of int4 is packed two numbers to a byte. Rows come in blocks; within a block, byte number
(column, i) holds rows i and i + half of the block, the first in the low bits, or rows 2 i and
2 i + 1; so what is left over after the last whole block always does. The size of the blocks depends
on the machine's vectors, so PyTorch is asked what it does here. A number q stands for
``(q - 8) * scale + zero``, with a scale and a zero for each group of columns.
"""

from __future__ import annotations

import functools
from typing import Final

import torch

from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.errors import UnsupportedError

_MIDDLE: Final = 8
"""The number of four bits that stands for the zero of its group."""
_ROWS: Final = 64
"""Rows of the weight that is packed to learn the order: a whole block of any CPU's."""


@functools.cache
def _order() -> tuple[int, bool]:
    """(rows of a block, whether the two rows of a byte are half a block apart, not neighbours)."""
    weight = torch.zeros([_ROWS, 2], dtype=torch.int32)
    weight[0, 1] = 15  # column 1 begins after half as many bytes as a block has rows
    pack = torch.ops.aten._convert_weight_to_int4pack_for_cpu.default
    rows = 2 * int(pack(weight, 1).flatten().nonzero()[0])
    weight[:] = 0
    weight[1] = 15
    is_apart = int(pack(weight, 1).flatten()[0]) == 0
    weight[:] = 0
    weight[rows // 2 if is_apart else 1] = 15
    if _ROWS % rows or int(pack(weight, 1).flatten()[0]) != 15 << 4:
        raise UnsupportedError(
            "_convert_weight_to_int4pack_for_cpu: expected pairs of rows, half a block apart or "
            "neighbours, got an order of this machine's PyTorch that weft does not know; set "
            "ATEN_CPU_CAPABILITY=default before torch is imported"
        )
    return rows, is_apart


def _sizes(context: Context, weight: Expr, columns_per_item: int) -> tuple[int, int]:
    """(rows, columns) of a weight, plain or packed."""
    rows, stored = context.dims(weight)
    if not isinstance(rows, int) or not isinstance(stored, int):
        raise UnsupportedError(
            f"{context.node.target}: expected a weight of a known shape, got [{rows}, {stored}]; "
            "make its axes no symbols in dynamic_shapes"
        )
    return rows, stored * columns_per_item


def _blocks(context: Context, weight: Expr, rows: int) -> list[tuple[Expr, int, int, bool]]:
    """(part of the rows, their number, rows of its blocks, whether their pairs are apart).

    The whole blocks are the first part, what is left over is a block without rows apart.
    """
    block, is_apart = _order()
    whole, parts = rows // block * block, []
    for begin, end, size in ((0, whole, block), (whole, rows, rows - whole)):
        if begin < end:
            part = context.emit(op.strided_slice(weight, [0], [begin], [end]))
            parts.append((part, end - begin, size, is_apart and begin < whole))
    return parts


def _joined(context: Context, parts: list[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else context.emit(op.concat(parts, 0))


def unpacked(context: Context, packed: Expr) -> Expr:
    """The numbers from 0 to 15 of a packed weight, a row for each output, as uint8."""
    rows, columns = _sizes(context, packed, 2)
    parts = []
    for stored, count, size, is_apart in _blocks(context, packed, rows):
        part = context.emit(op.reshape(stored, [-1, columns, size // 2]))
        low = context.emit(op.bitwise_and(part, const(15, "uint8")))
        high = context.emit(op.right_shift(part, const(4, "uint8")))
        pairs = context.emit(op.stack([low, high], 1))  # (blocks, 2, columns, half)
        axes = [0, 1, 3, 2] if is_apart else [0, 3, 1, 2]
        parts.append(op.reshape(context.emit(op.permute_dims(pairs, axes)), [count, columns]))
    return _joined(context, [context.emit(part) for part in parts])


@converter("aten._convert_weight_to_int4pack_for_cpu.default")
def pack(context: Context, self: Expr, innerKTiles: int) -> Expr:  # noqa: N803 - torch's name
    """A weight of numbers from 0 to 15, packed."""
    rows, columns = _sizes(context, self, 1)
    parts = []
    for part, count, size, is_apart in _blocks(context, context.cast(self, "uint8"), rows):
        shape, axes = [-1, size // 2, 2, columns], [0, 2, 3, 1]
        if is_apart:
            shape, axes = [-1, 2, size // 2, columns], [0, 1, 3, 2]
        pairs = context.emit(op.permute_dims(context.emit(op.reshape(part, shape)), axes))
        low, high = (context.emit(op.take(pairs, const(place), 1)) for place in (0, 1))
        high = context.emit(op.left_shift(high, const(4, "uint8")))
        both = context.emit(op.bitwise_or(low, high))
        parts.append(context.emit(op.reshape(both, [count, columns // 2])))
    return _joined(context, parts)


@converter("aten._weight_int4pack_mm_for_cpu.default")
def int4_product(
    context: Context,
    self: Expr,
    mat2: Expr,
    qGroupSize: int,  # noqa: N803 - torch's name
    qScaleAndZeros: Expr,  # noqa: N803 - torch's name
) -> Expr:
    """``self @ weight^T`` of a packed weight; (groups, rows, 2) are its scales and zeros."""
    rows, columns = _sizes(context, mat2, 2)
    steps = context.cast(unpacked(context, mat2), "float32")
    steps = context.emit(op.subtract(steps, const(float(_MIDDLE), "float32")))
    steps = context.emit(op.reshape(steps, [rows, columns // qGroupSize, qGroupSize]))
    numbers = context.cast(qScaleAndZeros, "float32")
    scale, zero = (
        context.emit(op.expand_dims(context.emit(op.permute_dims(context.emit(item))), [-1]))
        for item in (op.take(numbers, const(place), 2) for place in (0, 1))
    )
    scaled = context.emit(op.add(context.emit(op.multiply(steps, scale)), zero))
    weight = context.emit(op.reshape(scaled, [rows, columns]))
    return _product(context, self, weight)


@converter("aten._weight_int8pack_mm.default")
def int8_product(context: Context, self: Expr, mat2: Expr, scales: Expr) -> Expr:
    """``self @ weight^T`` of a weight of int8 with a scale for each row."""
    product = _product(context, self, context.cast(mat2, "float32"), "float32")
    scaled = context.emit(op.multiply(product, context.cast(scales, "float32")))
    return context.cast(scaled, context.dtype)


def _product(context: Context, rows: Expr, weight: Expr, dtype: str | None = None) -> Expr:
    """Rows times the transpose of a weight of float32, in which it is summed."""
    turned = context.emit(op.permute_dims(weight))
    product = context.emit(op.matmul(context.cast(rows, "float32"), turned))
    return context.cast(product, dtype or context.dtype)
