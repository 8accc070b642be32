"""``relax.op.image``: resampling of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import topi
from weft.ir.expr import Extent, PrimExpr
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import differ
from weft.relax.op.definition import Dtype, Replacements, Shape, operator
from weft.relax.op.infer import (
    VOID,
    axis_of,
    check_float,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    int64,
    integral,
    result,
    shape_arg,
    show_dims,
    tensor,
)
from weft.relax.op.layout import parse_layout
from weft.relax.op.lowering import dims
from weft.relax.op.reference import image as reference
from weft.relax.op.reference.rule import in_float64
from weft.relax.op.requirements import Required, same_shape
from weft.relax.struct_info import TensorStructInfo
from weft.te.tensor import Tensor

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
_CHOICES = {
    "method": ("nearest_neighbor", "linear", "cubic"),
    "coordinate_transformation_mode": (
        "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
    ),
}  # fmt: skip


def _check_choice(call: Call, name: str, known: tuple[str, ...]) -> None:
    if call.attrs[name] not in known:
        fail(call, f"{name}: expected {', '.join(known)}, got {call.attrs[name]!r}")


def infer_resize(call: Call) -> TensorStructInfo:
    """The spatial extents replaced by the size."""
    rank = int(call.op.name[-2])
    order = f"NC{_SPATIAL[rank]}"
    layout = parse_layout(call.attrs["layout"], order, f"{call.op.name}: layout")
    info, size = check_rank(call, 0, layout.ndim), shape_arg(call, 1)
    for name, known in _CHOICES.items():
        _check_choice(call, name, known)
    if size.ndim not in (-1, rank):
        fail(call, f"size: expected {rank} extents, got {size.ndim}")
    given = call.attrs["out_dtype"]
    dtype = info.dtype if given == VOID else given
    dims = dims_of(info)
    if dims is None or size.values is None:
        return result(None, dtype, layout.ndim, info.vdevice)
    extents = [*layout.to_canonical(dims, order)[:2], *size.values]
    return result(layout.from_canonical(extents, order), dtype, vdevice=info.vdevice)


def _attrs(rank: int, size: Shape, roi: Any) -> Replacements:
    edges = roi if isinstance(roi, Sequence) else [0.0 if roi is None else roi] * 2 * rank
    attributes: dict[str, object] = {"roi": [float(edge) for edge in edges]}
    if isinstance(size, int | PrimExpr):
        attributes["size"] = [size] * rank
    elif isinstance(size, list | tuple) and len(size) == 1:
        attributes["size"] = list(size) * rank
    return attributes


def _resized(te: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """topi's resize, wrapped so that its parameters are in the operator's order."""

    def resized(
        data: Tensor,
        size: Sequence[Extent],
        roi: Sequence[float],
        layout: str,
        method: str,
        mode: str,
        rounding: str,
        alpha: float,
        exclude: int,
        extrapolation: float,
        out_dtype: str | None,
    ) -> Tensor:
        return te(
            data,
            roi,
            size,
            layout=layout,
            method=method,
            coordinate_transformation_mode=mode,
            rounding_method=rounding,
            bicubic_alpha=alpha,
            bicubic_exclude=exclude,
            extrapolation_value=extrapolation,
            out_dtype=out_dtype,
        )

    return resized


@operator(
    "relax.image.resize1d",
    infer_resize,
    te=_resized(topi.image.resize1d),
    kernel="resize1d",
    numpy=reference.resize,
)
def resize1d(
    data: Expr,
    size: Shape,
    roi: object = None,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: Dtype | None = None,
) -> Replacements:
    """The signal at another length: nearest_neighbor, linear or cubic."""
    return _attrs(1, size, roi)


@operator(
    "relax.image.resize2d",
    infer_resize,
    te=_resized(topi.image.resize2d),
    kernel="resize2d",
    numpy=reference.resize,
)
def resize2d(
    data: Expr,
    size: Shape,
    roi: object = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: Dtype | None = None,
) -> Replacements:
    """The image at another size: nearest_neighbor, linear or cubic."""
    return _attrs(2, size, roi)


@operator(
    "relax.image.resize3d",
    infer_resize,
    te=_resized(topi.image.resize3d),
    kernel="resize3d",
    numpy=reference.resize,
)
def resize3d(
    data: Expr,
    size: Shape,
    roi: object = None,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: Dtype | None = None,
) -> Replacements:
    """The volume at another size: nearest_neighbor, linear or cubic."""
    return _attrs(3, size, roi)


def infer_grid_sample(call: Call) -> TensorStructInfo:
    """The image's batch and channels, with the spatial extents of the grid."""
    info, grid = tensor(call, 0), tensor(call, 1)
    check_float(call, info)
    check_float(call, grid)
    rank = len(call.attrs["layout"])
    if rank not in (4, 5):
        fail(call, f"layout: expected 4 or 5 axes, got {call.attrs['layout']!r}")
    order = f"NC{_SPATIAL[rank - 2]}"
    layout = parse_layout(call.attrs["layout"], order, f"{call.op.name}: layout")
    check_rank(call, 0, rank)
    check_rank(call, 1, rank)
    _check_choice(call, "method", ("nearest", "bilinear", "bicubic")[: 3 if rank == 4 else 2])
    _check_choice(call, "padding_mode", ("zeros", "border", "reflection"))
    dims, its = dims_of(info), dims_of(grid)
    if its is not None and differ(its[1], int64(rank - 2)):
        fail(call, f"grid: expected {rank - 2} coordinates along axis 1, got {show_dims(its)}")
    if dims is None or its is None:
        return result(None, info.dtype, rank, info.vdevice)
    canonical = layout.to_canonical(dims, order)
    if differ(canonical[0], its[0]):
        fail(call, f"the batches of data and grid must be equal, got {canonical[0]} and {its[0]}")
    extents = [*canonical[:2], *its[2:]]
    return result(layout.from_canonical(extents, order), info.dtype, vdevice=info.vdevice)


def _one_grid_an_image(call: Call) -> Required:
    """A grid for each image."""
    return {1: [dims(call.args[0])[0], *dims(call.args[1])[1:]]}


@operator(
    "relax.image.grid_sample",
    infer_grid_sample,
    te=topi.image.grid_sample,
    requires=_one_grid_an_image,
    numpy=reference.grid_sample,
)
def grid_sample(
    data: Expr,
    grid: Expr,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> None:
    """The image at the points of a grid (batch, 2, height, width), coordinates from -1 to 1."""


def infer_affine_grid(call: Call) -> TensorStructInfo:
    """(batch, 2, height, width), or (batch, 3, depth, height, width)."""
    info, size = check_rank(call, 0, 3), shape_arg(call, 1)
    check_float(call, info)
    if size.ndim not in (-1, 2, 3):
        fail(call, f"size: expected 2 or 3 extents, got {size.ndim}")
    dims = dims_of(info)
    if dims is not None and size.ndim != -1:
        for axis, extent in ((1, size.ndim), (2, size.ndim + 1)):
            if differ(dims[axis], int64(extent)):
                fail(
                    call,
                    f"data: expected (batch, {size.ndim}, {size.ndim + 1}) for "
                    f"{size.ndim} extents, got {show_dims(dims)}",
                )
    if dims is None or size.values is None:
        rank = -1 if size.ndim == -1 else size.ndim + 2
        return result(None, info.dtype, rank, info.vdevice)
    extents = [dims[0], int64(size.ndim), *size.values]
    return result(extents, info.dtype, vdevice=info.vdevice)


@operator(
    "relax.image.affine_grid",
    infer_affine_grid,
    te=topi.image.affine_grid,
    numpy=reference.affine_grid,
)
def affine_grid(data: Expr, size: Shape, align_corners: bool = True) -> Replacements:
    """The sampling grid of an affine map (batch, 2, 3) for images of the given size."""
    return {"size": [size, size]} if isinstance(size, int | PrimExpr) else {}


def infer_weighted_taps(call: Call) -> TensorStructInfo:
    """The data's shape; the axis has one output for each row of the tables."""
    info, indices, weights = tensor(call, 0), integral(call, 1), tensor(call, 2)
    dtype = common_dtype(call, [info, weights])
    for index in (1, 2):
        check_rank(call, index, 2)
    if info.ndim == 0:
        fail(call, "data: expected at least 1 dimension, got 0")
    axis = axis_of(call, call.attrs["axis"], info.ndim)
    rows, table, other = dims_of(info), dims_of(indices), dims_of(weights)
    if table is not None and other is not None and any(map(differ, table, other)):
        fail(call, f"weights: expected the shape {show_dims(table)}, got {show_dims(other)}")
    if rows is None or table is None:
        return result(None, dtype, info.ndim, info.vdevice)
    return result([*rows[:axis], table[0], *rows[axis + 1 :]], dtype, vdevice=info.vdevice)


@operator(
    "relax.image.weighted_taps",
    infer_weighted_taps,
    te=topi.image.weighted_taps,
    numpy=in_float64(reference.weighted_taps),
    requires=same_shape(1, 2),
)
def weighted_taps(
    data: Expr, indices: Expr, weights: Expr, axis: int = -1, skip_zeros: bool = False
) -> None:
    """An axis resampled by tables: output i is the sum of ``data[indices[i, k]] * weights[i, k]``.

    ``skip_zeros``: an element with weight 0 does not count, even if it is infinite or NaN.
    """
