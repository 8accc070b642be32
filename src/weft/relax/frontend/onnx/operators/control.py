"""Control flow: If, Loop, Scan.

A choice that is known at import takes its branch; else it becomes a ``relax.If``, whose branches
must agree in their structure. Loops whose number of steps is known are written out step by step;
other loops are recursive functions (weft.relax.frontend.onnx.loops).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, If, SeqExpr, Tuple
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.loops import dynamic_loop
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.translator import flat_expr
from weft.relax.frontend.onnx.value import OptionalValue, SequenceValue, Value
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import TensorStructInfo

STEPS: Final = 4096
"""Loops of more steps than this are not written out."""


@converter("If")
def choose(context: Context, condition: Value, *, then_branch: Any, else_branch: Any) -> list[Any]:
    """The branch that the condition chooses."""
    known = condition.constant
    if known is not None:
        branch = then_branch if bool(known.ravel()[0]) else else_branch
        return context.translator.graph(branch, context.scope)
    flag = condition.expr
    if condition.rank != 0:
        flag = context.emit(op.reshape(flag, []))
    branches = (("then_branch", then_branch), ("else_branch", else_branch))
    parts = [_branch(context, which, graph) for which, graph in branches]
    structures = [[_structure(value) for value in values] for _, values in parts]
    if structures[0] != structures[1]:
        context.need(condition, "cond")  # branches of other structures: it must be known
    made = context.emit(If(flag, parts[0][0], parts[1][0]))
    values = parts[0][1]
    if len(values) == 1:
        return [_rebuilt(context, made, values[0])]
    return [
        _rebuilt(context, context.emit(made[index]), value) for index, value in enumerate(values)
    ]


def _branch(context: Context, which: str, graph: Any) -> tuple[SeqExpr, list[Any]]:
    builder = context.builder
    builder.begin_scope(None)
    builder.begin_binding_block()
    try:
        values = context.translator.graph(graph, context.scope)
        exprs = [flat_expr(value) for value in values]
        body = builder.emit(exprs[0] if len(exprs) == 1 else Tuple(exprs))
    except Exception as error:
        builder.end_block()
        builder.end_scope()
        error.add_note(
            f"in the {which} of the {context.where}, whose condition is not known at import; where "
            "that branch does not fit the inputs, make the condition an initializer"
        )
        raise
    block = builder.end_block()
    builder.end_scope()
    return SeqExpr([block], body), values


def _structure(value: Any) -> Any:
    """What both branches must agree in: kinds, numbers of items, element types, ranks."""
    if isinstance(value, SequenceValue):
        return ("sequence", *[_structure(item) for item in value.items])
    if isinstance(value, OptionalValue):
        return ("optional", None if value.content is None else _structure(value.content))
    return (value.elem, value.rank)


def _rebuilt(context: Context, made: Expr, like: Any) -> Any:
    """The value of an expression that has the structure of ``like``."""
    if isinstance(like, SequenceValue):
        items = [_rebuilt(context, context.emit(made[index]), item)
                 for index, item in enumerate(like.items)]  # fmt: skip
        return SequenceValue(items, like.elem, like.sources)
    if isinstance(like, OptionalValue):
        content = None if like.content is None else _rebuilt(context, made, like.content)
        return OptionalValue(content, like.sources)
    return Value(context.builder, with_dims(context, made), None, like.elem, like.sources)


def with_dims(context: Context, made: Expr) -> Expr:
    """The tensor with a symbol for each dimension, where its shape is not known."""
    info = made.struct_info
    if not isinstance(info, TensorStructInfo) or tensor_dims(info) is not None or info.ndim < 0:
        return made
    dims = [context.new_dim("branch") for _ in range(info.ndim)]
    return context.builder.match_cast(made, TensorStructInfo(dims, info.dtype))


@converter("Loop")
def loop(
    context: Context, trips: Value | None, condition: Value | None, *carried: Any, body: Any
) -> list[Any]:
    """The body again and again: carried values, then what each step scans out, stacked."""
    if not _is_written_out(trips, condition, carried):
        return list(dynamic_loop(context, trips, condition, carried, body))
    limit = None if trips is None else context.ints(trips, "M")
    most = None if limit is None else limit[0]
    going = condition
    states = list(carried)
    scanned: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    step = 0
    while most is None or step < most:
        known = None if going is None else going.constant
        if known is not None and not known.ravel()[0]:
            break
        if step >= STEPS and not all(isinstance(value, Value) for value in carried):
            context.fail(f"it carries a sequence: expected at most {STEPS} steps")
        if step >= STEPS or (going is not None and known is None):
            # what was written out so far is left over, and taken away as unused
            return list(dynamic_loop(context, trips, condition, carried, body))
        index = context.constant(step, "int64")
        flag = going if going is not None else context.constant(True)
        made = context.translator.graph(body, context.scope, [index, flag, *states])
        going = made[0]
        states = made[1 : 1 + len(states)]
        for items, value in zip(scanned, made[1 + len(states) :], strict=True):
            items.append(value)
        step += 1
    infos = body.output[1 + len(states) :]
    outs = zip(scanned, infos, strict=True)
    return [*states, *[_stacked(context, items, info, 0) for items, info in outs]]


def _is_written_out(trips: Value | None, condition: Value | None, carried: Sequence[Any]) -> bool:
    """Whether the number of steps is known; loops over sequences always are written out."""
    if not all(isinstance(value, Value) for value in carried):
        return True
    return all(value is None or value.constant is not None for value in (trips, condition))


def _stacked(context: Context, items: Sequence[Value], info: Any, axis: int) -> Any:
    """Values of all steps along a new axis; of no step a tensor without elements."""
    if items:
        known = [item.constant for item in items if item.constant is not None]
        if len(known) == len(items):
            return context.constant(np.stack(known, axis), elem=items[0].elem)
        return context.value(op.stack([item.expr for item in items], axis), items[0].elem)
    tensor = info.type.tensor_type
    dims, elem = [0, *[dim.dim_value for dim in tensor.shape.dim]], tensor.elem_type
    return context.constant(np.zeros(dims, context.storage(elem)), elem=elem)


@converter("Scan", since=8)
def scan_batched(
    context: Context, lengths: Value | None, *values: Any, body: Any, num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> list[Any]:  # fmt: skip
    """In opset 8 every value has a batch axis first; each batch is scanned by itself."""
    if lengths is not None:
        context.fail("its input sequence_lens is not supported")
    count = len(values) - num_scan_inputs
    batches = context.extent(values[0], 0, "initial")
    results = []
    for batch in range(batches):
        place = context.constant(batch, "int64").expr
        parts = [context.value(op.take(value.expr, place, 0), value.elem) for value in values]
        given = list(directions or [0] * num_scan_inputs)
        results.append(_scanned(context, body, (parts, count), (given, [], [], [])))
    return [
        context.value(op.stack([result[index].expr for result in results], 0), first.elem)
        for index, first in enumerate(results[0])
    ]


@converter("Scan", since=9)
def scan(
    context: Context, *values: Any, body: Any, num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> list[Any]:  # fmt: skip
    """The body on slice after slice of the scan inputs, written out."""
    count = len(values) - num_scan_inputs
    options = [
        list(item or ()) for item in
        (scan_input_directions, scan_input_axes, scan_output_directions, scan_output_axes)
    ]  # fmt: skip
    return _scanned(context, body, (list(values), count), options)


def _scanned(context: Context, body: Any, given: Any, options: Any) -> list[Any]:
    (values, count), (ways, axes, out_ways, out_axes) = given, options
    states, inputs = values[:count], values[count:]
    along = axes or [0] * len(inputs)
    places = [context.axis(x, axis) for x, axis in zip(inputs, along, strict=True)]
    steps = context.extent(inputs[0], places[0], "scan input")
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - count)]
    for step in range(steps):
        slices = []
        for index, (x, place) in enumerate(zip(inputs, places, strict=True)):
            at = steps - 1 - step if ways and ways[index] else step
            slices.append(context.value(op.take(x.expr, context.constant(at, "int64").expr, place),
                                        x.elem))  # fmt: skip
        made = context.translator.graph(body, context.scope, [*states, *slices])
        states = made[:count]
        for items, value in zip(scanned, made[count:], strict=True):
            items.append(value)
    results = []
    for index, items in enumerate(scanned):
        if out_ways and out_ways[index]:
            items.reverse()
        axis = out_axes[index] if out_axes else 0
        results.append(_stacked(context, items, body.output[count + index], axis))
    return [*states, *results]
