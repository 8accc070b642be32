"""Lowering of reads, writes and searches at places that data give, and of slices cut by data."""

from __future__ import annotations

from typing import Any

from weft import topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, PrimValue, ShapeExpr
from weft.relax.op.base import tensor_to_shape
from weft.relax.struct_info import ShapeStructInfo
from weft.relax.transform.legalize.rule import dims, table, tuple_fields
from weft.te.operation import extern
from weft.tir import ir_builder
from weft.tir import op as tir_op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var as SizeVar


def _index_tensor(bb: BlockBuilder, call: Call) -> Any:
    return bb.call_te(topi.index_tensor, call.args[0], tuple_fields(bb, call.args[1]))


def _index_put(bb: BlockBuilder, call: Call) -> Any:
    data, indices, values = call.args
    return bb.call_te(
        topi.index_put, data, tuple_fields(bb, indices), values, call.attrs["accumulate"]
    )


def _slice_scatter(bb: BlockBuilder, call: Call) -> Any:
    data, src, *bounds = call.args
    values = [bound.value for bound in bounds if isinstance(bound, PrimValue)]
    if len(values) < 3 or not tir_op.is_const_int(values[2]):
        return call
    start, end, step = values
    return bb.call_te(topi.slice_scatter, data, src, start, end, step, call.attrs["axis"])


def _bucketize(bb: BlockBuilder, call: Call) -> Any:
    values, boundaries = call.args
    kind = str(call.struct_info.dtype)
    return bb.call_te(
        topi.searchsorted, boundaries, values, call.attrs["right"], kind,
        primfunc_name_hint="bucketize",
    )  # fmt: skip


def _meshgrid(bb: BlockBuilder, call: Call) -> Any:
    return bb.call_te(topi.meshgrid, tuple_fields(bb, call.args[0]), call.attrs["indexing"])


def _dynamic_strided_slice(bb: BlockBuilder, call: Call) -> Any:
    """The shape is computed first; the slice is then taken at sizes that a match_cast names."""
    rank = len(dims(call.args[0]))
    if rank == 0:
        return call.args[0]
    extents = bb.emit(bb.call_te(topi.shape_func_dynamic_strided_slice, *call.args))
    symbols = [SizeVar(f"s{axis}", "int64") for axis in range(rank)]
    shape = bb.emit(tensor_to_shape(extents))
    bb.match_cast(shape, ShapeStructInfo(symbols))
    return bb.call_te(topi.dynamic_strided_slice, *call.args, ShapeExpr(symbols))


def te_multinomial(prob: Any, uniform: Any, rows: Any, dtype: str) -> Any:
    """The first index at which the running sum of a row exceeds a uniform number."""
    count, vocabulary = uniform.shape[0], prob.shape[1]

    def body(ins: Any, outs: Any) -> Any:
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
        [(count, 1)], inputs, body, name="multinomial_from_uniform", dtype=[dtype],
        in_buffers=[decl_buffer(t.shape, t.dtype, t.op.name, data_alignment=8) for t in inputs],
        out_buffers=[decl_buffer((count, 1), dtype, "out_buf", data_alignment=8)],
    )  # fmt: skip


def _multinomial(bb: BlockBuilder, call: Call) -> Any:
    kind = str(call.attrs["dtype"])
    hint = "multinomial_from_uniform"
    return bb.call_te(te_multinomial, *call.args, kind, primfunc_name_hint=hint)


TABLE = table(
    {
        "bucketize": _bucketize,
        "dynamic_strided_slice": _dynamic_strided_slice,
        "index_put": _index_put,
        "index_tensor": _index_tensor,
        "meshgrid": _meshgrid,
        "multinomial_from_uniform": _multinomial,
        "slice_scatter": _slice_scatter,
    }
)
PACKED = {"relax.nonzero": "relax.run.nonzero", "relax.unique": "relax.run.unique"}
"""Operators that weft.runtime.vm.data_dependent computes, whatever is known of shapes."""
