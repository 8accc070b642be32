"""Sequences and optionals. Both exist at import only: their items are values of the graph, and how
many there are is known. Positions must be known; ONNX's backend binds those that are inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.node import expect
from weft.relax import op
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import FLOAT
from weft.relax.frontend.onnx.operators.indexing import check_sizes
from weft.relax.frontend.onnx.protos import GraphProto, TypeProto
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.translator import sources_of
from weft.relax.frontend.onnx.value import GraphValue, OptionalValue, SequenceValue, Value


def items_of(context: Context, sequence: GraphValue | None) -> list[GraphValue]:
    """The items of a sequence, also of one inside of an optional."""
    if isinstance(sequence, OptionalValue):
        sequence = sequence.content
    if not isinstance(sequence, SequenceValue):
        context.fail("expected a sequence")
    return list(sequence.items)


def _sequence(items: Sequence[GraphValue], *inputs: GraphValue | None) -> SequenceValue:
    elem = items[0].elem if items and isinstance(items[0], Value) else None
    return SequenceValue(items, elem, sources_of(inputs))


@converter("SequenceConstruct", since=11)
def sequence_construct(context: Context, *values: GraphValue) -> SequenceValue:
    """A sequence of the inputs."""
    return _sequence(list(values), *values)


@converter("SequenceEmpty", since=11)
def sequence_empty(context: Context, *, dtype: int = FLOAT) -> SequenceValue:
    """A sequence of nothing."""
    return SequenceValue([], dtype)


def _position(context: Context, position: Value | None, count: int, more: int) -> int | None:
    if position is None:
        return None
    index = int(context.array(position, "position").ravel()[0])
    if not -count <= index < count + more:
        context.fail(f"position {index} is outside of a sequence of {count} items")
    return index + count if index < 0 else index


@converter("SequenceAt", since=11)
def sequence_at(context: Context, sequence: GraphValue, position: Value) -> GraphValue:
    """One item."""
    items = items_of(context, sequence)
    place = _position(context, position, len(items), 0)
    assert place is not None
    return items[place]


@converter("SequenceInsert", since=11)
def sequence_insert(
    context: Context, sequence: GraphValue, value: GraphValue, position: Value | None = None
) -> SequenceValue:
    """With one more item, at the end by default."""
    items = items_of(context, sequence)
    place = _position(context, position, len(items), 1)
    items.insert(len(items) if place is None else place, value)
    return _sequence(items, sequence, value)


@converter("SequenceErase", since=11)
def sequence_erase(
    context: Context, sequence: GraphValue, position: Value | None = None
) -> SequenceValue:
    """Without one item, the last by default."""
    items = items_of(context, sequence)
    place = _position(context, position, len(items), 0)
    items.pop(-1 if place is None else place)
    return _sequence(items, sequence)


@converter("SequenceLength", since=11)
def sequence_length(context: Context, sequence: GraphValue) -> Value:
    """How many items there are."""
    return context.constant(len(items_of(context, sequence)), "int64")


@converter("ConcatFromSequence", since=11)
def concat_from_sequence(
    context: Context, sequence: GraphValue, *, axis: int, new_axis: int = 0
) -> Value:
    """The items one after the other, along an axis of theirs or a new one."""
    items = [expect(item, Value) for item in items_of(context, sequence)]
    exprs = [item.expr for item in items]
    joined = op.stack(exprs, axis) if new_axis else op.concat(exprs, axis)
    return context.value(joined, items[0].elem)


@converter("SplitToSequence", since=11)
def split_to_sequence(
    context: Context, x: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1
) -> SequenceValue:
    """Parts along an axis: of one size, of given sizes, or slices."""
    place = context.axis(x, axis)
    extent = context.extent(x, place, "input")
    sizes = [1] * extent
    if split is not None:
        split_sizes = context.array(split, "split")
        sizes = split_sizes.ravel().tolist()
        if split_sizes.ndim == 0:
            size = int(split_sizes)
            sizes = [size] * (extent // size) + ([extent % size] if extent % size else [])
        check_sizes(context, x, place, sizes)
    items = []
    for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
        part = context.emit(op.strided_slice(x.expr, [place], [end - size], [end]))
        if split is None and not keepdims:
            part = context.emit(op.squeeze(part, [place]))
        items.append(context.value(part, x.elem))
    return _sequence(items, x)


@converter("SequenceMap", since=17)
def sequence_map(
    context: Context, sequence: GraphValue, *others: GraphValue, body: GraphProto
) -> list[SequenceValue]:
    """The body on each item, with the items of other sequences and with tensors."""
    first = items_of(context, sequence)
    results = []
    for index, item in enumerate(first):
        rest = [
            items_of(context, other)[index] if isinstance(other, SequenceValue) else other
            for other in others
        ]
        outputs = context.translator.graph(body, context.scope, [item, *rest])
        values = [output for output in outputs if output is not None]
        if len(values) < len(outputs):
            context.fail("its body leaves an output out")
        results.append(values)
    return [
        _sequence([outputs[index] for outputs in results], sequence, *others)
        for index in range(len(body.output))
    ]


@converter("Optional", since=15)
def optional(
    context: Context, value: GraphValue | None = None, *, type: TypeProto | None = None
) -> OptionalValue:
    """An optional of a value, or an empty one."""
    return OptionalValue(value, sources_of([value]))


@converter("OptionalHasElement", since=15)
def optional_has_element(context: Context, value: GraphValue | None = None) -> Value:
    """Whether there is a value; a tensor or a sequence is one."""
    empty = value is None or (isinstance(value, OptionalValue) and value.content is None)
    return context.constant(not empty)


@converter("OptionalGetElement", since=15)
def optional_get_element(context: Context, value: GraphValue) -> GraphValue:
    """The value in an optional; a tensor or a sequence itself."""
    if not isinstance(value, OptionalValue):
        return value
    if value.content is None:
        context.fail("the optional is empty")
    return value.content
