"""Normalisations, dropout, losses."""

from __future__ import annotations

from typing import Any

from weft import topi
from weft.ir.expr import RelaxExpr
from weft.relax.expr import Call, Expr, Tuple
from weft.relax.ir.shape_arith import constant_value, differ
from weft.relax.op.create import ones_like
from weft.relax.op.definition import Ints, operator
from weft.relax.op.infer import (
    axes_of,
    axis_of,
    check_float,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    result,
    same_as_input,
    show_dims,
    tensor,
)
from weft.relax.op.lowering import Builder, Rule, TensorExpression, dims, plain
from weft.relax.op.reference.nn import normalization as reference
from weft.relax.op.reference.rule import in_float64
from weft.relax.op.requirements import Required, per_channel, same_shape
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.te.tensor import Tensor
from weft.topi.nn import loss


def infer_batch_norm(call: Call) -> StructInfo:
    """The data, and both moving statistics."""
    info = tensor(call, 0)
    check_float(call, info)
    axis = axis_of(call, call.attrs["axis"], info.ndim)
    dims = dims_of(info)
    infos = [check_rank(call, index, 1) for index in range(1, 5)]
    for index, stat in enumerate(infos, 1):
        its = dims_of(stat)
        if dims is not None and its is not None and differ(dims[axis], its[0]):
            name = call.op.attributes["params"][index]
            fail(call, f"{name}: expected {dims[axis]} elements (axis {axis}), got {its[0]}")
    return TupleStructInfo([info, infos[2], infos[3]])


def _batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    var: Tensor,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
    training: bool,
) -> Any:
    statistics = (mean, var, axis, epsilon, center, scale, training, momentum)
    return topi.nn.batch_norm(data, gamma, beta, *statistics)


@operator(
    "relax.nn.batch_norm",
    infer_batch_norm,
    te=_batch_norm,
    kernel="batch_norm",
    requires=per_channel("axis"),
    numpy=reference.batch_norm,
)
def batch_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    moving_mean: Expr,
    moving_var: Expr,
    axis: int,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    momentum: float = 0.1,
    training: bool = True,
) -> None:
    """Batch normalisation: (output, new moving mean, new moving variance)."""


def infer_layer_norm(call: Call) -> TensorStructInfo:
    """As the data; gamma and beta have the extents of the normalised axes."""
    info = tensor(call, 0)
    check_float(call, info)
    axes = axes_of(call, call.attrs["axes"], info.ndim, "axes")
    dims = dims_of(info)
    for index in range(1, len(call.args)):
        part = check_rank(call, index, len(axes))
        its = dims_of(part)
        if dims is None or its is None:
            continue
        for axis, extent in zip(axes, its, strict=True):
            if differ(dims[axis], extent):
                name = call.op.attributes["params"][index]
                fail(
                    call,
                    f"{name}: expected {show_dims([dims[a] for a in axes])}, got {show_dims(its)}",
                )
    return info


def _affine_norm(te: TensorExpression, *names: str) -> Rule:
    """The rule of a norm; gamma is passed only if ``scale``, beta only if ``center``."""

    def rule(bb: Builder, call: Call) -> RelaxExpr:
        attrs = call.attrs
        gamma = call.args[1] if attrs["scale"] else None
        beta = call.args[2] if attrs["center"] else None
        values = [plain(attrs[name]) for name in names]
        return bb.call_te(te, call.args[0], gamma, beta, *values)

    return rule


def _along_axes(call: Call) -> Required:
    """The weights of a norm must have the extents of the data along the normalised axes."""
    extents = dims(call.args[0])
    shape = [extents[int(axis)] for axis in call.attrs["axes"]]
    return dict.fromkeys(range(1, len(call.args)), shape)


@operator(
    "relax.nn.layer_norm",
    infer_layer_norm,
    legalize=_affine_norm(topi.nn.layer_norm, "axes", "epsilon"),
    requires=_along_axes,
    numpy=reference.layer_norm,
)
def layer_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axes: Ints,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> None:
    """Normalisation over axes of each sample."""


@operator(
    "relax.nn.rms_norm",
    infer_layer_norm,
    te=topi.nn.rms_norm,
    requires=_along_axes,
    numpy=reference.rms_norm,
)
def rms_norm(data: Expr, weight: Expr, axes: Ints = -1, epsilon: float = 1e-5) -> None:
    """Division by the root of the mean square over axes."""


def infer_group_norm(call: Call) -> TensorStructInfo:
    """As the data; the channels are a multiple of the groups."""
    info = tensor(call, 0)
    check_float(call, info)
    axis = axis_of(call, call.attrs["channel_axis"], info.ndim, "channel_axis")
    axes_of(call, call.attrs["axes"], info.ndim, "axes")
    dims = dims_of(info)
    if dims is not None:
        channels, groups = constant_value(dims[axis]), call.attrs["num_groups"]
        if channels is not None and channels % groups:
            fail(call, f"{channels} channels are not a multiple of num_groups={groups}")
        for index in (1, 2):
            its = dims_of(check_rank(call, index, 1))
            if its is not None and differ(its[0], dims[axis]):
                name = call.op.attributes["params"][index]
                fail(call, f"{name}: expected {dims[axis]} elements, got {its[0]}")
    return info


@operator(
    "relax.nn.group_norm",
    infer_group_norm,
    legalize=_affine_norm(topi.nn.group_norm, "num_groups", "channel_axis", "axes", "epsilon"),
    requires=per_channel("channel_axis"),
    numpy=reference.group_norm,
)
def group_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    num_groups: int,
    channel_axis: int,
    axes: Ints,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> None:
    """Normalisation over groups of channels of each sample."""


def infer_instance_norm(call: Call) -> TensorStructInfo:
    """As the data; gamma and beta have one element for each channel."""
    info = tensor(call, 0)
    check_float(call, info)
    axis = axis_of(call, call.attrs["channel_axis"], info.ndim, "channel_axis")
    axes = axes_of(call, call.attrs["axes"], info.ndim, "axes")
    if info.ndim != -1 and axis in axes:
        fail(call, f"axes {axes} hold the channel axis {axis}")
    dims = dims_of(info)
    for index in (1, 2):
        its = dims_of(check_rank(call, index, 1))
        if dims is not None and its is not None and differ(its[0], dims[axis]):
            name = call.op.attributes["params"][index]
            fail(call, f"{name}: expected {dims[axis]} elements, got {its[0]}")
    return info


@operator(
    "relax.nn.instance_norm",
    infer_instance_norm,
    legalize=_affine_norm(topi.nn.instance_norm, "channel_axis", "axes", "epsilon"),
    requires=per_channel("channel_axis"),
    numpy=reference.instance_norm,
)
def instance_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    channel_axis: int,
    axes: Ints,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> None:
    """Normalisation over axes of each sample and channel."""


def infer_dropout(call: Call) -> StructInfo:
    """The data and the mask."""
    info = same_as_input(call)
    return TupleStructInfo([info, info])


def _no_dropout(bb: Builder, call: Call) -> RelaxExpr:
    """Inference drops nothing: the result is the data and a mask of ones."""
    data = call.args[0]
    return Tuple([data, bb.emit(ones_like(data))])


@operator("relax.nn.dropout", infer_dropout, legalize=_no_dropout, numpy=reference.dropout)
def dropout(data: Expr, rate: float = 0.5) -> None:
    """(output, mask): elements set to 0 with probability ``rate`` while training.

    Compiled programs are for inference: they return the data and a mask of ones.
    """


def infer_cross_entropy(call: Call) -> TensorStructInfo:
    """A scalar."""
    predictions, labels = tensor(call, 0), tensor(call, 1)
    dtype = common_dtype(call, [predictions, labels])
    mine, its = dims_of(predictions), dims_of(labels)
    if mine is not None and its is not None:
        if len(mine) != len(its) or any(differ(a, b) for a, b in zip(mine, its, strict=True)):
            fail(call, f"the shapes must be equal, got {show_dims(mine)} and {show_dims(its)}")
    return result([], dtype)


@operator(
    "relax.nn.cross_entropy_with_logits",
    infer_cross_entropy,
    te=loss.cross_entropy_with_logits,
    requires=same_shape(0, 1),
    numpy=reference.cross_entropy,
)
def cross_entropy_with_logits(predictions: Expr, labels: Expr) -> None:
    """-sum(predictions * labels) over the batch, divided by the batch."""


def infer_nll_loss(call: Call) -> TensorStructInfo:
    """A scalar, or one loss for each target without a reduction."""
    predictions, targets = tensor(call, 0), tensor(call, 1)
    reduction = call.attrs["reduction"]
    if reduction not in ("none", "sum", "mean"):
        fail(call, f"reduction: expected none, sum or mean, got {reduction!r}")
    if reduction != "none":
        return result([], predictions.dtype)
    return result(dims_of(targets), predictions.dtype, targets.ndim)


def _nll_loss(call: Call) -> Required:
    """Targets have the predictions' shape without the classes; weights have one for each class."""
    shape = dims(call.args[0])
    classes, places = (shape[0], []) if len(shape) == 1 else (shape[1], [shape[0], *shape[2:]])
    return {1: places, 2: [classes]} if len(call.args) > 2 else {1: places}


@operator(
    "relax.nn.nll_loss",
    infer_nll_loss,
    te=topi.nn.nll_loss,
    requires=_nll_loss,
    numpy=reference.nll_loss,
)
def nll_loss(
    predictions: Expr,
    targets: Expr,
    weights: Expr | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> None:
    """The negative log likelihood of targets, given log probabilities (N, C, ...)."""


def infer_lrn(call: Call) -> TensorStructInfo:
    """As the data, which has the axis."""
    info = tensor(call, 0)
    check_float(call, info)
    axis_of(call, call.attrs["axis"], info.ndim)
    if call.attrs["size"] < 1:
        fail(call, f"size: expected 1 or more, got {call.attrs['size']}")
    return info


@operator("relax.nn.lrn", infer_lrn, te=topi.nn.lrn, numpy=in_float64(reference.lrn))
def lrn(
    data: Expr,
    size: int,
    axis: int = 1,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 2.0,
) -> None:
    """data / (bias + alpha / size * the sum of squares of ``size`` neighbours along axis) ** beta.

    The neighbours are centred on the element; if ``size`` is even, one more is after it.
    """
