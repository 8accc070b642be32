"""The layers: modules whose parameters and results are those of torch's layers of these names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from weft.ir.expr import Extent, PrimExpr
from weft.relax.frontend.nn import checks
from weft.relax.frontend.nn.activations import GELU, ReLU, SiLU
from weft.relax.frontend.nn.checks import checked
from weft.relax.frontend.nn.core import Effect, Module, ModuleList, Parameter, Tensor
from weft.relax.frontend.nn.effect import IOEffect, KVCache
from weft.relax.frontend.nn.op import elementwise, manipulate, neural
from weft.relax.frontend.nn.op.neural import Size
from weft.relax.frontend.nn.tensor import Dim
from weft.support.errors import IRValueError, UnsupportedError
from weft.tir.op import floordiv


class Identity(Module):
    """x itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Linear(Module):
    """x (..., in_features) times weight (out_features, in_features) transposed, plus bias.

    With ``out_dtype`` the sums, the bias and the result are of that type.
    """

    @checked(
        in_features=checks.dim, out_features=checks.dim, bias=checks.flag, dtype=checks.dtype,
        out_dtype=checks.dtype,
    )  # fmt: skip
    def __init__(
        self,
        in_features: Dim,
        out_features: Dim,
        bias: bool = True,
        dtype: str | None = None,
        out_dtype: str | None = None,
    ) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.out_dtype = out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), out_dtype or dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        product = neural.matmul(x, manipulate.permute_dims(self.weight), self.out_dtype)
        return product if self.bias is None else elementwise.add(product, self.bias)

    def to(self, dtype: str | None = None) -> None:
        """Change the data type; a bias of ``out_dtype`` keeps its own."""
        self.weight.to(dtype)
        if self.bias is not None and self.out_dtype is None:
            self.bias.to(dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype


_KERNEL: Final = checks.window(1, single=False)


class _Convolution(Module):
    """What the convolutions share: parameters, numbers, and how they are applied."""

    rank: ClassVar[int]
    apply: ClassVar[Callable[..., Tensor]]
    """The operator: (x, weight, bias, then the options in the order of ``_options``)."""

    @checked(
        in_channels=checks.extent, out_channels=checks.extent, kernel_size=_KERNEL,
        stride=checks.window(1), padding=checks.window(0, (1, 2)), dilation=checks.window(1),
        groups=checks.count, bias=checks.flag, dtype=checks.dtype,
    )  # fmt: skip
    def __init__(
        self,
        in_channels: Extent,
        out_channels: Extent,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        window = (
            list(kernel_size) if isinstance(kernel_size, Sequence) else [kernel_size] * self.rank
        )
        self.kernel_size: Size = window[0] if self.rank == 1 else window
        for channels in (in_channels, out_channels):
            checks.multiple(self, channels, "groups", groups)
        self.weight = Parameter([*self._channels(), *window], dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def _channels(self) -> tuple[Extent, Extent]:
        """The first two extents of the weight."""
        return self.out_channels, self._in_groups(self.in_channels)

    def _in_groups(self, channels: Extent) -> Extent:
        if isinstance(channels, PrimExpr):
            return floordiv(channels, self.groups)
        return channels // self.groups

    def _options(self) -> tuple[Size | str, ...]:
        return self.stride, self.padding, self.dilation, self.groups

    def forward(self, x: Tensor) -> Tensor:
        return type(self).apply(x, self.weight, self.bias, *self._options())


class Conv1D(_Convolution):
    """Convolution of x (n, in_channels, width); the weight is (out, in // groups, kernel)."""

    rank = 1
    apply = staticmethod(neural.conv1d)


class _ImageConvolution(_Convolution):
    """Convolutions whose data may be laid out in several ways."""

    layout: ClassVar[str]

    @checked(data_layout=checks.layout)
    def __init__(
        self,
        in_channels: Extent,
        out_channels: Extent,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
        data_layout: str | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype
        )
        self.data_layout = self.layout if data_layout is None else data_layout

    def _options(self) -> tuple[Size | str, ...]:
        return (*super()._options(), self.data_layout)


class Conv2D(_ImageConvolution):
    """Convolution of images, NCHW by default; the weight is (out, in // groups, height, width)."""

    rank = 2
    layout = "NCHW"
    apply = staticmethod(neural.conv2d)


class Conv3D(_ImageConvolution):
    """Convolution of volumes, NCDHW by default.

    The weight is (out, in // groups, depth, height, width).
    """

    rank = 3
    layout = "NCDHW"
    apply = staticmethod(neural.conv3d)


class ConvTranspose1D(_Convolution):
    """The transpose of Conv1D; the weight is (in, out // groups, kernel)."""

    rank = 1
    apply = staticmethod(neural.conv1d_transpose)

    @checked(output_padding=checks.window(0))
    def __init__(
        self,
        in_channels: Extent,
        out_channels: Extent,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype
        )
        self.output_padding = output_padding

    def _channels(self) -> tuple[Extent, Extent]:
        return self.in_channels, self._in_groups(self.out_channels)

    def _options(self) -> tuple[Size | str, ...]:
        return self.stride, self.padding, self.output_padding, self.dilation, self.groups


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last axis, times weight, plus bias."""

    @checked(
        normalized_shape=checks.extent, eps=checks.number, elementwise_affine=checks.flag,
        dtype=checks.dtype,
    )  # fmt: skip
    def __init__(
        self,
        normalized_shape: int,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.normalized_shape = normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = (normalized_shape,)
        self.weight = Parameter(shape, dtype) if elementwise_affine else None
        self.bias = Parameter(shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        return neural.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x divided by the root of its mean square over ``axes``, times weight, plus bias."""

    @checked(
        hidden_size=checks.extent, axes=checks.integers, epsilon=checks.number, bias=checks.flag,
        dtype=checks.dtype,
    )  # fmt: skip
    def __init__(
        self,
        hidden_size: int,
        axes: int | Sequence[int],
        epsilon: float = 1e-5,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.axes = axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        normal = neural.rms_norm(x, self.weight, self.axes, self.epsilon)
        return normal if self.bias is None else elementwise.add(normal, self.bias)


class GroupNorm(Module):
    """Mean 0 and variance 1 in each group of channels, times weight, plus bias."""

    @checked(
        num_groups=checks.count, num_channels=checks.extent, eps=checks.number,
        affine=checks.flag, dtype=checks.dtype,
    )  # fmt: skip
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: str | None = None,
    ) -> None:
        checks.multiple(self, num_channels, "num_groups", num_groups)
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(
        self, x: Tensor, channel_axis: int = 1, axes: Sequence[int] | None = None
    ) -> Tensor:
        return neural.group_norm(
            x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes
        )


class Embedding(Module):
    """The rows of weight (num, dim) at indices: the shape of the indices and ``dim``."""

    @checked(num=checks.dim, dim=checks.dim, dtype=checks.dtype)
    def __init__(self, num: Dim, dim: Dim, dtype: str | None = None) -> None:
        self.num = num
        self.dim = dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 1:
            return manipulate.take(self.weight, x, axis=0)
        rows = manipulate.take(self.weight, manipulate.reshape(x, [-1]), axis=0)
        return manipulate.reshape(rows, [*x.shape, self.weight.shape[1]])


class TimestepEmbedding(Module):
    """Two linear layers with SiLU between them, for embeddings of diffusion steps."""

    @checked(
        in_channels=checks.extent, time_embed_dim=checks.extent,
        out_dim=checks.optional(checks.extent), cond_proj_dim=checks.optional(checks.extent),
    )  # fmt: skip
    def __init__(
        self,
        in_channels: int,
        time_embed_dim: int,
        act_fn: str = "silu",
        out_dim: int | None = None,
        post_act_fn: str | None = None,
        cond_proj_dim: int | None = None,
    ) -> None:
        for name, activation in (("act_fn", act_fn), ("post_act_fn", post_act_fn)):
            if activation not in ("silu", None):
                raise UnsupportedError(
                    f"TimestepEmbedding: {name}: expected 'silu', the only activation, got "
                    f"{activation!r}"
                )
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = (
            None if cond_proj_dim is None else Linear(cond_proj_dim, in_channels, bias=False)
        )
        self.act = SiLU()
        self.linear_2 = Linear(time_embed_dim, time_embed_dim if out_dim is None else out_dim)
        self.post_act = None if post_act_fn is None else SiLU()

    def forward(self, sample: Tensor, condition: Tensor | None = None) -> Tensor:
        if condition is not None:
            if self.cond_proj is None:
                raise IRValueError(
                    "TimestepEmbedding: a condition is given, but cond_proj_dim was not"
                )
            sample = elementwise.add(sample, self.cond_proj(condition))
        embedding: Tensor = self.linear_2(self.act(self.linear_1(sample)))
        return embedding if self.post_act is None else self.post_act.forward(embedding)


class Timesteps(Module):
    """Sines and cosines of time steps: (n,) to (n, num_channels)."""

    @checked(
        num_channels=checks.count, flip_sin_to_cos=checks.flag, downscale_freq_shift=checks.number
    )
    def __init__(
        self, num_channels: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1
    ) -> None:
        self.num_channels = num_channels
        self.flip_sin_to_cos = flip_sin_to_cos
        self.downscale_freq_shift = downscale_freq_shift

    def forward(self, x: Tensor) -> Tensor:
        return neural.get_timestep_embedding(
            x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift
        )


class Attention(Module):
    """Attention of hidden states to themselves, or to ``encoder_hidden_states``.

    Args:
        query_dim: channels of the hidden states (batch, sequence, query_dim).
        cross_attention_dim: channels of the encoder's; ``query_dim`` if None.
        heads: how many heads.
        dim_head: channels of each head.
        bias: whether query, key and value have a bias.
        norm_num_groups: groups of a GroupNorm before all else; none if None.
        out_bias: whether the last layer has a bias.
        scale_qk: whether products are divided by the root of ``dim_head``.
    """

    @checked(
        query_dim=checks.extent, cross_attention_dim=checks.optional(checks.extent),
        heads=checks.count, dim_head=checks.count, bias=checks.flag,
        norm_num_groups=checks.optional(checks.count), out_bias=checks.flag, scale_qk=checks.flag,
    )  # fmt: skip
    def __init__(
        self,
        query_dim: int,
        cross_attention_dim: int | None = None,
        heads: int = 8,
        dim_head: int = 64,
        bias: bool = False,
        norm_num_groups: int | None = None,
        out_bias: bool = True,
        scale_qk: bool = True,
    ) -> None:
        self.query_dim = query_dim
        self.cross_attention_dim = cross_attention_dim or query_dim
        self.heads = heads
        self.dim_head = dim_head
        self.bias = bias
        self.norm_num_groups = norm_num_groups
        self.out_bias = out_bias
        self.scale_qk = scale_qk
        self.scale = dim_head**-0.5 if scale_qk else 1.0
        self.inner_dim = dim_head * heads
        self.to_q = Linear(query_dim, self.inner_dim, bias=bias)
        self.to_k = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.to_v = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.group_norm = None if norm_num_groups is None else GroupNorm(norm_num_groups, query_dim)
        self.to_out = ModuleList([Linear(self.inner_dim, query_dim, bias=out_bias)])

    def forward(
        self,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        **cross_attention_kwargs: object,
    ) -> Tensor:
        if attention_mask is not None:
            raise UnsupportedError(
                "nn.Attention: Attention mask not yet supported; op.scaled_dot_product_attention "
                "takes one"
            )
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        projected = [self.to_q(hidden_states), self.to_k(source), self.to_v(source)]
        query, key, value = [
            manipulate.reshape(item, [0, -1, self.heads, self.dim_head]) for item in projected
        ]
        scale = None if self.scale_qk else self.scale
        mixed = neural.scaled_dot_product_attention(query, key, value, scale=scale)
        output: Tensor = self.to_out[0](manipulate.reshape(mixed, [0, -1, self.inner_dim]))
        return output


__all__ = [
    "GELU", "Attention", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose1D", "Effect", "Embedding",
    "GroupNorm", "IOEffect", "Identity", "KVCache", "LayerNorm", "Linear", "Module", "ModuleList",
    "RMSNorm", "ReLU", "SiLU", "TimestepEmbedding", "Timesteps",
]  # fmt: skip
