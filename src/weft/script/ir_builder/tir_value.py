"""Values of TensorIR scripts: typed constants and variables, buffers, pointers, reducers.

``T.float32(x)`` converts, ``T.float32()`` makes a variable that takes the name it is assigned to.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft.ir.expr import ExprLike, PrimExpr, Range, RangeLike, as_prim_expr
from weft.ir.node import Node
from weft.ir.type import PointerType, PrimType
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.support.user_line import at_user_line
from weft.tir import expr as nodes
from weft.tir import op as tir_op
from weft.tir.buffer import Buffer as BufferNode
from weft.tir.buffer import decl_buffer
from weft.tir.expr import IterType, IterVar, SizeVar, Var


class DTypeConstructor:
    """``T.int32`` and the like: annotates parameters, creates variables and converts values.

    >>> from weft.script import tir as T
    >>> T.float32(2)
    T.float32(2.0)
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = DataType(dtype)
        self.__name__ = str(dtype)

    def __call__(self, expr: ExprLike | None = None, is_size_var: bool = False) -> PrimExpr:
        """A new variable without ``expr``, else ``expr`` converted (constants fold)."""
        if expr is None:
            return SizeVar("", self.dtype) if is_size_var else Var("", self.dtype)
        if isinstance(expr, str):
            expr = self._number(expr)
        if isinstance(expr, int | float) and self.dtype.lanes == 1:
            return tir_op.const(expr, self.dtype)
        value = as_prim_expr(expr)
        if self.dtype.lanes > 1 and value.dtype.lanes == 1:
            scalar = tir_op.cast(self.dtype.element, value)
            return nodes.Broadcast(scalar, self.dtype.lanes)
        return tir_op.cast(self.dtype, value)

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise IRValueError(
                f"T.{self.__name__}: expected a number, 'inf', '-inf' or 'nan', got {text!r}"
            ) from None

    def __repr__(self) -> str:
        return f"T.{self.__name__}"


class HandleConstructor(DTypeConstructor):
    """``T.handle``, and ``T.handle("float32", "global")`` for a typed pointer."""

    def __call__(  # type: ignore[override] # a handle takes other parameters
        self,
        dtype: TypeName | None = None,
        storage_scope: str = "global",
        *,
        is_size_var: bool = False,
    ) -> PrimExpr:
        """A new pointer variable; an expression is converted to a handle."""
        kind = SizeVar if is_size_var else Var
        if dtype is None:
            return kind("", "handle")
        if isinstance(dtype, str | DTypeConstructor):
            return kind("", pointer_of(dtype, storage_scope))
        return tir_op.cast("handle", as_prim_expr(dtype))


TypeName = str | DTypeConstructor
ShapeLike = ExprLike | Sequence[ExprLike]


def pointer_of(dtype: TypeName, storage_scope: str = "global") -> PointerType:
    """The type of a pointer to elements of a data type, in memory of a scope."""
    name = dtype.dtype if isinstance(dtype, DTypeConstructor) else DataType(dtype)
    return PointerType(PrimType(name), storage_scope)


def ptr(dtype: TypeName, storage_scope: str = "global", is_size_var: bool = False) -> Var:
    """Make a variable that points to elements of a type, in memory of a scope."""
    return (SizeVar if is_size_var else Var)("", pointer_of(dtype, storage_scope))


class PtrProxy:
    """``T.Ptr[T.float32]``, ``T.Ptr[T.float32, "shared"]`` and the same with parentheses."""

    def __call__(self, dtype: TypeName, storage_scope: str = "global") -> Var:
        return ptr(dtype.dtype if isinstance(dtype, DTypeConstructor) else dtype, storage_scope)

    def __getitem__(self, keys: TypeName | tuple[TypeName, str]) -> Var:
        return self(*keys) if isinstance(keys, tuple) else self(keys)


def var(dtype: str, name: str = "") -> Var:
    """Make a variable of a type; what ``T.int32()`` does (the spelling of 2022)."""
    return Var(name, dtype)


def make_buffer(
    shape: ShapeLike,
    dtype: TypeName = "float32",
    buffer_name: str = "",
    data: Var | None = None,
    strides: Sequence[ExprLike] | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> BufferNode:
    """Make a buffer that takes the name it is assigned to; arguments: see ``T.match_buffer``.

    A stride or an offset given as a str becomes a variable of that name.
    """
    if isinstance(dtype, DTypeConstructor):
        dtype = dtype.dtype
    sizes = shape if isinstance(shape, list | tuple) else (shape,)
    for size in sizes:
        if isinstance(size, bool | float | str) or (
            not hasattr(size, "__index__") and (not isinstance(size, Node))
        ):
            raise IRTypeError(
                f"a buffer's shape holds integers and expressions, got {size!r} in {shape!r}"
            )
        number = getattr(size, "value", size)
        if isinstance(number, int) and number < 0:
            raise IRValueError(f"a buffer's extent must not be negative, got {size!r}")
    if strides and len(strides) != len(sizes):
        raise IRValueError(f"a buffer of {len(sizes)} dimensions has {len(strides)} strides")
    if not isinstance(scope, str):
        raise IRTypeError(f"a buffer's scope is a text such as 'global', got {scope!r}")
    if isinstance(data, Var) and not data.dtype.is_handle:
        raise IRTypeError(f"a buffer's data is a pointer, {data.name} is {data.dtype}")
    index = as_prim_expr(sizes[0]).dtype if sizes else DataType("int32")
    steps = [Var(s, index) if isinstance(s, str) else s for s in strides or ()]
    if isinstance(elem_offset, str):
        elem_offset = Var(elem_offset, index)
    buffer = decl_buffer(
        sizes,
        dtype,
        buffer_name,
        data,
        steps,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )
    if not buffer_name and offset_factor and elem_offset is None:
        assert isinstance(buffer.elem_offset, Var)
        buffer.elem_offset.name = ""
    return buffer


class BufferProxy:
    """``T.Buffer((n, m), "float32")`` and the spelling of 2022, ``T.Buffer[(n, m), "float32"]``."""

    @at_user_line
    def __call__(
        self,
        shape: ShapeLike,
        dtype: TypeName = "float32",
        data: Var | None = None,
        strides: Sequence[ExprLike] | None = None,
        elem_offset: ExprLike | None = None,
        scope: str = "global",
        align: int = 0,
        offset_factor: int = 0,
        buffer_type: str = "",
        axis_separators: Sequence[int] | None = None,
    ) -> BufferNode:
        """Describe a buffer: as the annotation of a parameter, or in a body as a view of ``data``.

        Arguments as those of ``T.match_buffer``.
        """
        return make_buffer(
            shape,
            dtype,
            "",
            data,
            strides,
            elem_offset,
            scope,
            align,
            offset_factor,
            buffer_type,
            axis_separators,
        )

    def __getitem__(self, keys: Any) -> BufferNode:
        """``T.Buffer[shape, dtype]``."""
        if not isinstance(keys, tuple):
            return self(keys)
        if len(keys) >= 2 and not isinstance(keys[1], str | DTypeConstructor):
            return self(keys)
        return self(*keys)

    def __repr__(self) -> str:
        return "T.Buffer"


Buffer = BufferProxy()


class meta_var:  # noqa: N801 - written T.meta_var(x)
    """Keep a Python value as it is where a script assigns it: ``n = T.meta_var(compute(4))``.

    Without it the assignment binds a variable of the program.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __iter__(self) -> Iterator[meta_var]:
        return iter([meta_var(item) for item in self.value])


class LetAnnotation:
    """``x: T.let = value`` and ``x: T.let[T.int32] = value``; ``T.let(x, value)`` of 2022."""

    def __init__(self, dtype: TypeName | None = None) -> None:
        self.dtype = dtype

    def __getitem__(self, dtype: TypeName) -> LetAnnotation:
        return LetAnnotation(dtype)


def Let(expr: ExprLike, where: Mapping[Var, ExprLike]) -> PrimExpr:  # noqa: N802 - TVM's name
    """Bind a variable inside an expression: ``T.Let(x + 1, where={x: n * 2})``."""
    if len(where) != 1:
        raise IRValueError(f"T.Let: expected one variable in where=, got {len(where)}")
    ((name, value),) = where.items()
    return nodes.Let(name, as_prim_expr(value), as_prim_expr(expr))


def iter_var(v: Var, dom: RangeLike | None, iter_type: str | IterType, thread_tag: str) -> IterVar:
    """Make an iteration variable, as an attribute or an intrinsic holds it.

    Args:
        v: the variable.
        dom: its range, or a pair (begin, end).
        iter_type: its kind by name, such as ``"DataPar"`` or ``"ThreadIndex"``.
        thread_tag: the tag of a thread, such as ``threadIdx.x``.
    """
    if isinstance(dom, list | tuple):
        dom = Range(*dom)
    kind = IterVar.__dict__[iter_type] if isinstance(iter_type, str) else iter_type
    return IterVar(dom, v, kind, thread_tag)


def comm_reducer(
    combiner: Callable[..., object], identity: Sequence[ExprLike]
) -> nodes.CommReducer:
    """Make a reduction from a function that combines two values, or two tuples of values.

    Args:
        combiner: takes the values of the left and then those of the right; returns the
            combined.
        identity: for each value, the constant that changes nothing.

    >>> from weft.script import tir as T
    >>> T.comm_reducer(lambda x, y: x + y, [T.float32(0)]).identity_element
    [T.float32(0.0)]
    """
    names = list(inspect.signature(combiner).parameters)
    half = len(names) // 2
    if len(names) != 2 * len(identity):
        raise IRValueError(
            f"T.comm_reducer: {len(identity)} identities need a function of {2 * len(identity)} "
            f"values, got one of {len(names)}"
        )
    units = [as_prim_expr(item) for item in identity]
    values = [Var(name, units[i % half].dtype) for i, name in enumerate(names)]
    result = combiner(*values)
    results = list(result) if isinstance(result, list | tuple) else [result]
    return nodes.CommReducer(values[:half], values[half:], results, units)


def boolean(expr: ExprLike | None = None, is_size_var: bool = False) -> PrimExpr:
    """``T.bool``, under another name here, as ``bool`` is Python's."""
    return DTypeConstructor("bool")(expr, is_size_var)


def type_annotation(dtype: TypeName) -> PrimExpr:
    """Pass a data type as an argument of an intrinsic: ``T.type_annotation("float32")``."""
    name = dtype.dtype if isinstance(dtype, DTypeConstructor) else dtype
    return nodes.Call(name, "tir.type_annotation", ())
