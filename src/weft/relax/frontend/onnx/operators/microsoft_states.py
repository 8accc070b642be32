"""Parts of recurrent networks in com.microsoft: gated norms, convolutions that carry a state.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md).
"""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.normalization import rms_norm
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Value, as_prim, plain_dim
from weft.relax.ir.shape_arith import simplified


@converter("ScaledSiLU", domain=MICROSOFT)
def scaled_silu(
    context: Context, x: Value, scale: Value | None = None, *, alpha: float = 1.0
) -> Expr:
    """x sigmoid(x) of scaled numbers."""
    factor = context.constant(alpha, x.dtype) if scale is None else scale
    return context.emit(op.nn.silu(context.emit(op.multiply(x.expr, factor.expr))))


@converter("GatedAdd", domain=MICROSOFT)
def gated_add(context: Context, x: Value, y: Value, gate: Value) -> Expr:
    """x + y * gate, with a gate for each row."""
    return context.emit(op.add(x.expr, context.emit(op.multiply(y.expr, gate.expr))))


@converter("BranchwiseRMSNorm", domain=MICROSOFT)
def branchwise_rms_norm(
    context: Context,
    x: Value,
    scale: Value | None = None,
    *,
    num_branches: int = 0,
    epsilon: float = 1e-5,
) -> Expr:
    """Each branch of a row by the root of its mean square; branches may lie end to end."""
    shape = context.shape(x, "X")
    count = num_branches or context.extent(x, -1 - (x.rank > 1), "X")
    width = context.extent(x, -1, "X") // (num_branches or 1)
    branches = [*shape[:-1], count, width] if num_branches else shape
    weight = context.constant([1.0] * width, x.dtype) if scale is None else scale
    if weight.rank == 1 and context.extent(weight, 0, "scale") != width:
        weight = context.value(op.reshape(weight.expr, [count, width]))
    unit = context.constant([1.0] * width, x.dtype)
    rows = context.value(op.reshape(x.expr, branches))
    norm = context.emit(rms_norm(context, rows, unit, epsilon=epsilon))
    return context.emit(op.reshape(context.emit(op.multiply(norm, weight.expr)), shape))


@converter("GatedRMSNorm", domain=MICROSOFT)
def gated_rms_norm(
    context: Context,
    x: Value,
    scale: Value,
    gate: Value,
    *,
    activation: str = "silu",
    epsilon: float = 1e-5,
) -> Expr:
    """Rows, or their equal parts, by the root of the mean square, times an activated gate."""
    gates = {"silu": op.nn.silu, "swish": op.nn.silu, "sigmoid": op.sigmoid}
    if activation not in gates:
        context.fail(f"activation: expected one of {', '.join(gates)}, got {activation!r}")
    shape, width = context.shape(x, "X"), context.extent(scale, 0, "scale")
    parts = context.value(op.reshape(x.expr, [*shape[:-1], -1, width]))
    norm = context.emit(rms_norm(context, parts, scale, epsilon=epsilon))
    active = context.emit(gates[activation](gate.expr))
    return context.emit(op.multiply(context.emit(op.reshape(norm, shape)), active))


@converter(
    "CausalConvWithState",
    domain=MICROSOFT,
    neutral={
        "ndim": (1,), "state_window": (0,), "channels_last": (0,), "state_update_capacity": (0,),
        "state_channels_last": (-1, 0), "state_length": (0,), "input_channel_offset": (0,),
        "input_channels": (0,),
    },
)  # fmt: skip
def causal_convolution(
    context: Context,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    past: Value | None = None,
    *,
    activation: str = "none",
    dilation: int = 1,
) -> list[Expr]:
    """A depthwise convolution of what came before and of a signal; and what comes before more."""
    if activation not in ("none", "silu", "swish"):
        context.fail(f"activation: expected none, silu or swish, got {activation!r}")
    emit = context.emit
    batch, channels, length = context.shape(x, "input")
    kept = (context.extent(weight, 2, "weight") - 1) * dilation
    before = emit(op.zeros([batch, channels, kept], x.dtype)) if past is None else past.expr
    whole = context.value(op.concat([before, x.expr], 2))
    group = context.extent(weight, 0, "weight")
    image = context.apply("Conv", [whole, weight, bias], {"group": group, "dilations": [dilation]})
    end = plain_dim(simplified(as_prim(length) + kept))
    state = emit(op.strided_slice(whole.expr, [2], [length], [end]))
    return [image.expr if activation == "none" else emit(op.nn.silu(image.expr)), state]
