"""Lowering of matrix products."""

from __future__ import annotations

from typing import Any

from weft import te, topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call
from weft.relax.ir.shape_arith import constant_value
from weft.relax.transform.legalize.rule import dims, plain, table, tuple_fields, with_dims
from weft.support.dtype import DataType
from weft.topi.extents import broadcast_indices, broadcast_shape
from weft.topi.moments import wide


def te_matmul(a: Any, b: Any, out_dtype: str | None) -> Any:
    """numpy's matmul over broadcast batch dimensions; 16-bit floats are summed in float32."""
    a_shape, b_shape = list(a.shape), list(b.shape)
    rows, columns = len(a_shape) > 1, len(b_shape) > 1
    batch = broadcast_shape(a_shape[:-2], b_shape[:-2], "matmul")
    shape = [*batch, *a_shape[-2:-1], *([b_shape[-1]] if columns else [])]
    dtype = DataType(out_dtype or a.dtype)
    kind = str(wide(dtype))

    def element(*indices: Any) -> Any:
        k = te.reduce_axis((0, a_shape[-1]), name="k")
        outer, inner = indices[: len(batch)], list(indices[len(batch) :])
        a_row = [inner.pop(0)] if rows else []
        b_column = [inner.pop(0)] if columns else []
        lhs = a(*broadcast_indices(a_shape[:-2], batch, outer), *a_row, k)
        rhs = b(*broadcast_indices(b_shape[:-2], batch, outer), k, *b_column)
        return te.sum(lhs.astype(kind) * rhs.astype(kind), axis=k)

    return rounded(te.compute(shape, element, name="matmul"), dtype)


def rounded(whole: Any, dtype: DataType) -> Any:
    """A product converted to its type, if it was summed in a wider one."""
    return whole if whole.dtype == dtype else topi.cast(whole, str(dtype))


def _matmul(bb: BlockBuilder, call: Call) -> Any:
    dtype = plain(call.attrs["out_dtype"])
    lhs, rhs = call.args
    wanted = dims(rhs)
    wanted[-2 if len(wanted) > 1 else -1] = dims(lhs)[-1]
    rhs = with_dims(bb, rhs, wanted, "matmul_rhs")
    return bb.call_te(te_matmul, lhs, rhs, dtype, primfunc_name_hint="matmul")


def te_dense(x: Any, weight: Any, out_dtype: str | None) -> Any:
    """topi's dense, over leading dimensions too."""
    dtype = DataType(out_dtype or x.dtype)
    kind = str(wide(dtype))
    if len(x.shape) == 2:
        return rounded(topi.nn.dense(x, weight, None, kind), dtype)

    def element(*indices: Any) -> Any:
        k = te.reduce_axis((0, x.shape[-1]), name="k")
        lhs, rhs = x(*indices[:-1], k), weight(indices[-1], k)
        return te.sum(lhs.astype(kind) * rhs.astype(kind), axis=k)

    made = te.compute([*x.shape[:-1], weight.shape[0]], element, name="T_matmul_NT")
    return rounded(made, dtype)


def _dense(bb: BlockBuilder, call: Call) -> Any:
    dtype = plain(call.attrs.get("out_dtype", "void"))
    return bb.call_te(te_dense, *call.args, dtype, primfunc_name_hint="dense")


def te_einsum(operands: Any, subscripts: str) -> Any:
    """topi's einsum; sums of 16-bit floats are taken in float32."""
    kind = str(wide(operands[0].dtype))
    if kind == operands[0].dtype:
        return topi.einsum(subscripts, *operands)
    made = topi.einsum(subscripts, *[topi.cast(operand, kind) for operand in operands])
    return topi.cast(made, str(operands[0].dtype))


def _compare_letters(bb: BlockBuilder, tensors: list[Any], terms: list[str]) -> None:
    """The extents of one letter are equal in all tensors, but for those that are known to be 1."""
    known: dict[str, Any] = {}
    for index, (tensor, term) in enumerate(zip(tensors, terms, strict=True)):
        wanted = [
            dim if constant_value(dim) == 1 else known.setdefault(letter, dim)
            for letter, dim in zip(term, dims(tensor), strict=True)
        ]
        tensors[index] = with_dims(bb, tensor, wanted, f"einsum_{index}")


def _einsum(bb: BlockBuilder, call: Call) -> Any:
    tensors = tuple_fields(bb, call.args[0])
    terms = call.attrs["subscripts"].replace(" ", "").split("->")[0].split(",")
    if not any("." in term for term in terms):  # under an ellipsis extents may be 1
        _compare_letters(bb, tensors, terms)
    return bb.call_te(te_einsum, tensors, call.attrs["subscripts"], primfunc_name_hint="einsum")


def te_outer(x: Any, y: Any) -> Any:
    """The outer product."""
    return te.compute([x.shape[0], y.shape[0]], lambda i, j: x[i] * y[j], name="outer")


TABLE = table(
    {
        "matmul": _matmul,
        "nn.dense": _dense,
        "einsum": _einsum,
        "outer": lambda bb, call: bb.call_te(te_outer, *call.args, primfunc_name_hint="outer"),
    }
)
