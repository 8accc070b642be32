"""Norms and losses, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.rule import all_axes, in_float64


def _mean(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    count = math.prod([x.shape[axis] for axis in axes])
    return np.asarray(np.divide(np.sum(x, axes, keepdims=True), count))


def _standardized(x: np.ndarray, axes: Sequence[int], epsilon: float) -> np.ndarray:
    distance = x - _mean(x, axes)
    return np.asarray(distance / np.sqrt(_mean(distance * distance, axes) + epsilon))


def _shaped(parameter: np.ndarray, x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """A parameter reshaped to broadcast with x: its axes, in order, become ``axes`` of x."""
    order = sorted(range(len(axes)), key=lambda place: axes[place])
    shape = [1] * x.ndim
    for axis in axes:
        shape[axis] = x.shape[axis]
    return parameter.reshape([x.shape[axis] for axis in axes]).transpose(order).reshape(shape)


def _affine(
    values: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    axes: Sequence[int],
    center: bool = True,
    scale: bool = True,
) -> np.ndarray:
    values = values * _shaped(gamma, values, axes) if scale else values
    return values + _shaped(beta, values, axes) if center else values


@in_float64
def batch_norm(
    data: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    moving_mean: np.ndarray,
    moving_var: np.ndarray,
    *,
    axis: int,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    momentum: float = 0.1,
    training: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normalise by the statistics of the batch in training, else by the moving statistics."""
    place = axis % data.ndim
    mean, spread = moving_mean, moving_var
    if training:
        axes = tuple([other for other in range(data.ndim) if other != place])
        distance = data - _mean(data, axes)
        mean, spread = _mean(data, axes).reshape(-1), _mean(distance**2, axes).reshape(-1)
        moving_mean = (1 - momentum) * moving_mean + momentum * mean
        moving_var = (1 - momentum) * moving_var + momentum * spread
    normalized = (data - _shaped(mean, data, [place])) / np.sqrt(
        _shaped(spread, data, [place]) + epsilon
    )
    return _affine(normalized, gamma, beta, [place], center, scale), moving_mean, moving_var


@in_float64
def layer_norm(
    data: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    *,
    axes: Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> np.ndarray:
    """Standardised over axes."""
    chosen = all_axes(axes, data.ndim)
    return _affine(_standardized(data, chosen, epsilon), gamma, beta, chosen, center, scale)


@in_float64
def rms_norm(
    data: np.ndarray, weight: np.ndarray, *, axes: Sequence[int], epsilon: float = 1e-5
) -> np.ndarray:
    """Divided by the root of the mean square over axes."""
    chosen = all_axes(axes, data.ndim)
    normalized = data / np.sqrt(_mean(data * data, chosen) + epsilon)
    return np.asarray(normalized * _shaped(weight, normalized, chosen))


@in_float64
def group_norm(
    data: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    *,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> np.ndarray:
    """Standardised over groups of channels."""
    place = channel_axis % data.ndim
    chosen = [axis for axis in all_axes(axes, data.ndim) if axis != place]
    grouped = data.reshape(
        *data.shape[:place], num_groups, data.shape[place] // num_groups, *data.shape[place + 1 :]
    )
    inner = (place + 1, *[axis if axis < place else axis + 1 for axis in chosen])
    normalized = _standardized(grouped, inner, epsilon).reshape(data.shape)
    return _affine(normalized, gamma, beta, [place], center, scale)


@in_float64
def instance_norm(
    data: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    *,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> np.ndarray:
    """Standardised over axes of each channel."""
    normalized = _standardized(data, all_axes(axes, data.ndim), epsilon)
    return _affine(normalized, gamma, beta, [channel_axis % data.ndim], center, scale)


def dropout(data: np.ndarray, *, rate: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """As in inference: the data, and a mask of ones."""
    del rate
    return data, np.ones_like(data)


@in_float64
def cross_entropy(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """-sum(predictions * labels) / batch."""
    loss = -np.sum(predictions * labels)
    return np.asarray(loss / predictions.shape[0] if predictions.ndim > 1 else loss)


@in_float64
def nll_loss(
    predictions: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> np.ndarray:
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
    return np.asarray(losses.sum() if reduction == "sum" else np.divide(losses.sum(), weight.sum()))


def lrn(
    data: np.ndarray, size: int, axis: int, alpha: float, beta: float, bias: float
) -> np.ndarray:
    """Local response normalisation, by the sum of squares of neighbours along an axis."""
    rows = np.moveaxis(data, axis, -1)
    before = (size - 1) // 2
    squares = np.pad(rows**2, [*[(0, 0)] * (rows.ndim - 1), (before, size - 1 - before)])
    sums = sum(squares[..., start : start + rows.shape[-1]] for start in range(size))
    return np.moveaxis(rows / (bias + alpha / size * sums) ** beta, -1, axis)
