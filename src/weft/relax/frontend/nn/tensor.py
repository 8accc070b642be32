"""Tensors of nn modules: graph expressions of known rank and type, with Python's operators.

A Tensor exists while a method of a Module runs under ``export_tvm``: each operator is emitted into
the function that is being built, and shape and data type of the result are known at once. A
Parameter is a weight: a Tensor that may hold data. An Object is what is no tensor (a cache).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np

from weft.ir.expr import Extent, FloatImm, IntImm, PrimExpr
from weft.ir.node import expect
from weft.relax import op as relax_op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import DataflowVar, Expr, TupleGetItem, Var, const
from weft.relax.frontend.nn import checks
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import ObjectStructInfo, TensorStructInfo, TupleStructInfo
from weft.runtime.ndarray import NDArray, array, from_dlpack, is_torch_tensor
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.tir.expr import Var as TirVar

Dim = int | str | PrimExpr
"""One extent of a shape: a number, the name of a symbol, or an expression."""


class HasDLPack(Protocol):
    """An array of another library that gives its memory by DLPack."""

    def __dlpack__(self) -> object: ...


ArrayLike = NDArray | np.ndarray | HasDLPack
"""What a parameter takes as its data: an array, or a tensor of torch."""
Operand: TypeAlias = "Tensor | PrimExpr | float | np.number"
"""A tensor, or a number beside one."""
Nested: TypeAlias = "Tensor | tuple[Nested, ...]"
"""What an operator gives: a tensor, or a tuple of them."""

_NARROWED: Final = {"float64": "float32", "int64": "int32"}
"""numpy's default types, and what a constant without a type becomes (as in TVM)."""


class _Defaults:
    dtype = "float32"


def get_default_dtype() -> str:
    """The data type of parameters that name none; ``float32`` at first."""
    return _Defaults.dtype


def set_default_dtype(dtype: str) -> None:
    """Set the data type of parameters that name none."""
    _Defaults.dtype = str(DataType(dtype))


def current_builder(what: str) -> BlockBuilder:
    """The builder that operators emit into; IRValueError outside of an export."""
    builder = BlockBuilder.current()
    if builder is None:
        raise IRValueError(
            f"{what}: no function is being built; operators of nn work inside of a module's method "
            "while export_tvm, jit or weft.compile runs it"
        )
    return builder


class Tensor:
    """A tensor in the function being built: ``shape``, ``dtype``, ``ndim``, Python's operators.

    Made by operators, by ``placeholder`` and ``from_const``, never directly. A number beside a
    tensor becomes a constant of the tensor's data type.

    >>> Tensor.placeholder([2, "n"], "float16")
    Tensor([2, n], "float16")
    """

    _expr: Expr

    def __init__(self, *, _expr: Expr) -> None:
        info = getattr(_expr, "struct_info", None)
        if not isinstance(info, TensorStructInfo) or tensor_dims(info) is None:
            raise IRTypeError(
                "nn.Tensor: expected an expression whose rank and shape are known, got "
                f"{'none' if info is None else info}; in a graph function, match_cast gives a "
                "tensor its shape"
            )
        self._expr = _expr

    @staticmethod
    def from_const(data: object) -> Tensor:
        """A constant; numbers and arrays of 64-bit types become 32-bit ones.

        >>> Tensor.from_const(np.zeros((1, 2)))
        Tensor([1, 2], "float32")
        """
        values = array(data)
        narrow = _NARROWED.get(str(values.dtype))
        return Tensor(_expr=const(values.numpy(), narrow) if narrow else const(values))

    @staticmethod
    def from_scalar(data: float, dtype: str) -> Tensor:
        """A constant without dimensions."""
        return Tensor(_expr=const(data, dtype))

    @staticmethod
    def from_struct_info(struct_info: TensorStructInfo, name: str = "tensor") -> Tensor:
        """A new variable of that struct info."""
        return Tensor(_expr=Var(name, struct_info))

    @staticmethod
    def placeholder(shape: Sequence[Dim], dtype: str, name: str = "tensor") -> Tensor:
        """A new variable: the input of a function, or what an operator is said to return.

        An extent is a number, an int64 expression, or a name, which makes a new symbol.
        Raises IRTypeError for other extents, IRValueError for negative ones.
        """
        dims = [_dimension(dim, shape) for dim in shape]
        return Tensor(_expr=Var(name, TensorStructInfo(dims, dtype)))

    @property
    def shape(self) -> list[Extent]:
        """The extents: numbers where they are constant, expressions elsewhere."""
        dims = tensor_dims(self._expr.struct_info) or ()
        return [dim.value if isinstance(dim, IntImm) else dim for dim in dims]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._expr.struct_info.ndim)

    @property
    def dtype(self) -> str:
        """The name of the data type."""
        return str(self._expr.struct_info.dtype)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.shape}, "{self.dtype}")'

    def __add__(self, other: Operand) -> Tensor:
        return binary("add", self, other, "add")

    def __radd__(self, other: Operand) -> Tensor:
        return binary("add", self, other, "add")

    def __sub__(self, other: Operand) -> Tensor:
        return binary("subtract", self, other, "subtract")

    def __rsub__(self, other: Operand) -> Tensor:
        return binary("subtract", other, self, "subtract")

    def __mul__(self, other: Operand) -> Tensor:
        return binary("multiply", self, other, "mul")

    def __rmul__(self, other: Operand) -> Tensor:
        return binary("multiply", self, other, "mul")

    def __truediv__(self, other: Operand) -> Tensor:
        return binary("divide", self, other, "divide")

    def __rtruediv__(self, other: Operand) -> Tensor:
        return binary("divide", other, self, "divide")

    def __matmul__(self, other: Operand) -> Tensor:
        return binary("matmul", self, other, "matmul")

    def __neg__(self) -> Tensor:
        return emit(relax_op.negative(self._expr), "neg")

    def __lt__(self, other: Operand) -> Tensor:
        return binary("less", self, other, "less")

    def __le__(self, other: Operand) -> Tensor:
        return binary("less_equal", self, other, "less_equal")

    def __gt__(self, other: Operand) -> Tensor:
        return binary("greater", self, other, "greater")

    def __ge__(self, other: Operand) -> Tensor:
        return binary("greater_equal", self, other, "greater_equal")

    def astype(self, dtype: str) -> Tensor:
        """The same values in another data type; the tensor itself where it has that type."""
        return cast(self, dtype, "astype")

    def maximum(self, other: Operand) -> Tensor:
        """The larger of two, element by element."""
        return binary("maximum", self, other, "maximum")

    def minimum(self, other: Operand) -> Tensor:
        """The smaller of two, element by element."""
        return binary("minimum", self, other, "minimum")

    def reshape(self, *shape: Extent | Sequence[Extent]) -> Tensor:
        """The elements in another shape; one extent may be -1."""
        return emit(relax_op.reshape(self._expr, _unpacked(shape)), "reshape")

    def permute_dims(self, *axes: int | Sequence[int]) -> Tensor:
        """The axes in another order; reversed if none are given."""
        return emit(relax_op.permute_dims(self._expr, _unpacked(axes) or None), "permute_dims")

    def repeat(self, repeats: int, axis: int | None = None) -> Tensor:
        """Each element ``repeats`` times along an axis (flat if None)."""
        return emit(relax_op.repeat(self._expr, repeats, axis), "repeat")


class Parameter(Tensor):
    """A weight: a tensor of a module, with or without data.

    ``attrs`` is free for what a user notes about it. A new one has no data.

    >>> weight = Parameter((2, 3), "float16")
    >>> weight.data = np.ones((2, 3), "float16")
    >>> weight, weight.data.shape
    (Parameter([2, 3], "float16"), (2, 3))
    """

    def __init__(self, shape: Sequence[Dim], dtype: str | None = None) -> None:
        if isinstance(shape, str) or not isinstance(shape, Sequence):
            raise IRTypeError(f"Parameter: shape: expected a list of extents, got {shape!r:.60}")
        checks.dtype(dtype, "Parameter: dtype", self)
        placed = Tensor.placeholder(shape, dtype or get_default_dtype(), "param")
        super().__init__(_expr=placed._expr)
        self._data: NDArray | None = None
        self.attrs: dict[str, object] = {}

    @property
    def data(self) -> NDArray | None:
        """The values, or None."""
        return self._data

    @data.setter
    def data(self, data: ArrayLike | None) -> None:
        """Take an NDArray, a numpy array (copied), a torch tensor or what else has DLPack; None.

        Raises IRTypeError for anything else, IRValueError where shape or data type differ.
        """
        if data is None:
            self._data = None
            return
        values = _as_ndarray(data)
        if tuple(values.shape) != tuple(self.shape):
            raise IRValueError(
                f"Parameter: Shape mismatch: expected {tuple(self.shape)}, got "
                f"{tuple(values.shape)}"
            )
        if str(values.dtype) != self.dtype:
            raise IRValueError(
                f"Parameter: Dtype mismatch: expected {self.dtype}, got {values.dtype}; convert "
                "the data, or the module by to()"
            )
        self._data = values

    def to(self, dtype: str | None = None) -> None:
        """Change the data type; IRValueError where there is data, which would lose precision."""
        if dtype is None:
            return
        if self._data is not None:
            raise IRValueError(
                f"Parameter: to({dtype!r}): expected a parameter without data, this one has data "
                f"of {self.dtype}; convert first, then set data of the new type"
            )
        self._expr = Tensor.placeholder(self.shape, dtype, "param")._expr


class Object:
    """A value that is no tensor, such as a cache: an expression of struct info ``R.Object``."""

    _expr: Var

    def __init__(self, *, _expr: Expr, _name: str) -> None:
        if not isinstance(_expr, Var):
            _expr = current_builder("nn.Object").emit(_expr, _name)
        if not isinstance(_expr.struct_info, ObjectStructInfo):
            raise IRTypeError(
                f"nn.Object {_name}: expected an expression of struct info R.Object, got "
                f"{_expr.struct_info}"
            )
        self._expr = _expr


def wrap_nested(expr: Expr, name: str) -> Nested:
    """Emit an expression; the result as a Tensor, or a tuple of them where it is a tuple.

    Raises IRTypeError for results that are no tensors.
    """
    if not isinstance(expr, DataflowVar):
        expr = current_builder(name).emit(expr, name)
    info = expr.struct_info
    if isinstance(info, TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, TupleStructInfo):
        return tuple(
            [
                wrap_nested(TupleGetItem(expr, index), f"{name}.{index}")
                for index in range(len(info.fields))
            ]
        )
    raise IRTypeError(f"{name}: expected a tensor or a tuple of them as the result, got {info}")


def emit(expr: Expr, name: str) -> Tensor:
    """Emit an expression whose result is one tensor."""
    return expect(wrap_nested(expr, name), Tensor)


def expr_of(value: object, what: str) -> Expr:
    """The expression of a Tensor; IRTypeError for what is none. ``what`` says where it stands."""
    if isinstance(value, Tensor | Object):
        return value._expr
    if isinstance(value, Expr):
        return value
    raise wrong_type(f"{what}: expected an nn.Tensor", value)


def binary(operator: str, a: Operand, b: Operand, name: str) -> Tensor:
    """Emit a relax operator on two operands, one of which may be a number."""
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise IRTypeError(
            f"{operator}: expected an nn.Tensor, got {type(a).__name__} and {type(b).__name__}"
        )
    left, right = _operand(a, b, operator), _operand(b, a, operator)
    return emit(getattr(relax_op, operator)(left, right), name)


def cast(x: Tensor, dtype: str, name: str) -> Tensor:
    """The same values in another data type."""
    expr = expr_of(x, "astype")
    return x if x.dtype == str(dtype) else emit(relax_op.astype(expr, dtype), name)


def _operand(value: Operand, other: Operand, operator: str) -> Expr:
    if isinstance(value, IntImm | FloatImm):
        value = value.value
    if isinstance(value, bool | int | float | np.number):
        return const(value, expect(other, Tensor).dtype)
    if isinstance(value, PrimExpr):
        raise IRTypeError(
            f"{operator}: {value} is a symbolic integer, known when the function runs only; "
            "nn.op.tensor_expr_op takes such an argument beside tensors"
        )
    return expr_of(value, operator)


def _unpacked(items: Sequence[object]) -> list[object]:
    """The arguments, also where they were given as one list."""
    if len(items) == 1 and isinstance(items[0], list | tuple):
        return list(items[0])
    return list(items)


def _dimension(dim: Dim, shape: Sequence[Dim]) -> Extent:
    if isinstance(dim, str):
        return TirVar(dim, "int64")
    wanted = "extents of 0 or more: integers, names or int64 expressions"
    return checks.as_extent(dim, f"nn.Tensor: Invalid shape {shape}", wanted)


def _as_ndarray(data: ArrayLike) -> NDArray:
    if isinstance(data, NDArray):
        return data
    if isinstance(data, np.ndarray):
        return array(data)
    if is_torch_tensor(data):
        return from_dlpack(data.detach())
    if hasattr(data, "__dlpack__"):
        return from_dlpack(data)
    raise IRTypeError(
        f"Parameter: Unsupported data type: {type(data).__name__}; expected an NDArray, a numpy "
        "array, or a tensor with DLPack"
    )
