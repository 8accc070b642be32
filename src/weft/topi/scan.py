"""Running sums, products and extremes along an axis, as a block with an ordered axis.

The running value of floats has a wider type (float64 for float32), as in PyTorch, so that errors do
not grow along the row. Schedules decide which rows run in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.ir.attrs import Attrs
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr
from weft.support.dtype import DataType
from weft.te.operation import as_list, extern
from weft.te.primfunc import STAGES
from weft.te.reduction import highest, lowest
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_access_region
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, seq
from weft.topi.broadcast import log_add_exp
from weft.topi.extents import Shape, is_const, normalize_axis, product
from weft.topi.math import cast
from weft.topi.transform import reshape


class _Running(NamedTuple):
    """A running value: its start, and its value after an element."""

    name: str
    start: PrimExpr
    step: Callable[..., PrimExpr]
    """(Element, its index, the running values before) -> the running value after it."""


def scanop(
    data: Tensor,
    binop: Callable[[PrimExpr, PrimExpr], PrimExpr],
    identity_value: float,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:
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
    if [1 for extent in data.shape if is_const(extent, 0)]:
        return cast(data, kind)
    wide = _accumulator(kind)

    def step(value: PrimExpr, _place: PrimExpr, running: PrimExpr) -> PrimExpr:
        return binop(running, op.cast(wide, value))

    total = _Running("running", op.const(identity_value, wide), step)
    return _scan(data, place, [total], [(kind, "out_buf")], op_name, bool(exclusive))[0]


def running_extreme(data: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The running maximum (or minimum) along ``axis`` and its last index so far, int64.

    After a NaN, all are NaN.
    """
    axis = normalize_axis(axis, data.ndim, "running_extreme")
    if [1 for extent in data.shape if is_const(extent, 0)]:
        return cast(data, str(data.dtype)), cast(data, "int64")
    least = lowest if largest else highest

    def place(value: PrimExpr, here: PrimExpr, best: PrimExpr, where: PrimExpr) -> PrimExpr:
        return op.select(_replaces(value, best, largest), op.cast("int64", here), where)

    def extreme(value: PrimExpr, _here: PrimExpr, best: PrimExpr, _where: PrimExpr) -> PrimExpr:
        return op.select(_replaces(value, best, largest), value, best)

    running = [
        _Running("best", least(data.dtype), extreme),
        _Running("where", op.const(0, "int64"), place),
    ]
    results = [(data.dtype, "out_values"), (DataType("int64"), "out_places")]
    values, places = _scan(data, axis, running, results, "running_extreme", False)
    return values, places


def _scan(
    data: Tensor,
    axis: int,
    running: Sequence[_Running],
    results: Sequence[tuple[DataType, str]],
    name: str,
    exclusive: bool,
) -> list[Tensor]:
    """The running values along an axis, cast to the types of results, computed by one block."""

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        return _stage(ins[0], outs, axis, running, name, exclusive)

    shape = [as_prim_expr(extent) for extent in data.shape]
    outputs = extern(
        [shape] * len(results),
        [data],
        body,
        name=name,
        dtype=[kind for kind, _ in results],
        in_buffers=[decl_buffer(shape, data.dtype, data.op.name)],
        out_buffers=[decl_buffer(shape, kind, label, data_alignment=8) for kind, label in results],
        tag=name,
    )
    return as_list(outputs)


def _stage(
    source: Buffer,
    targets: Sequence[Buffer],
    axis: int,
    running: Sequence[_Running],
    name: str,
    exclusive: bool,
) -> Stmt:
    """The loops over rows and along each, around the block that computes a step."""
    ndim = len(source.shape)
    order = [*[place for place in range(ndim) if place != axis], axis]
    loops = {place: _variable(source, place, "i" if place != axis else "k") for place in order}
    axes = {place: _variable(source, place, "v_i" if place != axis else "v_k") for place in order}
    at, row = [axes[place] for place in range(ndim)], [axes[place] for place in order[:-1]]
    held = [
        decl_buffer([source.shape[place] for place in order[:-1]] or [1], value.start.dtype,
                    value.name)
        for value in running
    ]  # fmt: skip
    row_of: Shape = row or [0]
    before = [BufferLoad(buffer, row_of) for buffer in held]
    steps: list[Stmt] = [
        BufferStore(buffer, value.step(BufferLoad(source, at), axes[axis], *before), row_of)
        for buffer, value in reversed(list(zip(held, running, strict=True)))
    ]  # the last one first, as it reads the old values of the others
    stores: list[Stmt] = [
        BufferStore(target, op.cast(target.dtype, value), at)
        for target, value in zip(targets, before, strict=True)
    ]
    starts = [
        BufferStore(buffer, value.start, row_of)
        for buffer, value in zip(held, running, strict=True)
    ]
    block = Block(
        [
            IterVar(Range(source.shape[place]), axes[place],
                    IterType.Ordered if place == axis else IterType.DataPar)
            for place in order
        ],
        [], [], name, seq(*stores, *steps) if exclusive else seq(*steps, *stores), seq(*starts),
    )  # fmt: skip
    known = {buffer.data: buffer for buffer in (source, *targets, *held)}
    reads, writes, _ = get_block_access_region(block, known)
    nest = _inside_loops(source, loops, block.with_(reads=reads, writes=writes))
    stages = Block([], [], [], name, nest, None, held, annotations=Attrs({STAGES: True}))
    return BlockRealize([], IntImm("bool", 1), stages)


def _inside_loops(source: Buffer, loops: dict[int, Var], block: Block) -> Stmt:
    """A block inside loops over the axes of ``source``, the first one outermost."""
    nest: Stmt = BlockRealize(list(loops.values()), IntImm("bool", 1), block)
    for place, variable in reversed(loops.items()):
        whole = Range(source.shape[place])
        nest = For(variable, whole.min, whole.extent, ForKind.SERIAL, nest)
    return nest


def _variable(source: Buffer, place: int, name: str) -> Var:
    return Var(name if name.endswith("k") else f"{name}{place}", source.shape[place].dtype)


def _accumulator(kind: DataType) -> DataType:
    """The type of the running value."""
    if not kind.is_float or kind.bits > 32:
        return kind
    return DataType("float64" if kind.bits == 32 else "float32")


def cumsum(
    data: Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:
    """The running sum along ``axis``."""
    return scanop(data, op.add, 0, "cumsum_generic", axis, dtype, exclusive)


def cumprod(
    data: Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:
    """The running product along ``axis``."""
    return scanop(data, op.multiply, 1, "cumprod_generic", axis, dtype, exclusive)


def logcumsumexp(data: Tensor, axis: int) -> Tensor:
    """The logarithm of the running sum of exponentials along ``axis``, without overflow."""
    return scanop(data, log_add_exp, -math.inf, "logcumsumexp", axis)


def _replaces(value: PrimExpr, best: PrimExpr, largest: bool) -> PrimExpr:
    """Whether the next value becomes the extreme, which it also does if both are equal."""
    better = op.greater_equal(value, best) if largest else op.less_equal(value, best)
    return op.logical_or(better, op.isnan(value)) if value.dtype.is_float else better
