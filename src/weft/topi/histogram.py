"""Histograms: the number of elements in equal parts of an interval."""

from __future__ import annotations

from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.stmt import Stmt


def histogram(data: Tensor, low: Tensor, high: Tensor, bins: int) -> Tensor:
    """The number of elements of a row in each of ``bins`` equal parts of [low, high].

    ``low`` and ``high`` are 0-d; if they are equal the interval is [low - 1, high + 1]. Elements
    outside, and NaN, are not counted. The counts have the type of the data.
    """

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        source, lows, highs = (ib.buffer_ptr(buffer) for buffer in ins)
        target = ib.buffer_ptr(outs[0])
        zero, unit = op.const(0, data.dtype), op.const(1, data.dtype)
        with ib.for_range(0, bins, "b") as b:
            target[b] = zero
        wider = ib.let("wider", op.select(op.equal(lows[()], highs[()]), unit, zero))
        start, end = ib.let("start", lows[()] - wider), ib.let("end", highs[()] + wider)
        with ib.for_range(0, data.shape[0], "i") as i:
            value = ib.let("value", source[i])
            inside = op.logical_and(op.less_equal(start, value), op.less_equal(value, end))
            with ib.if_scope(inside):
                part = (value - start) / (end - start) * op.const(float(bins), data.dtype)
                place = op.cast("int64", part)
                place = ib.let("place", op.minimum(place, op.const(bins - 1, "int64")))
                target[place] = target[place] + unit
        return ib.get()

    reads = [
        decl_buffer(t.shape, t.dtype, name, data_alignment=8)
        for t, name in ((data, "data"), (low, "low"), (high, "high"))
    ]
    return extern(
        [bins],
        [data, low, high],
        body,
        name="histogram",
        dtype=[data.dtype],
        in_buffers=reads,
        out_buffers=[decl_buffer([bins], data.dtype, "out_buf", data_alignment=8)],
    )
