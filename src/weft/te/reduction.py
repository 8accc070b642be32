"""Commutative reductions over axes: ``comm_reducer`` and the common ``sum``, ``max``, ``min``.

A reducer called with an axis builds ``Reduce`` nodes, one for each component. Called with two or
more values it combines these: ``te.max(A(*i), 0)``. ``weft.tir.op`` finds these functions by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from weft.ir.expr import ExprLike, PrimExpr, as_prim_expr
from weft.ir.node import Array
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.tir import op
from weft.tir.expr import CommReducer, IterType, IterVar, Reduce, Var
from weft.tir.reducer import declare_reducer

Combine = Callable[[Any, Any], Any]
"""A function that combines two values, or two sequences of components."""
Identity = Callable[..., Any]
"""A function from the data type of each component to the value that changes nothing."""
Axes = IterVar | Sequence[IterVar]


class Reducer(Protocol):
    """A reduction of an expression or a tuple over axes, or of the given values."""

    @overload
    def __call__(
        self,
        expr: ExprLike,
        axis: Axes | ExprLike,
        where: ExprLike | None = None,
        init: ExprLike | None = None,
        /,
        *args: ExprLike,
    ) -> PrimExpr: ...
    @overload
    def __call__(
        self,
        expr: ExprLike,
        axis: Axes,
        where: ExprLike | None = None,
        init: ExprLike | None = None,
    ) -> PrimExpr: ...
    @overload
    def __call__(
        self,
        expr: list[PrimExpr] | tuple[ExprLike, ...],
        axis: Axes,
        where: ExprLike | None = None,
        init: list[PrimExpr] | tuple[ExprLike, ...] | None = None,
    ) -> tuple[PrimExpr, ...]: ...


def comm_reducer(fcombine: Combine, fidentity: Identity, name: str = "reduce") -> Reducer:
    """Make a reduction from a function that combines two values.

    Args:
        fcombine: takes two values and returns the combined one. For a reduction of tuples
            (argmax) it takes and returns tuples.
        fidentity: takes a data type and returns the value that changes nothing. For tuples it
            takes a data type for each component and returns a tuple.
        name: the name of the reduction.

    Returns:
        A function ``reducer(expr, axis, where=None, init=None)``, as ``te.sum`` is one.

    >>> from weft import te
    >>> product = te.comm_reducer(lambda x, y: x * y, lambda t: te.const(1, t), name="product")
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis(8, name="k")
    >>> te.compute((4,), lambda i: product(A[i, k], axis=k), name="B").shape
    [4]
    """
    if not callable(fcombine) or not callable(fidentity):
        wrong = fidentity if callable(fcombine) else fcombine
        raise wrong_type("comm_reducer: expected two functions", wrong)

    def reducer(
        expr: Any,
        axis: Any = None,
        where: ExprLike | None = None,
        init: Any = None,
        *args: ExprLike,
    ) -> Any:
        _check_arguments(name, expr, axis)
        if isinstance(axis, IterVar | list | tuple):
            return _reduce(name, fcombine, fidentity, (expr, axis, where, init))
        result = fcombine(expr, axis)
        for operand in (where, init, *args):
            if operand is not None:
                result = fcombine(result, operand)
        return result

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = (
        f"The {name} of ``expr`` over ``axis`` (one reduction axis or a list of them), where "
        f"``where`` holds; with expressions for ``axis`` and further arguments, the {name} of all."
    )
    return reducer


def _check_arguments(name: str, expr: object, axis: object) -> None:
    """Refuse whole tensors, and reductions without a reduction axis."""
    if hasattr(expr, "op") and hasattr(expr, "value_index"):
        raise IRTypeError(
            f"te.{name}: expected an element such as x[i, k], got the whole tensor "
            f"{getattr(expr, 'name', '')}; "
            f"topi.{name}(x, axis=1) reduces a tensor, or: "
            f"{_example(name)}"
        )
    if axis is None:
        raise IRTypeError(f"te.{name}: the axis is missing; {_example(name)}")


def _example(name: str) -> str:
    return (
        "k = te.reduce_axis((0, 8), name='k'); "
        f"te.compute((4,), lambda i: te.{name}(x[i, k], axis=k))"
    )


def _reduce(
    name: str, fcombine: Combine, fidentity: Identity, args: tuple[Any, Any, Any, Any]
) -> PrimExpr | tuple[PrimExpr, ...]:
    expr, axis, where, init = args
    axes = _axes(name, axis)
    several = isinstance(expr, list | tuple)
    sources = [as_prim_expr(item) for item in expr] if several else [as_prim_expr(expr)]
    left, right = list(inspect.signature(fcombine).parameters)[:2]
    dtypes = [source.dtype for source in sources]
    if several:
        lhs = [Var(f"{left}_{i}", dtype) for i, dtype in enumerate(dtypes)]
        rhs = [Var(f"{right}_{i}", dtype) for i, dtype in enumerate(dtypes)]
        results, identities = fcombine(lhs, rhs), fidentity(*dtypes)
    else:
        lhs, rhs = [Var(left, dtypes[0])], [Var(right, dtypes[0])]
        results, identities = [fcombine(lhs[0], rhs[0])], [fidentity(dtypes[0])]
    results, identities = _typed(name, results, dtypes), _typed(name, identities, dtypes)
    combiner = CommReducer(lhs, rhs, results, identities)
    declare_reducer(combiner)
    start = () if init is None else tuple(init) if several else (init,)
    starts = _typed(name, start, dtypes) if start else Array()
    condition = op.const(True, "bool") if where is None else as_prim_expr(where)
    components = tuple(
        [Reduce(combiner, sources, axes, condition, i, starts) for i in range(len(sources))]
    )
    return components if several else components[0]


def _axes(name: str, axis: IterVar | Sequence[IterVar]) -> Array[IterVar]:
    axes = Array(axis if isinstance(axis, list | tuple) else [axis])
    for item in axes:
        if not isinstance(item, IterVar):
            raise IRTypeError(f"{name}: an axis must be a te.reduce_axis, got {item!r}")
        if item.iter_type is not IterType.CommReduce:
            raise IRValueError(f"{name}: {item.var.name} is no reduction axis; use te.reduce_axis")
    if len({id(item) for item in axes}) != len(axes):
        raise IRValueError(f"{name}: an axis is given twice; make another one by te.reduce_axis")
    return axes


def _typed(name: str, values: Sequence[ExprLike], dtypes: list[DataType]) -> Array[PrimExpr]:
    """An expression for each component, of the component's type; numbers are converted."""
    if len(values) != len(dtypes):
        raise IRValueError(f"{name}: expected {len(dtypes)} components, got {len(values)}")
    typed = []
    for value, dtype in zip(values, dtypes, strict=True):
        if hasattr(value, "as_prim_expr"):
            value = value.as_prim_expr()
        expr = value if isinstance(value, PrimExpr) else op.const(value, dtype)
        if expr.dtype is not dtype:
            raise IRTypeError(f"{name}: a component is {dtype}, its combination is {expr.dtype}")
        typed.append(expr)
    return Array(typed)


def _add(x: ExprLike, y: ExprLike) -> PrimExpr:
    return op.add(x, y)


def _maximum(x: ExprLike, y: ExprLike) -> PrimExpr:
    return op.maximum(x, y)


def _minimum(x: ExprLike, y: ExprLike) -> PrimExpr:
    return op.minimum(x, y)


def _zero(dtype: str) -> PrimExpr:
    return op.const(0, dtype)


def lowest(dtype: str) -> PrimExpr:
    """The identity of max: -inf, or the smallest integer (TVM 0.20 has the smallest float)."""
    return -op.infinity(dtype) if DataType(dtype).is_float else op.min_value(dtype)


def highest(dtype: str) -> PrimExpr:
    """The identity of min: inf, or the largest integer."""
    return op.infinity(dtype) if DataType(dtype).is_float else op.max_value(dtype)


sum = comm_reducer(_add, _zero, name="sum")  # noqa: A001 - TVM's name
max = comm_reducer(_maximum, lowest, name="max")  # noqa: A001 - TVM's name
min = comm_reducer(_minimum, highest, name="min")  # noqa: A001 - TVM's name

op.register_reducers(comm_reducer=comm_reducer, sum=sum, max=max, min=min)
