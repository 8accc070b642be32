"""Text inside of a graph: which operators pass it on, and what the others are told.

An operator that only moves or compares elements gets the places of texts in their table instead,
and where its result is text, it is of the same table. A converter of an operator that computes with
text calls a function of the run time (``call_library``). Every other operator would compute with
the places, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, PrimValue, StringImm
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import STRING
from weft.relax.frontend.onnx.protos import GraphProto, ModelProto, NodeProto
from weft.relax.frontend.onnx.value import (
    Array,
    Dim,
    GraphValue,
    MapValue,
    TextTable,
    TextValue,
    Value,
)
from weft.relax.struct_info import ObjectStructInfo, TensorStructInfo

Texts: TypeAlias = tuple[str, ...] | TextTable
"""Where the texts of a value are looked up."""

MOVES: Final = frozenset({
    "ArrayFeatureExtractor", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
    "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose first input may be text: their results have the same elements, elsewhere."""
JOINS: Final = frozenset({"Concat", "Where"})
"""Operators whose result has elements of several inputs."""
COMPARES: Final = frozenset({"Equal", "Shape", "Size"})
"""Operators to which elements are only equal or not, and whose result is numbers."""
TAKES: Final = frozenset({
    "Cast", "CastLike", "CategoryMapper", "LabelEncoder", "OneHotEncoder", "RegexFullMatch",
    "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "Tokenizer", "ZipMap",
})  # fmt: skip
"""Operators whose converters look at text themselves."""
COMPUTES: Final = frozenset({"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit",
                             "Tokenizer"})  # fmt: skip
"""Operators that need the texts themselves when the program runs."""
DEFAULTS: Final = ("", "_Unused")
"""Texts that attributes have by default."""


def places_of_texts(
    context: Context, name: str, inputs: Sequence[GraphValue | None]
) -> tuple[Sequence[GraphValue | None], Texts | None]:
    """The inputs for the converter of an operator: where it moves text, the places of the texts.

    The second result is where the texts of the operator's results are; None if these are no text.
    Raises OnnxNodeError for text and dicts that the operator cannot pass on.
    """
    strange = [value for value in inputs if isinstance(value, TextValue | MapValue)]
    passes = name in MOVES | JOINS | COMPARES and any(map(is_text, inputs))
    if name in TAKES or not (strange or passes):
        return inputs, None
    first, *others = inputs
    if name in MOVES and first is not None and is_text(first) and not any(map(is_text, others)):
        moved = _as_text_value(context, first)
        return [moved.index, *others], moved.texts
    texts = [value for value in inputs if value is not None and is_text(value)]
    if name not in JOINS | COMPARES or any(isinstance(value, MapValue) for value in strange):
        context.fail(
            "text and dicts can only pass through, be compared, or go to operators of text: "
            "expected numbers; compute with the numbers of the classes and look the texts up "
            "afterwards"
        )
    common = _common_table(context, texts)
    given = [
        context.value(places_in(context, value, common)) if is_text(value) else value
        for value in inputs
    ]
    return given, common if name in JOINS else None


def _common_table(context: Context, texts: Sequence[GraphValue]) -> Texts:
    """The table of the model, or one of the texts that values may have."""
    table = context.translator.text_table
    return tuple(dict.fromkeys(_all_of(texts))) if table is None else table


def _as_text_value(context: Context, value: GraphValue) -> TextValue:
    """A text, also of an initializer, as places in a table."""
    if isinstance(value, TextValue):
        return value
    texts = _common_table(context, [value])
    return TextValue(context.value(places_in(context, value, texts)), texts)


def is_text(value: GraphValue | None) -> bool:
    """Whether it is text, of an initializer too."""
    return isinstance(value, TextValue) or (isinstance(value, Value) and value.elem == STRING)


def with_texts(results: list[GraphValue | None], texts: Texts | None) -> list[GraphValue | None]:
    """The results of a converter: where it moved places of texts, the texts there."""
    if texts is None:
        return results
    return [TextValue(item, texts) if isinstance(item, Value) else item for item in results]


def _all_of(values: Sequence[GraphValue]) -> Iterator[str]:
    """The texts that values may have, which the model names."""
    for value in values:
        if isinstance(value, TextValue):
            yield from value.texts.texts if isinstance(value.texts, TextTable) else value.texts
        elif isinstance(value, Value) and value.constant is not None:
            yield from map(str, value.constant.ravel().tolist())


def places_in(context: Context, value: GraphValue | None, texts: Texts) -> Expr:
    """The places of a value's texts in a table: int64, of the value's shape."""
    if isinstance(value, TextValue) and value.texts is texts:
        return value.index.expr
    known = texts.texts if isinstance(texts, TextTable) else texts
    if isinstance(value, TextValue) and not isinstance(value.texts, TextTable):
        table = places_of(np.array(value.texts, object), known)
        return context.emit(op.take(context.constant(table).expr, value.index.expr, 0))
    array = value.constant if isinstance(value, Value) and value.elem == STRING else None
    if array is None:
        context.fail("expected text, got numbers")
    return context.constant(places_of(array, known)).expr


def places_of(array: Array, texts: Sequence[str]) -> Array:
    """The places of an array's texts among others, int64."""
    order = {text: place for place, text in enumerate(texts)}
    places = [order[str(text)] for text in array.ravel().tolist()]
    return np.array(places, "int64").reshape(array.shape)


def text_places(context: Context, value: GraphValue | None) -> Value:
    """The places of a value's texts in the table of the call, for operators that compute them."""
    return context.value(places_in(context, value, table_of(context)))


def table_of(context: Context) -> TextTable:
    """The table of the call; it is there in each model that has such an operator."""
    table = context.translator.text_table
    if table is None:
        context.fail("text is not computed in this model: expected an input that is text")
    return table


def call_library(
    context: Context,
    name: str,
    places: Sequence[Expr],
    options: Sequence[str | int],
    kind: tuple[Sequence[Dim], str] = ((), "int64"),
) -> Value:
    """A call of a function of ``weft.runtime.texts``; ``kind`` is the shape and data type.

    Extents that only the texts decide are new symbols in the shape.
    """
    dims, dtype = kind
    given = [StringImm(item) if isinstance(item, str) else PrimValue(item) for item in options]
    call = op.call_pure_packed(
        name, table_of(context).expr, *places, *given,
        sinfo_args=TensorStructInfo(None, dtype, ndim=len(dims)),
    )  # fmt: skip
    return context.value(context.matched(context.builder.emit(call), dims))


def as_object(function: str, value: TextValue, table: TextTable) -> Expr:
    """The texts of a value as the array of objects that a caller gets."""
    return op.call_pure_packed(
        function, table.expr, value.index.expr, sinfo_args=ObjectStructInfo()
    )


# ---- What a model says of text


def computes_text(model: ModelProto) -> bool:
    """Whether a model has an input that is text, or an operator that computes with text."""
    taken = any(info.type.tensor_type.elem_type == STRING for info in model.graph.input)
    return taken or any(map(_makes_text, _nodes(model)))


def _makes_text(node: NodeProto) -> bool:
    to_text = node.op_type == "Cast" and any(
        item.name == "to" and STRING in (item.i, _BY_NAME.get(item.s)) for item in node.attribute
    )
    return to_text or node.op_type in COMPUTES


_BY_NAME: Final = {b"STRING": STRING}


def texts_named_in(model: ModelProto) -> list[str]:
    """The texts in attributes and initializers of a model, its graphs and functions."""
    texts = [item for graph in _graphs(model) for t in graph.initializer for item in t.string_data]
    for node in _nodes(model):
        for attribute in node.attribute:
            texts += [attribute.s, *attribute.strings, *attribute.t.string_data]
            texts += [text for tensor in attribute.tensors for text in tensor.string_data]
    return list(dict.fromkeys([*DEFAULTS, *[_decoded(text) for text in texts]]))


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _graphs(model: ModelProto) -> Iterator[GraphProto]:
    todo = [model.graph]
    bodies = [node for function in model.functions for node in function.node]
    todo += [graph for node in bodies for graph in _inner(node)]
    while todo:
        graph = todo.pop()
        yield graph
        todo += [inner for node in graph.node for inner in _inner(node)]


def _inner(node: NodeProto) -> list[GraphProto]:
    return [graph for item in node.attribute for graph in [item.g, *item.graphs] if graph.node]


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    for graph in _graphs(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node
