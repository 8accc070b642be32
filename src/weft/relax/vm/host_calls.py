"""Operators in a host function: one row for each that has a native form.

A row is ``(builder, call, name) -> value``: it adds steps to the builder, and ``name`` is what the
value is called. The twin for bytecode is ``weft.relax.vm.bytecode_calls``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import GlobalVar, IntImm, PrimExpr, RelaxExpr, StringImm
from weft.ir.node import expect
from weft.relax.expr import Call, ExternFunc, ShapeExpr
from weft.relax.expr import StringImm as RelaxStringImm
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.ir.shape_arith import INT64, product
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.relax.transform.memory.assign_offsets import PLAN
from weft.relax.vm.host_body import HostBody
from weft.relax.vm.host_parts import (
    HostValue,
    LocalFunction,
    NotNative,
    Shape,
    packed_call,
)
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, DeclBuffer, For, ForKind, IfThenElse, Stmt, seq

RESHAPE_INTO: Final = "vm.builtin.reshape_into"
"""The registered function that compares numbers of elements and copies: a host copies itself."""


def _call_tir(builder: HostBody, call: Call, name: str) -> HostValue:
    """Call a kernel: inputs, outputs, scalars, then its implicit symbols."""
    callee = expect(call.args[0], GlobalVar)
    kernel = builder.mod[callee]
    if not isinstance(kernel, PrimFunc):
        raise NotNative(f"call_tir of {callee.name_hint}, which is no PrimFunc")
    inputs = _arguments(builder, call.args[1])
    result = builder.allocated(call.sinfo_args[0], name)
    outputs = result if isinstance(result, list) else [result]
    builder.kernel_call(callee, kernel, [*inputs, *outputs, *_scalars(builder, call)])
    return result


def _scalars(builder: HostBody, call: Call) -> list[PrimExpr]:
    """``tir_vars``: the kernel's scalar parameters."""
    if len(call.args) < 3:
        return []
    return builder.resolved(expect(call.args[2], ShapeExpr).values)


def _call_tir_inplace(builder: HostBody, call: Call, name: str) -> HostValue:
    """As ``call_tir``, but an output with an index is that argument, or a copy of a constant."""
    inputs, info = _arguments(builder, call.args[1]), call.sinfo_args[0]
    infos = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
    outputs: list[HostValue] = []
    fresh: list[HostValue] = []
    for place, item in zip(call.attrs["inplace_indices"], infos, strict=True):
        index = int(place)
        if index < 0:
            fresh.append(builder.allocated(item, name))
            outputs.append(fresh[-1])
            continue
        given = expect(inputs[index], Buffer)
        root = builder.rooted([given])[0]
        if any(root is constant for _, constant in builder.state.constants):
            inputs[index] = builder.copied(given)
        outputs.append(inputs[index])
    passed = [*inputs, *fresh, *_scalars(builder, call)]
    callee = expect(call.args[0], GlobalVar)
    builder.kernel_call(callee, expect(builder.mod[callee], PrimFunc), passed)
    return outputs if isinstance(info, TupleStructInfo) else outputs[0]


def _call_dps_packed(builder: HostBody, call: Call, name: str) -> HostValue:
    """Call a registered function on inputs and outputs."""
    if not isinstance(call.args[0], ExternFunc):
        raise NotNative("call_dps_packed of a value")
    inputs = _arguments(builder, call.args[1])
    result = builder.allocated(call.sinfo_args[0], name)
    outputs = result if isinstance(result, list) else [result]
    passed = [*inputs, *outputs]
    called = packed_call(call.args[0].global_symbol, passed)
    if is_checked_reshape(call):
        source, target = [expect(item, Buffer) for item in passed]
        builder.step(_reshaped(source, target, called), passed)
    else:
        builder.step(called, passed)
    return result


def is_checked_reshape(call: Call) -> bool:
    """Whether a call copies to a shape that is not proved to hold as many elements."""
    callee = call.args[0] if call.args else None
    return isinstance(callee, ExternFunc) and callee.global_symbol == RESHAPE_INTO


def _reshaped(source: Buffer, target: Buffer, refused: Stmt) -> Stmt:
    """Copy the elements in order; ``refused`` runs where the numbers of elements differ."""
    size, wanted = product(source.shape), product(target.shape)
    flat = [
        decl_buffer([size], buffer.dtype, f"{buffer.name}_flat", data=buffer.data)
        for buffer in (source, target)
    ]
    i = TirVar("i", INT64)
    copy: Stmt = BufferStore(flat[1], flat[0][i], [i])
    copy = For(i, IntImm(INT64, 0), size, ForKind.SERIAL, copy)
    for buffer in flat:
        copy = DeclBuffer(buffer, copy)
    return IfThenElse(op.equal(size, wanted), copy, refused)


def _arguments(builder: HostBody, args: RelaxExpr) -> list[Buffer | PrimExpr]:
    """The arguments of a destination-passing call."""
    value = builder.value(args)
    arguments: list[Buffer | PrimExpr] = []
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, Buffer | PrimExpr):
            raise NotNative("an argument of a kernel that is no tensor or number")
        arguments.append(item)
    return arguments


def _allocated(builder: HostBody, call: Call, name: str) -> HostValue:
    return builder.allocated(call.struct_info, name)


def _nothing(builder: HostBody, call: Call, name: str) -> HostValue:
    return []


def call_packed(
    builder: HostBody, target: RelaxExpr, args: Sequence[RelaxExpr], call: Call, name: str
) -> HostValue:
    """A registered function that returns tensors: the machine copies them to where they belong."""
    if not isinstance(target, ExternFunc):
        raise NotNative("a call of an object or of a function that returns one")
    symbol, infos = str(target.global_symbol), list(call.sinfo_args)
    if symbol == PLAN:  # AssignOffsets; the host places tensors itself
        return Shape([IntImm(INT64, 0)] * call.struct_info.ndim)
    if symbol.startswith("vm.builtin.") or len(infos) != 1:
        raise NotNative(f"the call of {symbol} runs as bytecode")
    symbols, used = builder.symbols, symbolic_vars(infos[0])
    if any(var not in symbols.known for var in used):
        raise NotNative(f"the result of {symbol} defines symbols")
    passed = _printed(builder, args)
    result = builder.allocated(infos[0], name)
    outputs = _tensors(result)
    known = dict.fromkeys(used)
    pattern = symbols.names.pattern(infos[0])
    names = [symbols.names.name(var) for var in known]
    what = f"{symbols.label}: the result of {symbol}"
    text = StringImm(json.dumps([symbol, what, pattern, names, len(outputs)]))
    numbers = [op.cast(INT64, value) for value in symbols.resolved(known)]
    builder.step(
        packed_call("vm.builtin.call_into", [text, *numbers, *passed, *outputs]),
        [*passed, *outputs],
    )
    return result


def _tensors(value: HostValue) -> list[Buffer]:
    if isinstance(value, list):
        return [tensor for item in value for tensor in _tensors(item)]
    return [expect(value, Buffer)]


def _call_pure_packed(builder: HostBody, call: Call, name: str) -> HostValue:
    return call_packed(builder, call.args[0], call.args[1:], call, name)


def _shape_of(builder: HostBody, call: Call, name: str) -> Shape:
    value = builder.value(call.args[0])
    if not isinstance(value, Buffer):
        raise NotNative("shape_of a value that is no tensor")
    return Shape(list(value.shape))


def _shape_to_tensor(builder: HostBody, call: Call, name: str) -> HostValue:
    shape = builder.value(call.args[0])
    if not isinstance(shape, Shape):
        raise NotNative("shape_to_tensor of a value that is no shape")
    extents = [op.cast(INT64, extent) for extent in shape.values]
    tensor = builder.new_tensor(TensorStructInfo([len(extents)], "int64"), name)
    stores = [
        BufferStore(tensor, extent, [IntImm(INT64, axis)]) for axis, extent in enumerate(extents)
    ]
    if stores:
        builder.step(seq(*stores), [tensor])
    return tensor


def _print(builder: HostBody, call: Call, name: str) -> HostValue:
    """``print`` is the machine's, called with the values."""
    passed = _printed(builder, call.args)
    builder.step(packed_call("vm.builtin.print", passed), passed)
    return []


def _assert(builder: HostBody, call: Call, name: str) -> HostValue:
    """An ``if`` around a call of the machine's ``assert_op``, which raises the error."""
    condition = builder.value(call.args[0])
    passed = _printed(builder, call.args[1:])
    used = [condition, *passed]
    if isinstance(condition, Buffer):
        if condition.shape:
            raise NotNative("a condition that is no scalar")
        condition = expect(condition[()], BufferLoad)
    if not isinstance(condition, PrimExpr):
        raise NotNative("a condition that is no scalar")
    failed = packed_call("vm.builtin.assert_op", [op.const(False, "bool"), *passed])
    builder.step(IfThenElse(op.logical_not(op.cast("bool", condition)), failed), used)
    return []


def _printed(builder: HostBody, args: Sequence[RelaxExpr]) -> list[Buffer | PrimExpr]:
    """What Python gets for arguments of a graph: tensors, numbers and texts."""
    passed: list[Buffer | PrimExpr] = []
    for arg in args:
        value = StringImm(arg.value) if isinstance(arg, RelaxStringImm) else builder.value(arg)
        if not isinstance(value, Buffer | PrimExpr):
            raise NotNative("a tuple or a shape that Python gets")
        passed.append(value)
    return passed


def _invoke_closure(builder: HostBody, call: Call, name: str) -> HostValue:
    function = builder.value(call.args[0])
    return builder.enter(function, _fields(builder, call.args[1]))


def _make_closure(builder: HostBody, call: Call, name: str) -> LocalFunction:
    closure = builder.global_function(expect(call.args[0], GlobalVar))
    captured = _fields(builder, call.args[1])
    return LocalFunction(closure.function, closure.label, {}, {}, captured)


def _fields(builder: HostBody, arg: RelaxExpr) -> list[HostValue]:
    field = builder.value(arg)
    return field if isinstance(field, list) else [field]


HOST_OPERATORS: Final[dict[str, Callable[[HostBody, Call, str], HostValue]]] = {
    "relax.assert_op": _assert,
    "relax.builtin.alloc_tensor": _allocated,
    "relax.call_dps_packed": _call_dps_packed,
    "relax.call_inplace_packed": _call_pure_packed,
    "relax.call_pure_packed": _call_pure_packed,
    "relax.call_tir": _call_tir,
    "relax.call_tir_inplace": _call_tir_inplace,
    "relax.invoke_closure": _invoke_closure,
    "relax.invoke_pure_closure": _invoke_closure,
    "relax.make_closure": _make_closure,
    "relax.memory.alloc_storage": _nothing,  # the host places tensors itself,
    "relax.memory.alloc_tensor": _allocated,  # whatever storage was planned
    "relax.memory.kill_storage": _nothing,
    "relax.memory.kill_tensor": _nothing,
    "relax.print": _print,
    "relax.reshape": lambda builder, call, name: builder.view(
        builder.value(call.args[0]), call.struct_info, name
    ),
    "relax.shape_of": _shape_of,
    "relax.shape_to_tensor": _shape_to_tensor,
}
