"""Fused operators of com.microsoft that exporters emit: norms, products, attention.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.activation import added
from weft.relax.frontend.onnx.operators.normalization import layer_norm, rms_norm
from weft.relax.frontend.onnx.protos import Attribute
from weft.relax.frontend.onnx.registry import AI_ONNX, MICROSOFT, converter
from weft.relax.frontend.onnx.value import Value

# Norms


@converter("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    context: Context,
    x: Value,
    skip: Value,
    gamma: Value,
    beta: Value | None = None,
    bias: Value | None = None,
    *,
    epsilon: float = 1e-12,
) -> list[Expr | None]:
    """The layer norm of x + skip + bias; also mean, 1 / deviation, and the sum itself."""
    total = added(context, context.emit(op.add(x.expr, skip.expr)), bias)
    output, *others = layer_norm(context, context.value(total), gamma, beta, epsilon=epsilon)
    moments: Sequence[Expr | None] = others or [None, None]  # they come only where one is wanted
    return [output, *moments, total]


@converter("SimplifiedLayerNormalization", domain=AI_ONNX)
@converter("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_norm(
    context: Context,
    x: Value,
    scale: Value,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    """The norm by the root of the mean square."""
    return rms_norm(context, x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)


@converter("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    context: Context,
    x: Value,
    skip: Value,
    gamma: Value,
    bias: Value | None = None,
    *,
    epsilon: float = 1e-12,
) -> list[Expr | None]:
    """The norm of x + skip + bias by the root of the mean square; the fourth result is the sum."""
    if context.wants(1) or context.wants(2):
        context.fail("its outputs mean and inv_std_var are not supported")
    total = added(context, context.emit(op.add(x.expr, skip.expr)), bias)
    output = rms_norm(context, context.value(total), gamma, epsilon=epsilon)
    return [output, None, None, total]


@converter("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    context: Context,
    ids: Value,
    segments: Value | None,
    words: Value,
    positions: Value,
    kinds: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None = None,
    places: Value | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 1,
) -> list[Expr]:
    """The layer norm of word, position and segment embeddings; how many tokens the mask leaves."""
    emit = context.emit
    length = context.shape(ids, "input_ids")[1]
    total = emit(op.take(words.expr, ids.expr, 0))
    if places is None:
        here = emit(op.strided_slice(positions.expr, [0], [0], [length]))
    else:
        here = emit(op.take(positions.expr, places.expr, 0))
    total = emit(op.add(total, here))
    if kinds is not None and segments is not None:
        total = emit(op.add(total, emit(op.take(kinds.expr, segments.expr, 0))))
    output = layer_norm(context, context.value(total), gamma, beta, epsilon=epsilon)[0]
    batch = context.shape(ids, "input_ids")[0]
    if mask is None or not mask_index_type:
        count = emit(op.zeros([batch], "int32"))
    else:
        count = emit(op.sum(context.as_type(mask.expr, "int32"), [1]))
    return [output, count, total]


# Products


@converter("FusedMatMul", "TransposeMatMul", domain=MICROSOFT,
           neutral={"transBatchA": (0,), "transBatchB": (0,)})  # fmt: skip
def fused_matmul(
    context: Context,
    a: Value,
    b: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,  # noqa: N803 - ONNX's names
) -> Expr:
    """alpha * A' * B', where ' swaps the last two axes if asked for."""
    lhs, rhs = (
        transposed(context, value) if turned else value.expr
        for value, turned in ((a, transA), (b, transB))
    )
    product = context.emit(op.matmul(lhs, rhs))
    if alpha == 1:
        return product
    return context.emit(op.multiply(product, context.constant(alpha, a.dtype).expr))


def transposed(context: Context, x: Value) -> Expr:
    """The last two axes swapped; a vector as it is."""
    rank = context.rank(x, "input")
    if rank < 2:
        return x.expr
    return context.emit(op.permute_dims(x.expr, [*range(rank - 2), rank - 1, rank - 2]))


@converter("FusedConv", domain=MICROSOFT)
def fused_conv(
    context: Context,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    z: Value | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **attributes: Attribute,
) -> Expr | Value:
    """A convolution, what is added to it, an activation."""
    image = context.apply("Conv", [x, weight, bias], attributes)
    if z is not None:
        image = context.value(op.add(image.expr, z.expr))
    return _activated(context, image, activation, list(activation_params))


@converter("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    context: Context,
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,  # noqa: ARG001 - of none here
    **attributes: Attribute,
) -> Expr | Value:
    """A Gemm and an activation."""
    product = context.apply("Gemm", [a, b, c], attributes)
    params = [item for item in (activation_alpha, activation_beta) if item is not None]
    return _activated(context, product, activation, params)


PARAMETERS = {
    "": (), "Relu": (), "Tanh": (), "Sigmoid": (), "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
}  # fmt: skip
"""Activation -> the attributes that its parameters are."""


def _activated(context: Context, x: Value, name: str, params: list[float]) -> Expr | Value:
    if name == "Clip" and len(params) == 2:
        return op.clip(x.expr, params[0], params[1])
    if name not in PARAMETERS:
        context.fail(f"activation: expected one of {', '.join(PARAMETERS)}, Clip, got {name!r}")
    if not name:
        return x
    attributes: dict[str, Attribute] = dict(zip(PARAMETERS[name], params, strict=False))
    return context.apply(name, [x], attributes)


# Products with packed weights


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
    if g_idx is not None:
        context.fail("its input g_idx is not supported")
    if bits not in (2, 4, 8):
        context.fail(f"bits: expected 2, 4 or 8, got {bits}")
    packed = context.array(b, "B").reshape(N, -1)
    factors = context.array(scales, "scales").reshape(N, -1).astype("float32")
    blocks = factors.shape[1]
    offset = np.full((N, blocks), 1 << (bits - 1))
    if zeros is not None:
        offset = context.array(zeros, "zero_points").reshape(N, -1)
        if offset.dtype == np.uint8:
            offset = unpacked(offset, bits)[:, :blocks]
    numbers = unpacked(packed, bits).reshape(N, blocks, block_size)
    centred = numbers.astype("float32") - offset.astype("float32")[..., None]
    if blocks * block_size == K and is_int8(centred):
        # (N, blocks, size) to (blocks, size, N): bytes stay bytes, and are scaled as they multiply.
        weight = context.constant(np.ascontiguousarray(centred.transpose(1, 2, 0)).astype("int8"))
        scale = context.constant(np.ascontiguousarray(factors.T).astype(a.dtype))
        product = op.block_scaled_matmul(a.expr, weight.expr, scale.expr)
    else:
        whole = (centred * factors[..., None]).reshape(N, -1)[:, :K]
        matrix = context.constant(np.ascontiguousarray(whole.T).astype(a.dtype))
        product = op.matmul(a.expr, matrix.expr)
    return added(context, context.emit(product), bias)


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
