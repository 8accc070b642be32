"""Operators of neural networks."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from weft.support.missing import MissingNameError
from weft.te.tensor import Tensor
from weft.topi.math import fast_exp, fast_tanh, sigmoid, tanh
from weft.topi.nn import activation
from weft.topi.nn.conv_transpose import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv_transpose,
    dilate,
    group_conv1d_transpose_ncw,
    group_conv2d_transpose_nchw,
)
from weft.topi.nn.convolution import (
    conv,
    conv1d,
    conv2d,
    conv2d_nchw,
    conv2d_nhwc,
    conv3d,
    depthwise_conv2d_nchw,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from weft.topi.nn.convolution_blocked import conv2d_NCHWc
from weft.topi.nn.dense import batch_matmul, dense, matmul
from weft.topi.nn.loss import nll_loss
from weft.topi.nn.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    lrn,
    rms_norm,
)
from weft.topi.nn.padding import circular_pad, mirror_pad, pad, reflect_pad, replicate_pad
from weft.topi.nn.pooling import (
    adaptive_pool,
    adaptive_pool1d,
    adaptive_pool3d,
    global_pool,
    pool1d,
    pool2d,
    pool3d,
)
from weft.topi.nn.rearrange import interleave, pixel_shuffle
from weft.topi.nn.recurrent import gru, lstm, rnn
from weft.topi.nn.softmax import fast_softmax, log_softmax, softmax
from weft.topi.transform import flatten


def __getattr__(name: str) -> Callable[..., Tensor]:
    """The activation of that name."""
    if name not in activation.__all__:
        raise MissingNameError(f"topi.nn has no operator {name!r}", name, __dir__, "topi.nn.")
    function: Callable[..., Tensor] = getattr(activation, name)
    return function


def __dir__() -> list[str]:
    own = [name for name, value in globals().items() if isinstance(value, FunctionType)]
    return sorted([*[name for name in own if not name.startswith("_")], *activation.__all__])
