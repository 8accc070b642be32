"""RoIAlign (He et al., 2017): pools regions of interest to a fixed size, without rounding."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Var
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import Stmt
from weft.topi.extents import Extents, Point, Shape, may_be_equal, placed, shape_text
from weft.topi.moments import wide
from weft.topi.nn.convolution import per_axis, positions

Grid = tuple[list[Var], list[Var], list[Var]]
"""The starts of a region's bins, their sizes and numbers of samples, for rows and columns."""


@dataclass(frozen=True)
class _Image:
    """The data as a function of (batch, channel, row, column), its extents and working type."""

    at: Callable[..., PrimExpr]
    height: PrimExpr
    width: PrimExpr
    kind: DataType

    def bilinear(
        self, batch: PrimExpr, channel: PrimExpr, row: PrimExpr, column: PrimExpr,
        largest: bool = False,
    ) -> PrimExpr:  # fmt: skip
        """The value at a point; 0 if it is more than one pixel outside of the image.

        With ``largest`` it is the largest of the weighted neighbours instead of their sum.
        """
        tests, taps = [], []
        for place, extent in ((row, self.height), (column, self.width)):
            size = op.cast(self.kind, extent)
            tests += [place >= op.const(-1, self.kind), place <= size]
            limited = op.minimum(
                op.maximum(place, op.const(0, self.kind)), size - op.const(1, self.kind)
            )
            low = op.cast("int64", op.floor(limited))
            last = op.subtract(op.cast("int64", extent), 1)
            high = op.minimum(low + 1, last)
            fraction = limited - op.floor(limited)
            taps.append(((low, op.const(1, self.kind) - fraction), (high, fraction)))
        values = [
            weight_y * weight_x * op.cast(self.kind, self.at(batch, channel, y, x))
            for y, weight_y in taps[0]
            for x, weight_x in taps[1]
        ]
        total = functools.reduce(op.maximum, values) if largest else op.add_n(*values)
        return op.if_then_else(op.all(*tests), total, op.const(0, self.kind))


def roi_align(
    data: Tensor, rois: Tensor, pooled_size: Extents, spatial_scale: float, sample_ratio: int = -1,
    aligned: bool = False, layout: str = "NCHW", mode: str = "avg",
) -> Tensor:  # fmt: skip
    """Regions (batch index, x1, y1, x2, y2), times ``spatial_scale``, pooled to ``pooled_size``.

    Every bin is the mean (or the largest) of ``sample_ratio`` ** 2 points, interpolated
    bilinearly; a ratio below 1 means as many as pixels fit. ``aligned`` moves regions by half a
    pixel, else they are at least one pixel large. The mode ``max_neighbour`` is ONNX's max: the
    largest neighbour of any point, times its weight.
    """
    if mode not in ("avg", "max", "max_neighbour"):
        raise IRValueError(f"roi_align: mode: expected avg, max or max_neighbour, got {mode!r}")
    at = positions(layout, "NCHW", "roi_align: layout")
    if rois.ndim != 2 or not may_be_equal(rois.shape[1], 5):
        raise IRValueError(
            f"roi_align: rois: expected the shape (n, 5), got {shape_text(rois.shape)}"
        )
    bins = per_axis(pooled_size, 2, "roi_align: pooled_size")
    count, channels = rois.shape[0], data.shape[at[1]]
    shape = placed([count, channels, *bins], at)
    kind = wide(data.dtype)
    options = (float(spatial_scale), int(sample_ratio), bool(aligned), mode)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        source, regions, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        image = _Image(
            lambda *point: source[tuple(placed(point, at))], data.shape[at[2]],
            data.shape[at[3]], kind,
        )  # fmt: skip
        with ib.for_range(0, count, "roi", kind="parallel") as roi:
            batch = ib.let("batch", op.cast("int64", regions[roi, 0]))
            region = [op.cast(kind, regions[roi, column]) for column in (2, 4, 1, 3)]
            grid = _geometry(ib, region, bins, options)
            total = ib.allocate(kind, [1], "total")
            with (
                ib.for_range(0, channels, "c") as c,
                ib.for_range(0, bins[0], "ph") as ph,
                ib.for_range(0, bins[1], "pw") as pw,
            ):
                pooled = _pooled(ib, image, total, (batch, c, ph, pw), grid, mode)
                out[tuple(placed([roi, c, ph, pw], at))] = op.cast(data.dtype, pooled)
        return ib.get()

    return extern(
        shape, [data, rois], body, name="roi_align", dtype=[data.dtype],
        in_buffers=[decl_buffer(item.shape, item.dtype, item.op.name) for item in (data, rois)],
        out_buffers=[decl_buffer(shape, data.dtype, "out_buf")], tag="roi_align",
    )  # fmt: skip


def _pooled(
    ib: IRBuilder, image: _Image, total: BufferVar, place: tuple[PrimExpr, ...], grid: Grid,
    mode: str,
) -> PrimExpr:  # fmt: skip
    """The mean, or the largest, of the points of the bin at (batch, channel, row, column)."""
    (batch, channel, *part), (starts, steps, samples), kind = place, grid, image.kind
    total[0] = op.const(0, kind) if mode == "avg" else te_reduction.lowest(kind)
    with ib.for_range(0, samples[0], "iy") as iy, ib.for_range(0, samples[1], "ix") as ix:
        row, column = [
            start + step * (op.cast(kind, p) + _middle(i, n, kind))
            for start, step, p, i, n in zip(starts, steps, part, (iy, ix), samples, strict=True)
        ]
        value = image.bilinear(batch, channel, row, column, mode == "max_neighbour")
        total[0] = total[0] + value if mode == "avg" else op.maximum(total[0], value)
    taken = op.maximum(samples[0] * samples[1], op.const(1, "int64"))
    return op.div(total[0], op.cast(kind, taken)) if mode == "avg" else total[0]


def _middle(index: PrimExpr, count: PrimExpr, kind: DataType) -> PrimExpr:
    """The middle of part ``index`` of ``count``, as a fraction of the whole."""
    half = op.const(0.5, kind)
    return op.div(op.cast(kind, index) + half, op.cast(kind, count))


def _geometry(
    ib: IRBuilder, region: Point, bins: Shape, options: tuple[float, int, bool, str]
) -> Grid:
    """Starts, bin sizes and numbers of samples along rows and columns."""
    scale, ratio, aligned, _ = options
    kind = region[0].dtype
    starts, steps, samples = [], [], []
    for axis, name in enumerate("yx"):
        offset = op.const(0.5 if aligned else 0.0, kind)
        low, high = [
            edge * op.const(scale, kind) - offset for edge in region[2 * axis : 2 * axis + 2]
        ]
        length = high - low if aligned else op.maximum(high - low, op.const(1, kind))
        step = ib.let(f"step_{name}", op.div(length, op.cast(kind, op.cast("int64", bins[axis]))))
        starts.append(ib.let(f"start_{name}", low))
        steps.append(step)
        grid = op.const(ratio, "int64") if ratio > 0 else op.cast("int64", op.ceil(step))
        samples.append(ib.let(f"samples_{name}", grid))
    return starts, steps, samples
