"""Norms and losses, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import all_axes, in_float64


def _mean(x: Any, axes: Any) -> Any:
    count = math.prod([x.shape[axis] for axis in axes])
    return np.divide(np.sum(x, axes, keepdims=True), count)


def _standardized(x: Any, axes: Any, epsilon: float) -> Any:
    distance = x - _mean(x, axes)
    return distance / np.sqrt(_mean(distance * distance, axes) + epsilon)


def _shaped(parameter: Any, x: Any, axes: Any) -> Any:
    """A parameter shaped so that its axes, in their order, are ``axes`` of x."""
    order = sorted(range(len(axes)), key=lambda place: axes[place])
    shape = [1] * x.ndim
    for axis in axes:
        shape[axis] = x.shape[axis]
    return parameter.reshape([x.shape[axis] for axis in axes]).transpose(order).reshape(shape)


def _affine(
    made: Any, gamma: Any, beta: Any, axes: Any, center: bool = True, scale: bool = True
) -> Any:
    made = made * _shaped(gamma, made, axes) if scale else made
    return made + _shaped(beta, made, axes) if center else made


@in_float64
def batch_norm(
    data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, *, axis: int,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1,
    training: bool = True,
) -> Any:  # fmt: skip
    """By the statistics of the batch in training, else by the moving ones."""
    place = axis % data.ndim
    mean, spread = moving_mean, moving_var
    if training:
        axes = tuple([other for other in range(data.ndim) if other != place])
        distance = data - _mean(data, axes)
        mean, spread = _mean(data, axes).reshape(-1), _mean(distance**2, axes).reshape(-1)
        moving_mean = (1 - momentum) * moving_mean + momentum * mean
        moving_var = (1 - momentum) * moving_var + momentum * spread
    made = (data - _shaped(mean, data, [place])) / np.sqrt(
        _shaped(spread, data, [place]) + epsilon
    )
    return _affine(made, gamma, beta, [place], center, scale), moving_mean, moving_var


@in_float64
def layer_norm(
    data: Any, gamma: Any, beta: Any, *, axes: Any, epsilon: float = 1e-5, center: bool = True,
    scale: bool = True,
) -> Any:  # fmt: skip
    """Standardised over axes."""
    chosen = all_axes(axes, data.ndim)
    return _affine(_standardized(data, chosen, epsilon), gamma, beta, chosen, center, scale)


@in_float64
def rms_norm(data: Any, weight: Any, *, axes: Any, epsilon: float = 1e-5) -> Any:
    """Divided by the root of the mean square over axes."""
    chosen = all_axes(axes, data.ndim)
    made = data / np.sqrt(_mean(data * data, chosen) + epsilon)
    return made * _shaped(weight, made, chosen)


@in_float64
def group_norm(
    data: Any, gamma: Any, beta: Any, *, num_groups: int, channel_axis: int, axes: Any,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Any:  # fmt: skip
    """Standardised over groups of channels."""
    place = channel_axis % data.ndim
    chosen = [axis for axis in all_axes(axes, data.ndim) if axis != place]
    grouped = data.reshape(
        *data.shape[:place], num_groups, data.shape[place] // num_groups, *data.shape[place + 1 :]
    )
    inner = (place + 1, *[axis if axis < place else axis + 1 for axis in chosen])
    made = _standardized(grouped, inner, epsilon).reshape(data.shape)
    return _affine(made, gamma, beta, [place], center, scale)


@in_float64
def instance_norm(
    data: Any, gamma: Any, beta: Any, *, channel_axis: int, axes: Any, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True,
) -> Any:  # fmt: skip
    """Standardised over axes of each channel."""
    made = _standardized(data, all_axes(axes, data.ndim), epsilon)
    return _affine(made, gamma, beta, [channel_axis % data.ndim], center, scale)


def dropout(data: Any, *, rate: float = 0.5) -> Any:
    """As inference has it: the data, and a mask that keeps everything."""
    del rate
    return data, np.ones_like(data)


@in_float64
def cross_entropy(predictions: Any, labels: Any) -> Any:
    """-sum(predictions * labels) / batch."""
    loss = -np.sum(predictions * labels)
    return loss / predictions.shape[0] if predictions.ndim > 1 else loss


@in_float64
def nll_loss(
    predictions: Any, targets: Any, weights: Any = None, *, reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:  # fmt: skip
    """The negative predictions of the targets."""
    axis = 1 if predictions.ndim > targets.ndim and targets.ndim else 0
    kept = targets != ignore_index
    place = np.expand_dims(np.where(kept, targets, 0).astype(np.int64), axis)
    chosen = np.take_along_axis(predictions, place, axis).reshape(targets.shape)
    weight = np.ones(targets.shape) if weights is None else weights[place].reshape(targets.shape)
    weight = np.where(kept, weight, 0)
    losses = np.where(kept, -chosen * weight, 0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else np.divide(losses.sum(), weight.sum())


def lrn(data: Any, size: int, axis: int, alpha: float, beta: float, bias: float) -> Any:
    """By the squares of neighbours along an axis."""
    rows = np.moveaxis(data, axis, -1)
    before = (size - 1) // 2
    squares = np.pad(rows**2, [*[(0, 0)] * (rows.ndim - 1), (before, size - 1 - before)])
    sums = sum(squares[..., start : start + rows.shape[-1]] for start in range(size))
    return np.moveaxis(rows / (bias + alpha / size * sums) ** beta, -1, axis)
