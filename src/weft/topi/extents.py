"""Functions of shapes, axes and broadcasting that the operators share.

Extents are expressions; two are equal when they are equal constants or structurally equal. The
checks raise IRValueError or IRIndexError with the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard, TypeVar

from weft.arith.analyzer import Analyzer
from weft.ir.expr import ExprLike, Extent, IntImm, PrimExpr, as_prim_expr
from weft.ir.structural import structural_equal
from weft.support.errors import IRIndexError, IRTypeError, IRValueError
from weft.te.operation import Element, Elements, as_list, compute
from weft.te.tensor import Operand, Tensor
from weft.tir import op
from weft.topi.simplify import simplified

Item = TypeVar("Item")
Shape = Sequence[Extent]
Point = Sequence[PrimExpr]
"""The indices of an element."""
Extents = Extent | Sequence[Extent]
"""One number for all axes, or one for each."""
Axes = Extents | None
"""Axes of a tensor; -1 is the last one, None means all."""


def compute_ax(
    shape: Shape,
    function: Element,
    name: str,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """``te.compute`` of one output with the axes named ``ax0, ax1, ...``."""
    names = [f"ax{i}" for i in range(len(shape))]
    return compute(shape, function, name, tag, attrs, varargs_names=names)


def compute_pair(
    shape: Shape, function: Elements, name: str, tag: str = ""
) -> tuple[Tensor, Tensor]:
    """``compute_ax`` of two outputs."""
    names = [f"ax{i}" for i in range(len(shape))]
    first, second = as_list(compute(shape, function, name, tag, varargs_names=names))
    return first, second


def is_const(extent: Extent, value: int | None = None) -> TypeGuard[IntImm | int]:
    """Whether an extent is a constant (of that value)."""
    return op.is_const_int(as_prim_expr(extent), value)


def const_int(value: ExprLike, what: str) -> int:
    """A Python int from an int or a constant; raises IRTypeError for a symbolic value."""
    expr = simplified(as_prim_expr(value))
    if not isinstance(expr, IntImm):
        raise IRTypeError(f"{what}: expected a constant, got the expression {expr}")
    return expr.value


def const_ints(values: Extents, what: str) -> list[int]:
    """Python ints from a sequence of constants or from one."""
    return [const_int(value, what) for value in as_sequence(values)]


def same_extent(first: Extent, second: Extent) -> bool:
    """Whether two extents are known to be equal."""
    a, b = as_prim_expr(first), as_prim_expr(second)
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    return a is b or structural_equal(a, b)


def may_be_equal(first: Extent, second: Extent) -> bool:
    """Whether two extents can be equal: false for two different constants only."""
    return same_extent(first, second) or not (is_const(first) and is_const(second))


def product(extents: Shape) -> Extent:
    """The product of extents; 1 of none."""
    result: Extent = 1
    for extent in extents:
        result = extent * result if result == 1 and isinstance(result, int) else result * extent
    return result


def placed(items: Sequence[Item], at: Sequence[int]) -> list[Item]:
    """Items in the order of a layout: item ``i`` comes to position ``at[i]``.

    ``placed("NCHW", [0, 3, 1, 2]) -> ["N", "H", "W", "C"]``
    """
    return [items[at.index(place)] for place in range(len(items))]


def shape_text(shape: Shape) -> str:
    """A shape as users write it."""
    return "(" + ", ".join([str(extent) for extent in shape]) + ")"


def normalize_axis(axis: Extent, ndim: int, name: str) -> int:
    """An axis in [0, ndim); raises IRIndexError outside of [-ndim, ndim)."""
    value = const_int(axis, f"{name}: axis")
    if not -ndim <= value < ndim:
        raise IRIndexError(f"{name}: axis {value} is out of range for a {ndim}-dimensional tensor")
    return value % ndim


def normalize_axes(axis: Axes, ndim: int, name: str) -> list[int]:
    """Axes in order, without repetition; None means all."""
    if axis is None:
        return list(range(ndim))
    axes = [normalize_axis(item, ndim, name) for item in as_sequence(axis)]
    if len(set(axes)) != len(axes):
        raise IRValueError(f"{name}: an axis is given twice in {tuple(axes)}")
    return sorted(axes)


def as_sequence(value: Extents) -> list[Extent]:
    """A list from a sequence or from one value."""
    return list(value) if isinstance(value, Sequence) else [value]


def operand(value: Operand, other: Operand | None = None) -> Tensor | PrimExpr:
    """A tensor, or a scalar expression; a Python number takes the type of ``other``."""
    if isinstance(value, Tensor | PrimExpr):
        return value
    if isinstance(other, Tensor | PrimExpr) and isinstance(value, bool | int | float):
        dtype = other.dtype
        if dtype.is_float or not isinstance(value, float):
            return op.const(value, dtype)
    return as_prim_expr(value)


def broadcast_shape(first: Shape, second: Shape, name: str) -> list[Extent]:
    """The common shape of two shapes by numpy's rule; a symbolic extent fits any other."""
    rank = max(len(first), len(second))
    lhs = [1] * (rank - len(first)) + list(first)
    rhs = [1] * (rank - len(second)) + list(second)
    return [_broadcast_extent(a, b, (first, second, name)) for a, b in zip(lhs, rhs, strict=True)]


def _broadcast_extent(a: Extent, b: Extent, context: tuple[Shape, Shape, str]) -> Extent:
    if same_extent(a, b):
        return b if isinstance(a, int) else a
    if is_const(a, 1):
        return b
    if is_const(b, 1):
        return a
    if is_const(a) and is_const(b):
        first, second, name = context
        raise IRValueError(
            f"{name}: the shapes {shape_text(first)} and {shape_text(second)} do not broadcast: "
            f"{a} and {b} differ"
        )
    if is_const(a) or is_const(b):
        return a if is_const(a) else b
    for extent, other in ((a, b), (b, a)):
        if cannot_stretch(extent, other):
            return extent
    # If one of two symbols is 1, the result is the other (also if that is 0). If they differ
    # otherwise, the result is the larger: the other tensor lacks elements, and the kernel fails.
    return op.select(op.equal(a, 1), b, op.select(op.equal(b, 1), a, op.maximum(a, b)))


def cannot_stretch(a: Extent, b: Extent) -> bool:
    """Whether ``a`` is proved to be the extent of both: it is not 1, or ``b`` is at most that.

    Of the latter, ``b`` of 0 beside an ``a`` of 1 is the exception: then 0 is the result.
    """
    first, second, analyzer = as_prim_expr(a), as_prim_expr(b), Analyzer()
    if analyzer.can_prove(first != 1):
        return True
    return analyzer.can_prove(second <= first) and analyzer.can_prove(
        op.minimum(first, 1) <= second
    )


def broadcast_indices(shape: Shape, target: Shape, indices: Point) -> list[PrimExpr]:
    """The indices into a tensor of ``shape`` for ``indices`` into it broadcast to ``target``.

    If an extent is not proved to be equal to the target's, the kernel compares them: for an extent
    that is neither equal nor 1, the index is -1, so that the kernel fails instead of reading a
    part of the tensor.
    """
    offset = len(target) - len(shape)
    source = []
    for extent, whole, index in zip(shape, target[offset:], indices[offset:], strict=True):
        if same_extent(extent, whole):
            source.append(index)
        elif is_const(extent, 1):
            source.append(op.const(0, index.dtype))
        else:
            compared = op.select(op.equal(extent, whole), index, op.const(-1, index.dtype))
            if not is_const(extent):
                stretched = op.equal(extent, 1)
                compared = op.if_then_else(stretched, op.const(0, index.dtype), compared)
            source.append(compared)
    return source


def ravel_index(indices: Point, shape: Shape) -> PrimExpr:
    """The row-major position of an element."""
    flat: Extent | None = None
    for index, extent in zip(indices, shape, strict=True):
        flat = index if flat is None else flat * extent + index
    return as_prim_expr(0 if flat is None else flat)


def unravel_index(flat: Extent, shape: Shape) -> list[PrimExpr]:
    """The indices of the element at a row-major position (zeros where there is no element)."""
    if any(is_const(extent, 0) for extent in shape):
        return [op.const(0, as_prim_expr(extent).dtype) for extent in shape]
    indices: list[PrimExpr] = []
    rest = flat
    for extent in reversed(shape):
        indices.append(op.floormod(rest, extent))
        rest = op.floordiv(rest, extent)
    return indices[::-1]
