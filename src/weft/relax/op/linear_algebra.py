"""Matrix products: ``matmul``, ``grouped_matmul``, ``linear``, ``einsum``, ``outer``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.expr import Extent, PrimExpr, RelaxExpr
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import broadcast, constant_value, differ
from weft.relax.op.binary import add
from weft.relax.op.definition import Dtype, Exprs, operator
from weft.relax.op.infer import (
    VOID,
    check_rank,
    common_dtype,
    common_vdevice,
    dims_of,
    fail,
    result,
    show_dims,
    tensor,
    tensors,
)
from weft.relax.op.lowering import Builder, dims, tuple_fields
from weft.relax.op.manipulate import permute_dims
from weft.relax.op.reference import linear_algebra as reference
from weft.relax.op.reference.rule import in_float64, quiet
from weft.relax.op.requirements import Required, with_dims
from weft.relax.struct_info import TensorStructInfo
from weft.topi import grouped, wide_products


def infer_matmul(call: Call) -> TensorStructInfo:
    """As numpy's matmul: batch dimensions broadcast, a vector is a row or a column."""
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


def _inner(call: Call) -> Required:
    """The inner dimensions must be equal."""
    lhs, rhs = (dims(arg) for arg in call.args)
    rhs[-2 if len(rhs) > 1 else -1] = lhs[-1]
    return {1: rhs}


@operator(
    "relax.matmul",
    infer_matmul,
    te=wide_products.matmul,
    requires=_inner,
    numpy=reference.matmul,
    traits=Trait.CONTRACTION | Trait.NARROW,
)
def matmul(x1: Expr, x2: Expr, out_dtype: Dtype | None = None) -> None:
    """The matrix product, over broadcast batch dimensions."""


def infer_grouped_matmul(call: Call) -> TensorStructInfo:
    """(rows, depth), (groups, depth, columns) and (groups,) give (rows, columns)."""
    data, weight = check_rank(call, 0, 2), check_rank(call, 1, 3)
    ends = check_rank(call, 2, 1)
    dtype = common_dtype(call, [data, weight])
    if ends.dtype not in (VOID, "int32", "int64"):
        fail(call, f"ends: expected int32 or int64, got {ends.dtype}")
    rows, matrices, groups = dims_of(data), dims_of(weight), dims_of(ends)
    if rows and matrices and differ(rows[1], matrices[1]):
        fail(call, f"expected rows of {matrices[1]} elements for {weight}, got {rows[1]}")
    if groups and matrices and differ(groups[0], matrices[0]):
        fail(call, f"expected an end for each of {matrices[0]} groups, got {groups[0]}")
    if rows is None or matrices is None:
        return result(None, dtype, 2, data.vdevice)
    return result([rows[0], matrices[2]], dtype, vdevice=data.vdevice)


def _grouped(call: Call) -> Required:
    """The depth of the rows and the number of ends are those of the matrices."""
    groups, depth, _ = dims(call.args[1])
    return {0: [dims(call.args[0])[0], depth], 2: [groups]}


@operator(
    "relax.grouped_matmul",
    infer_grouped_matmul,
    te=grouped.grouped_matmul,
    requires=_grouped,
    numpy=reference.grouped_matmul,
)
def grouped_matmul(data: Expr, weight: Expr, ends: Expr) -> None:
    """Runs of rows times a matrix each: a mixture of experts, its rows sorted by expert.

    Rows ``ends[g - 1]`` to ``ends[g]`` meet ``weight[g]``; rows behind the last end are 0.
    """


def infer_block_scaled_matmul(call: Call) -> TensorStructInfo:
    """(..., depth), (blocks, size, columns) and (blocks, columns) give (..., columns)."""
    data, weight, scales = tensor(call, 0), check_rank(call, 1, 3), check_rank(call, 2, 2)
    dtype = common_dtype(call, [data, scales])
    if not dtype.is_float:
        fail(call, f"expected data and scales of floats, got {dtype}")
    if weight.dtype not in (VOID, "int8", "uint8"):
        fail(call, f"weight: expected int8 or uint8, got {weight.dtype}")
    rows, numbers, factors = dims_of(data), dims_of(weight), dims_of(scales)
    if data.ndim == 0:
        fail(call, "expected at least 1 dimension, got 0")
    if numbers and factors and (differ(numbers[0], factors[0]) or differ(numbers[2], factors[1])):
        fail(call, f"expected scales of shape {show_dims([numbers[0], numbers[2]])}, got {scales}")
    if rows and numbers and differ(rows[-1], numbers[0] * numbers[1]):
        fail(call, f"expected {numbers[0]} blocks of {numbers[1]} elements, got {rows[-1]}")
    if rows is None or numbers is None:
        return result(None, dtype, data.ndim, data.vdevice)
    return result([*rows[:-1], numbers[2]], dtype, vdevice=data.vdevice)


def _blocks(call: Call) -> Required:
    """The depth of the data, and the shape of the scales, are those of the weight's blocks."""
    rows, (blocks, size, columns) = dims(call.args[0]), dims(call.args[1])
    return {0: [*rows[:-1], blocks * size], 2: [blocks, columns]}


@operator(
    "relax.block_scaled_matmul",
    infer_block_scaled_matmul,
    te=wide_products.block_scaled_matmul,
    requires=_blocks,
    numpy=reference.block_scaled_matmul,
)
def block_scaled_matmul(data: Expr, weight: Expr, scales: Expr) -> None:
    """The product with a matrix of bytes, each block of whose rows has a scale for each column.

    ``weight[b, i, j] * scales[b, j]`` is the element in row ``b * size + i`` and column ``j``.
    """


def linear(
    data: Expr, weight: Expr, bias: Expr | None = None, out_dtype: str | None = None
) -> Expr:
    """data times the transpose of weight, plus bias, as two or three operators.

    ``weight`` is (out_features, in_features).
    """
    product: Expr = matmul(data, permute_dims(weight, axes=None), out_dtype=out_dtype)
    return product if bias is None else add(product, bias)


def _subscripts(call: Call, ranks: Sequence[int]) -> tuple[list[str], str] | None:
    """The letters of the operands and of the result; None if an ellipsis has an unknown rank.

    An ellipsis becomes digits, counted from the right: ``...ij,jk->...ik`` for operands of ranks 4
    and 2 gives (["10ij", "jk"], "10ik").
    """
    text = str(call.attrs["subscripts"]).replace(" ", "")
    inputs, arrow, output = text.partition("->")
    names = inputs.split(",")
    if len(names) != len(ranks):
        fail(call, f"{text!r} names {len(names)} operands, got {len(ranks)}")
    if "..." in text and -1 in ranks:
        return None
    for index, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        count = rank - len(name.replace("...", ""))
        if rank != -1 and (count < 0 or (count and "..." not in name)):
            fail(call, f"operand {index} ({name}) must have {len(name)} dimensions, got {rank}")
        names[index] = name.replace("...", "".join(str(i) for i in reversed(range(count))))
    broadcast_axes = "".join(sorted({c for c in "".join(names) if c.isdigit()}, reverse=True))
    if not arrow:
        letters = inputs.replace(",", "").replace("...", "")
        output = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    output = output.replace("...", broadcast_axes)
    unknown = [c for c in output if not any(c in name for name in names)]
    if unknown or len(set(output)) != len(output):
        fail(call, f"the result of {text!r} has an unknown or repeated letter")
    return names, output


def _compare_letters(bb: Builder, tensors: list[RelaxExpr], terms: list[str]) -> None:
    """Check at run time that extents of the same letter are equal, unless one is known to be 1."""
    known: dict[str, PrimExpr] = {}
    for index, (operand, term) in enumerate(zip(tensors, terms, strict=True)):
        wanted = [
            dim if constant_value(dim) == 1 else known.setdefault(letter, dim)
            for letter, dim in zip(term, dims(operand), strict=True)
        ]
        tensors[index] = with_dims(bb, operand, wanted, f"einsum_{index}")


def _lower_einsum(bb: Builder, call: Call) -> RelaxExpr:
    tensors = tuple_fields(bb, call.args[0])
    terms = call.attrs["subscripts"].replace(" ", "").split("->")[0].split(",")
    if not any("." in term for term in terms):  # under an ellipsis extents may be 1
        _compare_letters(bb, tensors, terms)
    text = call.attrs["subscripts"]
    return bb.call_te(wide_products.einsum, tensors, text, primfunc_name_hint="einsum")


def infer_einsum(call: Call) -> TensorStructInfo:
    """One dimension for each letter of the output."""
    infos = tensors(call, 0)
    dtype = common_dtype(call, infos)
    parts = _subscripts(call, [info.ndim for info in infos])
    if parts is None:
        return result(None, dtype, -1, common_vdevice(infos))
    names, output = parts
    sizes: dict[str, Extent] = {}
    for letters, info in zip(names, infos, strict=True):
        for letter, dim in zip(letters, dims_of(info) or (), strict=False):
            known = sizes.get(letter)
            if known is None or constant_value(known) == 1:
                sizes[letter] = dim
            elif constant_value(dim) != 1 and differ(known, dim):
                fail(call, f"index {letter} has the extents {known} and {dim}")
    if all(letter in sizes for letter in output):
        return result([sizes[letter] for letter in output], dtype, vdevice=common_vdevice(infos))
    return result(None, dtype, len(output), common_vdevice(infos))


@operator(
    "relax.einsum",
    infer_einsum,
    legalize=_lower_einsum,
    numpy=quiet(reference.einsum),
    traits=Trait.CONTRACTION,
)
def einsum(operands: Exprs, subscripts: str) -> None:
    """Einstein's summation convention, as numpy.einsum; axes under an ellipsis broadcast."""


def infer_outer(call: Call) -> TensorStructInfo:
    """(n,) and (m,) give (n, m)."""
    x1, x2 = check_rank(call, 0, 1), check_rank(call, 1, 1)
    dtype = common_dtype(call, [x1, x2])
    mine, its = dims_of(x1), dims_of(x2)
    if mine is None or its is None:
        return result(None, dtype, 2, common_vdevice([x1, x2]))
    return result([mine[0], its[0]], dtype, vdevice=common_vdevice([x1, x2]))


@operator("relax.outer", infer_outer, te=wide_products.outer, numpy=in_float64(np.outer))
def outer(x1: Expr, x2: Expr) -> None:
    """The outer product of two vectors."""
