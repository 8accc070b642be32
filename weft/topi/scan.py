"""Running sums and products along an axis, as loops.

The running value of floats is kept in a wider type (float64 for float32), as PyTorch does, so that
an error does not grow along the row. Rows that run side by side are lanes of vectors: where they
are not next to each other in memory, tiles of them are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.ir.expr import as_prim_expr
from weft.support.dtype import DataType
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import decl_buffer
from weft.tir.transform.transpose_tile import TRANSPOSE
from weft.topi.extents import is_const, normalize_axis, product, unravel_index
from weft.topi.math import cast
from weft.topi.simplify import simplified
from weft.topi.transform import reshape

_LANES: Final = 32
"""Rows next to each other in memory that are scanned at once, in vectors."""
_CHAINS: Final = 8
"""Other rows that are: additions of one wait for each other, those of several do not."""
_TILES: Final = (8, 4)
"""Of those, how many are the lanes of vectors: tiles of as many columns are transposed."""


def scanop(
    data: Tensor, binop: Callable[..., Any], identity_value: Any, op_name: str,
    axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None,
) -> Tensor:  # fmt: skip
    """``out[i] = binop(out[i - 1], data[i])`` along ``axis`` (None: of the flattened data).

    ``exclusive`` leaves out the element itself and starts with ``identity_value``.
    """
    kind = DataType(dtype) if dtype else data.dtype
    kind = DataType("int32") if kind.is_bool else kind
    if axis is None:
        data = reshape(data, [product(data.shape) if data.ndim else 1])
        place = 0
    else:
        place = normalize_axis(axis, data.ndim, op_name)
    shape = data.shape
    if [1 for extent in shape if is_const(extent, 0)]:
        empty: Tensor = cast(data, kind)
        return empty
    rows = [*shape[:place], *shape[place + 1 :]]
    running_kind = _accumulator(kind)
    contiguous = place == len(shape) - 1
    tile = _tile(rows, shape[place]) if contiguous and not data.dtype.is_bool else 1
    side, how = (tile, "unroll") if tile > 1 else _side_by_side(rows, contiguous)
    if side > 1:
        rows = [*rows[:-1], int(rows[-1]) // side]
    count = simplified(as_prim_expr(product(rows)))

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, count, "fused", kind="parallel") as fused:
            first = [simplified(index) for index in unravel_index(fused, rows)]
            running = ib.allocate(running_kind, [side], "running")

            def place_of(k: Any, row: Any) -> tuple[Any, ...]:
                here = first if side == 1 else [*first[:-1], first[-1] * side + row]
                return (*here[:place], k, *here[place:])

            def step(row: Any, value: Any, results: Any, at: Any) -> None:
                if exclusive:
                    results[at] = op.cast(kind, running[row])
                running[row] = binop(running[row], op.cast(running_kind, value))
                if not exclusive:
                    results[at] = op.cast(kind, running[row])

            with ib.for_range(0, side, "_row", kind=how) as row:
                running[row] = op.const(identity_value, running_kind)
            tiles = op.floordiv(shape[place], side) if tile > 1 else 0
            if tile > 1:
                _scan_tiles(ib, source, target, place_of, step, side, tiles)
            with (
                ib.for_range(tiles * side, shape[place], "_k") as k,
                ib.for_range(0, side, "_row", kind=how) as row,
            ):
                at = place_of(k, row)
                step(row, source[at], target, at)
        return ib.get()

    buffer = decl_buffer(shape, kind, "out_buf", data_alignment=8)
    reads = decl_buffer(data.shape, data.dtype, data.op.name)
    made: Tensor = extern(
        [shape], [data], body, name=op_name, dtype=[kind], in_buffers=[reads],
        out_buffers=[buffer], tag=op_name,
    )  # fmt: skip
    return made


def _scan_tiles(
    ib: ir_builder.IRBuilder, source: Any, target: Any, place_of: Callable[..., Any],
    step: Callable[..., None], side: int, tiles: Any,
) -> None:  # fmt: skip
    """Scan ``side`` rows by as many columns at once: the rows are lanes, so that columns are
    vectors, which are transposed in registers on their way in and out (TransposeTile).
    """
    columns = ib.allocate(source.dtype, [side * side], "columns")
    results = ib.allocate(target.dtype, [side * side], "results")
    mark = {TRANSPOSE: 1}
    with ib.for_range(0, tiles, "_tile") as tile:
        with (
            ib.for_range(0, side, "_k", annotations=mark) as k,
            ib.for_range(0, side, "_row", kind="vectorize") as row,
        ):
            columns[k * side + row] = source[place_of(tile * side + k, row)]
        with (
            ib.for_range(0, side, "_k", kind="unroll") as k,
            ib.for_range(0, side, "_row", kind="vectorize") as row,
        ):
            step(row, columns[k * side + row], results, k * side + row)
        with (
            ib.for_range(0, side, "_row", annotations=mark) as row,
            ib.for_range(0, side, "_k", kind="vectorize") as k,
        ):
            target[place_of(tile * side + k, row)] = results[k * side + row]


def _side_by_side(rows: Sequence[Any], contiguous: bool) -> tuple[int, str]:
    """How many rows run side by side, a divisor of the last of the axes; by what kind of loop."""
    size = getattr(rows[-1], "value", rows[-1]) if rows else 1
    most = _CHAINS if contiguous else _LANES
    found = max([n for n in range(1, most + 1) if size % n == 0]) if isinstance(size, int) else 1
    return found, "serial" if found == 1 else "unroll" if contiguous else "vectorize"


def _tile(rows: Sequence[Any], steps: Any) -> int:
    """How many rows are the lanes of vectors, a divisor of the last of the axes; 1 if none are."""
    size = getattr(rows[-1], "value", rows[-1]) if rows else 1
    if not isinstance(size, int):
        return 1
    fitting = [n for n in _TILES if size % n == 0 and getattr(steps, "value", n) >= n]
    return max(fitting, default=1)


def _accumulator(kind: DataType) -> DataType:
    """The type of the running value."""
    if not kind.is_float or kind.bits > 32:
        return kind
    return DataType("float64" if kind.bits == 32 else "float32")


def cumsum(
    data: Tensor, axis: int | None = None, dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:  # fmt: skip
    """The running sum along ``axis``."""
    return scanop(data, op.add, 0, "cumsum_generic", axis, dtype, exclusive)


def cumprod(
    data: Tensor, axis: int | None = None, dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:  # fmt: skip
    """The running product along ``axis``."""
    return scanop(data, op.multiply, 1, "cumprod_generic", axis, dtype, exclusive)


def running_extreme(data: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The running maximum (or minimum) along ``axis`` and the last place of each, int64.

    A NaN stays the extreme from where it stands on.
    """
    place = normalize_axis(axis, data.ndim, "running_extreme")
    shape = data.shape
    if [1 for extent in shape if is_const(extent, 0)]:
        return cast(data, str(data.dtype)), cast(data, "int64")
    rows = [*shape[:place], *shape[place + 1 :]]
    count = simplified(as_prim_expr(product(rows)))

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        source = ib.buffer_ptr(ins[0])
        values, places = ib.buffer_ptr(outs[0]), ib.buffer_ptr(outs[1])
        with ib.for_range(0, count, "fused", kind="parallel") as fused:
            row = [simplified(index) for index in unravel_index(fused, rows)]
            best = ib.allocate(data.dtype, [1], "best")
            where = ib.allocate("int64", [1], "where")
            best[0] = source[(*row[:place], 0, *row[place:])]
            where[0] = op.const(0, "int64")
            with ib.for_range(0, shape[place], "_k") as k:
                at = (*row[:place], k, *row[place:])
                value = source[at]
                with ib.if_scope(_replaces(value, best[0], largest)):
                    best[0] = value
                    where[0] = op.cast("int64", k)
                values[at] = best[0]
                places[at] = where[0]
        return ib.get()

    reads = decl_buffer(shape, data.dtype, data.op.name)
    writes = [
        decl_buffer(shape, dtype, name, data_alignment=8)
        for dtype, name in ((data.dtype, "out_values"), ("int64", "out_places"))
    ]
    made = extern(
        [shape, shape], [data], body, name="running_extreme", dtype=[data.dtype, "int64"],
        in_buffers=[reads], out_buffers=writes,
    )  # fmt: skip
    return made[0], made[1]


def _replaces(value: Any, best: Any, largest: bool) -> Any:
    """Whether the next value is the extreme, also one that equals the last."""
    better = op.greater_equal(value, best) if largest else op.less_equal(value, best)
    return op.logical_or(better, op.isnan(value)) if value.dtype.is_float else better
