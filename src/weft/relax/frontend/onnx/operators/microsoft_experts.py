"""Mixtures of experts of com.microsoft: MoE, and QMoE, whose weights are small integers.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md). The rows
of all tokens are sorted by expert, so that each expert is one product of the rows that chose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.activation import OF_EXPERTS
from weft.relax.frontend.onnx.operators.microsoft_weights import unpacked
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Value, as_prim
from weft.relax.ir.shape_arith import product


class ExpertAttributes(TypedDict, total=False):
    """The attributes of both operators."""

    k: int
    activation_type: str
    activation_alpha: float
    activation_beta: float
    swiglu_limit: float
    swiglu_fusion: int
    normalize_routing_weights: int


@dataclass(frozen=True)
class Layer:
    """The weights (experts, depth, columns) of a layer of all experts, and what is added."""

    weights: Expr
    bias: Expr | None


@converter("MoE", domain=MICROSOFT,
           neutral={"use_sparse_mixer": (0,), "swiglu_limit_after_activation": (0,)})  # fmt: skip
def mixture(
    context: Context,
    x: Value,
    router: Value,
    *inputs: Value | None,
    **how: Unpack[ExpertAttributes],
) -> Expr:
    """Each token's sum of what the experts that it chose make of it, by their shares."""
    layers = []
    for weights, bias in zip(inputs[::2], [*inputs[1::2], None], strict=False):
        if weights is not None:
            columns = context.emit(op.permute_dims(weights.expr, [0, 2, 1]))
            layers.append(Layer(columns, None if bias is None else bias.expr))
    return _mixed(context, x, router, layers, how)


@converter("QMoE", domain=MICROSOFT, ignores=["weights_prepacked", "accuracy_level"],
           neutral={"use_sparse_mixer": (0,), "swiglu_limit_after_activation": (0,),
                    "quant_type": ("int",)})  # fmt: skip
def quantized_mixture(
    context: Context,
    x: Value,
    router: Value,
    *inputs: Value | None,
    expert_weight_bits: int = 4,
    block_size: int = 0,
    **how: Unpack[ExpertAttributes],
) -> Expr:
    """As MoE, with integers, their scales (of columns, or of blocks of these) and zero points."""
    rest = [*inputs[9:], *[None] * 3]
    if any(item is not None for item in rest[3:]):
        context.fail("its inputs router_weights and scales of types are not supported")
    layers = []
    for place in range(3):
        weights, scales, bias = (*inputs[3 * place : 3 * place + 3], None, None, None)[:3]
        if weights is not None and scales is not None:
            sizes = (expert_weight_bits, block_size)
            columns = _dequantized(context, (weights, scales, rest[place]), sizes, x.dtype)
            layers.append(Layer(columns.expr, None if bias is None else bias.expr))
    return _mixed(context, x, router, layers, how)


def _dequantized(
    context: Context,
    weight: tuple[Value, Value, Value | None],
    sizes: tuple[int, int],
    dtype: str,
) -> Value:
    """Packed weights (experts, columns, depth) as floats (experts, depth, columns)."""
    (packed, scales, zeros), (bits, size) = weight, sizes
    numbers = unpacked(context.array(packed, "weights"), bits).astype("float32")
    factors = context.array(scales, "scales").astype("float32")
    blocks = factors.reshape(*numbers.shape[:2], -1)
    points = np.full(blocks.shape, 1 << (bits - 1), "float32")
    if zeros is not None:
        by_block = unpacked(context.array(zeros, "zero_points"), bits)
        points = by_block.reshape(numbers.shape[0], -1)[:, : blocks[0].size].reshape(blocks.shape)
    depth = numbers.shape[2]
    spread = [np.repeat(item, size or depth, 2)[:, :, :depth] for item in (blocks, points)]
    whole = (numbers - spread[1]) * spread[0]
    return context.constant(np.ascontiguousarray(whole.transpose(0, 2, 1)).astype(dtype))


def _mixed(
    context: Context, x: Value, router: Value, layers: Sequence[Layer], how: ExpertAttributes
) -> Expr:
    """Rows sorted by expert, through both layers, and summed where they came from."""
    emit, chosen = context.emit, how.get("k", 1)
    shape = context.shape(x, "input")
    count, width = product([as_prim(dim) for dim in shape[:-1]]), shape[-1]
    shares, choices = _routes(context, router, chosen, bool(how.get("normalize_routing_weights")))
    flat = emit(op.reshape(choices, [-1]))
    order = emit(op.argsort(flat, 0, dtype="int64"))
    runs = _runs(context, emit(op.take(flat, order, 0)), context.extent(router, 1, "router_probs"))
    tokens = emit(op.floor_divide(order, context.constant(chosen, "int64").expr))
    rows = emit(op.take(emit(op.reshape(x.expr, [count, width])), tokens, 0))
    first, second, *third = layers
    hidden = _layer(context, rows, first, runs)
    beside = _layer(context, rows, third[0], runs) if third else None
    outputs = _layer(context, _activated(context, hidden, beside, how), second, runs)
    back = emit(op.take(outputs, emit(op.argsort(order, 0, dtype="int64")), 0))
    apart = emit(op.reshape(back, [count, chosen, width]))
    weighted = emit(op.multiply(apart, emit(op.expand_dims(shares, 2))))
    return emit(op.reshape(emit(op.sum(weighted, [1])), shape))


def _routes(context: Context, router: Value, count: int, normalizes: bool) -> tuple[Expr, Expr]:
    """The shares (tokens, count) and the numbers of the experts that each token chooses."""
    emit = context.emit
    best = emit(op.topk(emit(op.nn.softmax(router.expr, -1)), count, -1, "both", True, "int64"))
    shares, choices = emit(best[0]), emit(best[1])
    if normalizes:
        shares = emit(op.divide(shares, emit(op.sum(shares, [1], True))))
    return shares, choices


@dataclass(frozen=True)
class Runs:
    """Rows sorted by expert: the expert of each row, and where the rows of each expert end."""

    owners: Expr
    ends: Expr


def _runs(context: Context, owners: Expr, experts: int) -> Runs:
    emit = context.emit
    numbers = emit(op.expand_dims(emit(op.arange(0, experts, 1, "int64")), 1))
    is_before = emit(op.less_equal(emit(op.expand_dims(owners, 0)), numbers))
    return Runs(owners, emit(op.sum(context.as_type(is_before, "int64"), [1])))


def _layer(context: Context, rows: Expr, layer: Layer, runs: Runs) -> Expr:
    """Each row times the matrix of its expert, plus its bias."""
    image = context.emit(op.grouped_matmul(rows, layer.weights, runs.ends))
    if layer.bias is None:
        return image
    return context.emit(op.add(image, context.emit(op.take(layer.bias, runs.owners, 0))))


def _activated(context: Context, hidden: Expr, beside: Expr | None, how: ExpertAttributes) -> Expr:
    """What the second layer gets of the first, and of the one ``beside`` it if there is one."""
    name = how.get("activation_type", "relu")
    if name == "swiglu":
        parts = (hidden, beside) if beside is not None else _halves(context, hidden, how)
        return _swiglu(context, *parts, how)
    if name not in OF_EXPERTS:
        context.fail(f"activation_type: expected {', '.join(OF_EXPERTS)} or swiglu, got {name!r}")
    active = context.emit(OF_EXPERTS[name](hidden))
    return active if beside is None else context.emit(op.multiply(active, beside))


def _halves(context: Context, hidden: Expr, how: ExpertAttributes) -> tuple[Expr, Expr]:
    """The gate and what it gates: side by side in pairs, or one after the other."""
    rows, columns = context.shape(context.value(hidden), "input")
    width = context.number(columns, context.value(hidden), "fc1_experts_weights") // 2
    in_pairs = how.get("swiglu_fusion", 0) == 1
    apart = context.emit(op.reshape(hidden, [rows, width, 2] if in_pairs else [rows, 2, width]))
    first, second = (
        context.emit(op.take(apart, context.constant(side, "int64").expr, 2 if in_pairs else 1))
        for side in range(2)
    )
    return first, second


def _swiglu(context: Context, gate: Expr, linear: Expr, how: ExpertAttributes) -> Expr:
    emit, dtype = context.emit, str(gate.struct_info.dtype)
    limit = how.get("swiglu_limit")
    if limit is not None:
        gate = emit(op.minimum(gate, context.constant(limit, dtype).expr))
        linear = emit(op.clip(linear, -limit, limit))
    steep = context.constant(how.get("activation_alpha", 1.0), dtype).expr
    active = emit(op.multiply(gate, emit(op.sigmoid(emit(op.multiply(gate, steep))))))
    moved = context.constant(how.get("activation_beta", 0.0), dtype).expr
    return emit(op.multiply(active, emit(op.add(linear, moved))))
