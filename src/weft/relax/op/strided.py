"""Windows and diagonals: strided views of other frameworks, here as new tensors.

PyTorch has these operators, TVM does not. ``nn.im2col`` and ``nn.col2im`` are in
weft.relax.op.nn.windows.
"""

from __future__ import annotations

import numpy as np

from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.definition import Prim, Shape, operator
from weft.relax.op.infer import (
    Dims,
    axis_of,
    common_dtype,
    dims_of,
    fail,
    prim_arg,
    result,
    shape_arg,
    shaped,
    tensor,
)
from weft.relax.op.lowering import dims
from weft.relax.op.reference import strided as reference
from weft.relax.op.requirements import Required
from weft.relax.op.scatter import check_same_dims
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRTypeError
from weft.tir.op import max as tir_max
from weft.topi import strided


def infer_unfold(call: Call) -> TensorStructInfo:
    """The number of windows replaces the axis; the window's size is a new last axis."""
    info = tensor(call, 0)
    size, step = call.attrs["size"], call.attrs["step"]
    if size < 0 or step < 1:
        fail(call, f"expected a size of 0 or more and a step of 1 or more, got {size} and {step}")
    if info.ndim == 0:
        fail(call, "x: expected at least 1 dimension, got 0")
    axis, extents = axis_of(call, call.attrs["axis"], info.ndim), dims_of(info)
    if extents is None:
        return result(None, info.dtype, -1 if info.ndim == -1 else info.ndim + 1, info.vdevice)
    extent = constant_value(extents[axis])
    if extent is not None and extent < size:
        fail(call, f"a window of {size} elements does not fit into the {extent} of axis {axis}")
    count = simplified(strided.window_count(extents[axis], size, step))
    return result(
        [*extents[:axis], count, *extents[axis + 1 :], size], info.dtype, vdevice=info.vdevice
    )


def _window_fits(call: Call) -> Required:
    shape, axis = dims(call.args[0]), call.attrs["axis"]
    shape[axis] = simplified(tir_max(shape[axis], call.attrs["size"]))
    return {0: shape}


@operator(
    "relax.unfold",
    infer_unfold,
    te=strided.unfold,
    numpy=reference.unfold,
    requires=_window_fits,
    traits=Trait.MOVES,
)
def unfold(x: Expr, axis: int, size: int, step: int) -> None:
    """Windows of ``size`` elements, one every ``step`` elements, along ``axis``.

    The elements of a window are along a new last axis.
    """


def _diagonal_dims(call: Call) -> Dims:
    """The shape of the diagonal of the first argument, or None."""
    info = tensor(call, 0)
    if info.ndim in (0, 1):
        fail(call, f"expected at least 2 dimensions, got {info.ndim}")
    first, second = (
        axis_of(call, call.attrs[name], info.ndim, name) for name in ("axis1", "axis2")
    )
    if first == second:
        fail(call, f"axis1 and axis2: expected two axes, got {first} twice")
    extents = dims_of(info)
    if extents is None:
        return None
    length = strided.diagonal_length(extents[first], extents[second], call.attrs["offset"])
    rest = [extent for axis, extent in enumerate(extents) if axis not in (first, second)]
    return [*rest, simplified(length)]


def infer_diagonal(call: Call) -> TensorStructInfo:
    """The other axes, then the length of the diagonal."""
    shape, info = _diagonal_dims(call), tensor(call, 0)
    ndim = -1 if info.ndim == -1 else info.ndim - 1
    return result(shape, info.dtype, ndim, info.vdevice)


@operator(
    "relax.diagonal", infer_diagonal, te=strided.diagonal, numpy=np.diagonal, traits=Trait.MOVES
)
def diagonal(x: Expr, offset: int = 0, axis1: int = 0, axis2: int = 1) -> None:
    """The diagonal of two axes, as the last axis; above the main diagonal if ``offset`` > 0."""


def infer_diagonal_scatter(call: Call) -> TensorStructInfo:
    """As the input; the source has the shape of the diagonal."""
    info, source = tensor(call, 0), tensor(call, 1)
    common_dtype(call, [info, source])
    check_same_dims(call, _diagonal_dims(call), dims_of(source), "src")
    return info


def _as_diagonal(call: Call) -> Required:
    shape = _diagonal_dims(call)
    return {} if shape is None else {1: shape}


@operator(
    "relax.diagonal_scatter",
    infer_diagonal_scatter,
    te=strided.diagonal_scatter,
    numpy=reference.diagonal_scatter,
    requires=_as_diagonal,
    traits=Trait.MOVES,
)
def diagonal_scatter(x: Expr, src: Expr, offset: int = 0, axis1: int = 0, axis2: int = 1) -> None:
    """The input with its ``diagonal`` replaced by ``src``."""


def infer_as_strided(call: Call) -> TensorStructInfo:
    """The given shape; there must be a stride for each axis."""
    info, shape, strides = tensor(call, 0), shape_arg(call, 1), shape_arg(call, 2)
    if -1 not in (shape.ndim, strides.ndim) and shape.ndim != strides.ndim:
        fail(call, f"strides: expected {shape.ndim} of them, got {strides.ndim}")
    if not prim_arg(call, 3).dtype.is_integral:
        raise IRTypeError(f"{call.op.name}: offset: expected an integer, got {call.args[3]}")
    return shaped(call, 1, info.dtype, info.vdevice)


@operator(
    "relax.as_strided",
    infer_as_strided,
    te=strided.as_strided,
    numpy=reference.as_strided,
    traits=Trait.MOVES,
)
def as_strided(x: Expr, shape: Shape, strides: Shape, offset: Prim = 0) -> None:
    """The element at index i is element ``offset + sum(i * strides)`` of the flat input.

    An index outside of the input is an error when the program runs.
    """
