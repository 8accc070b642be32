"""What a converter works with: the builder, the node it converts, what is known at import."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from weft.ir.node import expect
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, RelaxLike, Var
from weft.relax.frontend.onnx.blocks import Taken
from weft.relax.frontend.onnx.checks import first_output
from weft.relax.frontend.onnx.element_types import INT64, SMALL, STORAGE, type_name
from weft.relax.frontend.onnx.errors import ConstantNeededError, OnnxNodeError, ShapeNeededError
from weft.relax.frontend.onnx.known import settle
from weft.relax.frontend.onnx.protos import Attribute, Attributes, GraphProto, NodeProto
from weft.relax.frontend.onnx.registry import qualified
from weft.relax.frontend.onnx.scope import Scope
from weft.relax.frontend.onnx.value import (
    Array,
    Dim,
    GraphValue,
    Result,
    TextTable,
    Value,
    as_known,
    as_prim,
    name_of_largest,
    plain_dim,
)
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo
from weft.tir.expr import SizeVar
from weft.tir.expr import Var as TirVar


class Translation(Protocol):
    """What walks the graph: what a converter may ask it, and what nodes have in common."""

    builder: BlockBuilder
    data_symbols: set[TirVar]
    generators: dict[tuple[str, float], np.random.Generator]
    draws: Iterator[int]
    is_looping: bool
    is_pure: bool
    taken: dict[str, Taken]
    text_table: TextTable | None
    choices: int

    def emit(self, expr: RelaxLike) -> Expr:
        """Bind an expression; extents that only the run tells are new symbols."""

    def new_dim(self, hint: str) -> SizeVar:
        """A new symbol for a size that only the data decides."""

    def fresh_symbol(self, hint: str) -> str:
        """A name for a symbol that only the data decides."""

    def graph(
        self, graph: GraphProto, scope: Scope, inputs: Sequence[GraphValue | None] = ()
    ) -> list[GraphValue | None]:
        """The outputs of a sub-graph on these inputs, its bindings emitted here."""

    def nodes(self, nodes: Sequence[NodeProto], scope: Scope, outputs: Sequence[str]) -> None:
        """Translate nodes in order; ``outputs`` are the names that are wanted of them."""

    def expanded(
        self, context: Context, inputs: Sequence[GraphValue | None]
    ) -> list[GraphValue | None]:
        """What ONNX's own definition of a node makes of values; its converter does only a part."""

    def apply(
        self,
        context: Context,
        operator: tuple[str, int],
        inputs: Sequence[GraphValue | None],
        given: Attributes,
    ) -> list[GraphValue | None]:
        """What ONNX's operator of that name and opset makes of values, for another converter."""


@dataclass
class Context:
    """One node under conversion.

    Attributes:
        translator: what walks the graph; converters of control flow ask it for sub-graphs.
        scope: the names that are visible at the node.
        node: the NodeProto.
        opset: the version of the operator set that the node's domain has here.
    """

    translator: Translation
    scope: Scope
    node: NodeProto
    opset: int

    @property
    def builder(self) -> BlockBuilder:
        """The block builder; ``emit`` is what most converters need of it."""
        return self.translator.builder

    @property
    def where(self) -> str:
        """The node in messages: ``Softmax node 'sm1' (output y)``."""
        name = qualified(self.node.domain, self.node.op_type)
        title = f" {self.node.name!r}" if self.node.name else ""
        return f"{name} node{title} (output {first_output(self.node)!r})"

    def wants(self, index: int) -> bool:
        """Whether output ``index`` of the node has a name, so that somebody may use it."""
        return index < len(self.node.output) and bool(self.node.output[index])

    # Making values

    def emit(self, expr: RelaxLike) -> Expr:
        """Bind an expression; a chain of calls is emitted one by one.

        Extents that follow only when the program runs are new symbols, which the result defines.
        """
        return self.translator.emit(expr)

    def value(self, expr: RelaxLike, elem: int | None = None) -> Value:
        """A value of an expression; ``elem`` where its element type is held in bytes."""
        return Value(
            self.builder, self.emit(expr) if not isinstance(expr, Var) else expr, elem=elem
        )

    def as_type(self, x: Expr, dtype: str) -> Expr:
        """The tensor in a data type."""
        return x if str(x.struct_info.dtype) == dtype else self.emit(op.astype(x, dtype))

    def constant(
        self, array: npt.ArrayLike, dtype: str | None = None, elem: int | None = None
    ) -> Value:
        """A value whose elements are known; as a weight it has the name of what it is made of."""
        value = Value(self.builder, None, np.asarray(array, dtype), elem)
        if np.size(array) > 1 or not self.node.input:
            given = [self.scope.get(name) for name in self.node.input]
            value.name = name_of_largest(given) or first_output(self.node)
        return value

    def shape_value(self, dims: Sequence[Dim]) -> Value:
        """A vector of dimensions as a value."""
        return Value(self.builder, None, as_known(dims), INT64)

    def dim_expr(self, dim: Dim, more: int = 0) -> Expr:
        """The tensor () int64 of a dimension plus ``more``."""
        return self.dim_value(dim, more).expr

    def dim_value(self, dim: Dim, more: int = 0) -> Value:
        """The number () int64 of a dimension plus ``more``."""
        number = np.empty((), object)
        number[()] = as_prim(dim) + more
        return self.constant(settle(number), elem=INT64)

    def is_empty(self, expr: Expr) -> bool:
        """Whether a tensor is known to have no elements."""
        return 0 in (self.value(expr).shape or ())

    def run(
        self, name: str, *inputs: Value | None, opset: int | None = None, **attributes: Attribute
    ) -> Result:
        """What the converter of an operator of ONNX (in the model's opset) makes of values."""
        results = self._results(name, inputs, attributes, opset)
        return results[0] if len(results) == 1 else results

    def apply(
        self,
        name: str,
        inputs: Sequence[Value | None],
        attributes: Attributes,
        opset: int | None = None,
    ) -> Value:
        """As ``run``, of an operator whose one result is a tensor."""
        (result,) = self._results(name, inputs, attributes, opset)
        return expect(result, Value)

    def _results(
        self, name: str, inputs: Sequence[Value | None], attributes: Attributes, opset: int | None
    ) -> list[GraphValue | None]:
        version = self.scope.opset("") if opset is None else opset
        return self.translator.apply(self, (name, version), inputs, attributes)

    # What must be known at import

    def array(self, value: Value | None, what: str) -> Array:
        """The elements of a value that are numbers; ConstantNeededError where they are not."""
        elements = self.optional_array(value, what)
        if elements is None:
            raise OnnxNodeError(f"{self.where}: the input {what} is missing")
        return elements

    def optional_array(self, value: Value | None, what: str) -> Array | None:
        """As ``array``, but None for an input that is left out."""
        if value is None:
            return None
        if value.constant is None:
            self.need(value, what)
        return value.constant

    def need(self, value: GraphValue, what: str) -> NoReturn:
        """Raise ConstantNeededError: the operator needs ``what``, which is not known."""
        raise ConstantNeededError(
            f"{self.where}: its input {what} must be known at import, but it is computed from "
            f"{', '.join(sorted(value.sources)) or 'the data'}; make it an initializer, or a "
            "constant of the graph",
            value.sources,
        )

    def ints(self, value: Value | None, what: str) -> list[int] | None:
        """The integers of an input that must be known; None for one that is left out."""
        elements = self.optional_array(value, what)
        return None if elements is None else [int(item) for item in elements.ravel().tolist()]

    def sizes(self, value: Value, what: str) -> list[Dim]:
        """As ``dims``, of extents and counts: their symbols are known not to be negative."""
        return self.dims(value, what, SizeVar)

    def dims(self, value: Value, what: str, kind: type[TirVar] = TirVar) -> list[Dim]:
        """The elements of an integer vector as dimensions.

        Where they are not known at import they become new symbols, which the vector defines when
        the program runs; its length must be known.
        """
        if value.known is not None:
            return [plain_dim(item) for item in value.known.ravel().tolist()]
        shape = value.shape
        extents = [dim for dim in shape or () if isinstance(dim, int)]
        if shape is None or len(extents) < len(shape):
            self.need(value, what)
        count = math.prod(extents)
        vector = value.expr if value.dtype == "int64" else self.emit(op.astype(value.expr, "int64"))
        if len(shape) != 1:
            vector = self.emit(op.reshape(vector, [count]))
        shape_expr = self.emit(op.tensor_to_shape(vector))
        symbols = [kind(self.translator.fresh_symbol(what), "int64") for _ in range(count)]
        self.builder.match_cast(shape_expr, ShapeStructInfo(symbols))
        self.translator.data_symbols.update(symbols)
        return list(symbols)

    def new_dim(self, what: str) -> Dim:
        """A new symbol for a size that only the data decides."""
        return self.translator.new_dim(what)

    def matched(self, expr: Expr, dims: Sequence[Dim], dtype: str | None = None) -> Expr:
        """The tensor, whose shape defines the new symbols in ``dims``; converted to ``dtype``."""
        kind = expr.struct_info.dtype
        matched = self.builder.match_cast(expr, TensorStructInfo(list(dims), kind))
        return self.emit(op.astype(matched, dtype)) if dtype and dtype != kind else matched

    def storage(self, elem: int) -> str:
        """The data type of tensors of an element type; OnnxNodeError if there is none."""
        if elem not in STORAGE:
            self.fail(f"there are no tensors of {type_name(elem)}")
        return STORAGE[elem]

    def is_data_symbol(self, dim: Dim) -> bool:
        """Whether a dimension came out of a tensor's elements (so that it may be 0 or -1)."""
        return any(var in self.translator.data_symbols for var in symbolic_vars(dim))

    def shape(self, value: Value, what: str) -> list[Dim]:
        """The dimensions of a value; ConstantNeededError where they are not known."""
        dims = value.shape
        if dims is None:
            raise ShapeNeededError(
                f"{self.where}: the shape of its input {what} is not known; give it in shape_dict",
                value.sources,
            )
        return dims

    def extent(self, value: Value, axis: int, what: str) -> int:
        """The extent of an axis, which must be a number."""
        dim = self.shape(value, what)[axis]
        return self.number(dim, value, what)

    def number(self, dim: Dim, value: Value, what: str) -> int:
        """A dimension of ``value`` that must be a number; ShapeNeededError where it is not."""
        if isinstance(dim, int):
            return dim
        raise ShapeNeededError(
            f"{self.where}: an extent of its input {what} must be a number at import, got {dim}; "
            "give the shapes of the model's inputs in shape_dict",
            value.sources,
        )

    def numbers(self, value: Value, what: str) -> list[int]:
        """The dimensions of a value, all of which must be numbers."""
        return [self.number(dim, value, what) for dim in self.shape(value, what)]

    def rank(self, value: Value, what: str) -> int:
        """The number of dimensions of a value, which must be known."""
        if value.rank < 0:
            self.shape(value, what)
        return value.rank

    def axis(self, value: Value, axis: int, extra: int = 0) -> int:
        """An axis of the value as a non-negative number; OnnxNodeError if there is none such."""
        rank = self.rank(value, "0") + extra
        if not -max(rank, 1) <= axis < max(rank, 1):
            self.fail(f"axis {axis} is outside of a tensor of {rank} dimensions")
        return axis % max(rank, 1)

    # Refusals

    def fail(self, message: str) -> NoReturn:
        """Raise OnnxNodeError with the node's name before the message."""
        raise OnnxNodeError(f"{self.where}: {message}")

    def refuse_small(self, *values: Value) -> None:
        """Raise OnnxNodeError for values of types that are only held (see element_types)."""
        for value in values:
            if value.elem in SMALL:
                self.fail(f"there is no arithmetic on {type_name(value.elem)}; Cast it first")


def exprs(values: Sequence[Value]) -> list[Expr]:
    """The expressions of values."""
    return [value.expr for value in values]
