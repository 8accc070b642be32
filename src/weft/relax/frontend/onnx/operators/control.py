"""Control flow: If, Loop, Scan.

A choice that is known at import takes its branch; else it becomes a ``relax.If``, whose branches
must agree in their structure. Short loops whose number of steps is known are written out step by
step; other loops are recursive functions (weft.relax.frontend.onnx.loops).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr, If, SeqExpr, Tuple
from weft.relax.frontend.onnx.blocks import opened_block
from weft.relax.frontend.onnx.checks import sub_graphs
from weft.relax.frontend.onnx.choices import Branch, BranchesDifferError, condition_key, insist
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.loop_states import has_one_axis, with_one_axis
from weft.relax.frontend.onnx.loops import dynamic_loop
from weft.relax.frontend.onnx.protos import GraphProto, ValueInfoProto
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.results import Structure, all_rebuilt, flat_expr, structure
from weft.relax.frontend.onnx.run_sequences import can_run, run_sequence
from weft.relax.frontend.onnx.value import Dim, GraphValue, SequenceValue, Value
from weft.support.errors import TVMError

STEPS: Final = 4096
"""Loops of more steps than this are not written out."""
WRITTEN: Final = 2048
"""How many nodes a loop may become when it is written out, unless it can only be written out."""


@converter("If")
def choose(
    context: Context, condition: Value, *, then_branch: GraphProto, else_branch: GraphProto
) -> list[GraphValue | None]:
    """The branch that the condition chooses."""
    graphs, translator = (then_branch, else_branch), context.translator
    branches = [partial(translator.graph, graph, context.scope) for graph in graphs]
    known = condition.constant
    if known is not None:
        return branches[0 if known.ravel()[0] else 1]()
    taken = translator.taken.get(condition_key(condition))
    if taken is not None:
        if taken.reason:  # else this stands behind the branch of that condition
            insist(translator, context, condition, taken)
        return branches[taken.index]()
    try:
        parts = [_branch(context, branch, _as_they_are) for branch in branches]
    except TVMError as error:
        error.add_note(
            f"in a branch of the {context.where}, whose condition is not known at import; where "
            "that branch does not fit the inputs, make the condition an initializer"
        )
        raise BranchesDifferError(str(error), context, condition, branches) from error
    if _structures(parts)[0] != _structures(parts)[1] and _differ_in_sequences(parts):
        parts = [_branch(context, branch, _of_the_run) for branch in branches]
    if translator.is_looping and (places := _places_of_axes(parts)):
        given = partial(_with_axes, places)
        parts = [_branch(context, branch, given) for branch in branches]
    if _structures(parts)[0] != _structures(parts)[1]:
        raise BranchesDifferError(
            f"{context.where}: its branches give tensors of other ranks or types, so its input "
            f"cond must be known at import, but it is computed from "
            f"{', '.join(sorted(condition.sources)) or 'the data'}; make it an initializer",
            context,
            condition,
            branches,
        )
    flag = condition.expr
    if condition.rank != 0:
        flag = context.emit(op.reshape(flag, []))
    chosen = context.emit(If(flag, parts[0][0], parts[1][0]))
    return all_rebuilt(context, chosen, parts[0][1], parts[1][1])


Outputs: TypeAlias = list[GraphValue | None]
Part: TypeAlias = tuple[SeqExpr, list[GraphValue]]
"""The bindings of a branch, and the values of its outputs."""


def _branch(
    context: Context,
    branch: Branch,
    given: Callable[[Context, Outputs], Outputs],
) -> Part:
    """A branch; ``given`` makes of its outputs what leaves it."""
    with opened_block(context.builder) as opened:
        outputs = given(context, branch())
        exprs = [flat_expr(value) for value in outputs]
        result = context.builder.emit(exprs[0] if len(exprs) == 1 else Tuple(exprs))
    return opened.ending_in(result), [value for value in outputs if value is not None]


def _as_they_are(_context: Context, values: Outputs) -> Outputs:
    return values


def _of_the_run(context: Context, values: Outputs) -> Outputs:
    """Sequences as objects of the program, so that branches may differ in their lengths."""
    return [
        run_sequence(context, value) if isinstance(value, SequenceValue) else value
        for value in values
    ]


def _with_axes(places: Collection[int], context: Context, values: Outputs) -> Outputs:
    """The outputs, numbers at these places as tensors (1,)."""
    return [
        with_one_axis(context, value) if place in places and isinstance(value, Value) else value
        for place, value in enumerate(values)
    ]


def _places_of_axes(parts: Sequence[Part]) -> list[int]:
    """The outputs that are numbers () in one branch and tensors (1,) in the other.

    What follows in a step of a loop cannot be translated for each branch; elementwise operators,
    which is what such numbers are for, take both.
    """
    (_, firsts), (_, seconds) = parts
    return [
        place
        for place, (first, second) in enumerate(zip(firsts, seconds, strict=False))
        if isinstance(first, Value)
        and isinstance(second, Value)
        and {first.rank, second.rank} == {0, 1}
        and (has_one_axis(first) or has_one_axis(second))
    ]


def _structures(parts: Sequence[Part]) -> list[list[Structure]]:
    return [[structure(value) for value in values] for _, values in parts]


def _differ_in_sequences(parts: Sequence[Part]) -> bool:
    """Whether branches agree but for sequences that may be objects of the program."""
    (_, firsts), (_, seconds) = parts
    return len(firsts) == len(seconds) and all(
        (can_run(first) and can_run(second)) or structure(first) == structure(second)
        for first, second in zip(firsts, seconds, strict=True)
    )


@converter("Loop")
def loop(
    context: Context,
    trips: Value | None,
    condition: Value | None,
    *carried: GraphValue | None,
    body: GraphProto,
) -> Sequence[GraphValue | None]:
    """The body again and again: carried values, then what each step scans out, stacked.

    A loop whose number of steps is known is written out, unless it is long.
    """
    is_known = all(value is None or value.constant is not None for value in (trips, condition))
    if not is_known:
        return dynamic_loop(context, trips, condition, carried, body)
    most = None if trips is None else int(context.array(trips, "M").ravel()[0])
    going = condition
    states = list(carried)
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    step, few = 0, max(WRITTEN // _size(body), 1)
    while most is None or step < most:
        known = None if going is None else going.constant
        if known is not None and not known.ravel()[0]:
            break
        # the steps that were written out before a function is made are removed as dead code
        if step >= STEPS or (going is not None and known is None):
            return dynamic_loop(context, trips, condition, carried, body)
        is_long = step == few or (step == 1 and most is not None and most > few)
        if is_long and not _is_constant([*states, *[items[-1] for items in scanned]]):
            results = _as_function(context, trips, condition, carried, body)
            if results is not None:
                return results
        index = context.constant(step, "int64")
        flag = going if going is not None else context.constant(True)
        outputs = context.translator.graph(body, context.scope, [index, flag, *states])
        going = expect(outputs[0], Value)
        states = outputs[1 : 1 + len(states)]
        for items, value in zip(scanned, outputs[1 + len(states) :], strict=True):
            items.append(expect(value, Value))
        step += 1
    infos = body.output[1 + len(states) :]
    outs = zip(scanned, infos, strict=True)
    return [*states, *[_stacked(context, items, info, 0) for items, info in outs]]


def _size(body: GraphProto) -> int:
    """How many nodes a body has, with those of the graphs inside of it."""
    inside = [_size(graph) for node in body.node for graph in sub_graphs(node)]
    return max(len(body.node) + sum(inside), 1)


def _is_constant(values: Sequence[GraphValue | None]) -> bool:
    """Whether a step computes nothing that is left to the program."""
    return all(isinstance(value, Value) and value.constant is not None for value in values)


def _as_function(
    context: Context,
    trips: Value | None,
    condition: Value | None,
    carried: Sequence[GraphValue | None],
    body: GraphProto,
) -> list[GraphValue | None] | None:
    """The results of a loop as a function; None where only known steps make the body's sense."""
    try:
        return dynamic_loop(context, trips, condition, carried, body)
    except TVMError:
        return None


def _stacked(context: Context, items: Sequence[Value], info: ValueInfoProto, axis: int) -> Value:
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
    context: Context,
    lengths: Value | None,
    *values: Value,
    body: GraphProto,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> list[Value]:
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
    context: Context,
    *values: Value,
    body: GraphProto,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> list[Value]:
    """The body on slice after slice of the scan inputs; written out where their number is known."""
    count = len(values) - num_scan_inputs
    options = [
        list(item or ())
        for item in (
            scan_input_directions,
            scan_input_axes,
            scan_output_directions,
            scan_output_axes,
        )
    ]
    return _scanned(context, body, (list(values), count), options)


def _scanned(
    context: Context,
    body: GraphProto,
    given: tuple[list[Value], int],
    options: Sequence[list[int]],
) -> list[Value]:
    """The states after all steps, and what was scanned out.

    ``given`` are the values with the number of states among them, ``options`` directions and axes
    of the inputs, then those of the outputs.
    """
    (values, count), (ways, axes, out_ways, out_axes) = given, options
    states, inputs = values[:count], values[count:]
    along = axes or [0] * len(inputs)
    places = [context.axis(x, axis) for x, axis in zip(inputs, along, strict=True)]
    steps = context.shape(inputs[0], "scan input")[places[0]]
    if not isinstance(steps, int) or steps > STEPS or steps * _size(body) > WRITTEN:
        scans = Scans(inputs, places, list(ways), steps)
        return _scanned_by_loop(context, body, states, scans, (out_ways, out_axes))
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - count)]
    for step in range(steps):
        slices = []
        for index, (x, place) in enumerate(zip(inputs, places, strict=True)):
            at = steps - 1 - step if ways and ways[index] else step
            slices.append(
                context.value(op.take(x.expr, context.constant(at, "int64").expr, place), x.elem)
            )
        outputs = context.translator.graph(body, context.scope, [*states, *slices])
        tensors = [expect(value, Value) for value in outputs]
        states = tensors[:count]
        for items, value in zip(scanned, tensors[count:], strict=True):
            items.append(value)
    results = []
    for index, items in enumerate(scanned):
        if out_ways and out_ways[index]:
            items.reverse()
        axis = out_axes[index] if out_axes else 0
        results.append(_stacked(context, items, body.output[count + index], axis))
    return [*states, *results]


@dataclass(frozen=True)
class Scans:
    """What a Scan reads slice by slice: tensors, along which axis of each, from which end."""

    tensors: list[Value]
    axes: list[int]
    ways: list[int]
    steps: Dim

    def slices(self, context: Context, step: Expr) -> list[Value]:
        """The slices of one step."""
        last = context.dim_expr(self.steps, -1)
        ways = self.ways or [0] * len(self.tensors)
        slices = []
        for tensor, axis, way in zip(self.tensors, self.axes, ways, strict=True):
            place = context.emit(op.subtract(last, step)) if way else step
            slices.append(context.value(op.take(tensor.expr, place, axis), tensor.elem))
        return slices


def _scanned_by_loop(
    context: Context,
    body: GraphProto,
    states: Sequence[Value],
    scans: Scans,
    outwards: tuple[list[int], list[int]],
) -> list[Value]:
    """A Scan of as many steps as the run tells: a loop that takes the slices by its step."""
    ways, axes = outwards
    limit = context.value(context.dim_expr(scans.steps))
    values = dynamic_loop(
        context, limit, None, states, body, lambda step: scans.slices(context, step), scans.steps
    )
    results = [expect(value, Value) for value in values]
    rows = results[len(states) :]
    for index, value in enumerate(rows):
        rows_in_order = value.expr
        if ways and ways[index]:
            rows_in_order = context.emit(op.flip(rows_in_order, 0))
        rank = context.rank(value, "scan output")
        axis = (axes[index] if axes else 0) % rank
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        turned = rows_in_order if axis == 0 else context.emit(op.permute_dims(rows_in_order, order))
        rows[index] = context.value(turned, value.elem)
    return [*results[: len(states)], *rows]
