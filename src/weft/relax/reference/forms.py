"""Operators that no numpy function defines: calls of PrimFuncs, closures, memory, side effects.

A *form* is the interpreter's rule for such an operator: it takes the interpreter, the call and the
frame, and returns the value of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from weft.ir.expr import GlobalVar
from weft.ir.node import expect
from weft.relax.expr import Call, DataTypeImm, ExternFunc
from weft.relax.reference.frame import Frame, Value
from weft.relax.reference.packed import call_packed
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.runtime.vm.builtins import BUILTINS
from weft.support.dtype import DataType
from weft.support.errors import IRValueError, RuntimeFault


class Evaluator(Protocol):
    """The methods of the interpreter that a form uses."""

    def evaluate(self, expr: Value, frame: Frame) -> Value:
        """The value of an expression."""

    def call_function(self, name: str, values: list[Value]) -> Value:
        """Call a function of the module: a graph, or a PrimFunc on all its buffers."""

    def call_extern(self, name: str, values: list[Value]) -> Value:
        """Call a registered function."""

    def refuse(self, name: str) -> None:
        """Raise ClosedError if the interpreter is closed: ``name`` is no part of the module."""


def _outputs(call: Call, frame: Frame) -> list[np.ndarray]:
    info = call.sinfo_args[0]
    infos = info.fields if isinstance(info, TupleStructInfo) else [info]
    outputs = []
    for item in infos:
        extents = frame.extents(item)
        if extents is None:
            raise IRValueError(f"{call.op.name}: the shape of the output {item} is not known")
        dtype = expect(item, TensorStructInfo).dtype
        outputs.append(np.zeros(frame.dims(extents), DataType(dtype).numpy))
    return outputs


def _one_or_tuple(call: Call, outputs: Sequence[Value]) -> Value:
    return tuple(outputs) if isinstance(call.sinfo_args[0], TupleStructInfo) else outputs[0]


def _operands(interpreter: Evaluator, call: Call, frame: Frame) -> tuple[list[Value], list[Value]]:
    """The arguments of a destination-passing call, and the scalars after its outputs."""
    values = interpreter.evaluate(call.args[1], frame)
    extra = interpreter.evaluate(call.args[2], frame) if len(call.args) > 2 else ()
    return list(expect(values, tuple)), list(expect(extra, tuple))


def _call_tir(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
    values, extra = _operands(interpreter, call, frame)
    outputs = _outputs(call, frame)
    callee = expect(call.args[0], GlobalVar)
    interpreter.call_function(callee.name_hint, [*values, *outputs, *extra])
    return _one_or_tuple(call, outputs)


def _call_tir_inplace(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
    values, extra = _operands(interpreter, call, frame)
    places = list(call.attrs["inplace_indices"])
    fresh = _outputs(call, frame)
    outputs = [
        values[place] if place >= 0 else output for place, output in zip(places, fresh, strict=True)
    ]
    new = [output for place, output in zip(places, fresh, strict=True) if place < 0]
    interpreter.call_function(expect(call.args[0], GlobalVar).name_hint, [*values, *new, *extra])
    return _one_or_tuple(call, outputs)


def _call_dps_packed(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
    values, extra = _operands(interpreter, call, frame)
    outputs = _outputs(call, frame)
    callee = expect(call.args[0], ExternFunc)
    interpreter.call_extern(callee.global_symbol, [*values, *outputs, *extra])
    return _one_or_tuple(call, outputs)


def _call_pure_packed(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
    values = [interpreter.evaluate(argument, frame) for argument in call.args[1:]]
    return interpreter.call_extern(expect(call.args[0], ExternFunc).global_symbol, values)


def _call_with_context(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
    values = interpreter.evaluate(call.args[1], frame)
    callee = expect(call.args[0], ExternFunc)
    return interpreter.call_extern(callee.global_symbol, list(expect(values, tuple)))


def _make_closure(function: Callable[..., Value], *captured: Value) -> Value:
    return lambda *values: function(*values, *captured)


def _invoke_closure(closure: Value, *values: Value) -> Value:
    if not callable(closure):
        raise RuntimeFault(f"expected a function to call, got {type(closure).__name__}")
    return closure(*values)


def _call_tir_dyn(function: Callable[..., Value], *values: Value) -> Value:
    """The last argument is a shape that holds the kernel's scalars."""
    return function(*values[:-1], *expect(values[-1], tuple))


def _spread(function: Callable[..., Value]) -> Callable[..., Value]:
    """The form of an operator whose two arguments are a function and a tuple of its arguments."""

    def form(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
        first, values = [interpreter.evaluate(argument, frame) for argument in call.args[:2]]
        return function(first, *expect(values, tuple))

    return form


def _by_name(name: str) -> Callable[..., Value]:
    """A form that calls the registered function ``vm.builtin.<name>``."""

    def form(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
        values = [interpreter.evaluate(argument, frame) for argument in call.args]
        return call_packed(f"vm.builtin.{name}", values)

    return form


def _nothing(_interpreter: Evaluator, _call: Call, _frame: Frame) -> Value:
    return ()


def _same(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
    return interpreter.evaluate(call.args[0], frame)


def _alloc_tensor(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
    shape = interpreter.evaluate(call.args[0], frame)
    return np.zeros(expect(shape, tuple), DataType(expect(call.args[1], DataTypeImm).value).numpy)


def _effect(name: str) -> Callable[..., Value]:
    """The form of ``print`` and ``assert_op``, which may take arrays as well as numbers."""

    def form(interpreter: Evaluator, call: Call, frame: Frame) -> Value:
        if name == "print":
            interpreter.refuse(call.op.name)
        values = [interpreter.evaluate(argument, frame) for argument in call.args]
        if name == "assert_op" and isinstance(values[0], np.ndarray):
            values[0] = bool(values[0])
        return BUILTINS[name](*values)

    return form


FORMS: dict[str, Callable[[Evaluator, Call, Frame], Value]] = {
    "relax.assert_op": _effect("assert_op"),
    "relax.builtin.alloc_tensor": _alloc_tensor,
    "relax.builtin.stop_lift_params": _same,
    "relax.call_builtin_with_ctx": _call_with_context,
    "relax.call_dps_packed": _call_dps_packed,
    "relax.call_inplace_packed": _call_pure_packed,
    "relax.call_pure_packed": _call_pure_packed,
    "relax.call_tir": _call_tir,
    "relax.call_tir_inplace": _call_tir_inplace,
    "relax.call_tir_with_grad": _call_tir,
    "relax.hint_on_device": _same,
    "relax.invoke_closure": _spread(_invoke_closure),
    "relax.invoke_pure_closure": _spread(_invoke_closure),
    "relax.make_closure": _spread(_make_closure),
    "relax.memory.alloc_storage": _by_name("alloc_storage"),
    "relax.memory.alloc_tensor": _by_name("alloc_tensor"),
    "relax.memory.ensure_zero_offset": _same,
    "relax.memory.kill_storage": _nothing,
    "relax.memory.kill_tensor": _nothing,
    "relax.memory.view": _by_name("view"),
    "relax.null_value": lambda _interpreter, _call, _frame: None,
    "relax.print": _effect("print"),
    "relax.shape_of": _by_name("shape_of"),
    "relax.shape_to_tensor": _by_name("shape_to_tensor"),
    "relax.tensor_to_shape": _by_name("tensor_to_shape"),
    "relax.to_vdevice": _same,
    "relax.vm.alloc_storage": _by_name("alloc_storage"),
    "relax.vm.alloc_tensor": _by_name("alloc_tensor"),
    "relax.vm.call_tir_dyn": _spread(_call_tir_dyn),
    "relax.vm.kill_object": _nothing,
}
"""Operator -> its form."""

LIBRARY: dict[str, Callable[..., Value]] = {
    "vm.builtin.call_tir_dyn": _call_tir_dyn,
    "vm.builtin.invoke_closure": _invoke_closure,
    "vm.builtin.make_closure": _make_closure,
}
"""Built-in functions of the virtual machine that call functions of the module."""
