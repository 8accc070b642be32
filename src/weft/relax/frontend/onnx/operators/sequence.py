"""Sequences and optionals. Most exist at import only: their items are values of the graph, and how
many there are is known. Where a position or a number of items is not known, a sequence of tensors
is an object of the program (weft.relax.frontend.onnx.run_sequences).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx import run_sequences
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import FLOAT
from weft.relax.frontend.onnx.errors import need_onnx
from weft.relax.frontend.onnx.loops import dynamic_loop
from weft.relax.frontend.onnx.operators.indexing import check_sizes
from weft.relax.frontend.onnx.protos import GraphProto, TypeProto
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.run_sequences import can_run, run_sequence
from weft.relax.frontend.onnx.translator import sources_of
from weft.relax.frontend.onnx.value import (
    GraphValue,
    OptionalValue,
    RunSequence,
    SequenceValue,
    Value,
)


def items_of(context: Context, sequence: GraphValue | None) -> list[GraphValue]:
    """The items of a sequence, also of one inside of an optional."""
    if isinstance(sequence, OptionalValue):
        sequence = sequence.content
    if isinstance(sequence, RunSequence):
        context.need(sequence, "sequence, with its number of items,")
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


def _at_run(sequence: GraphValue | None, position: Value | None = None) -> bool:
    """Whether an operator works on an object of the program."""
    if isinstance(sequence, OptionalValue):
        sequence = sequence.content
    is_known = position is None or position.constant is not None
    return isinstance(sequence, RunSequence) or (not is_known and can_run(sequence))


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
    if _at_run(sequence, position):
        return run_sequences.item_at(context, run_sequence(context, sequence), position)
    items = items_of(context, sequence)
    place = _position(context, position, len(items), 0)
    assert place is not None
    return items[place]


@converter("SequenceInsert", since=11)
def sequence_insert(
    context: Context, sequence: GraphValue, value: GraphValue, position: Value | None = None
) -> SequenceValue | RunSequence:
    """With one more item, at the end by default."""
    if _at_run(sequence, position):
        return run_sequences.inserted(context, run_sequence(context, sequence), value, position)
    items = items_of(context, sequence)
    place = _position(context, position, len(items), 1)
    items.insert(len(items) if place is None else place, value)
    return _sequence(items, sequence, value)


@converter("SequenceErase", since=11)
def sequence_erase(
    context: Context, sequence: GraphValue, position: Value | None = None
) -> SequenceValue | RunSequence:
    """Without one item, the last by default."""
    if _at_run(sequence, position):
        return run_sequences.erased(context, run_sequence(context, sequence), position)
    items = items_of(context, sequence)
    place = _position(context, position, len(items), 0)
    items.pop(-1 if place is None else place)
    return _sequence(items, sequence)


@converter("SequenceLength", since=11)
def sequence_length(context: Context, sequence: GraphValue) -> Value:
    """How many items there are."""
    if _at_run(sequence):
        return run_sequences.length(context, run_sequence(context, sequence))
    return context.constant(len(items_of(context, sequence)), "int64")


@converter("ConcatFromSequence", since=11)
def concat_from_sequence(
    context: Context, sequence: GraphValue, *, axis: int, new_axis: int = 0
) -> Value:
    """The items one after the other, along an axis of theirs or a new one."""
    if _at_run(sequence):
        return run_sequences.joined(context, run_sequence(context, sequence), axis, new_axis)
    items = [expect(item, Value) for item in items_of(context, sequence)]
    exprs = [item.expr for item in items]
    joined = op.stack(exprs, axis) if new_axis else op.concat(exprs, axis)
    return context.value(joined, items[0].elem)


@converter("SplitToSequence", since=11)
def split_to_sequence(
    context: Context, x: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1
) -> SequenceValue | RunSequence:
    """Parts along an axis: of one size, of given sizes, or slices."""
    place = context.axis(x, axis)
    if split is not None and not keepdims and split.rank == 0 and split.constant == 1:
        split = None  # PyTorch writes unbind so; ONNX would keep the axis, ONNX Runtime does not
    is_known = split is None or split.constant is not None
    if not is_known or not isinstance(context.shape(x, "input")[place], int):
        return run_sequences.split(context, x, split, place, keepdims)
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
) -> Sequence[GraphValue | None]:
    """The body on each item, with the items of other sequences and with tensors."""
    if any(isinstance(value, RunSequence) for value in (sequence, *others)):
        return _mapped_by_loop(context, [sequence, *others], body)
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


def _mapped_by_loop(
    context: Context, given: Sequence[GraphValue], body: GraphProto
) -> Sequence[GraphValue | None]:
    """A map over as many items as the run tells: a loop that appends what the body gives."""
    sequences = [isinstance(value, SequenceValue | RunSequence) for value in given]
    inputs = [
        run_sequence(context, value) if is_sequence else value
        for value, is_sequence in zip(given, sequences, strict=True)
    ]

    def items(step: Expr) -> list[GraphValue]:
        """What the body gets in one step."""
        place = context.value(step)
        return [
            run_sequences.item_at(context, value, place)
            if isinstance(value, RunSequence)
            else value
            for value in inputs
        ]

    count = run_sequences.length(context, expect(inputs[0], RunSequence))
    empty = [SequenceValue([], None) for _ in body.output]
    return dynamic_loop(context, count, None, empty, _appending(body), items)


def _appending(body: GraphProto) -> GraphProto:
    """The body of a map as that of a loop: it gets sequences first, and appends its outputs."""
    onnx = need_onnx()
    graph = type(body)()
    graph.CopyFrom(body)
    for index, output in reversed(list(enumerate(body.output))):
        before, after = [f"map {body.name}: {index}, {when}" for when in ("before", "after")]
        graph.node.append(onnx.helper.make_node("SequenceInsert", [before, output.name], [after]))
        graph.output[index].CopyFrom(onnx.ValueInfoProto(name=after))
        graph.input.insert(0, onnx.ValueInfoProto(name=before))
    return graph


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
