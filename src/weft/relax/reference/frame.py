"""The state of one running graph function: values of variables and symbols; checks of values.

A tensor is a numpy array that owns its memory, a tuple is a tuple, a shape a tuple of int, a scalar
a number, an absent object None. ``Frame.check`` compares a value with struct info. ``Frame.match``
first defines the symbols that are whole extents, so that an extent like ``n + 1`` can be checked
even if it comes before ``n``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from weft.ir.expr import IntImm, PrimExpr
from weft.relax.expr import ShapeExpr, Var
from weft.relax.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.runtime.ndarray import NDArray, array
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, RuntimeFault, wrong_type
from weft.tir.expr import Var as SizeVar
from weft.tir.interp.machine import Machine
from weft.tir.interp.state import State

Value: TypeAlias = object
"""An array, a tuple of values, a shape (a tuple of int), a number, a text, a function or None."""


def as_value(given: Value) -> Value:
    """A user's argument as a value of the interpreter; tensors are copied."""
    if isinstance(given, tuple | list):
        return tuple([as_value(item) for item in given])
    if isinstance(given, np.ndarray):
        return np.array(given, order="C")
    if isinstance(given, NDArray):
        return given.numpy()
    if hasattr(given, "__dlpack__"):  # a torch tensor
        return array(given).numpy()
    return given


class Frame:
    """One activation of a function; a local function's frame starts with the outer one's values."""

    def __init__(self, function: str, outer: Frame | None = None) -> None:
        self.function = function
        self.values: dict[Var, Value] = dict(outer.values) if outer else {}
        self.state = State(Machine(None))
        if outer is not None:
            self.state.values.update(outer.state.values)

    def value(self, var: Var) -> Value:
        """The value of a variable."""
        try:
            return self.values[var]
        except KeyError:
            raise RuntimeFault(f"{self.function}: {var.name_hint} has no value here") from None

    def number(self, expr: PrimExpr) -> Any:
        """The value of a scalar expression: its symbols must be known."""
        if isinstance(expr, IntImm) and not expr.dtype.is_bool:
            return expr.value
        return self.state.evaluate(expr)

    def dims(self, values: Sequence[PrimExpr | int]) -> tuple[int, ...]:
        """Extents as numbers."""
        return tuple(
            [value if isinstance(value, int) else int(self.number(value)) for value in values]
        )

    def extents(self, info: StructInfo) -> Sequence[PrimExpr | int] | None:
        """The extents in the struct info of a tensor or a shape, or None if they are not known."""
        if isinstance(info, ShapeStructInfo):
            return info.values
        shape = info.shape if isinstance(info, TensorStructInfo) else None
        if isinstance(shape, ShapeExpr):
            return shape.values
        if isinstance(shape, Var):
            value = self.values.get(shape)
            return value if isinstance(value, tuple) else None
        return None

    def match(self, value: Value, info: StructInfo, what: str) -> None:
        """Define the symbols of ``info`` by the value, then check the value."""
        self.define(value, info)
        self.check(value, info, what)

    def define(self, value: Value, info: StructInfo) -> None:
        """Set each symbol that is a whole extent to the value's extent; known ones stay."""
        if isinstance(info, TupleStructInfo):
            if isinstance(value, tuple) and len(value) == len(info.fields):
                for item, field in zip(value, info.fields, strict=True):
                    self.define(item, field)
        elif isinstance(info, PrimStructInfo):
            if isinstance(info.value, SizeVar) and np.isscalar(value):
                self.state.values.setdefault(id(info.value), value)
        else:
            actual = value.shape if isinstance(value, np.ndarray) else value
            expected = self.extents(info)
            if expected is None or not isinstance(actual, tuple) or len(actual) != len(expected):
                return
            for size, extent in zip(actual, expected, strict=True):
                if isinstance(extent, SizeVar):
                    self.state.values.setdefault(id(extent), int(size))

    def check(self, value: Value, info: StructInfo, what: str) -> None:
        """Raise IRTypeError or IRValueError, naming both, unless the value fits the struct info."""
        rule = _CHECKS.get(type(info))
        if rule is not None:
            rule(self, value, info, what)

    def check_dims(
        self, actual: tuple[int, ...], info: TensorStructInfo | ShapeStructInfo, what: str
    ) -> None:
        """Raise IRValueError unless the rank and the extents fit."""
        if info.ndim not in (-1, len(actual)):
            raise IRValueError(f"{what}: expected {info.ndim} dimensions, got shape {actual}")
        expected = self.extents(info)
        if expected is None:
            return
        wanted = self.dims(expected)
        if wanted != actual:
            shown = [str(getattr(extent, "value", extent)) for extent in expected]
            text = f"({', '.join(shown)}{',' * (len(shown) == 1)})"
            meaning = "" if text == str(wanted) else f", that is {text}"
            raise IRValueError(f"{what}: expected shape {wanted}{meaning}, got {actual}")


def _check_tensor(frame: Frame, value: Value, info: TensorStructInfo, what: str) -> None:
    if not isinstance(value, np.ndarray):
        raise wrong_type(f"{what}: expected a tensor", value)
    if info.dtype != DataType("void") and DataType(info.dtype).numpy != value.dtype:
        raise IRTypeError(f"{what}: expected dtype {info.dtype}, got {value.dtype.name}")
    frame.check_dims(value.shape, info, what)


def _check_shape(frame: Frame, value: Value, info: ShapeStructInfo, what: str) -> None:
    if not isinstance(value, tuple) or not all(isinstance(n, int | np.integer) for n in value):
        raise wrong_type(f"{what}: expected a shape", value)
    frame.check_dims(value, info, what)


def _check_prim(frame: Frame, value: Value, info: PrimStructInfo, what: str) -> None:
    wanted = (float, np.floating) if info.dtype.is_float else (bool, int, np.integer, np.bool_)
    if not isinstance(value, wanted) and not (info.dtype.is_float and np.isscalar(value)):
        kind = type(value).__name__
        raise IRTypeError(f"{what}: expected a number of type {info.dtype}, got {kind}")
    if info.value is not None:
        expected = frame.number(info.value)
        if expected != value and not (expected != expected and value != value):
            raise IRValueError(f"{what}: expected {expected} ({info.value}), got {value!r}")


def _check_tuple(frame: Frame, value: Value, info: TupleStructInfo, what: str) -> None:
    if not isinstance(value, tuple):
        raise wrong_type(f"{what}: expected a tuple", value)
    if len(value) != len(info.fields):
        raise IRValueError(
            f"{what}: expected a tuple of {len(info.fields)}, got one of {len(value)}"
        )
    for number, (item, field) in enumerate(zip(value, info.fields, strict=True)):
        frame.check(item, field, f"{what}[{number}]")


def _check_func(_frame: Frame, value: Value, _info: FuncStructInfo, what: str) -> None:
    if not callable(value):
        raise wrong_type(f"{what}: expected a function", value)


_CHECKS: dict[type, Callable[[Frame, Value, Any, str], None]] = {
    FuncStructInfo: _check_func,
    PrimStructInfo: _check_prim,
    ShapeStructInfo: _check_shape,
    TensorStructInfo: _check_tensor,
    TupleStructInfo: _check_tuple,
}
