"""Signals: DFT, STFT, mel filters.

Complex numbers are pairs along the last axis, ``weft.relax.frontend.fourier`` transforms them. The
windows (Hann, Hamming, Blackman) are functions of ONNX's own.
"""

from __future__ import annotations

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.fourier import Transform, scale_of, transformed
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value, as_prim, plain_dim
from weft.relax.ir.shape_arith import same_dim, simplified
from weft.tir import op as tir_op


@converter("DFT", since=17)
def dft_attribute(
    context: Context,
    x: Value,
    length: Value | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Expr:
    """In opset 17 the axis is an attribute."""
    place = context.axis(x, axis)
    return _transformed(context, x, place, length, inverse=bool(inverse), onesided=bool(onesided))


@converter("DFT", since=20)
def dft(
    context: Context,
    x: Value,
    length: Value | None = None,
    axis: Value | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Expr:
    """The discrete Fourier transform along an axis."""
    place = context.axis(x, -2 if axis is None else int(context.array(axis, "axis").ravel()[0]))
    return _transformed(context, x, place, length, inverse=bool(inverse), onesided=bool(onesided))


def _transformed(
    context: Context, x: Value, axis: int, size: Value | None, *, inverse: bool, onesided: bool
) -> Expr:
    """The transform along an axis, whose extent and length may be symbols."""
    extent = context.shape(x, "input")[axis]
    back_to_real = inverse and onesided
    length = context.sizes(size, "dft_length")[0] if size else extent
    if back_to_real and size is None:
        length = (extent - 1) * 2
    needed = length // 2 + 1 if back_to_real else length
    used = plain_dim(simplified(tir_op.min(as_prim(extent), as_prim(needed))))
    rank = context.rank(x, "input")
    emit = context.emit
    parts = []
    for index in range(context.extent(x, rank - 1, "input")):
        part = emit(op.take(x.expr, context.constant(index, "int64").expr, rank - 1))
        if not same_dim(used, extent):
            part = emit(op.strided_slice(part, [axis], [0], [used]))
        parts.append(part)
    count = length // 2 + 1 if onesided and not inverse else length
    scale = scale_of("by length" if inverse else "none", length)
    transform = Transform(length, used, count, inverse, back_to_real, scale)
    planes = (parts[0], parts[1] if len(parts) == 2 else None)
    real, imaginary = transformed(context.builder, planes, axis, transform)
    return emit(op.stack([real] if back_to_real else [real, imaginary], rank - 1))


@converter("STFT", since=17)
def stft(
    context: Context,
    x: Value,
    step: Value,
    window: Value | None = None,
    frame_length: Value | None = None,
    *,
    onesided: int = 1,
) -> Expr:
    """Transforms of windows that move along the signal: (batch, frames, frequencies, 2)."""
    emit = context.emit
    stride = int(context.array(step, "frame_step").ravel()[0])
    if frame_length is not None:
        length = int(context.array(frame_length, "frame_length").ravel()[0])
    elif window is not None:
        length = context.extent(window, 0, "window")
    else:
        length = context.extent(x, 1, "signal")
    parts = []
    channels = context.extent(x, 2, "signal") if context.rank(x, "signal") == 3 else 0
    for index in range(max(channels, 1)):
        part = x.expr
        if channels:
            part = emit(op.take(part, context.constant(index, "int64").expr, 2))
        part = emit(op.unfold(part, 1, length, stride))
        parts.append(part if window is None else emit(op.multiply(part, window.expr)))
    count = length // 2 + 1 if onesided else length
    planes = (parts[0], parts[1] if len(parts) == 2 else None)
    spectrum = transformed(context.builder, planes, 2, Transform(length, length, count))
    return emit(op.stack(list(spectrum), 3))


@converter("MelWeightMatrix", since=17)
def mel_weight_matrix(
    context: Context,
    bins: Value,
    length: Value,
    rate: Value,
    low: Value,
    high: Value,
    *,
    output_datatype: int = 1,
) -> Value:
    """Triangular filters, equally wide on the mel scale: (frequencies, filters)."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    inputs = zip((bins, length, rate, low, high), names, strict=True)
    count, size, sampled, first, last = [
        context.array(value, name).ravel()[0].item() for value, name in inputs
    ]
    spectrum = size // 2 + 1
    low_mel, high_mel = (2595 * np.log10(1 + hertz / 700) for hertz in (first, last))
    # ONNX's reference spreads count + 2 edges over count + 2 steps: the last edge is not reached
    edges = low_mel + np.arange(count + 2) * (high_mel - low_mel) / (count + 2)
    hertz = 700 * (10 ** (edges / 2595) - 1)
    places = ((size + 1) * hertz // sampled).astype(int)
    filters = np.zeros((spectrum, count), "float64")
    for index in range(count):
        lower, middle, upper = places[index : index + 3]
        if middle == lower:
            filters[middle, index] = 1
        else:
            rise = np.arange(lower, middle + 1)
            filters[rise, index] = (rise - lower) / (middle - lower)
        if upper > middle:
            fall = np.arange(middle, upper)
            filters[fall, index] = (upper - fall) / (upper - middle)
    return context.constant(filters.astype(context.storage(output_datatype)))
