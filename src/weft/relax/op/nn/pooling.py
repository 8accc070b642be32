"""Pooling over one to three spatial axes, and adaptive pooling."""

from __future__ import annotations

import functools
from collections.abc import Callable

from weft import topi
from weft.ir.attrs import Attrs
from weft.ir.expr import Extent, RelaxExpr
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Ints, Replacements, operator
from weft.relax.op.infer import check_rank, dims_of, fail, int64, result
from weft.relax.op.layout import Layout, parse_layout
from weft.relax.op.lowering import Builder, Rule, dims, plain
from weft.relax.op.nn.geometry import SPATIAL, windows_of
from weft.relax.op.nn.layouts import in_layout, is_blocked, splits_space
from weft.relax.op.nn.padding import both_sides, check_window, each
from weft.relax.op.reference.nn import pooling as reference
from weft.relax.struct_info import TensorStructInfo


def _layouts(call: Call, rank: int) -> tuple[Layout, Layout, str]:
    order = f"NC{SPATIAL[rank]}"
    name = call.op.name
    layout = parse_layout(call.attrs["layout"], order, f"{name}: layout")
    out = parse_layout(call.attrs["out_layout"], order, f"{name}: out_layout")
    return layout, out, order


def infer_pool(call: Call) -> TensorStructInfo:
    """(size + padding - dilation * (window - 1) - 1) / stride + 1, rounded up if ceil_mode.

    A last window that lies entirely in the padding counts, as in TVM (PyTorch drops it).
    """
    rank = len(call.attrs["strides"])
    layout, out, order = _layouts(call, rank)
    info = check_rank(call, 0, layout.ndim)
    dims = dims_of(info)
    if dims is None:
        return result(None, info.dtype, out.ndim, info.vdevice)
    x = layout.to_canonical(dims, order)
    pooled, is_up = x[:2], bool(call.attrs["ceil_mode"])
    for index, window in enumerate(windows_of(call, x[2:], call.attrs["pool_size"])):
        count = window.count_up if is_up else window.count
        sizes = (window.padded, window.reach, count)
        check_window(call, f"axis {index}: the window", sizes, window.stride - 1 if is_up else 0)
        pooled.append(count)
    return result(out.from_canonical(pooled, order), info.dtype, vdevice=info.vdevice)


def _reach(call: Call, rank: int) -> list[Extent]:
    """The span of a window along each axis: (size - 1) * dilation + 1."""
    return [window.reach for window in windows_of(call, [0] * rank, call.attrs["pool_size"])]


def _infer_adaptive(rank: int, call: Call) -> TensorStructInfo:
    """The input's shape with the spatial extents replaced by ``output_size``."""
    layout, out, order = _layouts(call, rank)
    info = check_rank(call, 0, layout.ndim)
    dims, size = dims_of(info), call.attrs["output_size"]
    if size is None and layout == out and info.ndim != -1:
        return info
    if dims is None:
        return result(None, info.dtype, out.ndim, info.vdevice)
    x = layout.to_canonical(dims, order)
    pooled = x if size is None else [*x[:2], *[int64(item) for item in size]]
    if size is not None and len(size) != rank:
        fail(call, f"output_size: expected {rank} numbers, got {len(size)}")
    return result(out.from_canonical(pooled, order), info.dtype, vdevice=info.vdevice)


def _pooled_layout(attrs: Attrs) -> str | None:
    """The layout as topi names it (NCHWc for NCHW16c); None if topi does not support it.

    Pooling can keep split channels, but it cannot convert between two blocked layouts.
    """
    layout: str = attrs["layout"]
    if not is_blocked(layout, attrs["out_layout"]):
        return layout
    letters = "".join(letter for letter in layout if not letter.isdigit())
    return letters if layout == attrs["out_layout"] and not splits_space(layout) else None


def _pooled(kind: str, rank: int) -> Rule:
    te = {1: topi.nn.pool1d, 2: topi.nn.pool2d, 3: topi.nn.pool3d}[rank]

    def rule(bb: Builder, call: Call) -> RelaxExpr:
        attrs = call.attrs
        layout = _pooled_layout(attrs)
        if layout is None:
            return call
        pooled = bb.call_te(
            te,
            call.args[0],
            plain(attrs["pool_size"]),
            plain(attrs["strides"]),
            plain(attrs["dilation"]),
            plain(attrs["padding"]),
            kind,
            attrs["ceil_mode"],
            layout,
            attrs["count_include_pad"],
            primfunc_name_hint=f"{kind}_pool{rank}d",
        )
        return in_layout(bb, pooled, attrs["layout"], attrs["out_layout"])

    return rule


def _covering(kind: str, rank: int) -> Rule:
    te = {1: topi.nn.adaptive_pool1d, 2: topi.nn.adaptive_pool, 3: topi.nn.adaptive_pool3d}[rank]

    def rule(bb: Builder, call: Call) -> RelaxExpr:
        attrs = call.attrs
        layout = _pooled_layout(attrs)
        if layout is None:
            return call
        size = plain(attrs["output_size"])
        if size is None:
            shape = dims(call.args[0])
            size = [shape[layout.index(letter)] for letter in layout if letter in "DHW"]
        hint = f"adaptive_{kind}_pool{rank}d"
        pooled = bb.call_te(te, call.args[0], size, kind, layout, primfunc_name_hint=hint)
        return in_layout(bb, pooled, attrs["layout"], attrs["out_layout"])

    return rule


def _attrs(
    rank: int, pool_size: Ints, strides: Ints, padding: Ints, dilation: Ints
) -> dict[str, object]:
    return {
        "pool_size": each(pool_size, rank, "pool_size"),
        "strides": each(strides, rank, "strides"),
        "padding": both_sides(padding, rank),
        "dilation": each(dilation, rank, "dilation"),
    }


def _out(attributes: Replacements, layout: str, out_layout: str | None) -> Replacements:
    return {**attributes, "out_layout": layout if out_layout is None else out_layout}


def _pool_row(kind: str, rank: int, text: str) -> Callable[..., Call]:
    """The row of ``max_pool2d`` and the like."""

    def body(
        data: Expr,
        pool_size: Ints = 1,
        strides: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = f"NC{SPATIAL[rank]}",
        out_layout: str | None = None,
    ) -> Replacements:
        return _out(_attrs(rank, pool_size, strides, padding, dilation), layout, out_layout)

    body.__name__, body.__doc__ = f"{kind}_pool{rank}d", text
    row = operator(
        f"relax.nn.{kind}_pool{rank}d",
        infer_pool,
        legalize=_pooled(kind, rank),
        window=_reach,
        numpy=reference.pool(rank, is_max=kind == "max"),
        traits=Trait.FOLLOWS,
    )
    return row(body)


max_pool1d, max_pool2d, max_pool3d = [
    _pool_row("max", rank, "The largest value of each window.") for rank in (1, 2, 3)
]
avg_pool1d, avg_pool2d, avg_pool3d = [
    _pool_row("avg", rank, "The mean of each window.") for rank in (1, 2, 3)
]


def _adaptive_row(kind: str, rank: int, text: str) -> Callable[..., Call]:
    """The row of ``adaptive_max_pool2d`` and the like."""

    def body(
        data: Expr,
        output_size: Ints | None = None,
        layout: str = f"NC{SPATIAL[rank]}",
        out_layout: str | None = None,
    ) -> Replacements:
        size = None if output_size is None else each(output_size, rank, "output_size")
        return _out({} if size is None else {"output_size": size}, layout, out_layout)

    name = body.__name__ = f"adaptive_{kind}_pool{rank}d"
    body.__doc__ = text
    row = operator(
        f"relax.nn.{name}",
        functools.partial(_infer_adaptive, rank),
        legalize=_covering(kind, rank),
        numpy=reference.adaptive(rank, is_max=kind == "max"),
        traits=Trait.FOLLOWS,
    )
    return row(body)


_CHOSEN = "of windows chosen to give the output a size (the input's if None)."
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = [
    _adaptive_row("avg", rank, f"The means {_CHOSEN}") for rank in (1, 2, 3)
]
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = [
    _adaptive_row("max", rank, f"The largest values {_CHOSEN}") for rank in (1, 2, 3)
]
