"""The positions of the largest elements of windows: flat int64 indices into each channel.

``gather_elements`` with these indices gives the elements. Of equal elements the first one is taken,
and NaN counts as the largest. TVM has no such operators.
"""

from __future__ import annotations

from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Ints, Replacements, Shape, as_ints, operator
from weft.relax.op.infer import check_rank, dims_of, fail, result, shape_arg, tensor
from weft.relax.op.nn.windows import geometry, window_counts, windows_fit
from weft.relax.op.reference.nn import pool_indices as reference
from weft.relax.struct_info import TensorStructInfo
from weft.topi.nn import pooling_indices


def infer_max_pool_indices(call: Call) -> TensorStructInfo:
    """(batch, channels, windows ...) of int64."""
    kernel = call.attrs["pool_size"]
    info = check_rank(call, 0, 2 + len(kernel))
    extents = dims_of(info)
    if extents is None:
        return result(None, "int64", info.ndim, info.vdevice)
    counts = window_counts(call, list(extents[2:]), kernel)
    return result([*extents[:2], *counts], "int64", vdevice=info.vdevice)


@operator(
    "relax.nn.max_pool_indices",
    infer_max_pool_indices,
    te=pooling_indices.max_pool_indices,
    numpy=reference.max_pool_indices,
    requires=windows_fit("pool_size"),
)
def max_pool_indices(
    data: Expr, pool_size: Ints, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1
) -> Replacements:
    """The index of the largest element of each window of (batch, channels, ...).

    Padding never counts; a window that holds only padding gives the largest int64.
    """
    kernel = as_ints(pool_size)
    return {"pool_size": kernel, **geometry(len(kernel), strides, padding, dilation)}


def infer_adaptive(call: Call) -> TensorStructInfo:
    """(batch, channels, size ...) of int64."""
    info, size = tensor(call, 0), shape_arg(call, 1)
    if -1 not in (info.ndim, size.ndim) and info.ndim != size.ndim + 2:
        fail(call, f"output_size: expected {info.ndim - 2} extents, got {size.ndim}")
    extents = dims_of(info)
    if extents is None or size.values is None:
        return result(None, "int64", info.ndim, info.vdevice)
    return result([*extents[:2], *size.values], "int64", vdevice=info.vdevice)


@operator(
    "relax.nn.adaptive_max_pool_indices",
    infer_adaptive,
    te=pooling_indices.adaptive_max_pool_indices,
    numpy=reference.adaptive_max_pool_indices,
)
def adaptive_max_pool_indices(data: Expr, output_size: Shape) -> None:
    """As ``max_pool_indices``, for a given number of windows along each axis.

    Of n windows over e elements, window i is from floor(i * e / n) to ceil((i + 1) * e / n).
    """
