"""Operators of neural networks: ``relax.op.nn.<name>``, printed ``R.nn.<name>``."""

from weft.relax.op.nn.activation import (
    gelu,
    gelu_tanh,
    leakyrelu,
    log_softmax,
    prelu,
    relu,
    relu6,
    selu,
    silu,
    softmax,
    softplus,
)
from weft.relax.op.nn.dense import dense

__all__ = [
    "dense",
    "gelu",
    "gelu_tanh",
    "leakyrelu",
    "log_softmax",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "silu",
    "softmax",
    "softplus",
]
