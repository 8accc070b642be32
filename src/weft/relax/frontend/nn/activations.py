"""Activations: as functions of tensors (``nn.op``), and as layers."""

from __future__ import annotations

from weft.relax import op as relax_op
from weft.relax.frontend.nn.core import Module
from weft.relax.frontend.nn.tensor import Tensor, emit, expr_of


def relu(x: Tensor, name: str = "relu") -> Tensor:
    """max(x, 0)."""
    return emit(relax_op.nn.relu(expr_of(x, "relu")), name)


def silu(x: Tensor, name: str = "silu") -> Tensor:
    """x * sigmoid(x)."""
    return emit(relax_op.nn.silu(expr_of(x, "silu")), name)


def gelu(x: Tensor, approximate: str | None = None, name: str = "gelu") -> Tensor:
    """x times the normal distribution's cumulative function; ``"tanh"`` approximates it."""
    chosen = relax_op.nn.gelu_tanh if approximate == "tanh" else relax_op.nn.gelu
    return emit(chosen(expr_of(x, "gelu")), name)


def softplus(
    x: Tensor, beta: float = 1.0, threshold: float = 20.0, name: str = "softplus"
) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    return emit(relax_op.nn.softplus(expr_of(x, "softplus"), beta, threshold), name)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """exp(x) along an axis, divided by its sum."""
    return emit(relax_op.nn.softmax(expr_of(x, "softmax"), axis), name)


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        return relu(x)


class SiLU(Module):
    """x * sigmoid(x)."""

    def forward(self, x: Tensor) -> Tensor:
        return silu(x)


class GELU(Module):
    """x times the normal distribution's cumulative function."""

    def forward(self, x: Tensor) -> Tensor:
        return gelu(x)
