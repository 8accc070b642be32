"""Values of the translator: a graph expression together with what is known of it at import.

``known`` is a numpy array of constants, or an object array whose elements are ints and integer
expressions (``tir.Var`` and what is computed of them): the dimensions of a tensor, for one.
Arithmetic on them runs at import (weft.relax.frontend.onnx.known), so that chains of Shape, Gather,
Concat and Reshape leave symbolic shapes and no kernels. Only where a kernel needs such a value is
an expression made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, RelaxLike, const
from weft.relax.frontend.onnx.element_types import (
    INT64,
    STORAGE,
    STRING,
    element_of,
    element_of_array,
    to_storage,
    type_name,
)
from weft.relax.frontend.onnx.errors import OnnxNodeError
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.weight_names import name_weight
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir.op import all as tir_all
from weft.tir.op import const as tir_const
from weft.tir.op import if_then_else

Array = np.ndarray
Dim = Extent
"""A dimension: an int, or an integer PrimExpr."""


class Value:
    """A tensor of the graph.

    Attributes:
        elem: its ONNX element type.
        known: what is known of its elements (see the module's docstring), or None.
        sources: the inputs of the graph that it is computed from.
        name: of a weight, as the model has it, or that of the largest one that it is made of.
        claim: of a boolean, what it says of dimensions where that depends on them; or None.
        whole: of floats, the numbers and integer expressions that were cast to them; or None.
    """

    __slots__ = ("_expr", "builder", "claim", "elem", "known", "name", "sources", "whole")

    def __init__(
        self,
        builder: BlockBuilder,
        expr: Expr | None = None,
        known: Array | None = None,
        elem: int | None = None,
        sources: frozenset[str] = frozenset(),
    ) -> None:
        self.builder, self._expr, self.known, self.sources = builder, expr, known, sources
        if elem is None:
            if known is not None:
                elem = INT64 if known.dtype == object else element_of_array(known)
            elif expr is not None:
                elem = element_of(_tensor_info(expr).dtype)
        self.elem = elem
        self.claim: PrimExpr | None = None
        self.whole: Array | None = None
        self.name: str | None = None

    def __repr__(self) -> str:
        what = self._expr if self.known is None else self.known
        return f"Value({what}, {type_name(self.elem or 0)})"

    @property
    def expr(self) -> Expr:
        """The graph expression; made of what is known where there is none yet."""
        if self._expr is not None:
            return self._expr
        assert self.known is not None
        if self.elem not in STORAGE:
            raise OnnxNodeError(
                f"a tensor of {type_name(self.elem or 0)} cannot be computed with: expected "
                "numbers or booleans"
            )
        if self.known.dtype != object:
            constant = self._expr = const(to_storage(self.known), self.dtype)
            if self.name is not None:
                name_weight(constant.data, self.name)
            return self._expr
        return self._computed()

    def _computed(self) -> Expr:
        """A small kernel that writes symbolic elements; emitted again at each use, in its scope."""
        assert self.known is not None
        shape, dtype = self.known.shape, self.dtype

        def shape_elements(elements: list[Dim]) -> Tensor:
            def element(*point: PrimExpr) -> PrimExpr:
                chosen = tir_const(0, dtype)
                for place, value in zip(np.ndindex(*shape), elements, strict=True):
                    here = as_prim(value).astype(dtype)
                    tests = [index == at for index, at in zip(point, place, strict=True)]
                    chosen = if_then_else(tir_all(*tests), here, chosen) if tests else here
                return chosen

            return compute(shape, element, "shape_elements")

        return self.builder.emit_te(shape_elements, self.known.ravel().tolist())

    @property
    def dtype(self) -> str:
        """The data type of the tensor that holds it."""
        return STORAGE[self.elem or 0]

    @property
    def shape(self) -> list[Dim] | None:
        """The dimensions: ints and integer expressions; None where they are not known."""
        if self._expr is None:
            assert self.known is not None
            return list(self.known.shape)
        dims = tensor_dims(_tensor_info(self._expr))
        return None if dims is None else [plain_dim(dim) for dim in dims]

    @property
    def rank(self) -> int:
        """The number of dimensions, -1 where it is not known."""
        if self._expr is None:
            assert self.known is not None
            return self.known.ndim
        return _tensor_info(self._expr).ndim

    @property
    def constant(self) -> Array | None:
        """The elements where all of them are numbers."""
        return None if self.known is None or self.known.dtype == object else self.known


class SequenceValue:
    """A sequence: its items are known at import, their number is constant."""

    __slots__ = ("elem", "items", "sources")

    def __init__(
        self,
        items: Sequence[GraphValue],
        elem: int | None = None,
        sources: frozenset[str] = frozenset(),
    ) -> None:
        self.items, self.elem, self.sources = list(items), elem, sources


class RunSequence:
    """A sequence of tensors whose number of items only the run tells.

    Attributes:
        expr: the object that holds the items (weft.runtime.vm.sequences).
        elem: the element type of the items; None while no item is known.
        dims: what the shapes of all items have in common, None for an extent in which they differ;
            None itself while no item is known. All items have one rank.
    """

    __slots__ = ("dims", "elem", "expr", "sources")

    def __init__(
        self,
        expr: Expr,
        elem: int | None,
        dims: Sequence[Dim | None] | None,
        sources: frozenset[str] = frozenset(),
    ) -> None:
        self.expr, self.elem, self.sources = expr, elem, sources
        self.dims = None if dims is None else list(dims)


class OptionalValue:
    """An optional: ``content`` is None where it is empty."""

    __slots__ = ("content", "sources")

    def __init__(
        self, content: GraphValue | None = None, sources: frozenset[str] = frozenset()
    ) -> None:
        self.content, self.sources = content, sources


class TextTable:
    """The table of the texts of a call, which a program makes when it is called.

    ``texts`` are those that the model names, in the order of their places; ``expr`` is the table
    itself (``weft.runtime.texts``), to which the texts of inputs and new texts are added.
    """

    __slots__ = ("expr", "texts")

    def __init__(self, texts: Sequence[str], expr: Expr) -> None:
        self.texts, self.expr = tuple(texts), expr


class TextValue:
    """Text of a model: an int64 tensor of places in a table of texts.

    There are no tensors of text. Classifiers name classes by texts: then ``texts`` is a tuple of
    these, and they are looked up when a result is handed to the caller. A model that takes text, or
    computes with it, has one TextTable.
    """

    __slots__ = ("index", "texts")
    elem = STRING

    def __init__(self, index: Value, texts: Sequence[str] | TextTable) -> None:
        self.index = index
        self.texts = texts if isinstance(texts, TextTable) else tuple(texts)

    @property
    def sources(self) -> frozenset[str]:
        """The inputs of the graph that it is computed from."""
        return self.index.sources


class MapValue:
    """A dict for each row of a tensor (ZipMap): ``keys`` with the elements of the row."""

    __slots__ = ("keys", "rows")

    def __init__(self, rows: Value, keys: Sequence[str | int]) -> None:
        self.rows, self.keys = rows, tuple(keys)

    @property
    def sources(self) -> frozenset[str]:
        """The inputs of the graph that it is computed from."""
        return self.rows.sources


GraphValue: TypeAlias = Value | SequenceValue | RunSequence | OptionalValue | TextValue | MapValue
"""What a name of a graph stands for."""
Item: TypeAlias = GraphValue | RelaxLike | None
"""One output of a converter: None if nobody uses it, a tensor, or what ``emit`` makes one of."""
Result: TypeAlias = Item | Sequence[Item]
"""What a converter returns: its output, or the outputs in their order."""


def name_of_largest(values: Iterable[GraphValue | None]) -> str | None:
    """The name of the largest weight among values, if one has a name."""
    weights = [
        (value.known.size, value.name)
        for value in values
        if isinstance(value, Value) and value.known is not None and value.name is not None
    ]
    return max(weights, key=lambda weight: weight[0])[1] if weights else None


def _tensor_info(expr: Expr) -> TensorStructInfo:
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo):
        raise OnnxNodeError(f"expected a tensor, got {info}")
    return info


def plain_dim(dim: Dim) -> Dim:
    """A dimension as an int where it is constant."""
    return dim.value if isinstance(dim, IntImm) else dim


def as_prim(dim: Dim) -> PrimExpr:
    """A dimension as an int64 expression."""
    if isinstance(dim, PrimExpr):
        return dim
    return IntImm("int64", int(dim))


def as_known(dims: Sequence[Dim]) -> Array:
    """A vector of dimensions: int64 where all are numbers, else objects."""
    if all(isinstance(dim, int | np.integer) for dim in dims):
        return np.array(dims, "int64")
    vector = np.empty(len(dims), object)
    vector[:] = list(dims)
    return vector
