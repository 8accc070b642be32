"""Expressions that both IRs build on: constants, ranges, references to functions.

Python's operators on a ``PrimExpr`` call the operator functions of ``weft.tir.op`` through the
slot ``operators``, so that constant folding and type promotion are in one place. ``==`` builds an
``EQ`` node, which is true as a Python bool if both sides are equal constants or the same object
(design.md 3.1).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Protocol

import numpy as np

from weft.ir.node import Node, derived, field, node, with_slots
from weft.ir.node_code import register_conversion
from weft.ir.numpy_calls import apply_ufunc, refuse_torch
from weft.ir.type import Type
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.support.operator_methods import operator, operators
from weft.support.span import Span


@with_slots
class BaseExpr(Node):
    """The base of scalar and graph expressions."""


@with_slots
class RelaxExpr(BaseExpr):
    """The base of graph expressions: each has struct info once it is known."""

    struct_info: Any = derived(stored="StructInfo | None")

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., object], types: object, args: object = (), kwargs: object = None
    ) -> NoReturn:
        refuse_torch(func, "relax.op")


def _binary(name: str, lhs: ExprLike, rhs: ExprLike) -> PrimExpr:
    for value in (lhs, rhs):
        if not isinstance(value, _OPERANDS) and not hasattr(value, "as_prim_expr"):
            return NotImplemented  # type: ignore[no-any-return]  # what Python asks of operators
    result: PrimExpr = getattr(slots.operators.get(), name)(lhs, rhs)
    return result


class ExprOp:
    """Python's operators, for everything that converts to a PrimExpr (see ``as_prim_expr``)."""

    __slots__ = ()

    __add__, __radd__ = operators(_binary, "add")
    __sub__, __rsub__ = operators(_binary, "subtract")
    __mul__, __rmul__ = operators(_binary, "multiply")
    __truediv__, __rtruediv__ = operators(_binary, "divide")
    __floordiv__, __rfloordiv__ = operators(_binary, "floordiv")
    __mod__, __rmod__ = operators(_binary, "floormod")
    __pow__ = operator(_binary, "power")
    __lshift__, __rlshift__ = operators(_binary, "left_shift")
    __rshift__, __rrshift__ = operators(_binary, "right_shift")
    __and__, __rand__ = operators(_binary, "bitwise_and")
    __or__, __ror__ = operators(_binary, "bitwise_or")
    __xor__, __rxor__ = operators(_binary, "bitwise_xor")

    def __neg__(self) -> PrimExpr:
        negated: PrimExpr = slots.operators.get().negative(self)
        return negated

    def __invert__(self) -> PrimExpr:
        inverted: PrimExpr = slots.operators.get().bitwise_neg(self)
        return inverted

    __lt__ = operator(_binary, "less")
    __le__ = operator(_binary, "less_equal")
    __gt__ = operator(_binary, "greater")
    __ge__ = operator(_binary, "greater_equal")

    def __eq__(self, other: object) -> Any:
        return slots.operators.get().python_equal(self, other)

    def __ne__(self, other: object) -> Any:
        return slots.operators.get().python_not_equal(self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise IRValueError(
            "a symbolic expression has no truth value; use tir.all, tir.any or tir.Not for and, "
            "or, not, tir.max or tir.min for max, min, and tir.if_then_else or tir.Select for a "
            "choice"
        )

    def __float__(self) -> float:
        raise IRTypeError(
            "an expression has no value before the program runs: float(x) is "
            'x.astype("float32"), and functions of math are in te and tir, such as te.exp(x)'
        )

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> object:
        return apply_ufunc(ufunc, method, inputs, options, "te")

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., object], types: object, args: object = (), kwargs: object = None
    ) -> NoReturn:
        refuse_torch(func, "te")

    def equal(self, other: ExprLike) -> PrimExpr:
        """The ``EQ`` node of both."""
        return _binary("equal", self, other)

    def astype(self, dtype: str, span: Span | None = None) -> PrimExpr:
        """The value converted to ``dtype``."""
        converted: PrimExpr = slots.operators.get().cast(dtype, self, span)
        return converted


_OPERANDS: Final = (ExprOp, int, float, np.generic)  # isinstance is faster than with a union


@with_slots
class PrimExpr(ExprOp, BaseExpr):
    """The base of scalar expressions; ``dtype`` is the type of the value."""

    _extra_slots_: ClassVar[tuple[str, ...]] = ("dtype",)
    if TYPE_CHECKING:
        dtype: DataType


_SCALARS: Final[dict[DataType, tuple[int, int]]] = {}
"""Cache: scalar integer type of a constant -> its range."""


class AsPrimExpr(Protocol):
    """An object that converts to a scalar expression: ``tir.IterVar``, an element of a Tensor."""

    def as_prim_expr(self) -> PrimExpr:
        """The expression."""


ExprLike = PrimExpr | ExprOp | AsPrimExpr | int | float | str | np.generic
"""What ``as_prim_expr`` takes: an expression, or a value that converts to one."""
Extent = PrimExpr | int
"""A size, or a place counted in one: a Python int where it is known, else an expression."""


@node
class IntImm(PrimExpr):
    """An integer or boolean constant; hashes and compares as its Python value."""

    dtype: DataType
    value: int

    def _check_(self) -> None:
        value = self.value
        if type(value) is int and type(self.dtype) is DataType:
            limits = _SCALARS.get(self.dtype)
            if limits is not None and limits[0] <= value <= limits[1]:
                return
        self.dtype = dtype = DataType(self.dtype)
        if not dtype.is_integral or dtype.lanes != 1:
            raise IRTypeError(f"IntImm: expected an integer type, got {dtype}")
        if isinstance(value, IntImm):
            value = value.value
        if isinstance(value, float) or not hasattr(value, "__index__"):
            raise IRTypeError(f"IntImm: expected an int, got {value!r}")
        self.value = value = int(value)
        low, high = _SCALARS[dtype] = integer_range(dtype)
        if not low <= value <= high:
            raise IRValueError(f"IntImm: {value} does not fit {dtype}, [{low}, {high}]")

    def __hash__(self) -> int:
        return hash(self.value)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


@node
class FloatImm(PrimExpr):
    """A floating-point constant; hashes and compares as its Python value."""

    dtype: DataType
    value: float

    def _check_(self) -> None:
        self.dtype = dtype = DataType(self.dtype)
        if not dtype.is_float or dtype.lanes != 1:
            raise IRTypeError(f"FloatImm: expected a floating-point type, got {dtype}")
        value = float(self.value)
        if dtype.bits < 64 and value - value == 0:
            with np.errstate(over="ignore"):
                value = float(dtype.numpy.type(value))
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __float__(self) -> float:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0


@node
class StringImm(PrimExpr):
    """A string constant; hashes and compares as its Python value."""

    value: str

    def _check_(self) -> None:
        if not isinstance(self.value, str):
            raise IRTypeError(f"StringImm: expected a text, got {self.value!r}")
        self.dtype = DataType("handle")

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return bool(self.value)


def integer_range(dtype: DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    limits = _RANGES.get(dtype)
    if limits is None:
        bits = dtype.bits
        half = 1 << (bits - 1)
        limits = _RANGES[dtype] = (-half, half - 1) if dtype.is_int else (0, 2 * half - 1)
    return limits


_RANGES: Final[dict[DataType, tuple[int, int]]] = {}


_INT32: Final = DataType("int32")


def constant_value(value: object) -> int | None:
    """The value of a constant integer, else None."""
    if isinstance(value, int):
        return value
    return value.value if isinstance(value, IntImm) else None


def as_prim_expr(value: ExprLike) -> PrimExpr:
    """A PrimExpr from a PrimExpr, a Python or numpy number, a str, or what wraps an expression.

    int becomes int32 (int64 where it does not fit), bool ``bool``, float float32. Objects that
    stand for an expression (IterVar, te.TensorSlice) offer ``as_prim_expr()``.
    """
    if isinstance(value, PrimExpr):
        return value
    if type(value) is int and -0x80000000 <= value < 0x80000000:
        return IntImm(_INT32, value)
    if isinstance(value, (bool, np.bool_)):
        return IntImm(DataType("bool"), int(value))
    if isinstance(value, np.generic):
        dtype = DataType(str(value.dtype))
        return IntImm(dtype, int(value)) if dtype.is_integral else FloatImm(dtype, float(value))
    if isinstance(value, int):
        wide = not -(1 << 31) <= value < 1 << 31
        return IntImm(DataType("int64" if wide else "int32"), value)
    if isinstance(value, float):
        return FloatImm(DataType("float32"), value)
    if isinstance(value, str):
        return StringImm(value)
    unwrap = getattr(value, "as_prim_expr", None)
    if unwrap is not None:
        expr: PrimExpr = unwrap()
        return expr
    if isinstance(value, types.EllipsisType):
        raise IRTypeError("expected an index or a number, got `...`; write each index: A[i, j]")
    raise IRTypeError(f"expected an expression or a number, got {type(value).__name__}: {value!r}")


register_conversion("PrimExpr", PrimExpr, as_prim_expr)


@node
class Range(Node):
    """The half-open interval ``[min, min + extent)``.

    ``Range(end)``, ``Range(begin, end)`` as in TVM; the fields are ``min`` and ``extent``.
    """

    min: PrimExpr
    extent: PrimExpr

    def __init__(
        self, begin: ExprLike, end: ExprLike | None = None, span: Span | None = None
    ) -> None:
        if type(begin) is int and type(end) is int and _is_int32(begin) and _is_int32(end - begin):
            self.min, self.extent = as_prim_expr(begin), as_prim_expr(end - begin)
        elif end is None:
            extent = as_prim_expr(begin)
            self.min, self.extent = _zero_like(extent), extent
        else:
            self.min = as_prim_expr(begin)
            self.extent = as_prim_expr(end) - self.min
        self.span, self._cache, self._summary = span, None, 0

    @staticmethod
    def from_min_extent(min_value: ExprLike, extent: ExprLike, span: Span | None = None) -> Range:
        """The range that starts at ``min_value`` and has ``extent`` values."""
        rng = Range.__new__(Range)
        rng.min, rng.extent = as_prim_expr(min_value), as_prim_expr(extent)
        rng.span, rng._cache, rng._summary = span, None, 0
        return rng

    def with_(self, **changes: Any) -> Range:
        """As ``Node.with_``, for the fields ``min`` and ``extent``."""
        new_min, extent = changes.get("min", self.min), changes.get("extent", self.extent)
        if new_min is self.min and extent is self.extent:
            return self
        return Range.from_min_extent(new_min, extent, self.span)


def _is_int32(value: int) -> bool:
    return -0x80000000 <= value < 0x80000000


def _zero_like(extent: PrimExpr) -> PrimExpr:
    return IntImm(extent.dtype if extent.dtype.is_integral else DataType("int32"), 0)


RangeLike = Range | ExprLike | list[ExprLike] | tuple[ExprLike, ...]


def as_range(value: RangeLike) -> Range:
    """A Range from a Range, an extent, or a pair ``(begin, end)``."""
    if isinstance(value, Range):
        return value
    if isinstance(value, (list, tuple)):
        return Range(*value)
    return Range(as_prim_expr(value))


register_conversion("Range", Range, as_range)


@node
class GlobalVar(RelaxExpr):
    """The name of a function of an IRModule; two with the same name are still two objects."""

    name_hint: str
    type_: Type | None = field(default=None, compare=False, visit=False)

    def _check_(self) -> None:
        self.struct_info = None

    def __call__(self, *args: object) -> BaseExpr:
        """A call of the function: of graph functions with relax arguments, else a TIR call."""
        call: BaseExpr = slots.relax_operators.get().call_global(self, args)
        return call
