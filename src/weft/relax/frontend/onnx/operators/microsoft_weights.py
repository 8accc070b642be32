"""Weights of few bits in com.microsoft: products with them, and rows of tables.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import UINT8
from weft.relax.frontend.onnx.operators.activation import added
from weft.relax.frontend.onnx.operators.quantization import spread
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Array, Value


@converter("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(
    context: Context,
    a: Value,
    b: Value,
    scales: Value,
    zeros: Value | None = None,
    g_idx: Value | None = None,
    bias: Value | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int = 32,  # noqa: N803 - ONNX's names
    accuracy_level: int = 0,  # noqa: ARG001 - a hint: sums are always float32 here
) -> Expr:
    """A times the transpose of a matrix (N, K) of small integers, which become bytes at import."""
    if bits not in (2, 4, 8):
        context.fail(f"bits: expected 2, 4 or 8, got {bits}")
    factors = context.array(scales, "scales").reshape(N, -1).astype("float32")
    blocks = factors.shape[1]
    offset = _offsets(context, zeros, bits, (N, blocks))
    numbers = unpacked(context.array(b, "B").reshape(N, -1), bits)
    if g_idx is not None:
        groups = context.array(g_idx, "g_idx")
        whole = (numbers[:, :K].astype("float32") - offset[:, groups]) * factors[:, groups]
        return _product(context, a, whole, bias)
    centred = numbers.reshape(N, blocks, block_size).astype("float32") - offset[..., None]
    if blocks * block_size != K or not is_int8(centred):
        whole = (centred * factors[..., None]).reshape(N, -1)[:, :K]
        return _product(context, a, whole, bias)
    # (N, blocks, size) to (blocks, size, N): bytes stay bytes, and are scaled as they multiply.
    weight = context.constant(np.ascontiguousarray(centred.transpose(1, 2, 0)).astype("int8"))
    scale = context.constant(np.ascontiguousarray(factors.T).astype(a.dtype))
    product = context.emit(op.block_scaled_matmul(a.expr, weight.expr, scale.expr))
    return added(context, product, bias)


def _offsets(context: Context, zeros: Value | None, bits: int, shape: tuple[int, int]) -> Array:
    """The zero point of each block of each column, the middle of the range if there are none."""
    if zeros is None:
        return np.full(shape, 1 << (bits - 1), "float32")
    points = context.array(zeros, "zero_points").reshape(shape[0], -1)
    if points.dtype == np.uint8:
        points = unpacked(points, bits)[:, : shape[1]]
    return points.astype("float32")


def _product(context: Context, a: Value, whole: Array, bias: Value | None = None) -> Expr:
    """The product with the transpose of a matrix (columns, depth) of floats."""
    matrix = context.constant(np.ascontiguousarray(whole.T).astype(a.dtype))
    return added(context, context.emit(op.matmul(a.expr, matrix.expr)), bias)


def is_int8(numbers: np.ndarray) -> bool:
    """Whether int8 holds all numbers: zero points may be floats, and those of bytes move far."""
    least, greatest = numbers.min(initial=0), numbers.max(initial=0)
    return bool(least >= -128 and greatest <= 127 and (numbers == np.rint(numbers)).all())


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """The integers of rows of bytes, those in the low bits first."""
    shifts = np.arange(0, 8, bits, dtype="uint8")
    mask = np.uint8((1 << bits) - 1)
    spread_out = (packed[..., None] >> shifts) & mask
    return spread_out.reshape(*packed.shape[:-1], -1)


NF4: Final = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
"""Quantiles of a normal distribution: Dettmers et al., "QLoRA" (2023), appendix E."""
_FP4_HALF: Final = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
FP4: Final = (*_FP4_HALF, *[-number for number in _FP4_HALF])
"""The floats of four bits with three of an exponent, of which the largest is 1."""


@converter("MatMulBnb4", domain=MICROSOFT, neutral={"training_mode": (0,), "transB": (1,)})
def matmul_bnb4(
    context: Context,
    a: Value,
    b: Value,
    absmax: Value,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,  # noqa: N803 - ONNX's names
) -> Expr:
    """A times the transpose of a matrix (N, K) of places in a table, in blocks along its rows."""
    if quant_type not in (0, 1):
        context.fail(f"quant_type: expected 0 or 1, got {quant_type}")
    table = np.array(NF4 if quant_type else FP4, "float32")
    packed = context.array(b, "B").ravel()
    places = np.stack([packed >> 4, packed & 15], 1).ravel()[: N * K]
    factors = np.repeat(context.array(absmax, "absmax").ravel().astype("float32"), block_size)
    return _product(context, a, (table[places] * factors[: N * K]).reshape(N, K))


@converter("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(
    context: Context,
    data: Value,
    indices: Value,
    scales: Value,
    zeros: Value | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Expr:
    """The slices of a table of small integers, each block of which has a scale.

    Integers of fewer bits than a byte become bytes at import; slices become floats when it runs.
    """
    place, along = context.axis(data, gather_axis), context.axis(data, quantize_axis)
    if place == along:
        context.fail(f"expected two axes, got {gather_axis} as gather_axis and quantize_axis")
    numbers = _centred(
        context, data, zeros, context.numbers(scales, "scales"), (bits, block_size, along)
    )
    slices = context.apply("Gather", [numbers, indices], {"axis": place})
    factors = context.apply("Gather", [scales, indices], {"axis": place})
    block_axis = along if along < place else along + context.rank(indices, "indices") - 1
    factor = spread(context, slices, factors.expr, block_axis - slices.rank, block_size)
    return context.emit(op.multiply(context.as_type(slices.expr, scales.dtype), factor))


def _centred(
    context: Context, data: Value, zeros: Value | None, shape: list[int], how: tuple[int, int, int]
) -> Value:
    """The numbers less their zero points, in the smallest type that holds them.

    Bytes hold several numbers of fewer bits, and then have a zero point in the middle if none is
    given; ``how`` is the number of bits, the size of the blocks and their axis.
    """
    bits, size, axis = how
    numbers = context.array(data, "data")
    points = np.zeros(shape) if zeros is None else context.array(zeros, "zero_points")
    if data.elem == UINT8:
        numbers = unpacked(numbers, bits)
        points = np.full(shape, 1 << (bits - 1)) if zeros is None else unpacked(points, bits)
    points = np.repeat(points.take(range(shape[axis]), axis), size, axis)
    points = points.take(range(numbers.shape[axis]), axis)
    centred = numbers.astype("int16") - points.astype("int16")
    return context.constant(centred.astype("int8") if is_int8(centred) else centred)
