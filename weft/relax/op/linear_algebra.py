"""Matrix products: ``matmul``, ``linear``, ``einsum``, ``outer``."""

from __future__ import annotations

from typing import Any

from weft.relax.expr import Call, Expr
from weft.relax.op.binary import add
from weft.relax.op.definition import Dtype, Exprs, operator
from weft.relax.op.infer import (
    VOID,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    result,
    show_dims,
    tensor,
    tensors,
)
from weft.relax.op.manipulate import permute_dims
from weft.relax.shape_arith import broadcast, constant_value, differ
from weft.relax.struct_info import TensorStructInfo


def infer_matmul(call: Call) -> TensorStructInfo:
    """numpy's matmul: batch dimensions broadcast, vectors count as a row or a column."""
    lhs, rhs = tensor(call, 0), tensor(call, 1)
    dtype = call.attrs.get("out_dtype", VOID)
    if dtype == VOID:
        dtype = common_dtype(call, [lhs, rhs])
    if 0 in (lhs.ndim, rhs.ndim):
        fail(call, f"expected at least 1 dimension, got {lhs.ndim} and {rhs.ndim}")
    if -1 in (lhs.ndim, rhs.ndim):
        return result(None, dtype, -1, lhs.vdevice)
    dropped = (lhs.ndim == 1) + (rhs.ndim == 1)
    ndim = max(lhs.ndim, 2 if dropped else 0, rhs.ndim) - dropped
    x1, x2 = dims_of(lhs), dims_of(rhs)
    if x1 is None or x2 is None:
        return result([] if ndim == 0 else None, dtype, ndim, lhs.vdevice)
    inner1, inner2 = x1[-1], x2[0] if len(x2) == 1 else x2[-2]
    if differ(inner1, inner2):
        fail(
            call,
            f"the inner dimensions {inner1} and {inner2} of {show_dims(x1)} and {show_dims(x2)} "
            "must be equal",
        )
    batch = broadcast(x1[:-2], x2[:-2])
    if isinstance(batch, str):
        fail(call, f"cannot broadcast the batch of {show_dims(x1)} and {show_dims(x2)}: {batch}")
    if batch is None:
        return result(None, dtype, ndim, lhs.vdevice)
    rows = [] if len(x1) == 1 else [x1[-2]]
    columns = [] if len(x2) == 1 else [x2[-1]]
    return result([*batch, *rows, *columns], dtype, vdevice=lhs.vdevice)


@operator("relax.matmul", infer_matmul)
def matmul(x1: Expr, x2: Expr, out_dtype: Dtype | None = None) -> Any:
    """The matrix product, over broadcast batch dimensions."""


def linear(data: Expr, weight: Expr, bias: Expr | None = None, out_dtype: Any = None) -> Expr:
    """data times the transpose of weight, plus bias: two or three operators.

    ``weight`` is (out_features, in_features).
    """
    product: Expr = matmul(data, permute_dims(weight, axes=None), out_dtype=out_dtype)
    return product if bias is None else add(product, bias)


def _subscripts(call: Call) -> tuple[list[str], str]:
    text = str(call.attrs["subscripts"]).replace(" ", "")
    if "." in text:
        fail(call, f"ellipsis is not supported in {text!r}")
    inputs, arrow, output = text.partition("->")
    names = inputs.split(",")
    if not arrow:
        letters = inputs.replace(",", "")
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return names, output


def infer_einsum(call: Call) -> TensorStructInfo:
    """One dimension for each letter of the output."""
    infos = tensors(call, 0)
    dtype = common_dtype(call, infos)
    names, output = _subscripts(call)
    if len(names) != len(infos):
        fail(call, f"{call.attrs['subscripts']!r} names {len(names)} operands, got {len(infos)}")
    sizes: dict[str, Any] = {}
    for index, (letters, info) in enumerate(zip(names, infos, strict=True)):
        if info.ndim not in (-1, len(letters)):
            fail(call, f"operand {index} ({letters}) must have {len(letters)} dimensions, got "
                 f"{info.ndim}")  # fmt: skip
        for letter, dim in zip(letters, dims_of(info) or (), strict=False):
            known = sizes.get(letter)
            if known is None or constant_value(known) == 1:
                sizes[letter] = dim
            elif constant_value(dim) != 1 and differ(known, dim):
                fail(call, f"index {letter} has the extents {known} and {dim}")
    if all(letter in sizes for letter in output):
        return result([sizes[letter] for letter in output], dtype)
    return result(None, dtype, len(output))


@operator("relax.einsum", infer_einsum)
def einsum(operands: Exprs, subscripts: str) -> Any:
    """Einstein's summation convention, as numpy.einsum."""


def infer_outer(call: Call) -> TensorStructInfo:
    """(n,) and (m,) give (n, m)."""
    x1, x2 = check_rank(call, 0, 1), check_rank(call, 1, 1)
    dtype = common_dtype(call, [x1, x2])
    mine, its = dims_of(x1), dims_of(x2)
    if mine is None or its is None:
        return result(None, dtype, 2)
    return result([mine[0], its[0]], dtype)


@operator("relax.outer", infer_outer)
def outer(x1: Expr, x2: Expr) -> Any:
    """The outer product of two vectors."""
