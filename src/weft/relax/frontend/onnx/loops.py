"""Loops whose number of steps only the data gives: a local function that calls itself.

::

    loop(i, go, states..., scanned...) =
        if i < M and go: body, then loop(i + 1, go', states'..., scanned' + one slice)
        else: (states..., scanned...)

A state keeps its shape from step to step; dimensions that the body changes are symbols of the
function, found by translating the body twice. What is scanned out is an object that holds a row
for each step (weft.runtime.vm.rows).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from weft.relax import op
from weft.relax.expr import Call, Expr, Function, If, SeqExpr, Tuple, Var, VarBinding
from weft.relax.frontend.onnx.blocks import opened_block
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import INT64
from weft.relax.frontend.onnx.errors import ConstantNeededError
from weft.relax.frontend.onnx.protos import GraphProto
from weft.relax.frontend.onnx.value import Dim, GraphValue, Value
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.ir.shape_arith import same_dim
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.runtime.vm.rows import ADD, STACK


@dataclass
class State:
    """A value that the loop carries: its dimensions (None: the body changes it) and type."""

    dims: list[Dim | None]
    elem: int
    dtype: str

    def param(self, context: Context, name: str) -> Var:
        """The parameter of it; dimensions that change are new symbols."""
        dims = [context.new_dim("size") if dim is None else dim for dim in self.dims]
        return Var(name, TensorStructInfo(dims, self.dtype))

    def info(self) -> TensorStructInfo:
        """What is known of it when the loop has ended."""
        if None in self.dims:
            return TensorStructInfo(None, self.dtype, ndim=len(self.dims))
        return TensorStructInfo(self.dims, self.dtype)


Slices = Callable[[Expr], list[Value]]
"""From the number of a step to what a Scan's body gets of the tensors that it scans."""


def dynamic_loop(
    context: Context,
    limit: Value | None,
    condition: Value | None,
    carried: Sequence[GraphValue | None],
    body: GraphProto,
    slices: Slices | None = None,
) -> list[Value]:
    """The carried values and what is scanned out when the loop has ended.

    The body is a Loop's; with ``slices`` it is a Scan's, which has no condition.
    """
    tensors = [value for value in carried if isinstance(value, Value)]
    decided = limit if limit is not None and limit.constant is None else condition or limit
    if len(tensors) < len(carried):
        deciding_value = decided or next(value for value in carried if value is not None)
        context.need(deciding_value, "M or cond, as it carries a sequence,")
    states = [State(list(context.shape(v, "v_initial")), v.elem or 0, v.dtype) for v in tensors]
    deciding = [value.sources for value in (limit, condition) if value is not None]
    loop = _Loop(context, body, limit, states, frozenset[str]().union(*deciding))
    loop.slices = slices
    scanned = loop.trial()
    return loop.build(condition, tensors, scanned)


class _Loop:
    def __init__(
        self,
        context: Context,
        body: GraphProto,
        limit: Value | None,
        states: list[State],
        deciding: frozenset[str],
    ) -> None:
        self.context, self.body, self.states = context, body, states
        self.limit = None
        self.deciding = deciding
        self.slices: Slices | None = None
        if limit is not None:
            self.limit = self._scalar(limit)

    def trial(self) -> list[State]:
        """Translate the body to see which dimensions it changes; what it scans out."""
        context = self.context
        builder = context.builder
        for _ in range(2):  # what one change of shape changes is seen in the second round
            params = [state.param(context, "trial") for state in self.states]
            step = Var("step", TensorStructInfo([], "int64"))
            going = Var("going", TensorStructInfo([], "bool"))
            with opened_block(builder, [step, going, *params]):
                outputs = self._body([step, going, *params])
            count = len(self.states)
            afters = outputs[1 : 1 + count]
            for state, param, after in zip(self.states, params, afters, strict=True):
                self._compare(state, param, after)
        return [self._scanned(value) for value in outputs[1 + count :]]

    def _scanned(self, value: Value) -> State:
        """What is scanned out: rows of one shape, which the body must not make of its own."""
        dims = self.context.shape(value, "scan output")
        outside = self.context.builder.known_symbols()
        if any(symbol not in outside for dim in dims for symbol in symbolic_vars(dim)):
            self._need("scans out")
        return State([None, *dims], value.elem or 0, value.dtype)

    def _need(self, what: str) -> NoReturn:
        """Raise ConstantNeededError: then the steps are written out, if their number is known."""
        raise ConstantNeededError(
            f"{self.context.where}: the shape of what its body {what} follows only from a known "
            "number of steps; bind the input that decides it",
            self.deciding,
        )

    def _body(self, params: Sequence[Var]) -> list[Value]:
        context = self.context
        elems = [INT64, None, *[state.elem for state in self.states]]
        pairs = zip(params, elems, strict=True)
        values = [Value(context.builder, param, None, elem) for param, elem in pairs]
        outer, context.translator.is_looping = context.translator.is_looping, True
        try:
            if self.slices is None:
                outputs = context.translator.graph(self.body, context.scope, values)
            else:
                given = [*values[2:], *self.slices(params[0])]
                states = context.translator.graph(self.body, context.scope, given)
                outputs = [values[1], *states]
        finally:
            context.translator.is_looping = outer
        tensors = [value for value in outputs if isinstance(value, Value)]
        if len(tensors) < len(outputs):
            context.fail("a loop whose length the data gives carries tensors only")
        return tensors

    def _compare(self, state: State, param: Var, after: Value) -> None:
        dims = after.shape
        if dims is None:
            self._need("carries on")
        before = param.struct_info.shape.values
        if len(dims) != len(state.dims) or after.dtype != state.dtype:
            self.context.fail("its body changes the rank or the type of a carried value")
        for axis, (old, new) in enumerate(zip(before, dims, strict=True)):
            if not same_dim(old, new):
                state.dims[axis] = None

    def build(
        self, condition: Value | None, carried: Sequence[Value], scanned: list[State]
    ) -> list[Value]:
        context, builder = self.context, self.context.builder
        everything = [*self.states, *scanned]
        info = TupleStructInfo([state.info() for state in everything])
        step = Var("step", TensorStructInfo([], "int64"))
        going = Var("going", TensorStructInfo([], "bool"))
        states = [state.param(context, "state") for state in self.states]
        params = [step, going, *states, *[Var("rows", ObjectStructInfo()) for _ in scanned]]
        kind = FuncStructInfo([param.struct_info for param in params], info)
        name = Var(builder.get_unique_name("loop"), kind)
        with opened_block(builder, params) as opened:
            again: Expr = going
            if self.limit is not None:
                below = context.emit(op.less(step, self.limit))
                again = context.emit(op.logical_and(below, going))
            branches = [self._step(name, params), self._end(params, scanned)]
            result = builder.emit(If(again, *branches))
        function = Function(params, opened.ending_in(result), info)
        builder.emit_normalized(VarBinding(name, function))
        first = context.constant(True).expr if condition is None else self._scalar(condition)
        empty = [
            context.emit(
                op.full([0, *state.dims[1:]], context.constant(0, state.dtype).expr, state.dtype)
            )
            for state in scanned
        ]
        start = [context.constant(0, "int64").expr, first, *[v.expr for v in carried], *empty]
        results = builder.emit(Call(name, start))
        return [self._result(results, index, state) for index, state in enumerate(everything)]

    def _step(self, name: Var, params: Sequence[Var]) -> SeqExpr:
        """The body, and the call of the function with its results."""
        context, builder = self.context, self.context.builder
        count = len(self.states)
        with opened_block(builder) as opened:
            outputs = self._body(params[: 2 + count])
            rows = []
            for old, new in zip(params[2 + count :], outputs[1 + count :], strict=True):
                call = op.call_pure_packed(ADD, old, new.expr, sinfo_args=ObjectStructInfo())
                rows.append(context.emit(call))
            following = context.emit(op.add(params[0], context.constant(1, "int64").expr))
            going = self._scalar(outputs[0])
            states = [value.expr for value in outputs[1 : 1 + count]]
            result = builder.emit(Call(name, [following, going, *states, *rows]))
        return opened.ending_in(result)

    def _scalar(self, value: Value) -> Expr:
        """A number of steps or a condition, which may have one element, without dimensions."""
        return value.expr if value.rank == 0 else self.context.emit(op.reshape(value.expr, []))

    def _end(self, params: Sequence[Var], scanned: Sequence[State]) -> SeqExpr:
        context, count = self.context, 2 + len(self.states)
        with opened_block(context.builder) as opened:
            stacked = [
                context.emit(op.call_pure_packed(STACK, rows, sinfo_args=state.info()))
                for rows, state in zip(params[count:], scanned, strict=True)
            ]
            result = context.builder.emit(Tuple([*params[2:count], *stacked]))
        return opened.ending_in(result)

    def _result(self, results: Expr, index: int, state: State) -> Value:
        context = self.context
        part: Expr = context.builder.emit(results[index])
        if None in state.dims:
            dims = [context.new_dim("loop") if dim is None else dim for dim in state.dims]
            part = context.matched(part, dims)
        return Value(context.builder, part, None, state.elem)
