"""Compiles expressions for the reference interpreter: each becomes a Python closure.

``ExprCompiler.compile(expr)`` returns a function ``(state) -> value``; ``state.values`` holds the
values of variables by ``id``, ``state.buffers`` the bound buffers.
"""

from __future__ import annotations

import numpy as np

from weft.ir.expr import FloatImm, IntImm, PrimExpr, StringImm
from weft.support.errors import RuntimeFault, UnsupportedError
from weft.tir.buffer import BufferLoad
from weft.tir.expr import (
    And,
    BinaryExpr,
    Broadcast,
    Cast,
    CompareExpr,
    Let,
    Not,
    Or,
    Ramp,
    Select,
    Shuffle,
    Var,
)
from weft.tir.interp import arithmetic
from weft.tir.interp.arithmetic import is_vector
from weft.tir.interp.calls import CallCompiler
from weft.tir.interp.repeated_values import repeated_values
from weft.tir.interp.scalars import integer_operation, place_of
from weft.tir.interp.state import State, Thunk
from weft.tir.interp.values import Value


def _once(expr: PrimExpr, closure: Thunk) -> Thunk:
    """A closure that evaluates ``expr`` once and caches the value; it keeps ``expr`` alive."""

    def evaluate(state: State, key: int = ~id(expr), kept: PrimExpr = expr) -> Value:
        if key not in state.values:
            state.values[key] = closure(state)
        return state.values[key]

    return evaluate


class ExprCompiler(CallCompiler):
    """Compiles expressions to closures; ``compile_<node class>`` is the method of a class.

    A subexpression that occurs very often in one expression is compiled once, and evaluated once in
    each evaluation of the whole; ``state.values`` caches its value under a key that no variable
    has.
    """

    _repeated: dict[int, PrimExpr] | None = None
    """The subexpressions of this kind in the expression that is being compiled, by ``id``."""
    _closures: dict[int, Thunk]

    def compile(self, expr: PrimExpr) -> Thunk:
        """The closure that evaluates ``expr``."""
        if self._repeated is None:
            return self._outermost(expr)
        if id(expr) not in self._repeated:
            return self._compile(expr)
        known = self._closures.get(id(expr))
        if known is None:
            known = self._closures[id(expr)] = _once(expr, self._compile(expr))
        return known

    def _outermost(self, expr: PrimExpr) -> Thunk:
        """The closure of an expression that is no part of another one."""
        repeated = self._repeated = repeated_values(expr)
        self._closures = {}
        try:
            closure = self._compile(expr)
        finally:
            self._repeated = None
        if not repeated:
            return closure
        keys = [~key for key in repeated]

        def evaluate(state: State) -> Value:
            for key in keys:
                state.values.pop(key, None)
            return closure(state)

        return evaluate

    def _compile(self, expr: PrimExpr) -> Thunk:
        for kind in type(expr).__mro__:
            method = getattr(self, f"compile_{kind.__name__}", None)
            if method is not None:
                thunk: Thunk = method(expr)
                return thunk
        raise UnsupportedError(f"the interpreter does not know {type(expr).__name__}: {expr}")

    def compile_IntImm(self, expr: IntImm) -> Thunk:
        value = bool(expr.value) if expr.dtype.is_bool else expr.value
        return lambda state: value

    def compile_FloatImm(self, expr: FloatImm) -> Thunk:
        value = expr.dtype.numpy.type(expr.value)
        return lambda state: value

    def compile_StringImm(self, expr: StringImm) -> Thunk:
        value = expr.value
        return lambda state: value

    def compile_Var(self, var: Var) -> Thunk:
        key, name = id(var), var.name

        def read(state: State) -> Value:
            try:
                return state.values[key]
            except KeyError:
                raise RuntimeFault(f"variable {name} has no value here") from None

        return read

    def compile_BinaryExpr(self, expr: BinaryExpr) -> Thunk:
        a, b = self.compile(expr.a), self.compile(expr.b)
        on_integers = integer_operation(type(expr).__name__, expr.a.dtype, a, b)
        if on_integers is not None:
            return on_integers
        compute = arithmetic.binary(type(expr).__name__, expr.a.dtype)
        return lambda state: compute(a(state), b(state))

    def compile_CompareExpr(self, expr: CompareExpr) -> Thunk:
        a, b = self.compile(expr.a), self.compile(expr.b)
        compute = arithmetic.COMPARISON[type(expr).__name__]
        if is_vector(expr.dtype):
            return lambda state: compute(a(state), b(state))
        return lambda state: bool(compute(a(state), b(state)))

    def compile_And(self, expr: And) -> Thunk:
        a, b = self.compile(expr.a), self.compile(expr.b)
        if is_vector(expr.dtype):
            return lambda state: a(state) & b(state)
        return lambda state: a(state) and b(state)

    def compile_Or(self, expr: Or) -> Thunk:
        a, b = self.compile(expr.a), self.compile(expr.b)
        if is_vector(expr.dtype):
            return lambda state: a(state) | b(state)
        return lambda state: a(state) or b(state)

    def compile_Not(self, expr: Not) -> Thunk:
        a = self.compile(expr.a)
        if is_vector(expr.dtype):
            return lambda state: ~a(state)
        return lambda state: not a(state)

    def compile_Select(self, expr: Select) -> Thunk:
        condition, yes, no = (
            self.compile(x) for x in (expr.condition, expr.true_value, expr.false_value)
        )
        if is_vector(expr.condition.dtype):
            return lambda state: np.where(condition(state), yes(state), no(state))
        return lambda state: yes(state) if condition(state) else no(state)

    def compile_Cast(self, expr: Cast) -> Thunk:
        value = self.compile(expr.value)
        convert = arithmetic.cast(expr.value.dtype, expr.dtype)
        return lambda state: convert(value(state))

    def compile_Ramp(self, expr: Ramp) -> Thunk:
        base, stride, lanes = (self.compile(x) for x in (expr.base, expr.stride, expr.lanes))
        kind = expr.dtype.element.numpy  # compute in the type itself, so that every step wraps

        def ramp(state: State) -> Value:
            count = lanes(state)
            steps = np.full(count, stride(state), kind) * np.arange(count).astype(kind)
            return np.full(count, base(state), kind) + steps

        return ramp

    def compile_Broadcast(self, expr: Broadcast) -> Thunk:
        value, lanes = self.compile(expr.value), self.compile(expr.lanes)
        kind = expr.dtype.element.numpy
        return lambda state: np.full(lanes(state), value(state), kind)

    def compile_Shuffle(self, expr: Shuffle) -> Thunk:
        vectors = [self.compile(vector) for vector in expr.vectors]
        indices = [self.compile(index) for index in expr.indices]
        single = not is_vector(expr.dtype)

        def shuffle(state: State) -> Value:
            joined = np.concatenate([np.atleast_1d(vector(state)) for vector in vectors])
            picked = joined[[int(index(state)) for index in indices]]
            return picked[0] if single else picked

        return shuffle

    def compile_Let(self, expr: Let) -> Thunk:
        key, value, body = id(expr.var), self.compile(expr.value), self.compile(expr.body)

        def let(state: State) -> Value:
            state.values[key] = value(state)
            return body(state)

        return let

    def compile_BufferLoad(self, load: BufferLoad) -> Thunk:
        indices = [self.compile(index) for index in load.indices]
        predicate = None if load.predicate is None else self.compile(load.predicate)
        buffer, plain = load.buffer, load.buffer.dtype.is_integral
        if is_vector(load.dtype):
            return lambda state: state.bound(buffer).load_lanes(
                [index(state) for index in indices], None if predicate is None else predicate(state)
            )
        place, key = place_of(indices), id(buffer)
        if not plain:
            return lambda state: (state.buffers.get(key) or state.bound(buffer)).load(place(state))
        to_python = bool if buffer.dtype.is_bool else int
        return lambda state: to_python(
            (state.buffers.get(key) or state.bound(buffer)).load(place(state))
        )
