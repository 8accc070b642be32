"""Shapes, axes and indices, reductions along axes, sorting, and new tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from weft.ir.expr import Extent, FloatImm, IntImm
from weft.ir.node import expect
from weft.relax import op as relax_op
from weft.relax.expr import Expr, ShapeExpr, const
from weft.relax.frontend.nn.tensor import Operand, Tensor, emit, expr_of, wrap_nested


def unsqueeze(x: Tensor, dim: int, name: str = "unsqueeze") -> Tensor:
    """A new axis of one element at position ``dim``."""
    return emit(relax_op.expand_dims(expr_of(x, "unsqueeze"), dim), name)


def squeeze(x: Tensor, axis: int = -1, name: str = "squeeze") -> Tensor:
    """Without an axis of one element."""
    return emit(relax_op.squeeze(expr_of(x, "squeeze"), axis), name)


def concat(x: Sequence[Tensor], dim: int, name: str = "concat") -> Tensor:
    """Tensors one after the other along an axis."""
    return emit(relax_op.concat([expr_of(item, "concat") for item in x], dim), name)


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> tuple[Tensor, ...]:
    """A tuple of ``chunks`` parts along an axis, the last of which may be smaller."""
    return _parts(relax_op.split(expr_of(x, "chunk"), chunks, dim), name)


def split(
    ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, name: str = "split"
) -> tuple[Tensor, ...]:
    """A tuple of parts along an axis: so many, or cut at these positions."""
    return _parts(relax_op.split(expr_of(ary, "split"), indices_or_sections, axis), name)


def _parts(expr: Expr, name: str) -> tuple[Tensor, ...]:
    """The tensors of an expression that is a tuple of them."""
    return tuple([expect(part, Tensor) for part in expect(wrap_nested(expr, name), tuple)])


def broadcast_to(x: Tensor, shape: Sequence[Extent], name: str = "broadcast_to") -> Tensor:
    """The tensor repeated to a shape, as numpy broadcasts."""
    return emit(relax_op.broadcast_to(expr_of(x, "broadcast_to"), shape), name)


def permute_dims(x: Tensor, axes: Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """The axes in another order, reversed if None.

    Without a name, what was called after a linear layer is called after a matmul (as in TVM).
    """
    expr = expr_of(x, "permute_dims")
    if name is None:
        hint = getattr(expr, "name_hint", "")
        name = hint.replace("linear", "matmul") if "linear" in hint else "permute_dims"
    return emit(relax_op.permute_dims(expr, axes), name)


def permute(x: Tensor, axes: Sequence[int] | None, name: str = "permute") -> Tensor:
    """``permute_dims`` under torch's name."""
    return emit(relax_op.permute_dims(expr_of(x, "permute"), axes), name)


def reshape(x: Tensor, shape: Sequence[Extent], name: str = "reshape") -> Tensor:
    """The elements in another shape; one extent may be -1, and 0 keeps the one at its place."""
    return emit(relax_op.reshape(expr_of(x, "reshape"), shape), name)


def repeat(x: Tensor, repeats: int, axis: int | None = None, name: str = "repeat") -> Tensor:
    """Each element ``repeats`` times along an axis (flat if None)."""
    return emit(relax_op.repeat(expr_of(x, "repeat"), repeats, axis), name)


def take(x: Tensor, indices: Tensor, axis: int | None = None, name: str = "take") -> Tensor:
    """The elements of x at indices along an axis (flat if None)."""
    return emit(relax_op.take(expr_of(x, "take"), expr_of(indices, "take: indices"), axis), name)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """The upper triangle from a diagonal on, zeros elsewhere."""
    return emit(relax_op.triu(expr_of(x, "triu"), diagonal), name)


def pad(
    x: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
    name: str = "pad",
) -> Tensor:
    """Elements before and after every axis: (before, after) for the first axis, then the next."""
    return emit(relax_op.nn.pad(expr_of(x, "pad"), pad, mode, value), name)


def sum(  # noqa: A001 - TVM's name
    x: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False, name: str = "sum"
) -> Tensor:
    """The sum along axes (all if None)."""
    return emit(relax_op.sum(expr_of(x, "sum"), axis, keepdims), name)


def max(  # noqa: A001 - TVM's name
    x: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False, name: str = "max"
) -> Tensor:
    """The largest along axes (all if None)."""
    return emit(relax_op.max(expr_of(x, "max"), axis, keepdims), name)


def min(  # noqa: A001 - TVM's name
    x: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False, name: str = "min"
) -> Tensor:
    """The smallest along axes (all if None)."""
    return emit(relax_op.min(expr_of(x, "min"), axis, keepdims), name)


def cumsum(
    data: Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
    name: str = "cumsum",
) -> Tensor:
    """Running sums along an axis (flat if None); exclusive: without the element itself."""
    sums = relax_op.cumsum(expr_of(data, "cumsum"), axis, dtype, bool(exclusive))
    return emit(sums, name)


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> Tensor:
    """The elements in order along an axis."""
    return emit(relax_op.sort(expr_of(x, "sort"), axis, descending), name)


def argsort(
    data: Tensor,
    axis: int = -1,
    descending: bool = False,
    dtype: str = "int32",
    name: str = "argsort",
) -> Tensor:
    """The indices that bring the elements in order along an axis."""
    return emit(relax_op.argsort(expr_of(data, "argsort"), axis, descending, dtype), name)


@overload
def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: Literal["both"] = "both",
    largest: bool = True,
    dtype: str = "int32",
    name: str = "topk",
) -> tuple[Tensor, ...]: ...


@overload
def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    *,
    ret_type: Literal["values", "indices"],
    largest: bool = True,
    dtype: str = "int32",
    name: str = "topk",
) -> Tensor: ...


@overload
def topk(
    data: Tensor,
    k: int,
    axis: int,
    ret_type: Literal["values", "indices"],
    largest: bool = True,
    dtype: str = "int32",
    name: str = "topk",
) -> Tensor: ...


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
    name: str = "topk",
) -> Tensor | tuple[Tensor, ...]:
    """The k largest elements along an axis in order: ``"values"``, ``"indices"`` or ``"both"``."""
    call = relax_op.topk(expr_of(data, "topk"), k, axis, ret_type, largest, dtype)
    return _parts(call, name) if ret_type == "both" else emit(call, name)


def full(
    shape: Sequence[Extent], fill_value: Operand, dtype: str = "float32", name: str = "full"
) -> Tensor:
    """A tensor of one value: a number, or a tensor without dimensions."""
    if isinstance(fill_value, IntImm | FloatImm):
        fill_value = fill_value.value
    if isinstance(fill_value, int | float):
        value: Expr = const(fill_value, dtype)
    else:
        value = expr_of(fill_value, "full: fill_value")
    return emit(relax_op.full(shape, value, dtype), name)


def zeros(shape: Sequence[Extent], dtype: str = "float32", name: str = "zeros") -> Tensor:
    """A tensor of zeros."""
    return emit(relax_op.zeros(shape, dtype), name)


def ones(shape: Sequence[Extent], dtype: str = "float32", name: str = "ones") -> Tensor:
    """A tensor of ones."""
    return emit(relax_op.ones(shape, dtype), name)


def empty(shape: Sequence[Extent], dtype: str = "float32", name: str = "empty") -> Tensor:
    """A tensor whose elements nothing has set."""
    memory = relax_op.builtin.alloc_tensor(ShapeExpr(shape), dtype, runtime_device_index=0)
    return emit(memory, name)
