"""Arithmetic at import: operators on values that are known (numbers and integer expressions).

``fold`` answers with the result's elements, or None where the operator is not in the table or its
result is not known (a comparison of symbols that cannot be decided). Only small values are folded:
what computes with weights is left to FoldConstant.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.relax.frontend.onnx.element_types import (
    BOOL,
    INT32,
    INT64,
    SMALL,
    STORAGE,
    STRING,
)
from weft.relax.frontend.onnx.protos import Attribute, Attributes
from weft.relax.frontend.onnx.value import Array, Dim, as_prim
from weft.relax.ir.shape_arith import simplified
from weft.tir import op as tir
from weft.tir.arithmetic import truncated_quotient

Fold = Callable[..., Array]
"""An operator on arrays, some of which may hold expressions; attributes are keywords."""
Axes = Array | Sequence[int] | None
"""Axes as an input, or as an attribute; None is all of them."""
LIMIT: Final = 1024
"""Results of so many elements are computed at import."""
VIEWS: Final = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
"""Operators that compute nothing: their results are known of weights, too."""


class NotKnownError(Exception):
    """The result depends on what is not known at import."""


REFUSALS: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What numpy raises of operands and attributes that it cannot take: the converter takes them, or
says what is wrong."""


def fold(name: str, inputs: Sequence[Array | None], attributes: Attributes) -> Array | None:
    """The elements of the operator's result, or None (see the module's docstring)."""
    row = TABLE.get(name)
    limit = math.inf if name in VIEWS else LIMIT
    if row is None or any(item is not None and item.size > limit for item in inputs):
        return None
    if any(item is not None and item.dtype.kind in "UST" for item in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(row(*inputs, **attributes))
    except (NotKnownError, *REFUSALS):
        return None
    return None if result.size > limit else settle(result)


def settle(array: Array) -> Array:
    """Object elements in simplest form; an array of numbers where all of them are numbers."""
    if array.dtype != object:
        return array
    flat = [_settled(item) for item in array.ravel().tolist()]
    if all(isinstance(item, int) for item in flat):
        return np.array(flat, "int64").reshape(array.shape)
    settled = np.empty(len(flat), object)
    settled[:] = flat
    return settled.reshape(array.shape)


def _settled(item: Dim) -> Dim:
    if isinstance(item, PrimExpr):
        item = simplified(item)
        return item.value if isinstance(item, IntImm) else item
    return int(item)


def claim_of(name: str, inputs: Sequence[Array | None]) -> PrimExpr | None:
    """What a comparison of two dimensions says where ``fold`` cannot decide it.

    Before opset 9 there is no comparison of integers, so they are cast to floats: these may stand
    beside dimensions where they are whole.
    """
    relation = _RELATIONS.get(name)
    if relation is None or any(item is None or item.size != 1 for item in inputs):
        return None
    numbers = [item.ravel().tolist()[0] for item in inputs if item is not None]
    numbers = [int(item) if type(item) is float and item.is_integer() else item for item in numbers]
    if all(type(item) is int or isinstance(item, PrimExpr) for item in numbers):
        return relation(*[as_prim(item) for item in numbers])
    return None


def is_symbolic(*arrays: Array) -> bool:
    """Whether an array has elements that are expressions."""
    return any(array.dtype == object for array in arrays)


def _elementwise(function: Callable[..., Dim]) -> Fold:
    """A function of elements on whole object arrays, broadcast."""

    def apply(*arrays: Array) -> Array:
        spread = np.broadcast_arrays(*arrays)
        flat = zip(*[item.ravel().tolist() for item in spread], strict=True)
        results = np.empty(spread[0].size, object)
        results[:] = [function(*items) for items in flat]
        return results.reshape(spread[0].shape)

    return apply


def _non_negative(value: Dim) -> bool:
    return value >= 0 if isinstance(value, int) else bool(Analyzer().can_prove(value >= 0))


def _divided(lhs: Dim, rhs: Dim) -> Dim:
    """The quotient rounded towards zero, of dimensions and what is computed of them."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        if rhs == 0:
            raise NotKnownError
        return truncated_quotient(lhs, rhs)
    if _non_negative(lhs) and _non_negative(rhs):
        return tir.floordiv(as_prim(lhs), as_prim(rhs))
    return tir.truncdiv(as_prim(lhs), as_prim(rhs))


def _divide(a: Array, b: Array) -> Array:
    if is_symbolic(a, b):
        return _elementwise(_divided)(a, b)
    if a.dtype.kind in "iu":
        return _elementwise(_divided)(a, b).astype(a.dtype)
    return np.asarray(a / b, a.dtype)


def _modulo(a: Array, b: Array, fmod: int = 0) -> Array:
    if not is_symbolic(a, b):
        return np.asarray(np.fmod(a, b) if fmod else np.mod(a, b), a.dtype)

    def rest(lhs: Dim, rhs: Dim) -> Dim:
        is_same = not fmod or (_non_negative(lhs) and _non_negative(rhs))
        return (tir.floormod if is_same else tir.truncmod)(as_prim(lhs), as_prim(rhs))

    return _elementwise(rest)(a, b)


def _decided(
    relation: Callable[[PrimExpr, PrimExpr], PrimExpr], numbers: Callable[..., npt.ArrayLike]
) -> Fold:
    """A comparison; NotKnownError where it is not decided for all values of the symbols."""

    def compare(lhs: Dim, rhs: Dim) -> bool:
        if isinstance(lhs, int) and isinstance(rhs, int):
            return bool(numbers(lhs, rhs))
        claim, analyzer = relation(as_prim(lhs), as_prim(rhs)), Analyzer()
        if analyzer.can_prove(claim):
            return True
        if analyzer.can_prove(tir.logical_not(claim)):
            return False
        raise NotKnownError

    def apply(a: Array, b: Array) -> Array:
        if is_symbolic(a, b):
            return _elementwise(compare)(a, b).astype(bool)
        return np.asarray(numbers(a, b))

    return apply


def _plain(function: Callable[..., Array]) -> Fold:
    """An operator of two numbers that objects have too (+, -, *)."""
    return lambda a, b: np.asarray(function(a, b), object if is_symbolic(a, b) else a.dtype)


def _extreme(
    function: Callable[..., Array], symbolic: Callable[[PrimExpr, PrimExpr], PrimExpr]
) -> Fold:
    def apply(*arrays: Array) -> Array:
        extreme = arrays[0]
        for other in arrays[1:]:
            if is_symbolic(extreme, other):
                choose = _elementwise(lambda x, y: symbolic(as_prim(x), as_prim(y)))
                extreme = choose(extreme, other)
            else:
                extreme = function(extreme, other)
        return extreme

    return apply


def _numbers(function: Callable[..., npt.ArrayLike]) -> Fold:
    """A function of numbers only."""

    def apply(*arrays: Array, **attributes: Attribute) -> Array:
        if is_symbolic(*[item for item in arrays if item is not None]):
            raise NotKnownError
        return np.asarray(function(*arrays, **attributes))

    return apply


def _same_dtype(function: Callable[..., npt.ArrayLike]) -> Fold:
    return _numbers(lambda x: np.asarray(function(x), x.dtype))


def _cast(x: Array, to: int, **others: Attribute) -> Array:
    if to in SMALL or to == STRING or others.get("saturate", 1) != 1:
        raise NotKnownError
    if is_symbolic(x):
        if to not in (INT32, INT64):
            raise NotKnownError
        return x  # extents of tensors fit into int32
    if x.dtype.kind not in "biu" and np.dtype(STORAGE[to]).kind in "iu":
        x, limits = np.trunc(x.astype("float64")), np.iinfo(STORAGE[to])
        if not ((x >= limits.min) & (x < limits.max + 1)).all():
            raise NotKnownError
    return x.astype(np.bool_ if to == BOOL else STORAGE[to])


def _gather(x: Array, indices: Array, axis: int = 0) -> Array:
    extent = x.shape[axis]
    if is_symbolic(indices) or (
        indices.size and not (-extent <= int(indices.min()) and int(indices.max()) < extent)
    ):
        raise NotKnownError
    return np.take(x, indices.astype("int64"), axis)


def _slice(
    x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
) -> Array:
    if is_symbolic(starts, ends):
        raise NotKnownError
    chosen = range(len(starts)) if axes is None else axes.tolist()
    strides = [1] * len(starts) if steps is None else steps.tolist()
    index = [slice(None)] * x.ndim
    bounds = zip(chosen, starts.tolist(), ends.tolist(), strides, strict=True)
    for axis, first, last, step in bounds:
        if step < 0 and last < -x.shape[axis]:
            last = None
        index[axis] = slice(first, last, step)
    return x[tuple(index)]


def _slice_attributes(
    x: Array, *, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None
) -> Array:
    return _slice(x, np.array(starts), np.array(ends), None if axes is None else np.array(axes))


def _slice_any(x: Array, *inputs: Array, **attributes: Sequence[int]) -> Array:
    return _slice(x, *inputs) if inputs else _slice_attributes(x, **attributes)


def _axes(axes: Axes) -> tuple[int, ...] | None:
    if axes is None:
        return None
    if isinstance(axes, np.ndarray) and is_symbolic(axes):
        raise NotKnownError
    return tuple(int(axis) for axis in np.ravel(axes))


def _squeeze(x: Array, axes_input: Array | None = None, *, axes: Axes = None) -> Array:
    return np.squeeze(x, _axes(axes_input if axes is None else axes))


def _unsqueeze(x: Array, axes_input: Array | None = None, *, axes: Axes = None) -> Array:
    return np.expand_dims(x, _axes(axes_input if axes is None else axes) or ())


def _reshape(x: Array, shape: Array, *, allowzero: int = 0) -> Array:
    if is_symbolic(shape):
        raise NotKnownError
    sizes = shape.tolist()
    if not allowzero:
        sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return x.reshape(sizes)


def _reduce(function: Callable[..., npt.ArrayLike]) -> Fold:
    def apply(
        x: Array,
        axes_input: Array | None = None,
        *,
        axes: Axes = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Array:
        chosen = _axes(axes_input if axes is None else axes)
        if not chosen:
            if noop_with_empty_axes:
                return x
            chosen = None
        if is_symbolic(x) and not x.size:
            raise NotKnownError
        return np.asarray(function(x, axis=chosen, keepdims=bool(keepdims)), x.dtype)

    return apply


def _range(start: Array, limit: Array, delta: Array) -> Array:
    if is_symbolic(start, limit, delta):
        raise NotKnownError
    count = max(math.ceil((limit.item() - start.item()) / delta.item()), 0)
    if count > LIMIT:
        raise NotKnownError
    return np.asarray(start + np.arange(count) * delta, start.dtype)


def _full(shape: Array, *, value: Array | None = None) -> Array:
    if is_symbolic(shape) or np.prod(shape, dtype=float) > LIMIT:
        raise NotKnownError
    fill = np.zeros(1, "float32") if value is None else value
    return np.full(shape.tolist(), fill.ravel()[0], fill.dtype)


def _expand(x: Array, shape: Array) -> Array:
    if is_symbolic(shape) or np.prod(shape, dtype=float) > LIMIT:
        raise NotKnownError
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


def _where(condition: Array, x: Array, y: Array) -> Array:
    chosen = np.where(condition, x, y)
    return chosen if is_symbolic(x, y) else chosen.astype(x.dtype)


def _transpose(x: Array, *, perm: Sequence[int] | None = None) -> Array:
    return np.transpose(x, perm)


def _concat(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis)


_RELATIONS: Final[dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]]] = {
    "Equal": operator.eq, "Less": operator.lt, "LessOrEqual": operator.le,
    "Greater": operator.gt, "GreaterOrEqual": operator.ge,
}  # fmt: skip


TABLE: Final[dict[str, Fold]] = {
    "Identity": lambda x: x,
    "Cast": _cast,
    "Add": _plain(np.add), "Sub": _plain(np.subtract), "Mul": _plain(np.multiply),
    "Div": _divide, "Mod": _modulo,
    "Neg": lambda x: -x,
    "Abs": _same_dtype(np.abs), "Floor": _same_dtype(np.floor), "Ceil": _same_dtype(np.ceil),
    "Relu": _same_dtype(lambda x: np.maximum(x, 0)), "Sqrt": _same_dtype(np.sqrt),
    "Reciprocal": _same_dtype(np.reciprocal),
    "Min": _extreme(np.minimum, tir.min), "Max": _extreme(np.maximum, tir.max),
    "Equal": _decided(operator.eq, np.equal),
    "Less": _decided(operator.lt, np.less), "LessOrEqual": _decided(operator.le, np.less_equal),
    "Greater": _decided(operator.gt, np.greater),
    "GreaterOrEqual": _decided(operator.ge, np.greater_equal),
    "Not": _numbers(np.logical_not), "And": _numbers(np.logical_and),
    "Or": _numbers(np.logical_or), "Xor": _numbers(np.logical_xor),
    "Where": _where,
    "Gather": _gather, "Slice": _slice_any, "Concat": _concat, "Transpose": _transpose,
    "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Reshape": _reshape, "Expand": _expand,
    "ReduceSum": _reduce(np.sum), "ReduceProd": _reduce(np.prod),
    "ReduceMax": _numbers(_reduce(np.max)), "ReduceMin": _numbers(_reduce(np.min)),
    "Range": _range, "ConstantOfShape": _full,
}  # fmt: skip
"""Operator -> its result on known elements; attributes have their ONNX names."""
