"""Loops whose number of steps only the data gives: a local function that calls itself.

::

    loop(i, go, states..., scanned...) =
        if i < M and go: body, then loop(i + 1, go', states'..., scanned' + one slice)
        else: (states..., scanned...)

States that the body hands on as they are are no parameters: the body reads them from outside, so
that what it computes of constants among them is computed at build time. Other states keep their
shape from step to step; dimensions that the body changes are symbols of the
function, which translating the body tells (weft.relax.frontend.onnx.loop_states). What is scanned
out is a tensor into which each step writes its row, where the number of steps is a number or an
extent (weft.relax.frontend.onnx.loop_rows); else an object that holds a row for each step
(weft.runtime.vm.rows), and so is a sequence (weft.runtime.vm.sequences).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from weft.relax import op
from weft.relax.expr import Call, Expr, Function, If, SeqExpr, Tuple, Var, VarBinding
from weft.relax.frontend.onnx.blocks import opened_block
from weft.relax.frontend.onnx.checks import sub_graphs
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.errors import ConstantNeededError
from weft.relax.frontend.onnx.loop_counts import counted_steps
from weft.relax.frontend.onnx.loop_rows import new_rows, with_row
from weft.relax.frontend.onnx.loop_states import State, TensorState, state_of
from weft.relax.frontend.onnx.node_order import in_order
from weft.relax.frontend.onnx.protos import GraphProto
from weft.relax.frontend.onnx.results import flat_expr
from weft.relax.frontend.onnx.run_sequences import run_sequence
from weft.relax.frontend.onnx.value import Dim, GraphValue, RunSequence, SequenceValue, Value
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.runtime.vm.rows import ADD, STACK

Slices = Callable[[Expr], Sequence[GraphValue]]
"""From the number of a step to what a body gets after the states: slices of scanned tensors."""


def dynamic_loop(
    context: Context,
    limit: Value | None,
    condition: Value | None,
    carried: Sequence[GraphValue | None],
    body: GraphProto,
    slices: Slices | None = None,
    count: Dim | None = None,
) -> list[GraphValue | None]:
    """The carried values and what is scanned out when the loop has ended.

    The body is a Loop's; with ``slices`` it is a Scan's, which has ``count`` steps, no condition.
    """
    if condition is None or (condition.constant is not None and condition.constant.all()):
        known = None if limit is None else limit.constant
        count = count if known is None else max(int(known.ravel()[0]), 0)
    is_counted = False
    if slices is None and count is None:
        count = counted_steps(context, limit, condition, carried, body)
        is_counted = count is not None
    if is_counted and count is not None:
        limit, condition = context.dim_value(count), None
    decided = limit if limit is not None and limit.constant is None else condition or limit
    kept = _kept_states(body, carried, (2, 1) if slices is None else (0, 0))
    changing = [value for index, value in enumerate(carried) if index not in kept]
    firsts = _first_values(context, decided, changing)
    states = [state_of(context, value) for value in firsts]
    deciding = [value.sources for value in (limit, condition) if value is not None]
    loop = _Loop(context, body, limit, states, frozenset[str]().union(*deciding))
    loop.slices, loop.kept, loop.count, loop.is_counted = slices, kept, count, is_counted
    if slices is None and _runs(limit, condition):
        names = [value.name for index, value in enumerate(body.input[2:]) if index not in kept]
        read = _names_read(body)
        loop.unread = {index for index, name in enumerate(names) if name not in read}
    scanned = loop.trial()
    results = loop.build(condition, firsts, scanned)
    return loop.with_kept(results)


def _kept_states(
    body: GraphProto, carried: Sequence[GraphValue | None], skipped: tuple[int, int]
) -> dict[int, GraphValue | None]:
    """By their numbers, the carried values that each step gives as it got them.

    ``skipped`` are the numbers of the body's inputs and outputs before those of the states.
    """
    origins = {name: name for name in [value.name for value in body.input]}
    for node in in_order(body.node):
        if node.op_type == "Identity" and node.input[0] in origins:
            origins[node.output[0]] = origins[node.input[0]]
    before, after = [value.name for value in body.input], [value.name for value in body.output]
    return {
        index: value
        for index, value in enumerate(carried)
        if origins.get(after[skipped[1] + index]) == before[skipped[0] + index]
    }


def _names_read(graph: GraphProto) -> set[str]:
    """The names that the nodes of a graph read, and those of the graphs inside of them."""
    inner = [item for node in graph.node for item in sub_graphs(node)]
    names = {name for node in graph.node for name in node.input}
    return names.union(
        *[_names_read(item) for item in inner],
        *[{info.name for info in item.output} for item in inner],
    )


def _runs(limit: Value | None, condition: Value | None) -> bool:
    """Whether a loop is known to have a first step."""
    known = [None if value is None else value.constant for value in (limit, condition)]
    given = [value is None for value in (limit, condition)]
    return all(
        is_absent or (array is not None and bool((array > 0).all()))
        for array, is_absent in zip(known, given, strict=True)
    )


def _first_values(
    context: Context, decided: Value | None, carried: Sequence[GraphValue | None]
) -> list[Value | RunSequence]:
    """What the loop begins with: tensors, and sequences of the run."""
    values: list[Value | RunSequence] = []
    for value in carried:
        if isinstance(value, Value):
            values.append(value)
        elif isinstance(value, RunSequence | SequenceValue):
            values.append(run_sequence(context, value))
        elif decided is not None:
            context.need(decided, "M or cond, as it carries text or an optional,")
        else:
            context.fail("a loop whose length the data gives carries tensors and sequences only")
    return values


class _Loop:
    def __init__(
        self,
        context: Context,
        body: GraphProto,
        limit: Value | None,
        states: Sequence[State],
        deciding: frozenset[str],
    ) -> None:
        self.context, self.body, self.states = context, body, states
        self.limit = None
        self.deciding = deciding
        self.slices: Slices | None = None
        self.kept: dict[int, GraphValue | None] = {}
        """States that the body hands on as they are, which ``states`` leaves out."""
        self.unread: set[int] = set()
        """Which of ``states`` each step sets and none reads, where there is a step."""
        self.count: Dim | None = None
        """How many steps there are, where no condition ends the loop before."""
        self.is_counted = False
        """Whether the body's condition is proved to hold until then, so that nobody asks it."""
        if limit is not None:
            self.limit = self._scalar(limit)

    def trial(self) -> list[TensorState]:
        """Translate the body until it changes no more of its states; what it scans out."""
        context = self.context
        changes = True
        while changes:  # it ends: states only lose what is known of them
            params = [state.param(context, "trial") for state in self.states]
            step = Var("step", TensorStructInfo([], "int64"))
            going = Var("going", TensorStructInfo([], "bool"))
            with opened_block(context.builder, [step, going, *params]):
                again, afters, rows = self._body([step, going, *params])
            changed = []
            for index, (state, param) in enumerate(zip(self.states, params, strict=True)):
                after = afters[index]
                if isinstance(after, Value) and after.shape is None:
                    self._need("carries on")
                changed.append(self._weakened(index, state, param, after))
            changes = any(changed)
        if not (self.is_counted or _holds(again) or again.expr is going):
            self.count = None
        return [self._scanned(value) for value in rows]

    def _weakened(self, index: int, state: State, param: Var, after: GraphValue) -> bool:
        """Whether a step changes what is known of a state."""
        if index in self.unread and isinstance(state, TensorState) and isinstance(after, Value):
            if state.differs(after):
                state.become(self.context, after)
                return True
        return state.weaken(self.context, param, after)

    def _scanned(self, value: Value) -> TensorState:
        """What is scanned out: rows of one shape, which the body must not make of its own."""
        dims = self.context.shape(value, "scan output")
        outside = self.context.builder.known_symbols()
        if any(symbol not in outside for dim in dims for symbol in symbolic_vars(dim)):
            self._need("scans out")
        return TensorState([self.count, *dims], value.elem or 0, value.dtype)

    def _need(self, what: str) -> NoReturn:
        """Raise ConstantNeededError: then the steps are written out, if their number is known."""
        raise ConstantNeededError(
            f"{self.context.where}: the shape of what its body {what} follows only from a known "
            "number of steps; bind the input that decides it",
            self.deciding,
        )

    def _body(self, params: Sequence[Var]) -> tuple[Value, list[GraphValue], list[Value]]:
        """Whether to go on, the next states, and what is scanned out."""
        context, count = self.context, len(self.states) + len(self.kept)
        step, going = [Value(context.builder, param) for param in params[:2]]
        pairs = zip(self.states, params[2:], strict=True)
        given = self.with_kept([state.value(context, param) for state, param in pairs])
        outer, context.translator.is_looping = context.translator.is_looping, True
        try:
            if self.slices is None:
                inputs = [step, going, *given]
                again, *outputs = context.translator.graph(self.body, context.scope, inputs)
            else:
                again, inputs = going, [*given, *self.slices(params[0])]
                outputs = context.translator.graph(self.body, context.scope, inputs)
        finally:
            context.translator.is_looping = outer
        rows = [value for value in outputs[count:] if isinstance(value, Value)]
        if not isinstance(again, Value) or len(rows) < len(outputs[count:]):
            context.fail("expected a condition, and tensors to scan out, from its body")
        changed = [outputs[index] for index in range(count) if index not in self.kept]
        following = zip(self.states, changed, strict=True)
        return again, [state.given(context, value) for state, value in following], rows

    def with_kept(self, values: Sequence[GraphValue]) -> list[GraphValue | None]:
        """Values that begin with those of ``states``, with the states between that are kept."""
        rest = iter(values)
        count = len(self.states) + len(self.kept)
        states = [self.kept[index] if index in self.kept else next(rest) for index in range(count)]
        return [*states, *rest]

    def build(
        self,
        condition: Value | None,
        carried: Sequence[Value | RunSequence],
        scanned: Sequence[TensorState],
    ) -> list[GraphValue]:
        """The function, and the call that starts it."""
        context, builder = self.context, self.context.builder
        everything: list[State] = [*self.states, *scanned]
        info = TupleStructInfo([state.info() for state in everything])
        step = Var("step", TensorStructInfo([], "int64"))
        going = Var("going", TensorStructInfo([], "bool"))
        states = [state.param(context, "state") for state in self.states]
        rows = [Var("rows", self._rows_info(state)) for state in scanned]
        params = [step, going, *states, *rows]
        kind = FuncStructInfo([param.struct_info for param in params], info)
        name = Var(builder.get_unique_name("loop"), kind)
        with opened_block(builder, params) as opened:
            again: Expr = going
            if self.limit is not None:
                again = context.emit(op.less(step, self.limit))
                if not self.is_counted:
                    again = context.emit(op.logical_and(again, going))
            branches = [self._step(name, params), self._end(params, scanned)]
            result = builder.emit(If(again, *branches))
        function = Function(params, opened.ending_in(result), info)
        builder.emit_normalized(VarBinding(name, function))
        first = context.constant(True).expr if condition is None else self._scalar(condition)
        empty = [self._no_rows(state) for state in scanned]
        pairs = zip(self.states, carried, strict=True)
        firsts = [flat_expr(state.first(context, value)) for state, value in pairs]
        start = [context.constant(0, "int64").expr, first, *firsts, *empty]
        results = builder.emit(Call(name, start))
        return [
            state.ended(context, builder.emit(results[index]))
            for index, state in enumerate(everything)
        ]

    def _rows_info(self, state: TensorState) -> StructInfo:
        """What is known of rows in the loop."""
        return ObjectStructInfo() if self.count is None else state.info()

    def _no_rows(self, state: TensorState) -> Expr:
        """Rows before the first step."""
        context, dtype = self.context, state.dtype
        if self.count is not None:
            return new_rows(context, state.info())
        nothing = context.constant(0, dtype).expr
        return context.emit(op.full([0, *state.dims[1:]], nothing, dtype))

    def _with_row(self, rows: Expr, row: Expr, step: Expr) -> Expr:
        """Rows with one more."""
        if self.count is not None:
            return with_row(self.context, rows, row, step)
        call = op.call_pure_packed(ADD, rows, row, sinfo_args=ObjectStructInfo())
        return self.context.emit(call)

    def _step(self, name: Var, params: Sequence[Var]) -> SeqExpr:
        """The body, and the call of the function with its results."""
        context, builder = self.context, self.context.builder
        count = len(self.states)
        with opened_block(builder) as opened:
            again, afters, new_rows = self._body(params[: 2 + count])
            rows = [
                self._with_row(old, new.expr, params[0])
                for old, new in zip(params[2 + count :], new_rows, strict=True)
            ]
            following = context.emit(op.add(params[0], context.constant(1, "int64").expr))
            going = params[1] if self.is_counted else self._scalar(again)
            states = [flat_expr(value) for value in afters]
            result = builder.emit(Call(name, [following, going, *states, *rows]))
        return opened.ending_in(result)

    def _scalar(self, value: Value) -> Expr:
        """A number of steps or a condition, which may have one element, without dimensions."""
        return value.expr if value.rank == 0 else self.context.emit(op.reshape(value.expr, []))

    def _end(self, params: Sequence[Var], scanned: Sequence[TensorState]) -> SeqExpr:
        context, count = self.context, 2 + len(self.states)
        with opened_block(context.builder) as opened:
            stacked = [
                rows
                if self.count is not None
                else context.emit(op.call_pure_packed(STACK, rows, sinfo_args=state.info()))
                for rows, state in zip(params[count:], scanned, strict=True)
            ]
            result = context.builder.emit(Tuple([*params[2:count], *stacked]))
        return opened.ending_in(result)


def _holds(condition: Value) -> bool:
    return condition.constant is not None and bool(condition.constant.all())
