"""Sequences whose number of items only the run tells, or whose positions only the run tells.

A loop whose number of steps the data gives appends to such a sequence. It is an object of the
program (weft.runtime.vm.sequences), and what is known of its items at import is their element
type and what their shapes have in common.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.relax import op
from weft.relax.expr import Expr, PrimValue
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import type_name
from weft.relax.frontend.onnx.value import (
    Dim,
    GraphValue,
    OptionalValue,
    RunSequence,
    SequenceValue,
    Value,
)
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.ir.shape_arith import same_dim
from weft.relax.struct_info import ObjectStructInfo, StructInfo, TensorStructInfo
from weft.runtime.vm import sequences

Dims = list[Dim | None] | None
"""What shapes have in common (see RunSequence)."""


def can_run(sequence: GraphValue | None) -> bool:
    """Whether a sequence is one of the run, or may become one: tensors of one rank and type."""
    if isinstance(sequence, OptionalValue):
        sequence = sequence.content
    if not isinstance(sequence, SequenceValue):
        return isinstance(sequence, RunSequence)
    items = [item for item in sequence.items if isinstance(item, Value)]
    kinds = {(item.elem, item.rank) for item in items}
    return (
        len(items) == len(sequence.items) and len(kinds) <= 1 and (-1 not in [k[1] for k in kinds])
    )


def run_sequence(context: Context, sequence: GraphValue | None) -> RunSequence:
    """A sequence as one of the run."""
    if isinstance(sequence, OptionalValue):
        sequence = sequence.content
    if isinstance(sequence, RunSequence):
        return sequence
    if not isinstance(sequence, SequenceValue):
        context.fail("expected a sequence")
    if not all(isinstance(item, Value) for item in sequence.items):
        context.fail(
            "expected a sequence of tensors, as how many items it has only the run tells; it has "
            "items of text, or optionals"
        )
    items = [item for item in sequence.items if isinstance(item, Value)]
    dims: Dims = None
    elem = sequence.elem
    for item in items:
        elem = joint_type(context, elem, item.elem)
        dims = joint_dims(context, dims, context.shape(item, "a sequence's item"))
    expr = _call(context, sequences.OF, [item.expr for item in items])
    return RunSequence(expr, elem, dims, sequence.sources)


def joint_type(context: Context, first: int | None, second: int | None) -> int | None:
    """The element type of items; None while none is known."""
    if first is not None and second is not None and first != second:
        context.fail(
            "the items of a sequence must be of one type, got "
            f"{type_name(first)} and {type_name(second)}; Cast them"
        )
    return second if first is None else first


def joint_dims(context: Context, first: Dims, second: Sequence[Dim | None] | None) -> Dims:
    """What two shapes have in common."""
    if first is None or second is None:
        dims = second if first is None else first
        return None if dims is None else list(dims)
    if len(first) != len(second):
        context.fail(
            "the items of a sequence whose length only the run tells must be of one rank, got "
            f"items of {len(first)} and of {len(second)} dimensions; reshape them, or make the "
            "number of steps of the loop that appends them a constant"
        )
    pairs = zip(first, second, strict=True)
    return [
        dim if dim is not None and other is not None and same_dim(dim, other) else None
        for dim, other in pairs
    ]


def visible(context: Context, dims: Dims) -> Dims:
    """The extents that are known here; those of a block that is closed are not."""
    if dims is None:
        return None
    known = context.builder.known_symbols()
    return [
        dim if dim is not None and all(var in known for var in symbolic_vars(dim)) else None
        for dim in dims
    ]


def inserted(
    context: Context, sequence: RunSequence, item: GraphValue, position: Value | None
) -> RunSequence:
    """With one more item, at the end by default."""
    if not isinstance(item, Value):
        context.fail("expected a tensor to insert into a sequence whose length the run tells")
    dims = joint_dims(context, sequence.dims, context.shape(item, "tensor"))
    elem = joint_type(context, sequence.elem, item.elem)
    given = [sequence.expr, item.expr, *([] if position is None else [position.expr])]
    return RunSequence(_call(context, sequences.INSERT, given), elem, dims)


def erased(context: Context, sequence: RunSequence, position: Value | None) -> RunSequence:
    """Without one item, the last by default."""
    place = context.constant(-1, "int64") if position is None else position
    expr = _call(context, sequences.ERASE, [sequence.expr, place.expr])
    return RunSequence(expr, sequence.elem, sequence.dims)


def item_at(context: Context, sequence: RunSequence, position: Value) -> Value:
    """One item."""
    dims = _known_dims(context, sequence)
    return _tensor(context, sequence, sequences.AT, [sequence.expr, position.expr], dims)


def length(context: Context, sequence: RunSequence) -> Value:
    """How many items there are."""
    call = op.call_pure_packed(
        sequences.LENGTH, sequence.expr, sinfo_args=TensorStructInfo([], "int64")
    )
    return context.value(call)


def joined(context: Context, sequence: RunSequence, axis: int, new_axis: int) -> Value:
    """The items one after the other along an axis, or along a new one."""
    dims = _known_dims(context, sequence)
    rank = len(dims) + new_axis
    if not -rank <= axis < rank:
        context.fail(f"axis {axis} is outside of items of {len(dims)} dimensions")
    place = axis % rank
    dims = [*dims[:place], None, *dims[place + 1 - new_axis :]]
    name = sequences.STACK if new_axis else sequences.CONCAT
    return _tensor(context, sequence, name, [sequence.expr, PrimValue(place)], dims)


def split(
    context: Context, x: Value, sizes: Value | None, place: int, keepdims: int
) -> RunSequence:
    """The slices of a tensor along an axis, or parts of given sizes."""
    keeps_axis = bool(keepdims) or sizes is not None
    shape = context.shape(x, "input")
    part = [] if not keeps_axis else [1 if sizes is None else None]
    given = [x.expr, PrimValue(place), PrimValue(int(keeps_axis))]
    given += [] if sizes is None else [sizes.expr]
    dims = [*shape[:place], *part, *shape[place + 1 :]]
    return RunSequence(_call(context, sequences.SPLIT, given), x.elem, dims)


def _known_dims(context: Context, sequence: RunSequence) -> list[Dim | None]:
    if sequence.dims is None:
        context.fail(
            "it reads a sequence to which no item was added so far, so that the rank of its items "
            "is not known; construct the sequence with an item, or make the number of steps of "
            "the loop that appends them a constant"
        )
    return list(sequence.dims)


def _call(
    context: Context, name: str, given: Sequence[Expr], info: StructInfo | None = None
) -> Expr:
    info = ObjectStructInfo() if info is None else info
    return context.builder.emit(op.call_pure_packed(name, *given, sinfo_args=info))


def _tensor(
    context: Context,
    sequence: RunSequence,
    name: str,
    given: Sequence[Expr],
    dims: Sequence[Dim | None],
) -> Value:
    """The tensor that a function gives; extents that are not known are new symbols."""
    info = TensorStructInfo(None, context.storage(sequence.elem or 0), ndim=len(dims))
    result = _call(context, name, given, info)
    known = [context.new_dim("item") if dim is None else dim for dim in dims]
    return context.value(context.matched(result, known), sequence.elem)
