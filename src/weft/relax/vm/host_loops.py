"""Functions that end with a call of themselves, natively: the call goes back to the beginning.

::

    states = arguments                 # what a call changes; what it passes on is not copied
    going = 1
    while going:
        body, and where it calls itself last:      states = the arguments of that call
              where a path ends with a value:      result = value; going = 0

So a loop of a model takes the memory of one step, whatever the number of its steps is. The memory
is planned before the loop: extents must be the same in every step. Where a call changes one, the
function runs as bytecode, which allocates as it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weft.ir.expr import GlobalVar, IntImm, PrimExpr, RelaxExpr
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.ir.structural import structural_equal
from weft.relax.analysis.tail_calls import last_binding, tail_calls
from weft.relax.expr import Call, Function, If, PrimValue, SeqExpr, ShapeExpr, Var, VarBinding
from weft.relax.ir.lattice import defining_vars
from weft.relax.ir.shape_arith import INT64
from weft.relax.struct_info import PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo
from weft.relax.vm.host_body import HostBody
from weft.relax.vm.host_parts import (
    HostValue,
    LocalFunction,
    NotNative,
    Shape,
    Step,
    packed_call,
)
from weft.runtime.vm.interrupts import CLOCK
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.stmt import BufferStore, IfThenElse, seq

ZERO = IntImm(INT64, 0)


def calls_of_itself(builder: HostBody, function: Function) -> list[VarBinding]:
    """The bindings whose calls go back to the beginning of the function."""

    def is_itself(callee: RelaxExpr) -> bool:
        if isinstance(callee, GlobalVar):
            return callee in builder.mod and builder.mod[callee] is function
        local = builder.values.get(id(callee)) if isinstance(callee, Var) else None
        return isinstance(local, LocalFunction) and local.function is function

    calls = tail_calls(function, is_itself)
    return [call for call in calls if is_itself(_call(call).op)]


def _call(binding: VarBinding) -> Call:
    return expect(binding.value, Call)


@dataclass
class HostLoop:
    """The lowering of one such function.

    ``states`` are what its parameters are in a step; None for one that every call passes on.
    """

    builder: HostBody
    function: Function
    calls: list[VarBinding]
    states: list[HostValue | None] = field(default_factory=list)
    result: HostValue | None = None

    def lower(self) -> HostValue:
        """The function's value, for the arguments that its parameters have now."""
        builder, state = self.builder, self.builder.state
        for index, param in enumerate(self.function.params):
            value = None if self._is_passed_on(index) else self._state(param)
            self.states.append(value)
            builder.values[id(param)] = builder.values[id(param)] if value is None else value
        self.going = builder.number("going", IntImm(INT64, 1))
        clock, self.known = self._clock(), dict(builder.symbols.known)
        start = Step(None, [self.going, clock], op.not_equal(_first(self.going), ZERO), "while")
        state.steps.append(start)
        state.branches += 1
        left = _first(clock)
        builder.step(BufferStore(clock, op.subtract(left, 1), [ZERO]), [clock])
        look = packed_call("vm.builtin.between_steps", [clock])
        builder.step(IfThenElse(op.less_equal(left, ZERO), look), [clock])
        self._body(self.function.body)
        state.steps.append(Step(None, [*self._kept(start)], None, "repeat"))
        state.branches -= 1
        builder.symbols.known = self.known
        assert self.result is not None
        return self.result

    def _clock(self) -> Buffer:
        """What says when to look for signals; it runs on where an outer loop comes here again."""
        clock = self.builder.new_tensor(TensorStructInfo([len(CLOCK)], "int64"), "clock")
        stores = [
            BufferStore(clock, IntImm(INT64, number), [IntImm(INT64, place)])
            for place, number in enumerate(CLOCK)
        ]
        self.builder.state.steps.insert(0, Step(seq(*stores), [clock]))
        return clock

    def _is_passed_on(self, index: int) -> bool:
        """Whether every call passes a parameter on as it is."""
        param = self.function.params[index]
        return all(_is_same(_call(call).args[index], param) for call in self.calls)

    def _state(self, param: Var) -> HostValue:
        """The memory of a parameter that calls change, with its first value."""
        value, info = self.builder.values[id(param)], param.struct_info
        if isinstance(info, PrimStructInfo) and info.value is not None:
            raise NotNative(f"a loop changes the number {info.value}, on which shapes may depend")
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            raise NotNative(f"a loop changes the shape {param.name_hint}, on which others depend")
        return self._copied(value, param.name_hint)

    def _copied(self, value: HostValue, name: str) -> HostValue:
        if isinstance(value, list):
            return [self._copied(item, name) for item in value]
        if isinstance(value, Shape):
            return Shape([_first(self.builder.number(name, extent)) for extent in value.values])
        if isinstance(value, Buffer):
            return self.builder.copied(value)
        if isinstance(value, PrimExpr):
            return _first(self.builder.number(name, value))
        raise NotNative("a loop that changes a function")

    # ---- paths through the body

    def _body(self, body: RelaxExpr) -> None:
        """Lower a body of which each path ends with a call of the function or with a value."""
        last = last_binding(body)
        if last is None or not isinstance(body, SeqExpr):
            self._finish(self.builder.value(body))
            return
        for block in body.blocks:
            for binding in block.bindings:
                if binding is last:
                    self._last(last)
                    return
                self.builder.bind(binding)

    def _last(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, If):
            self.builder.branches(value, self._body)
        elif isinstance(value, SeqExpr):
            self._body(value)
        elif any(binding is call for call in self.calls):
            self._again(_call(binding))
        else:
            self._finish(self.builder.value(value, binding.var.name_hint))

    def _again(self, call: Call) -> None:
        """The arguments of a call become the states of the next step."""
        builder, label = self.builder, self.builder.symbols.label
        if len(call.args) != len(self.function.params):
            raise NotNative(f"{label} takes {len(self.function.params)} arguments")
        given = [builder.value(arg) for arg in call.args]
        local = LocalFunction(self.function, label, {}, self.known, [])
        inner = builder.symbols.called(local, given)
        for param in self.function.params:
            for var in defining_vars(param.struct_info):
                if not structural_equal(inner.known.get(var), self.known.get(var)):
                    raise NotNative(f"a loop changes {var.name}, an extent of {param.name_hint}")
        moves: list[tuple[Buffer, Buffer]] = []
        for state, value in zip(self.states, given, strict=True):
            if state is not None:
                moves += self._moves(state, value)
        for target, source in moves:
            builder.copy(source, target)

    def _moves(self, state: HostValue, value: HostValue) -> Iterator[tuple[Buffer, Buffer]]:
        """What to copy where. A source that is another state is saved first."""
        builder = self.builder
        if isinstance(state, list) and isinstance(value, list) and len(state) == len(value):
            for part, item in zip(state, value, strict=True):
                yield from self._moves(part, item)
        elif isinstance(state, Shape) and isinstance(value, Shape):
            yield from self._moves(list(state.values), list(value.values))
        elif isinstance(state, Buffer) and isinstance(value, Buffer):
            _require_same_shape(value, state, "a loop changes the shape of a value")
            root = builder.rooted([value])[0]
            if root is not state:
                is_state = any(root is other for other in _tensors(self.states))
                yield state, builder.copied(value) if is_state else value
        elif isinstance(state, BufferLoad) and isinstance(value, PrimExpr):
            yield state.buffer, builder.number("next", op.cast(state.dtype, value))
        else:
            raise NotNative("a loop that changes the kind of a value")

    def _finish(self, value: HostValue) -> None:
        """A path ends: its value is the result."""
        if self.result is None:
            self.result = self._place(value)
        self._deliver(value, self.result)
        self.builder.step(BufferStore(self.going, ZERO, [ZERO]), [self.going])

    def _place(self, value: HostValue) -> HostValue:
        """New memory for the tensors of the result."""
        if isinstance(value, list):
            return [self._place(item) for item in value]
        if isinstance(value, Buffer):
            info = TensorStructInfo(list(value.shape), value.dtype)
            return self.builder.new_tensor(info, value.name)
        return value

    def _deliver(self, value: HostValue, target: HostValue) -> None:
        if isinstance(value, list) and isinstance(target, list) and len(value) == len(target):
            for item, part in zip(value, target, strict=True):
                self._deliver(item, part)
        elif isinstance(value, Buffer) and isinstance(target, Buffer):
            _require_same_shape(value, target, "the paths through a loop return other shapes")
            self.builder.copy(value, target)
        else:
            numbers, others = _numbers(value), _numbers(target)
            if not structural_equal(numbers, others) or _loads(numbers):
                raise NotNative("a loop that computes a number, a shape or a function")

    def _kept(self, start: Step) -> list[Buffer]:
        """Tensors that have to live until the loop ends: states, and what is from outside of it."""
        steps = self.builder.state.steps
        before = next(place for place, step in enumerate(steps) if step is start)
        outside = {id(buffer) for step in steps[:before] for buffer in step.uses}
        inside = {id(buffer): buffer for step in steps[before:] for buffer in step.uses}
        kept = [buffer for key, buffer in inside.items() if key in outside]
        return [*kept, *_tensors([self.result])]


def _first(buffer: Buffer) -> BufferLoad:
    """The number that a buffer holds."""
    return expect(buffer[0], BufferLoad)


def _is_same(arg: RelaxExpr, param: Var) -> bool:
    """Whether an argument is the parameter itself, or a number or shape that it stands for."""
    info: StructInfo | None = param.struct_info
    if isinstance(arg, PrimValue) and isinstance(info, PrimStructInfo):
        return info.value is not None and structural_equal(arg.value, info.value)
    if isinstance(arg, ShapeExpr) and isinstance(info, ShapeStructInfo):
        return info.values is not None and structural_equal(arg.values, info.values)
    return arg is param


def _require_same_shape(value: Buffer, other: Buffer, otherwise: str) -> None:
    shapes = list(value.shape), list(other.shape)
    if value.dtype != other.dtype or len(shapes[0]) != len(shapes[1]):
        raise NotNative(otherwise)
    if not all(structural_equal(mine, its) for mine, its in zip(*shapes, strict=True)):
        raise NotNative(otherwise)


def _tensors(values: Sequence[HostValue | None]) -> Iterator[Buffer]:
    for value in values:
        if isinstance(value, list):
            yield from _tensors(value)
        elif isinstance(value, Buffer):
            yield value


def _numbers(value: HostValue) -> list[PrimExpr]:
    if isinstance(value, Shape):
        return value.values
    if isinstance(value, PrimExpr):
        return [value]
    raise NotNative("a loop that returns a function")


def _loads(numbers: Sequence[PrimExpr]) -> bool:
    """Whether numbers are read from memory, so that they differ from step to step."""
    return any(collect(number, BufferLoad) for number in numbers)
