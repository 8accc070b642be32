"""Products, convolutions, normalisations, attention, images, embeddings of time steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from weft.ir.expr import Extent, PrimExpr
from weft.ir.node import expect
from weft.relax import op as relax_op
from weft.relax.expr import Expr, const
from weft.relax.frontend.nn.tensor import Tensor, emit, expr_of, get_default_dtype
from weft.support.errors import IRTypeError, IRValueError, UnsupportedError
from weft.tir.op import floordiv


def matmul(a: Tensor, b: Tensor, out_dtype: str | None = None, name: str = "matmul") -> Tensor:
    """The matrix product over the last two axes; those before broadcast."""
    product = relax_op.matmul(expr_of(a, "matmul"), expr_of(b, "matmul"), out_dtype)
    return emit(product, name)


Size = int | Sequence[int]
"""A number for all axes of space, or one for each."""


_BIAS_SHAPES: Final[dict[str, list[int]]] = {
    "NCW": [1, -1, 1], "NCHW": [1, -1, 1, 1], "NHWC": [1, 1, 1, -1],
    "NCDHW": [1, -1, 1, 1, 1], "NDHWC": [1, 1, 1, 1, -1],
}  # fmt: skip
"""The shape in which a bias is added, by the layout of the data."""


def _with_bias(image: Expr, bias: Tensor | None, layout: str, name: str) -> Tensor:
    if bias is None:
        return emit(image, name)
    if layout not in _BIAS_SHAPES:
        raise UnsupportedError(
            f"{name}: a bias for the layout {layout!r}; there are {', '.join(_BIAS_SHAPES)}; add "
            "it in another layout by reshape and add"
        )
    shaped = relax_op.reshape(expr_of(bias, f"{name}: bias"), _BIAS_SHAPES[layout])
    return emit(relax_op.add(image, shaped), name)


def _convolve(
    kind: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    options: Sequence[Size | str],
    *,
    layout: str,
    name: str,
) -> Tensor:
    """Relax's operator of this kind on x and weight, plus the bias in x's layout."""
    convolution = getattr(relax_op.nn, kind)
    image = convolution(expr_of(x, kind), expr_of(weight, f"{kind}: weight"), *options)
    return _with_bias(image, bias, layout, name)


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    name: str = "conv1d",
) -> Tensor:
    """Convolution of x (n, channels, width) by weight (out, channels // groups, kernel)."""
    options = (stride, padding, dilation, groups)
    return _convolve("conv1d", x, weight, bias, options, layout="NCW", name=name)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    name: str = "conv2d",
) -> Tensor:
    """Convolution of images by weight (out, channels // groups, height, width)."""
    options = (stride, padding, dilation, groups, data_layout)
    return _convolve("conv2d", x, weight, bias, options, layout=data_layout, name=name)


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCDHW",
    name: str = "conv3d",
) -> Tensor:
    """Convolution of volumes by weight (out, channels // groups, depth, height, width)."""
    options = (stride, padding, dilation, groups, data_layout)
    return _convolve("conv3d", x, weight, bias, options, layout=data_layout, name=name)


def conv1d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    name: str = "conv1d_transpose",
) -> Tensor:
    """The transpose of conv1d; weight is (channels, out // groups, kernel)."""
    options = (stride, padding, output_padding, dilation, groups)
    return _convolve("conv1d_transpose", x, weight, bias, options, layout="NCW", name=name)


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    name: str = "layer_norm",
) -> Tensor:
    """Mean 0 and variance 1 over the last axes, whose extents are ``normalized_shape``."""
    extents = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    data = expr_of(x, "layer_norm")
    scale = const(np.ones(extents), x.dtype) if weight is None else expr_of(weight, "layer_norm")
    shift = const(np.zeros(extents), x.dtype) if bias is None else expr_of(bias, "layer_norm")
    axes = list(range(-len(extents), 0))
    return emit(relax_op.nn.layer_norm(data, scale, shift, axes, epsilon=eps), name)


def rms_norm(
    x: Tensor,
    weight: Tensor,
    axes: int | Sequence[int],
    epsilon: float = 1e-5,
    name: str = "rms_norm",
) -> Tensor:
    """x divided by the root of its mean square over axes, times weight."""
    normal = relax_op.nn.rms_norm(
        expr_of(x, "rms_norm"), expr_of(weight, "rms_norm: weight"), axes, epsilon
    )
    return emit(normal, name)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float = 1e-5,
    channel_axis: int = 1,
    axes: Sequence[int] | None = None,
    name: str = "group_norm",
) -> Tensor:
    """Mean 0 and variance 1 in each group of channels, over ``axes`` (those after the second)."""
    data = expr_of(x, "group_norm")
    channels = x.shape[channel_axis]
    if (weight is None or bias is None) and not isinstance(channels, int):
        raise IRValueError(
            f"group_norm: without weight and bias the number of channels must be known, got "
            f"{channels}"
        )
    scale = _filled(channels, 1, x.dtype) if weight is None else expr_of(weight, "group_norm")
    shift = _filled(channels, 0, x.dtype) if bias is None else expr_of(bias, "group_norm")
    over = list(range(2, x.ndim)) if axes is None else list(axes)
    normal = relax_op.nn.group_norm(data, scale, shift, num_groups, channel_axis, over, eps)
    return emit(normal, name)


def _filled(count: Extent, value: float, dtype: str) -> Expr:
    """A vector of one number; its extent has to be known."""
    return const(np.full(expect(count, int), float(value)), dtype)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool | None = False,
    scale: float | None = None,
    name: str = "scaled_dot_product_attention",
) -> Tensor:
    """softmax(query key^T * scale) value on (batch, sequence, heads, head_dim).

    The order of axes is TVM's; torch has heads before the sequence. ``attn_mask`` is added to the
    products: (batch, heads, query length, key length). The scale is 1 / sqrt(head_dim) if None.
    """
    bias = None if attn_mask is None else expr_of(attn_mask, "attn_mask")
    mixed = relax_op.nn.attention(
        expr_of(query, "attention"),
        expr_of(key, "attention"),
        expr_of(value, "attention"),
        bias,
        scale,
        "TopLeft" if is_causal else None,
    )
    return emit(mixed, name)


def interpolate(
    x: Tensor,
    size: int | Sequence[Extent] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool | None = None,
    data_layout: str = "NCHW",
    name: str = "interpolate",
) -> Tensor:
    """The image at another size, or so many times as large (one number, or one for each axis).

    ``mode`` is nearest, bilinear or bicubic. As in TVM, nearest takes the pixel whose position is
    nearest to ``i * old / new``, where torch takes the one at or below it. Raises
    UnsupportedError for ``recompute_scale_factor`` and ``antialias``.
    """
    for option, value in (
        ("recompute_scale_factor", recompute_scale_factor),
        ("antialias", antialias),
    ):
        if value:
            raise UnsupportedError(f"interpolate: {option} is not supported")
    if size is None:
        size = _scaled(x, scale_factor, data_layout)
    method = "nearest_neighbor" if mode.startswith("nearest") else mode.removeprefix("bi")
    if method == "nearest_neighbor":
        coordinates = "asymmetric"
    else:
        coordinates = "align_corners" if align_corners else "half_pixel"
    image = relax_op.image.resize2d(
        expr_of(x, "interpolate"),
        size,
        layout=data_layout,
        method=method,
        coordinate_transformation_mode=coordinates,
    )
    return emit(image, name)


def _scaled(x: Tensor, scale_factor: float | Sequence[float] | None, layout: str) -> list[Extent]:
    """The spatial extents times their factors, rounded down."""
    if scale_factor is None:
        raise IRTypeError("interpolate: expected size or scale_factor, got neither")
    extents = [dim for dim, axis in zip(x.shape, layout, strict=True) if axis not in "NC"]
    factors = (
        list(scale_factor) if isinstance(scale_factor, Sequence) else [scale_factor] * len(extents)
    )
    return [_times(dim, factor) for dim, factor in zip(extents, factors, strict=True)]


def _times(dim: Extent, factor: float) -> Extent:
    if not isinstance(dim, PrimExpr):
        return int(dim * factor)
    ratio = Fraction(factor).limit_denominator(1 << 20)
    return floordiv(dim * ratio.numerator, ratio.denominator)


def get_timestep_embedding(
    x: Tensor,
    embedding_dim: int,
    flip_sin_to_cos: bool = False,
    downscale_freq_shift: float = 1,
    scale: float = 1,
    max_period: int = 10000,
    name: str = "get_timestep_embedding",
) -> Tensor:
    """Sines and cosines of time steps x (n,): (n, embedding_dim), in the default data type.

    The frequencies fall from 1 to 1 / max_period, as in "Denoising Diffusion Probabilistic
    Models" (Ho, Jain, Abbeel 2020).
    """
    half = embedding_dim // 2
    steps = relax_op.astype(expr_of(x, "get_timestep_embedding"), "float32")
    exponent = const(-math.log(max_period), "float32") * relax_op.arange(0, half, dtype="float32")
    exponent = exponent / const(half - downscale_freq_shift, "float32")
    frequencies = relax_op.expand_dims(relax_op.exp(exponent), 0)
    angles = relax_op.expand_dims(steps, 1) * frequencies
    if scale != 1:
        angles = const(scale, "float32") * angles
    angles = emit(angles, "lv")._expr  # bound, since both sine and cosine read it
    parts = [relax_op.sin(angles), relax_op.cos(angles)]
    embedding = relax_op.concat(parts[::-1] if flip_sin_to_cos else parts, axis=-1)
    if embedding_dim % 2 == 1:
        embedding = relax_op.nn.pad(embedding, (0, 0, 0, 1))
    return emit(relax_op.astype(embedding, get_default_dtype()), name)
