"""What a loop of a known number of steps scans out: a tensor into which each step writes its row.

The tensor is a state of the loop, which each step overwrites in place; so the loop allocates
nothing as it runs, and is native.
"""

from __future__ import annotations

from weft.ir.expr import PrimExpr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr, Tuple
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.value import Dim
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import TensorStructInfo
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import Stmt


def new_rows(context: Context, info: TensorStructInfo) -> Expr:
    """Memory for the rows of all steps."""
    return context.emit(op.builtin.alloc_tensor(list(tensor_dims(info) or ()), info.dtype, 0))


def with_row(context: Context, rows: Expr, row: Expr, step: Expr) -> Expr:
    """The rows with that of a step, which is written over what is there."""
    info = expect(rows.struct_info, TensorStructInfo)
    dims = list(tensor_dims(info) or ())
    call = context.builder.call_te(loop_row, row, step, dims[0])
    kernel, arguments, *scalars = call.args
    places = [*expect(arguments, Tuple).fields, rows]
    return context.emit(op.call_tir_inplace(kernel, places, [len(places) - 1], info, *scalars))


def loop_row(row: Tensor, step: Tensor, count: Dim) -> Tensor:
    """``count`` rows, of which the one at ``step`` is written."""

    def body(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        builder = ir_builder.create()
        source, place = [builder.buffer_ptr(buffer) for buffer in inputs]
        _write(builder, source, builder.buffer_ptr(outputs[0]), [place[()]])
        return builder.get()

    shape = (count, *row.shape)
    buffers = [decl_buffer(item.shape, item.dtype, item.op.name) for item in (row, step)]
    rows = decl_buffer(shape, row.dtype, "rows")
    return extern(
        shape, [row, step], body, name="loop_row", dtype=[row.dtype],
        in_buffers=buffers, out_buffers=[rows],
    )  # fmt: skip


def _write(builder: IRBuilder, source: BufferVar, target: BufferVar, point: list[PrimExpr]) -> None:
    """Loops over the axes of the row, of which ``point`` has the first after the step's place."""
    axis, shape = len(point) - 1, source.buffer.shape
    if axis == len(shape):
        target[tuple(point)] = source[tuple(point[1:])]
        return
    with builder.for_range(0, shape[axis], f"i{axis}") as index:
        _write(builder, source, target, [*point, index])
