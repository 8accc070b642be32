"""Matrix products: ``matmul`` with numpy's rules, ``tensordot``."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import PrimExpr
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import compute, reduce_axis
from weft.te.tensor import Tensor
from weft.topi import tag
from weft.topi.extents import (
    Extents,
    as_sequence,
    broadcast_indices,
    broadcast_shape,
    may_be_equal,
    normalize_axis,
    placed,
    shape_text,
)


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The matrix product over the last two axes; the axes before broadcast (numpy.matmul).

    A 1-d operand is a row on the left and a column on the right, and its axis is dropped.
    ``transp_a``, ``transp_b``: the operand's last two axes are swapped.
    """
    if a.ndim == 0 or b.ndim == 0:
        raise IRValueError("matmul: expected at least 1 dimension, got a 0-d operand")
    row, column = a.ndim == 1, b.ndim == 1
    swap_a, swap_b = transp_a and not row, transp_b and not column
    depth_a = a.shape[-2] if swap_a else a.shape[-1]
    depth_b = b.shape[-1] if column or swap_b else b.shape[-2]
    if not may_be_equal(depth_a, depth_b):
        raise IRValueError(
            f"matmul: the shapes {shape_text(a.shape)} and {shape_text(b.shape)} do not multiply: "
            f"{depth_a} and {depth_b} differ"
        )
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2], "matmul")
    shape = list(batch)
    if not row:
        shape.append(a.shape[-1] if swap_a else a.shape[-2])
    if not column:
        shape.append(b.shape[-2] if swap_b else b.shape[-1])
    k = reduce_axis((0, depth_a), name="k")

    def element(*indices: PrimExpr) -> PrimExpr:
        outer, inner = indices[: len(batch)], list(indices[len(batch) :])
        left = [k.var] if row else [inner.pop(0), k.var]
        right = [k.var] if column else [k.var, inner.pop(0)]
        left, right = left[::-1] if swap_a else left, right[::-1] if swap_b else right
        lhs = a(*broadcast_indices(a.shape[:-2], batch, outer), *left)
        rhs = b(*broadcast_indices(b.shape[:-2], batch, outer), *right)
        return te_reduction.sum(lhs * rhs, axis=k)

    names = [f"ax{i}" for i in range(len(shape))]
    return compute(shape, element, "T_matmul", tag="matmul", varargs_names=names)


def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[Extents]) -> Tensor:
    """Sum over pairs of axes: the last n of a with the first n of b, or two lists of axes."""
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left = [normalize_axis(axis, a.ndim, "tensordot") for axis in as_sequence(axes[0])]
        right = [normalize_axis(axis, b.ndim, "tensordot") for axis in as_sequence(axes[1])]
    for mine, its in zip(left, right, strict=True):
        if not may_be_equal(a.shape[mine], b.shape[its]):
            raise IRValueError(
                f"tensordot: axis {mine} of {shape_text(a.shape)} and axis {its} of "
                f"{shape_text(b.shape)} differ"
            )
    ks = [reduce_axis((0, a.shape[axis]), name=f"k{n}") for n, axis in enumerate(left)]
    free_a = [i for i in range(a.ndim) if i not in left]
    free_b = [i for i in range(b.ndim) if i not in right]

    def element(*indices: PrimExpr) -> PrimExpr:
        summed = [k.var for k in ks]
        lhs = placed([*indices[: len(free_a)], *summed], [*free_a, *left])
        rhs = placed([*indices[len(free_a) :], *summed], [*free_b, *right])
        value = a(*lhs) * b(*rhs)
        return te_reduction.sum(value, axis=ks) if ks else value

    shape = [a.shape[i] for i in free_a] + [b.shape[i] for i in free_b]
    names = [f"ax{i}" for i in range(len(shape))]
    return compute(shape, element, "T_tensordot", tag=tag.INJECTIVE, varargs_names=names)
