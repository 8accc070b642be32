"""Tensors of tensor expressions, and the operations that produce them.

A ``Tensor`` is one output of an ``Operation``; ``A[i, j]`` and ``A(i, j)`` read an element in the
body of another operation. ``weft.topi`` defines arithmetic on whole tensors and registers it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, Union

import numpy as np

from weft.ir.expr import ExprLike, ExprOp, PrimExpr, as_prim_expr
from weft.ir.node import Array, Node, field, node, with_slots
from weft.ir.numpy_calls import apply_ufunc, refuse_torch
from weft.support.dtype import DataType
from weft.support.errors import IRIndexError, IRTypeError, UnsupportedError
from weft.support.operator_methods import operator, operators
from weft.support.span import Span
from weft.te.formula import formula_of
from weft.tir.expr import IterVar, ProducerLoad

TENSOR_OPERATORS: Final[dict[str, Callable[..., Tensor]]] = {}
"""Name of an operator (``add`` ...) -> its function on whole tensors; topi fills it."""


Indices = ExprLike | list[ExprLike] | tuple[ExprLike, ...]
Operand = Union["Tensor", ExprLike]


def register_tensor_operators(**functions: Callable[..., Tensor]) -> None:
    """Set the functions that ``+``, ``*`` ... call for whole tensors; ``weft.topi`` does so."""
    TENSOR_OPERATORS.update(functions)


def _apply(name: str, *operands: object) -> Tensor:
    function = TENSOR_OPERATORS.get(name)
    if function is None:
        raise UnsupportedError(
            f"{name} of whole tensors is defined by topi; import weft.topi first, or index the "
            "tensor: A[i, j]"
        )
    return function(*operands)


@with_slots
class Operation(Node):
    """A producer of tensors: a placeholder, a computation or an external body."""

    name: str
    tag: str = field(default="", compare=False, visit=False)
    attrs: Any = field(default=None, compare=False, visit=False)

    @property
    def num_outputs(self) -> int:
        """How many tensors the operation produces."""
        return 1

    @property
    def input_tensors(self) -> Array[Tensor]:
        """The tensors that the operation reads, in order of appearance."""
        return Array()

    def output(self, index: int) -> Tensor:
        """The output number ``index`` of the operation."""
        if not 0 <= index < self.num_outputs:
            raise IRIndexError(
                f"{self.name} has {self.num_outputs} outputs, output {index} does not exist"
            )
        shape, dtype = self._output_type(index)
        return Tensor(shape, dtype, self, index)

    def _output_type(self, index: int) -> tuple[Array[PrimExpr], DataType]:
        raise UnsupportedError(f"{type(self).__name__} has no outputs")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name})"

    __str__ = __repr__


@node
class Tensor(Node):
    """A value of ``shape``, some extents perhaps symbolic: output ``value_index`` of the
    operation ``op``.

    ``A[i, j]`` is an element, in a ``te.compute``; ``A + B`` and the like are tensors again.
    """

    shape: Array[PrimExpr] = field(visit=False)
    dtype: DataType
    op: Operation = field(visit=False)
    value_index: int = 0

    def _check_(self) -> None:
        self.dtype = DataType(self.dtype)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> object:
        return apply_ufunc(ufunc, method, inputs, options, "topi")

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., object], types: object, args: object = (), kwargs: object = None
    ) -> NoReturn:
        refuse_torch(func, "topi")

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def name(self) -> str:
        """The name of the operation, with ``.v<index>`` where it has several outputs."""
        if self.op.num_outputs == 1:
            return str(self.op.name)
        return f"{self.op.name}.v{self.value_index}"

    @property
    def key(self) -> tuple[int, int]:
        """The identity of the tensor in tables, since ``==`` of 0-d tensors is an expression."""
        return id(self.op), self.value_index

    @property
    def axis(self) -> Array[IterVar]:
        """The axes of the operation."""
        return Array(getattr(self.op, "axis", ()))

    def __call__(self, *indices: Any) -> ProducerLoad:
        """The element at ``indices``, one for each dimension."""
        if len(indices) == 1 and isinstance(indices[0], list | tuple) and self.ndim != 1:
            indices = tuple(indices[0])
        if len(indices) != self.ndim:
            raise IRIndexError(
                f"tensor {self.name} has {self.ndim} dimensions, got {len(indices)} indices"
            )
        return ProducerLoad(self, [self._index(item) for item in indices])

    def _index(self, item: Any) -> PrimExpr:
        if isinstance(item, slice | type(None)) or item is Ellipsis:
            raise IRTypeError(
                f"tensor {self.name}: an index must be an expression or an int, got {item!r}; "
                "use topi.strided_slice for a part of a tensor"
            )
        index = as_prim_expr(item)
        if not index.dtype.is_integral:
            raise IRTypeError(f"tensor {self.name}: an index must be an integer, got {index.dtype}")
        return index

    def __getitem__(self, indices: Indices) -> TensorSlice:
        return TensorSlice(self, indices)

    def __iter__(self) -> NoReturn:  # of __getitem__ alone, Python would read elements without end
        raise IRTypeError(f"a tensor is not iterable; read the elements of {self.name} by index")

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> Any:
        """Whether both are one output of one operation; an expression for 0-d tensors."""
        if not isinstance(other, Tensor):
            return _apply("equal", self, other) if isinstance(other, ExprOp) else False
        if self.ndim == 0 and other.ndim == 0:
            return self().equal(other())
        return self.key == other.key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def same_as(self, other: object) -> bool:
        """Whether both are the same output of the same operation."""
        return isinstance(other, Tensor) and self.key == other.key

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape!r}, op.name={self.op.name})"

    __str__ = __repr__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For notebooks: the description."""
        printer.text(self.description())

    def description(self) -> str:
        """The name, type and shape, and how an element is computed.

        >>> from weft import te
        >>> A = te.placeholder((4, 8), name="A")
        >>> k = te.reduce_axis((0, 8), "k")
        >>> print(te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S").description())
        S: float32[4]
        S[i] = sum(A[i, k] for k in range(8))
        """
        sizes = ", ".join(map(str, self.shape))
        head, body = f"{self.name}: {self.dtype}[{sizes}]", getattr(self.op, "body", None)
        if not isinstance(body, Array):  # a placeholder, or a statement that writes the tensor
            return head
        return f"{head}\n{formula_of(self.name, self.axis, body[self.value_index])}"

    def astype(self, dtype: str, span: Span | None = None) -> Tensor:
        """The tensor with every element converted to ``dtype``."""
        return _apply("cast", self, dtype)

    __add__, __radd__ = operators(_apply, "add")
    __sub__, __rsub__ = operators(_apply, "subtract")
    __mul__, __rmul__ = operators(_apply, "multiply")
    __truediv__, __rtruediv__ = operators(_apply, "divide")
    __floordiv__, __rfloordiv__ = operators(_apply, "floor_divide")
    __mod__, __rmod__ = operators(_apply, "floor_mod")
    __pow__ = operator(_apply, "power")

    def __neg__(self) -> Tensor:
        return _apply("negative", self)

    __lt__ = operator(_apply, "less")
    __le__ = operator(_apply, "less_equal")
    __gt__ = operator(_apply, "greater")
    __ge__ = operator(_apply, "greater_equal")


class TensorSlice(ExprOp):
    """A tensor with some of its indices: ``A[i]`` of a matrix. With all of them, an element."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: Indices) -> None:
        self.tensor = tensor
        self.indices = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
        if len(self.indices) > tensor.ndim:
            raise IRIndexError(
                f"tensor {tensor.name} has {tensor.ndim} dimensions, got {len(self.indices)} "
                "indices"
            )
        for item in self.indices:
            tensor._index(item)

    def __getitem__(self, indices: Indices) -> TensorSlice:
        more = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
        return TensorSlice(self.tensor, self.indices + more)

    def __iter__(self) -> NoReturn:
        raise IRTypeError(f"a tensor is not iterable; read the elements of {self!r} by index")

    @property
    def dtype(self) -> DataType:
        """The type of the tensor's elements."""
        return self.tensor.dtype

    def as_prim_expr(self) -> PrimExpr:
        """The element; raises IRIndexError while indices are missing."""
        return self.tensor(*self.indices)

    asobject = as_prim_expr

    def __repr__(self) -> str:
        inside = ", ".join([str(item) for item in self.indices])
        return f"{self.tensor.name}[{inside}]"
