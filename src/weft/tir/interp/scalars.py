"""Closures for what the reference interpreter evaluates most: integers, and places of elements.

They compute what ``arithmetic`` says. Each is one function, where a closure over a function of the
table would be three calls: index arithmetic takes most of the time of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import integer_range
from weft.support.dtype import DataType
from weft.support.errors import RuntimeFault
from weft.tir.interp.arithmetic import is_vector
from weft.tir.interp.state import State, Thunk
from weft.tir.interp.values import Value
from weft.tir.op import wrap

Wrap = Callable[[Value], Value]
"""Brings an exact result into the range of its type."""


def _sum(a: Thunk, b: Thunk, low: int, high: int, wrapped: Wrap) -> Thunk:
    def evaluate(state: State) -> Value:
        value = a(state) + b(state)
        return value if low <= value <= high else wrapped(value)

    return evaluate


def _difference(a: Thunk, b: Thunk, low: int, high: int, wrapped: Wrap) -> Thunk:
    def evaluate(state: State) -> Value:
        value = a(state) - b(state)
        return value if low <= value <= high else wrapped(value)

    return evaluate


def _product(a: Thunk, b: Thunk, low: int, high: int, wrapped: Wrap) -> Thunk:
    def evaluate(state: State) -> Value:
        value = a(state) * b(state)
        return value if low <= value <= high else wrapped(value)

    return evaluate


def _quotient(a: Thunk, b: Thunk, low: int, high: int, wrapped: Wrap) -> Thunk:
    def evaluate(state: State) -> Value:
        dividend, divisor = a(state), b(state)
        if not divisor:
            raise RuntimeFault("division by zero")
        value = dividend // divisor
        return value if low <= value <= high else wrapped(value)

    return evaluate


def _remainder(a: Thunk, b: Thunk, low: int, high: int, wrapped: Wrap) -> Thunk:
    def evaluate(state: State) -> Value:
        dividend, divisor = a(state), b(state)
        if not divisor:
            raise RuntimeFault("division by zero")
        value = dividend % divisor
        return value if low <= value <= high else wrapped(value)

    return evaluate


_ON_INTEGERS: Final[dict[str, Callable[[Thunk, Thunk, int, int, Wrap], Thunk]]] = {
    "Add": _sum, "Sub": _difference, "Mul": _product, "FloorDiv": _quotient, "FloorMod": _remainder,
}  # fmt: skip


def wrapping(dtype: DataType) -> Wrap:
    """What brings an exact result that does not fit into the range of its type."""
    return lambda value: wrap(value, dtype)


def integer_operation(name: str, dtype: DataType, a: Thunk, b: Thunk) -> Thunk | None:
    """The closure of a node class on operands of an integer type; None for what has none here."""
    make = _ON_INTEGERS.get(name)
    if make is None or is_vector(dtype) or dtype.is_bool or not dtype.is_integral:
        return None
    return make(a, b, *integer_range(dtype), wrapping(dtype))


def place_of(indices: Sequence[Thunk]) -> Callable[[State], tuple[Value, ...]]:
    """The closure that gives the index of an element on every axis."""
    if len(indices) == 1:
        (only,) = indices
        return lambda state: (only(state),)
    if len(indices) == 2:
        row, column = indices
        return lambda state: (row(state), column(state))
    if len(indices) == 3:
        outer, middle, inner = indices
        return lambda state: (outer(state), middle(state), inner(state))
    if len(indices) == 4:
        first, second, third, last = indices
        return lambda state: (first(state), second(state), third(state), last(state))
    return lambda state: tuple([index(state) for index in indices])
