"""Fused operators of com.microsoft that exporters emit: norms, products, attention.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Sequence

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
    return normal_embeddings(context, ids, total, (gamma, beta), mask if mask_index_type else None,
                             epsilon)  # fmt: skip


def normal_embeddings(
    context: Context,
    ids: Value,
    total: Expr,
    norm: tuple[Value, Value],
    mask: Value | None,
    epsilon: float,
) -> list[Expr]:
    """The layer norm of the sum of embeddings, how many tokens the mask leaves, the sum."""
    output = layer_norm(context, context.value(total), *norm, epsilon=epsilon)[0]
    if mask is None:
        count = context.emit(op.zeros([context.shape(ids, "input_ids")[0]], "int32"))
    else:
        count = context.emit(op.sum(context.as_type(mask.expr, "int32"), [1]))
    return [output, count, total]


# Products


@converter("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(
    context: Context,
    a: Value,
    b: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,  # noqa: N803 - ONNX's names
) -> Expr:
    """alpha * A' * B': the first axis moves behind the batches, the last two change, if asked."""
    lhs, rhs = (
        transposed(context, batches_first(context, value) if moves else value)
        if turns
        else (batches_first(context, value) if moves else value).expr
        for value, turns, moves in ((a, transA, transBatchA), (b, transB, transBatchB))
    )
    product = context.emit(op.matmul(lhs, rhs))
    if alpha == 1:
        return product
    return context.emit(op.multiply(product, context.constant(alpha, a.dtype).expr))


def batches_first(context: Context, x: Value) -> Value:
    """The first axis behind those of batches, so that it is the last but one."""
    rank = context.rank(x, "input")
    if rank < 3:
        return x
    return context.value(op.permute_dims(x.expr, [*range(1, rank - 1), 0, rank - 1]))


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
    "HardSigmoid": ("alpha", "beta"), "Softplus": (), "Softsign": (),
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
