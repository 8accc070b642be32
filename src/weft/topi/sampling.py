"""Sampling from distributions, given uniform random numbers."""

from __future__ import annotations

from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder
from weft.tir import op as tir_op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.stmt import Stmt


def multinomial_from_uniform(prob: Tensor, uniform: Tensor, rows: Tensor, dtype: str) -> Tensor:
    """The first index at which the running sum of a row exceeds a uniform number."""
    count, vocabulary = uniform.shape[0], prob.shape[1]

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        weights, draws, places = (ib.buffer_ptr(buffer) for buffer in ins)
        target = ib.buffer_ptr(outs[0])
        with ib.for_range(0, count, "i", kind="parallel") as i:
            running = ib.allocate("float64", [1], "running")
            place = ib.allocate(vocabulary.dtype, [1], "place")
            running[0] = tir_op.cast("float64", weights[places[i, 0], 0])
            place[0] = tir_op.const(0, vocabulary.dtype)
            below = tir_op.less_equal(running[0], tir_op.cast("float64", draws[i, 0]))
            with ib.while_loop(tir_op.logical_and(place[0] < vocabulary - 1, below)):
                place[0] = place[0] + 1
                term = tir_op.cast("float64", weights[places[i, 0], place[0]])
                running[0] = running[0] + term
            target[i, 0] = tir_op.cast(dtype, place[0])
        return ib.get()

    inputs = [prob, uniform, rows]
    return extern(
        (count, 1),
        inputs,
        body,
        name="multinomial_from_uniform",
        dtype=[dtype],
        in_buffers=[decl_buffer(t.shape, t.dtype, t.op.name, data_alignment=8) for t in inputs],
        out_buffers=[decl_buffer((count, 1), dtype, "out_buf", data_alignment=8)],
    )
