"""Calls for the interpreter: of other functions, of mathematics, of intrinsics."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from weft.backends.cpu.isa.semantics import INTRINSICS
from weft.ir.expr import GlobalVar, IntImm, PrimExpr, StringImm, integer_range
from weft.ir.node import expect
from weft.ir.op import Op
from weft.runtime.ndarray import NDArray
from weft.runtime.registry import get_global_func
from weft.support.dtype import DataType
from weft.support.errors import RuntimeFault, UnsupportedError
from weft.tir.buffer import BufferLoad
from weft.tir.exact_steps import exact_steps
from weft.tir.expr import Add, Call, Mul, Sub, Var, is_call
from weft.tir.interp import arithmetic, internal_calls
from weft.tir.interp.arithmetic import is_vector
from weft.tir.interp.c_functions import c_function, c_value
from weft.tir.interp.fused import fused
from weft.tir.interp.state import State, Thunk
from weft.tir.interp.values import Value

_EXACT: Final = {Add: operator.add, Sub: operator.sub, Mul: operator.mul}
"""The steps that ``T.is_exact`` tests, on Python's integers, which do not overflow."""


class BreakSignal(Exception):  # noqa: N818 - control flow of the interpreter, not an error
    """``T.break_loop()``: leaves the innermost loop."""


class ContinueSignal(Exception):  # noqa: N818 - control flow of the interpreter, not an error
    """``T.continue_loop()``: continues with the next iteration of the innermost loop."""


class ReturnSignal(Exception):  # noqa: N818 - control flow of the interpreter, not an error
    """``T.ret`` leaves the function with a value."""


class CallCompiler:
    """Compiles calls to closures; ``intrinsic_<name>`` is the method of an intrinsic."""

    def compile(self, expr: PrimExpr) -> Thunk:
        """The closure that evaluates ``expr``."""
        raise NotImplementedError(f"{type(self).__name__} compiles calls alone")

    def compile_Call(self, call: Call) -> Thunk:
        if not isinstance(call.op, Op):
            args = [internal_calls.argument(self, arg) for arg in call.args]
            return lambda state: state.call_global(call.op, [arg(state) for arg in args])
        name = call.op.name.removeprefix("tir.")
        method = getattr(self, f"intrinsic_{name}", None)
        if method is not None:
            thunk: Thunk = method(call)
            return thunk
        return self.elementwise(name, call)

    def elementwise(self, name: str, call: Call) -> Thunk:
        """A mathematical intrinsic: computed in float64, rounded to the result's type."""
        args = [self.compile(arg) for arg in call.args]
        end = arithmetic.finish(call.dtype)
        if name in arithmetic.PREDICATE:
            test = arithmetic.PREDICATE[name]
            return lambda state: end(test(args[0](state)))
        if name == "fabs" and call.dtype.is_integral:
            return lambda state: end(abs(args[0](state)))
        if name in arithmetic.UNARY:
            compute = np.frompyfunc(arithmetic.UNARY[name], 1, 1)
            return lambda state: end(compute(_wide(args[0](state))))
        if name in arithmetic.BINARY_INTRINSIC:
            pair = np.frompyfunc(arithmetic.BINARY_INTRINSIC[name], 2, 1)
            return lambda state: end(pair(_wide(args[0](state)), _wide(args[1](state))))
        raise UnsupportedError(f"the interpreter does not know the intrinsic tir.{name}")

    def intrinsic_q_multiply_shift(self, call: Call) -> Thunk:
        """``x * y * 2**(s - q)``, rounded to the nearest integer, a half upwards."""
        x, y, q, s = [self.compile(arg) for arg in call.args]
        end = arithmetic.finish(call.dtype)
        product = np.frompyfunc(arithmetic.multiply_shift, 4, 1)
        return lambda state: end(product(x(state), y(state), q(state), s(state)))

    def intrinsic_nextafter(self, call: Call) -> Thunk:
        """Computed in the operands' own type, since neighbouring floats depend on the type."""
        kind, end = call.dtype.element.numpy, arithmetic.finish(call.dtype)
        here, there = (self.compile(arg) for arg in call.args)
        return lambda state: end(
            np.nextafter(np.asarray(here(state), kind), np.asarray(there(state), kind))[()]
        )

    def intrinsic_if_then_else(self, call: Call) -> Thunk:
        condition, yes, no = (self.compile(arg) for arg in call.args)
        return lambda state: yes(state) if condition(state) else no(state)

    def intrinsic_likely(self, call: Call) -> Thunk:
        return self.compile(call.args[0])

    def intrinsic_checked(self, call: Call) -> Thunk:
        value, condition = self.compile(call.args[0]), self.compile(call.args[1])
        message = expect(call.args[3], StringImm).value
        numbers = [self.compile(arg) for arg in call.args[4:]]

        def checked(state: State) -> object:
            good = np.asarray(condition(state))
            if not good.all():
                shown = [_worst(number(state), good) for number in numbers]
                raise RuntimeFault(message.format(**dict(zip("ab", shown, strict=False))))
            return value(state)

        return checked

    def intrinsic_launch(self, call: Call) -> Thunk:
        name, _, low, extent, *captured = call.args
        function = GlobalVar(expect(name, StringImm).value)
        first, count = self.compile(low), self.compile(extent)
        values = [internal_calls.argument(self, value) for value in captured]

        def launch(state: State) -> None:
            begin = first(state)
            args = [value(state) for value in values]
            state.call_global(function, [*args, begin, begin + count(state)])

        return launch

    def intrinsic_is_exact(self, call: Call) -> Thunk:
        steps = [
            (_EXACT[type(step)], self.compile(step.a), self.compile(step.b), step.dtype)
            for step in exact_steps(call.args[0])
        ]

        def is_exact(state: State) -> bool:
            for compute, a, b, dtype in steps:
                low, high = integer_range(dtype)
                if not low <= compute(int(a(state)), int(b(state))) <= high:
                    return False
            return True

        return is_exact

    def intrinsic_unchecked_cast(self, call: Call) -> Thunk:
        value = self.compile(call.args[0])
        low, high = integer_range(call.dtype.element)
        convert = arithmetic.cast(call.args[0].dtype, call.dtype)

        def cut(state: State) -> object:
            given = np.trunc(np.asarray(value(state), "float64"))
            if not np.all((given >= float(low)) & (given < float(high + 1))):
                raise RuntimeFault(f"T.unchecked_cast: {given} is out of range of {call.dtype}")
            return convert(value(state))

        return cut

    def intrinsic_reduce_lanes(self, call: Call) -> Thunk:
        value, end = self.compile(call.args[0]), arithmetic.finish(call.dtype)
        if call.dtype.is_integral:
            return lambda state: end(sum([int(lane) for lane in value(state)]))
        kind = "float32" if call.dtype.bits == 16 else call.dtype.element.numpy

        def total(state: State) -> object:
            first, *others = np.asarray(value(state)).astype(kind)
            return end(sum(others, start=first))

        return total

    def intrinsic_reinterpret(self, call: Call) -> Thunk:
        if call.args[0].dtype.is_handle and call.dtype.is_integral:
            pointer = internal_calls.argument(self, call.args[0])
            return lambda state: internal_calls.address(pointer(state))
        value = self.compile(call.args[0])
        convert = arithmetic.reinterpret(call.args[0].dtype, call.dtype)
        return lambda state: convert(value(state))

    def _bitwise(self, call: Call, compute: Callable[..., object]) -> Thunk:
        args = [self.compile(arg) for arg in call.args]
        end = arithmetic.finish(call.dtype)
        if is_vector(call.dtype):
            finish = arithmetic.finish(call.dtype.element)
            lanes = np.frompyfunc(lambda *xs: finish(compute(*[int(x) for x in xs])), len(args), 1)
            return lambda state: end(lanes(*[arg(state) for arg in args]))
        return lambda state: end(compute(*[arg(state) for arg in args]))

    def intrinsic_bitwise_and(self, call: Call) -> Thunk:
        return self._bitwise(call, lambda a, b: a & b)

    def intrinsic_bitwise_or(self, call: Call) -> Thunk:
        return self._bitwise(call, lambda a, b: a | b)

    def intrinsic_bitwise_xor(self, call: Call) -> Thunk:
        return self._bitwise(call, lambda a, b: a ^ b)

    def intrinsic_bitwise_not(self, call: Call) -> Thunk:
        return self._bitwise(call, lambda a: ~a)

    def intrinsic_shift_left(self, call: Call) -> Thunk:
        bits = call.dtype.bits
        return self._bitwise(call, lambda a, n: arithmetic.shift_left(a, n, bits))

    def intrinsic_shift_right(self, call: Call) -> Thunk:
        bits = call.dtype.bits
        return self._bitwise(call, lambda a, n: arithmetic.shift_right(a, n, bits))

    def intrinsic_popcount(self, call: Call) -> Thunk:
        mask = (1 << call.args[0].dtype.bits) - 1
        return self._bitwise(call, lambda a: (a & mask).bit_count())

    def intrinsic_clz(self, call: Call) -> Thunk:
        bits = call.args[0].dtype.bits
        mask = (1 << bits) - 1
        return self._bitwise(call, lambda a: bits - (a & mask).bit_length())

    def intrinsic_fma(self, call: Call) -> Thunk:
        x, y, z = (self.compile(arg) for arg in call.args)
        end = arithmetic.finish(call.dtype)
        return lambda state: end(fused(x(state), y(state), z(state)))

    def intrinsic_uncontracted(self, call: Call) -> Thunk:
        return self.compile(call.args[0])  # each operation is rounded in any case

    def intrinsic_scaleb(self, call: Call) -> Thunk:
        x, power, where = (self.compile(arg) for arg in call.args)
        end = arithmetic.finish(call.dtype)
        return lambda state: end(arithmetic.scaleb(x(state), power(state), where(state)))

    def intrinsic_dot_four_bytes(self, call: Call) -> Thunk:
        total, unsigned, signed = (self.compile(arg) for arg in call.args)
        end = arithmetic.finish(call.dtype)
        return lambda state: end(
            arithmetic.dot_four_bytes(total(state), unsigned(state), signed(state))
        )

    def intrinsic_lookup(self, call: Call) -> Thunk:
        table, places = self.compile(call.args[0]), self.compile(call.args[1])
        lanes = call.args[0].dtype.lanes
        return lambda state: table(state)[np.asarray(places(state)) % lanes]

    def intrinsic_all_lanes(self, call: Call) -> Thunk:
        condition = self.compile(call.args[0])
        return lambda state: bool(np.all(condition(state)))

    def intrinsic_assume(self, call: Call) -> Thunk:
        condition = self.compile(call.args[0])

        def assume(state: State) -> Value:
            if not condition(state):
                raise RuntimeFault(f"T.assume does not hold: {call.args[0]}")
            return True

        return assume

    def intrinsic_undef(self, call: Call) -> Thunk:
        zero = self.compile_zero(call.dtype)
        return lambda state: zero

    def intrinsic_prefetch(self, call: Call) -> Thunk:
        return lambda state: 0  # a hint without effect

    def compile_zero(self, dtype: DataType) -> Value:
        """A zero of the type."""
        return arithmetic.finish(dtype)(0)

    def intrinsic_ret(self, call: Call) -> Thunk:
        value = self.compile(call.args[0])

        def leave(state: State) -> Value:
            raise ReturnSignal(value(state))

        return leave

    def intrinsic_break_loop(self, call: Call) -> Thunk:
        return _raising(BreakSignal)

    def intrinsic_continue_loop(self, call: Call) -> Thunk:
        return _raising(ContinueSignal)

    def intrinsic_vscale(self, call: Call) -> Thunk:
        return lambda state: 1

    def intrinsic_tvm_call_packed(self, call: Call) -> Thunk:
        name = expect(call.args[0], StringImm).value
        args = [self.packed_argument(arg) for arg in call.args[1:]]
        return lambda state: get_global_func(name)(*[arg(state) for arg in args])

    intrinsic_call_packed = intrinsic_tvm_call_cpacked = intrinsic_tvm_call_packed

    def intrinsic_tvm_call_trace_packed(self, call: Call) -> Thunk:
        name = expect(call.args[0], StringImm).value
        args = [self.packed_argument(arg) for arg in call.args[1:]]
        end = arithmetic.finish(call.dtype)

        def traced(state: State) -> object:
            values = [arg(state) for arg in args]
            result = get_global_func(name)(*values)
            return end(values[-1] if result is None else result)

        return traced

    def packed_argument(self, arg: PrimExpr) -> Thunk:
        """An argument of a packed call; a buffer arrives as an NDArray view."""
        buffer = getattr(arg, "buffer", None)
        if is_call(arg, "tvm_stack_make_array"):
            data = expect(arg.args[0], Var)
            return lambda state: NDArray(state.view_of_data(data))
        if buffer is not None and isinstance(arg, BufferLoad) and arg.dtype.is_handle:
            return lambda state: NDArray(state.bound(buffer).array)
        return self.compile(arg)

    def intrinsic_call_extern(self, call: Call) -> Thunk:
        name = expect(call.args[0], StringImm).value
        args = [self.compile(arg) for arg in call.args[1:]]
        function = c_function(name, call.dtype, [arg.dtype for arg in call.args[1:]])
        end = arithmetic.finish(call.dtype)
        return lambda state: end(function(*[c_value(arg(state)) for arg in args]))

    intrinsic_call_pure_extern = intrinsic_call_extern

    def intrinsic_call_llvm_intrin(self, call: Call) -> Thunk:
        name, *args = call.args
        if args and isinstance(args[0], IntImm) and args[0].dtype == "uint32":
            args = args[1:]  # TVM's programs pass the number of types in the signature
        text = name.value if isinstance(name, StringImm) else str(name)
        compute = INTRINSICS.get(text)
        if compute is None:
            raise UnsupportedError(f"the interpreter does not know the LLVM intrinsic {text}")
        values = [self.compile(arg) for arg in args]
        end = arithmetic.finish(call.dtype)
        return lambda state: end(compute(*[np.asarray(value(state)) for value in values]))

    intrinsic_call_llvm_pure_intrin = intrinsic_call_llvm_intrin


def _raising(signal: type[Exception]) -> Thunk:
    def leave(state: State) -> Value:
        raise signal

    return leave


def _wide(value: Value) -> Value:
    """A float value in float64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64)
    return np.float64(value)


def _worst(number: object, good: np.ndarray) -> object:
    """The number to report; of a vector, the largest (as unsigned) of the lanes that failed."""
    lanes = np.asarray(number)
    return number if lanes.ndim == 0 else max(lanes[~good].tolist(), key=lambda n: n % (1 << 64))
