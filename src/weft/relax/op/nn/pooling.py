"""Pooling over one to three spatial axes, and adaptive pooling."""

from __future__ import annotations

from typing import Any

from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import simplified
from weft.relax.op.definition import Ints, operator
from weft.relax.op.infer import check_rank, dims_of, fail, int64, result
from weft.relax.op.layout import parse_layout
from weft.relax.op.nn.padding import both_sides, check_window, each
from weft.relax.struct_info import TensorStructInfo
from weft.tir.op import ceildiv, floordiv

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _layouts(call: Call) -> tuple[Any, Any, str, int]:
    rank = int(call.op.name.split("pool")[1][0])
    order = f"NC{_SPATIAL[rank]}"
    name = call.op.name
    layout = parse_layout(call.attrs["layout"], order, f"{name}: layout")
    out = parse_layout(call.attrs["out_layout"], order, f"{name}: out_layout")
    return layout, out, order, rank


def infer_pool(call: Call) -> TensorStructInfo:
    """(size + padding - dilation * (window - 1) - 1) / stride + 1, rounded by ceil_mode.

    A last window that lies in the padding alone counts, as in TVM (PyTorch drops it).
    """
    layout, out, order, rank = _layouts(call)
    info = check_rank(call, 0, layout.ndim)
    dims = dims_of(info)
    if dims is None:
        return result(None, info.dtype, out.ndim, info.vdevice)
    x, attrs = layout.to_canonical(dims, order), call.attrs
    made = x[:2]
    for index in range(rank):
        padded = x[2 + index] + attrs["padding"][index] + attrs["padding"][rank + index]
        reach = attrs["dilation"][index] * (attrs["pool_size"][index] - 1) + 1
        divide = ceildiv if attrs["ceil_mode"] else floordiv
        steps = simplified(divide(padded - reach, attrs["strides"][index]) + 1)
        check_window(call, f"axis {index}: the window", (padded, reach, steps))
        made.append(steps)
    return result(out.from_canonical(made, order), info.dtype, vdevice=info.vdevice)


def infer_adaptive_pool(call: Call) -> TensorStructInfo:
    """The output size in the place of the spatial extents."""
    layout, out, order, rank = _layouts(call)
    info = check_rank(call, 0, layout.ndim)
    dims, size = dims_of(info), call.attrs["output_size"]
    if size is None and layout == out and info.ndim != -1:
        return info
    if dims is None:
        return result(None, info.dtype, out.ndim, info.vdevice)
    x = layout.to_canonical(dims, order)
    made = x if size is None else [*x[:2], *[int64(item) for item in size]]
    if size is not None and len(size) != rank:
        fail(call, f"output_size: expected {rank} numbers, got {len(size)}")
    return result(out.from_canonical(made, order), info.dtype, vdevice=info.vdevice)


def _attrs(rank: int, pool_size: Any, strides: Any, padding: Any, dilation: Any) -> Any:
    return {
        "pool_size": each(pool_size, rank, "pool_size"),
        "strides": each(strides, rank, "strides"),
        "padding": both_sides(padding, rank),
        "dilation": each(dilation, rank, "dilation"),
    }


def _out(made: Any, layout: str, out_layout: Any) -> Any:
    made["out_layout"] = layout if out_layout is None else out_layout
    return made


@operator("relax.nn.max_pool1d", infer_pool)
def max_pool1d(
    data: Expr, pool_size: Ints = 1, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The largest value of each window."""
    return _out(_attrs(1, pool_size, strides, padding, dilation), layout, out_layout)


@operator("relax.nn.max_pool2d", infer_pool)
def max_pool2d(
    data: Expr, pool_size: Ints = 1, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The largest value of each window."""
    return _out(_attrs(2, pool_size, strides, padding, dilation), layout, out_layout)


@operator("relax.nn.max_pool3d", infer_pool)
def max_pool3d(
    data: Expr, pool_size: Ints = 1, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCDHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The largest value of each window."""
    return _out(_attrs(3, pool_size, strides, padding, dilation), layout, out_layout)


@operator("relax.nn.avg_pool1d", infer_pool)
def avg_pool1d(
    data: Expr, pool_size: Ints = 1, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The mean of each window."""
    return _out(_attrs(1, pool_size, strides, padding, dilation), layout, out_layout)


@operator("relax.nn.avg_pool2d", infer_pool)
def avg_pool2d(
    data: Expr, pool_size: Ints = 1, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The mean of each window."""
    return _out(_attrs(2, pool_size, strides, padding, dilation), layout, out_layout)


@operator("relax.nn.avg_pool3d", infer_pool)
def avg_pool3d(
    data: Expr, pool_size: Ints = 1, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCDHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The mean of each window."""
    return _out(_attrs(3, pool_size, strides, padding, dilation), layout, out_layout)


def _adaptive(rank: int, output_size: Any, layout: str, out_layout: Any) -> Any:
    made: dict[str, Any] = {}
    if output_size is not None:
        made["output_size"] = each(output_size, rank, "output_size")
    return _out(made, layout, out_layout)


@operator("relax.nn.adaptive_avg_pool1d", infer_adaptive_pool)
def adaptive_avg_pool1d(
    data: Expr, output_size: Ints | None = None, layout: str = "NCW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """Means of windows chosen so that the output has a given size (the input's if None)."""
    return _adaptive(1, output_size, layout, out_layout)


@operator("relax.nn.adaptive_avg_pool2d", infer_adaptive_pool)
def adaptive_avg_pool2d(
    data: Expr, output_size: Ints | None = None, layout: str = "NCHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """Means of windows chosen so that the output has a given size (the input's if None)."""
    return _adaptive(2, output_size, layout, out_layout)


@operator("relax.nn.adaptive_avg_pool3d", infer_adaptive_pool)
def adaptive_avg_pool3d(
    data: Expr, output_size: Ints | None = None, layout: str = "NCDHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """Means of windows chosen so that the output has a given size (the input's if None)."""
    return _adaptive(3, output_size, layout, out_layout)


@operator("relax.nn.adaptive_max_pool1d", infer_adaptive_pool)
def adaptive_max_pool1d(
    data: Expr, output_size: Ints | None = None, layout: str = "NCW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The largest values of windows chosen to give the output a size (the input's if None)."""
    return _adaptive(1, output_size, layout, out_layout)


@operator("relax.nn.adaptive_max_pool2d", infer_adaptive_pool)
def adaptive_max_pool2d(
    data: Expr, output_size: Ints | None = None, layout: str = "NCHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The largest values of windows chosen to give the output a size (the input's if None)."""
    return _adaptive(2, output_size, layout, out_layout)


@operator("relax.nn.adaptive_max_pool3d", infer_adaptive_pool)
def adaptive_max_pool3d(
    data: Expr, output_size: Ints | None = None, layout: str = "NCDHW",
    out_layout: str | None = None,
) -> Any:  # fmt: skip
    """The largest values of windows chosen to give the output a size (the input's if None)."""
    return _adaptive(3, output_size, layout, out_layout)
