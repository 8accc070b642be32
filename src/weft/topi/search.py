"""Binary search in sorted sequences."""

from __future__ import annotations

from weft.ir.expr import PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.stmt import Stmt
from weft.topi.extents import may_be_equal, product, shape_text, unravel_index
from weft.topi.simplify import simplified


def _stands_before(item: PrimExpr, value: PrimExpr, right: bool) -> PrimExpr:
    """Whether ``item`` is before the place of ``value``; NaN is the largest, as in numpy."""
    before: PrimExpr = op.less_equal(item, value) if right else op.less(item, value)
    if not value.dtype.is_float:
        return before
    at_end = op.isnan(value) if right else op.logical_and(op.isnan(value), _is_number(item))
    return op.logical_or(before, at_end)


def _is_number(value: PrimExpr) -> PrimExpr:
    return op.logical_not(op.isnan(value))


def _check_rows(sequence: Tensor, values: Tensor) -> None:
    if sequence.ndim < 1:
        raise IRValueError("searchsorted: expected a sequence of 1 or more dimensions, got 0")
    pairs = zip(sequence.shape[:-1], values.shape, strict=False)
    if sequence.ndim > 1 and (
        values.ndim != sequence.ndim or [1 for a, b in pairs if not may_be_equal(a, b)]
    ):
        raise IRValueError(
            f"searchsorted: sequences {shape_text(sequence.shape)} and values "
            f"{shape_text(values.shape)} must have the same leading axes"
        )


def searchsorted(
    sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64"
) -> Tensor:
    """How many elements of a sorted sequence are less than each value (``right``: or equal).

    The sequence is 1-d, or has the leading axes of ``values``, row for row.
    """
    _check_rows(sorted_sequence, values)
    rows = sorted_sequence.ndim - 1
    extent = sorted_sequence.shape[-1]
    kind = DataType(out_dtype)
    count = simplified(as_prim_expr(product(values.shape)))

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        sequence, given = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
        target = ib.buffer_ptr(outs[0])
        with ib.for_range(0, count, "i", kind="parallel") as i:
            point = tuple(unravel_index(i, values.shape))
            ends = ib.allocate(extent.dtype, [2], "ends")
            ends[0] = op.const(0, extent.dtype)
            ends[1] = extent
            with ib.while_loop(op.less(ends[0], ends[1])):
                middle = ib.let("middle", op.floordiv(ends[0] + ends[1], 2))
                item = sequence[(*point[:rows], middle)]
                with ib.if_scope(_stands_before(item, given[point], right)):
                    ends[0] = middle + 1
                with ib.else_scope():
                    ends[1] = middle
            target[point] = op.cast(kind, ends[0])
        return ib.get()

    buffers = [
        decl_buffer(t.shape, t.dtype, name, data_alignment=8)
        for t, name in ((sorted_sequence, "sequence"), (values, "values"))
    ]
    return extern(
        values.shape,
        [sorted_sequence, values],
        body,
        name="searchsorted",
        dtype=[kind],
        in_buffers=buffers,
        out_buffers=[decl_buffer(values.shape, kind, "out_buf", data_alignment=8)],
    )
