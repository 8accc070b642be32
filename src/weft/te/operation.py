"""Operations of tensor expressions, and the functions users make them with.

``placeholder`` declares an input, ``compute`` gives every element of its output by a function of
the indices, ``extern`` wraps statements. ``create_prim_func`` (weft.te.primfunc) turns a graph of
them into a TensorIR function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, overload

import numpy as np

from weft.ir.attrs import as_attrs
from weft.ir.expr import ExprLike, PrimExpr, Range, RangeLike, as_prim_expr
from weft.ir.functor import collect
from weft.ir.node import Array, field, node, with_slots
from weft.ir.structural import structural_equal
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, UnsupportedError, wrong_type
from weft.support.span import Span
from weft.te.shape import ShapeLike, as_shape, as_shapes
from weft.te.tag import TagScope
from weft.te.tensor import Operation, Tensor
from weft.tir import op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import IterType, IterVar, ProducerLoad, Reduce, SizeVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate, Stmt


@node
class PlaceholderOp(Operation):
    """An input of a given shape and dtype."""

    shape: Array[PrimExpr] = field(default=(), visit=False)
    dtype: str = field(default="float32", visit=False)

    def _output_type(
        self,
        index: int,  # noqa: ARG002 - there is a single output
    ) -> tuple[Array[PrimExpr], DataType]:
        return self.shape, DataType(self.dtype)


@with_slots
class BaseComputeOp(Operation):
    """The base of operations with axes."""


@node
class ComputeOp(BaseComputeOp):
    """Computes every element as ``body``, one expression for each output, of the ``axis``."""

    axis: Array[IterVar] = field(default=(), defines=True)
    body: Array[PrimExpr] = field(default=())

    def _check_(self) -> None:
        self.attrs = as_attrs(self.attrs)
        if not self.body:
            raise IRValueError(f"compute {self.name}: the function returned no expression")
        _check_reductions(self)

    @property
    def num_outputs(self) -> int:
        """How many tensors the operation produces."""
        return len(self.body)

    @property
    def reduce_axis(self) -> Array[IterVar]:
        """The axes that the body reduces over."""
        first = self.body[0]
        return first.axis if isinstance(first, Reduce) else Array()

    @property
    def shape(self) -> Array[PrimExpr]:
        """The extents of the axes."""
        return Array([axis.dom.extent for axis in self.axis if axis.dom is not None])

    @property
    def input_tensors(self) -> Array[Tensor]:
        """The tensors that the body and the axes' ranges read, in order of appearance."""
        read: dict[tuple[int, int], Tensor] = {}
        bodies = self.body[:1] if isinstance(self.body[0], Reduce) else self.body
        for load in collect((bodies, self.axis), ProducerLoad):
            read.setdefault(load.producer.key, load.producer)
        return Array(read.values())

    def _output_type(self, index: int) -> tuple[Array[PrimExpr], DataType]:
        return self.shape, self.body[index].dtype


def _check_reductions(compute_op: ComputeOp) -> None:
    """A reduction is a whole expression of the body, and all outputs have the same one."""
    first = compute_op.body[0]
    inner = first.source if isinstance(first, Reduce) else compute_op.body
    if collect(inner, Reduce):
        raise IRValueError(
            f"compute {compute_op.name}: a reduction must be the whole body; compute it as a "
            "tensor of its own and use that"
        )
    if not isinstance(first, Reduce):
        return
    for position, other in enumerate(compute_op.body):
        same = isinstance(other, Reduce) and (
            other.axis == first.axis
            and other.combiner is first.combiner
            and structural_equal(other.source, first.source)
        )
        if not same or getattr(other, "value_index", None) != position:
            raise IRValueError(
                f"compute {compute_op.name}: the outputs of a reduction must be the components "
                "of one reduction, in order"
            )


@node
class ExternOp(Operation):
    """Outputs written by the statement ``body`` through buffers that stand for the tensors."""

    inputs: Array[Tensor] = field(default=(), visit=False)
    input_placeholders: Array[Buffer] = field(default=(), defines=True)
    output_placeholders: Array[Buffer] = field(default=(), defines=True)
    body: Stmt | None = None

    def _check_(self) -> None:
        self.attrs = as_attrs(self.attrs)

    @property
    def num_outputs(self) -> int:
        """How many tensors the operation produces."""
        return len(self.output_placeholders)

    @property
    def input_tensors(self) -> Array[Tensor]:
        """The tensors read."""
        return self.inputs

    def _output_type(self, index: int) -> tuple[Array[PrimExpr], DataType]:
        buffer = self.output_placeholders[index]
        return buffer.shape, buffer.dtype


Element = Callable[..., ExprLike]
"""A function from the indices of an element to its expression."""
Elements = Callable[..., list[PrimExpr] | tuple[ExprLike, ...]]
"""A function from indices to the elements of several tensors of one shape."""
Body = Callable[[list[Buffer], list[Buffer]], Stmt | PrimExpr]
"""A function from the buffers of inputs and outputs to the statement that writes the outputs."""
Tensors = Tensor | list[Tensor] | tuple[Tensor, ...]
Buffers = Buffer | list[Buffer] | tuple[Buffer, ...] | None
Item = TypeVar("Item")


def placeholder(shape: ShapeLike, dtype: str | None = None, name: str = "placeholder") -> Tensor:
    """Declare an input tensor.

    Args:
        shape: its extents, or one extent: ints and expressions.
        dtype: the type of an element; float32 if left out.
        name: the name of its buffer in the TensorIR function.

    >>> from weft import te
    >>> te.placeholder((4, te.var("n")), name="A").ndim
    2
    """
    extents = as_shape(shape)
    kind = DataType("float32" if dtype is None else dtype)
    return PlaceholderOp(name, "", None, extents, kind).output(0)


@overload
def compute(
    shape: ShapeLike,
    fcompute: Element,
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor: ...
@overload
def compute(
    shape: ShapeLike,
    fcompute: Elements,
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor | tuple[Tensor, ...]: ...
def compute(
    shape: ShapeLike,
    fcompute: Element | Elements,
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Define a tensor by what each of its elements is.

    Args:
        shape: its extents, or one extent.
        fcompute: takes the indices of an element and returns the element's expression. A tuple
            of expressions defines a tuple of tensors of one shape.
        name: the name of the buffer and of the block in the TensorIR function.
        tag: what passes look up on the operation.
        attrs: what passes look up on the operation, by name.
        varargs_names: names of the axes where ``fcompute`` takes ``*args``; ``i0, i1, ...`` if
            left out. Other axes have the names of its parameters.

    Returns:
        The tensor, or the tuple of tensors.

    >>> from weft import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> te.compute((8, 4), lambda i, j: A[j, i] + 1.0, name="B").shape
    [8, 4]
    """
    scope = TagScope.get_current()
    if scope is not None:
        if tag:
            raise IRValueError(f"compute {name}: tag= inside tag_scope({scope.tag!r})")
        tag = scope.tag
    extents = as_shape(shape)
    names = _axis_names(name, fcompute, len(extents), varargs_names)
    axes = [
        IterVar(Range(extent), Var(axis, extent.dtype), IterType.DataPar)
        for axis, extent in zip(names, extents, strict=False)
    ]
    result = fcompute(*[axis.var for axis in axes])
    results = result if isinstance(result, list | tuple) else [result]
    elements = [as_prim_expr(item) for item in results]
    for element in elements:
        if element.dtype.is_handle:
            raise IRTypeError(f"compute {name}: expected a number for each element, got {element}")
    operation = ComputeOp(name, tag, attrs, axes, elements)
    outputs = tuple([operation.output(i) for i in range(operation.num_outputs)])
    return outputs[0] if len(outputs) == 1 else outputs


def _axis_names(
    name: str, fcompute: Callable[..., object], ndim: int, varargs_names: Sequence[str] | None
) -> list[str]:
    if not callable(fcompute):
        raise wrong_type(f"compute {name}: expected a function from indices to a value", fcompute)
    names: list[str] = []
    variadic = False
    for parameter in inspect.signature(fcompute).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            variadic = True
        elif parameter.default is not parameter.empty:
            raise IRValueError(f"compute {name}: parameter {parameter.name} has a default value")
        elif parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            raise IRValueError(f"compute {name}: keyword parameter {parameter.name}")
        else:
            names.append(parameter.name)
    rest = ndim - len(names)
    if rest < 0 or (not variadic and rest > 0):
        raise IRValueError(
            f"compute {name}: the shape has {ndim} dimensions, the function takes {len(names)} "
            "indices"
        )
    if varargs_names is not None and variadic:
        if len(varargs_names) != rest:
            raise IRValueError(
                f"compute {name}: varargs_names has {len(varargs_names)} names for {rest} indices"
            )
        return names + list(varargs_names)
    return names + [f"i{i}" for i in range(rest)] if variadic else names


@overload
def extern(
    shape: ShapeLike,
    inputs: Tensors,
    fcompute: Body,
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Buffers = None,
    out_buffers: Buffers = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor: ...
@overload
def extern(
    shape: Sequence[Sequence[ExprLike]],
    inputs: Tensors,
    fcompute: Body,
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Buffers = None,
    out_buffers: Buffers = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor | list[Tensor]: ...
def extern(
    shape: ShapeLike | Sequence[ShapeLike],
    inputs: Tensors,
    fcompute: Body,
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Buffers = None,
    out_buffers: Buffers = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor | list[Tensor]:
    """Define tensors by a statement that writes them, instead of by their elements.

    Args:
        shape: the shape of the output, or a list of the shapes of several.
        inputs: the tensors that the statement reads.
        fcompute: takes the buffers of the inputs and those of the outputs; returns the
            statement (from ``tir.ir_builder``), or an expression to evaluate such as a
            ``tir.call_packed``.
        name: the name of the buffers and of the block in the TensorIR function.
        dtype: the type of the outputs, or one for each; that of the inputs if left out.
        in_buffers: buffers to use for the inputs, instead of new ones.
        out_buffers: buffers to use for the outputs, instead of new ones.
        tag: what passes look up on the operation.
        attrs: what passes look up on the operation, by name.

    Returns:
        The tensor, or the list of tensors.

    >>> from weft import te, tir
    >>> A = te.placeholder((8,), name="A")
    >>> def double(ins, outs):
    ...     ib = tir.ir_builder.create()
    ...     a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    ...     with ib.for_range(0, 8) as i:
    ...         b[i] = a[i] * 2.0
    ...     return ib.get()
    >>> te.extern((8,), [A], double, name="B").dtype
    'float32'
    """
    shapes = as_shapes(shape)
    sources = as_list(inputs)
    for item in sources:
        if not isinstance(item, Tensor):
            raise IRTypeError(f"extern {name}: expected tensors as inputs, got {item!r}")
    dtypes = _extern_dtypes(name, sources, dtype, len(shapes))
    ins = as_list(in_buffers) or [
        decl_buffer(t.shape, t.dtype, t.op.name, elem_offset=Var("elem_offset", "int32"))
        for t in sources
    ]
    outs = as_list(out_buffers) or [
        decl_buffer(extents, kind, name, elem_offset=Var("elem_offset", "int32"))
        for extents, kind in zip(shapes, dtypes, strict=True)
    ]
    if len(ins) != len(sources) or len(outs) != len(shapes):
        raise IRValueError(
            f"extern {name}: got {len(ins)} input and {len(outs)} output buffers for "
            f"{len(sources)} and {len(shapes)} tensors"
        )
    body = fcompute(ins, outs)
    if isinstance(body, PrimExpr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise wrong_type(f"extern {name}: the function must return a statement", body)
    operation = ExternOp(name, tag, attrs, sources, ins, outs, body)
    outputs = [operation.output(i) for i in range(operation.num_outputs)]
    return outputs[0] if len(outputs) == 1 else outputs


def as_list(value: Item | list[Item] | tuple[Item, ...] | None) -> list[Item]:
    """An empty list for None, a list of one value, or the list of a list or tuple."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _extern_dtypes(
    name: str, inputs: list[Tensor], dtype: str | Sequence[str] | None, count: int
) -> list[str]:
    given = [dtype] if isinstance(dtype, str) else list(dtype or ())
    if not given:
        kinds = {tensor.dtype for tensor in inputs}
        if len(kinds) != 1:
            raise IRValueError(f"extern {name}: the output dtype is not clear; give dtype=")
        given = [*kinds] * count
    if len(given) == 1:
        given = given * count
    if len(given) != count:
        raise IRValueError(f"extern {name}: got {len(given)} dtypes for {count} outputs")
    return given


def extern_primfunc(
    input_tensors: list[Tensor] | tuple[Tensor, ...], primfunc: PrimFunc, **kwargs: Any
) -> Tensor | list[Tensor]:
    """Define tensors by a TensorIR function that writes them.

    Args:
        input_tensors: the inputs, for the first parameters of the function.
        primfunc: the function; its other parameters are the outputs.
        kwargs: keyword arguments of ``te.extern``.
    """
    buffers = [primfunc.buffer_map[param] for param in primfunc.params]
    count = len(input_tensors)
    if not 0 < len(buffers) - count:
        raise IRValueError(
            f"extern_primfunc: the function has {len(buffers)} buffers, {count} inputs leave no "
            "output"
        )
    outs = buffers[count:]
    kwargs.setdefault("name", str(primfunc.attrs.get("global_symbol", "extern")))
    return extern(
        [buffer.shape for buffer in outs],
        input_tensors,
        lambda _ins, _outs: primfunc.body,
        dtype=[buffer.dtype for buffer in outs],
        in_buffers=buffers[:count],
        out_buffers=outs,
        **kwargs,
    )


def var(name: str = "tindex", dtype: str = "int32", span: Span | None = None) -> Var:
    """Make a scalar variable: a symbolic extent, or a scalar parameter of the function."""
    return Var(name, dtype, span)


def size_var(name: str = "size", dtype: str = "int32", span: Span | None = None) -> SizeVar:
    """Make a scalar variable that is known to be at least 0, as an extent is."""
    variable: SizeVar = SizeVar(name, dtype, span)
    return variable


def const(value: float | np.generic, dtype: str = "int32", span: Span | None = None) -> PrimExpr:
    """Make a constant of a data type."""
    return op.const(value, dtype, span)


def reduce_axis(
    dom: RangeLike, name: str = "rv", thread_tag: str = "", span: Span | None = None
) -> IterVar:
    """Make an axis to reduce over, for ``te.sum`` and other reductions.

    Args:
        dom: its range: a pair (begin, end), a Range, or an extent.
        name: the name of its loop in the TensorIR function.
        thread_tag: the thread it is bound to, if any.
        span: the place in a source, for messages.

    >>> from weft import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B").shape
    [4]
    """
    return IterVar(_as_domain(dom), name, IterType.CommReduce, thread_tag, span=span)


def thread_axis(
    dom: RangeLike | None = None, tag: str = "", name: str = "", span: Span | None = None
) -> IterVar:
    """Make an axis that is a thread index: ``te.thread_axis((0, 64), "threadIdx.x")``."""
    if isinstance(dom, str):
        tag, dom = dom, None
    if not tag:
        raise IRValueError("thread_axis: the tag must be given, such as 'threadIdx.x'")
    domain = None if dom is None else _as_domain(dom)
    return IterVar(domain, Var(name or tag, "int32"), IterType.ThreadIndex, tag, span=span)


def _as_domain(dom: RangeLike) -> Range:
    if isinstance(dom, Range):
        return dom
    ends = dom if isinstance(dom, list | tuple) else (0, dom)
    if len(ends) != 2:
        raise IRValueError(f"expected (begin, end), got {len(ends)} values")
    for end in ends:
        if not as_prim_expr(end).dtype.is_integral:
            raise IRTypeError(
                f"the range of an axis: expected integers, got {end!r} in {dom!r}; a range is "
                "an extent, (begin, end) or a Range"
            )
    if not isinstance(dom, list | tuple):
        return Range(as_prim_expr(dom))
    begin, end = op.match_types(dom[0], dom[1])
    return Range.from_min_extent(begin, op.subtract(end, begin))


def scan(*args: object, **kwargs: object) -> NoReturn:
    """Raise UnsupportedError: recurrences are written with ``te.extern``, or as TVMScript."""
    raise UnsupportedError(
        "Unsupported Operation: ScanOp. te.scan cannot be turned into TensorIR (nor can it in "
        "TVM 0.20); write the recurrence with te.extern and tir.ir_builder, or as a TVMScript "
        "function"
    )
