"""Struct info: what is known of a graph value at compile time.

A lattice: Object above Tensor, Shape, Prim, Tuple and Func; a Tensor may lack its dtype, its shape
or even its rank (``ndim == -1``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.expr import ExprLike, IntImm, PrimExpr, RelaxExpr, as_prim_expr
from weft.ir.node import Array, Node, field, node, with_slots
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.support.span import Span

_INT64 = DataType("int64")
LARGEST_RANK = 1024
"""The most dimensions of a tensor of unknown shape."""


@with_slots
class StructInfo(Node):
    """The base of struct infos. ``==`` is structural equality, as in TVM."""

    def __eq__(self, other: object) -> bool:
        """Structural equality of struct infos."""
        if self is other:
            return True
        if not isinstance(other, StructInfo):
            return NotImplemented
        return bool(slots.relax_operators.get().struct_info_equal(self, other))

    def __hash__(self) -> int:
        return hash(type(self))

    def is_base_of(self, derived: StructInfo) -> bool:
        """Whether every value described by ``derived`` is also described by self."""
        return bool(slots.relax_operators.get().struct_info_is_base_of(self, derived))


@node
class ObjectStructInfo(StructInfo):
    """Any value."""


@node
class PrimStructInfo(StructInfo):
    """A scalar of ``dtype``; ``value`` where its expression is known.

    Built as ``PrimStructInfo("int64")`` or ``PrimStructInfo(value=expr)``.
    """

    dtype: DataType
    value: PrimExpr | None = None

    def __init__(
        self,
        dtype: str | DataType | PrimExpr | None = None,
        value: ExprLike | None = None,
        span: Span | None = None,
    ) -> None:
        if isinstance(dtype, PrimExpr):
            dtype, value = None, dtype
        if value is not None and not isinstance(value, PrimExpr):
            value = as_prim_expr(value)
        if dtype is not None:
            self.dtype = DataType(dtype)
        elif value is not None:
            self.dtype = value.dtype
        else:
            raise IRValueError("PrimStructInfo: expected a dtype or a value")
        self.value, self.span, self._cache, self._summary = value, span, None, 0


@node
class ShapeStructInfo(StructInfo):
    """A shape: its dimensions where they are known, else its rank (-1: unknown)."""

    values: Array[PrimExpr] | None = None
    ndim: int = -1

    def _check_(self) -> None:
        check_ndim(self.ndim)
        if self.values is not None:
            self.values = Array([as_dimension(value) for value in self.values])
            if self.ndim not in (-1, len(self.values)):
                raise IRValueError(
                    f"ShapeStructInfo: {len(self.values)} values and ndim={self.ndim} disagree"
                )
            self.ndim = len(self.values)


@node
class TensorStructInfo(StructInfo):
    """A tensor: ``shape`` (a ShapeExpr or a variable of a shape) or None, dtype ("" unknown).

    ``shape`` may be given as a list of ints and expressions; ints become int64.
    """

    shape: RelaxExpr | None = None
    dtype: Any = field(default="float32", stored="DataType")
    vdevice: Any = field(default=None, stored="VDevice | None")
    ndim: int = -1

    def _check_(self) -> None:
        check_ndim(self.ndim)
        if self.dtype is None or self.dtype in ("", "void"):
            self.dtype = DataType("void")
        else:
            self.dtype = DataType(self.dtype)
        shape = self.shape
        if shape is None:
            return
        if not isinstance(shape, RelaxExpr):
            shape = slots.relax_operators.get().make_shape(shape)
            self.shape = shape
        known = getattr(shape, "values", None)
        rank = len(known) if known is not None else getattr(shape.struct_info, "ndim", -1)
        if self.ndim not in (-1, rank):
            raise IRValueError(f"TensorStructInfo: shape of rank {rank}, but ndim={self.ndim}")
        self.ndim = rank

    def same_shape(self) -> Array[PrimExpr] | None:
        """The dimensions as an Array where the shape is explicit, else None."""
        return getattr(self.shape, "values", None)


@node
class TupleStructInfo(StructInfo):
    """A tuple of fields."""

    fields: Array[StructInfo]


@node
class FuncStructInfo(StructInfo):
    """A function: the infos of its parameters (None: opaque), its result, its purity."""

    params: Array[StructInfo] | None = field(defines=True)
    ret: StructInfo
    purity: bool = True
    derive_func: Callable[..., StructInfo] | str | None = field(
        default=None, compare=False, visit=False, stored="str | None"
    )

    @staticmethod
    def opaque_func(
        *,
        ret: StructInfo | None = None,
        derive_func: Any = None,
        purity: bool = False,
    ) -> FuncStructInfo:
        """A function of unknown parameters."""
        return FuncStructInfo(None, ret or ObjectStructInfo(), purity, derive_func)


def check_ndim(ndim: object) -> None:
    """Raise IRValueError unless ``ndim`` is a number of dimensions (-1: unknown).

    The limit guards against damaged files: loops over two billion dimensions would take hours.
    """
    if not isinstance(ndim, int) or not -1 <= ndim <= LARGEST_RANK:
        raise IRValueError(
            f"expected a number of dimensions from 0 to {LARGEST_RANK}, or -1 where it is not "
            f"known, got {ndim!r:.60}"
        )


def as_dimension(value: ExprLike) -> PrimExpr:
    """A dimension: a Python int becomes int64; an expression must be an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return IntImm(_INT64, value)
    expr = as_prim_expr(value)
    if not expr.dtype.is_integral:
        raise IRTypeError(f"a dimension must be an integer, got {expr.dtype}: {expr}")
    if expr.dtype.bits < 64 and isinstance(expr, IntImm):
        return IntImm(_INT64, expr.value)
    return expr


def field_info(info: StructInfo | None, index: int) -> StructInfo | None:
    """The struct info of field ``index`` of a tuple, if that of the tuple is known."""
    if isinstance(info, TensorStructInfo):
        raise IRTypeError(
            f"TupleGetItem: expected a tuple, got {info}; R.take and R.strided_slice give a "
            "part of a tensor"
        )
    if not isinstance(info, TupleStructInfo):
        return None
    if not 0 <= index < len(info.fields):
        raise IRValueError(f"TupleGetItem: index {index} of a tuple of {len(info.fields)} fields")
    return info.fields[index]


def dtype_of(expr: RelaxExpr) -> str:
    """The data type of a tensor; "" for any other expression."""
    info = expr.struct_info
    return str(info.dtype) if isinstance(info, TensorStructInfo) else ""
