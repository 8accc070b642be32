"""Operators in bytecode: one row for each that the virtual machine carries out.

A row is ``(builder, call, register) -> None``: it appends instructions to the builder's code and
leaves the result in the register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from weft.ir.expr import GlobalVar, IntImm, RelaxExpr
from weft.ir.global_info import VDevice
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.expr import Call, DataTypeImm, ExternFunc, ShapeExpr, Tuple
from weft.relax.struct_info import StructInfo, TupleStructInfo
from weft.relax.vm.extents import Symbols
from weft.runtime.vm.bytecode import Instruction, Operand
from weft.support.errors import UnsupportedError
from weft.tir.function import PrimFunc


class Emitter(Protocol):
    """The builder of a function's bytecode, as the rows of operators see it."""

    mod: IRModule
    name: str
    symbols: Symbols
    code: list[Instruction]

    def new_register(self) -> int:
        """A fresh register."""

    def value(self, expr: RelaxExpr) -> Operand:
        """The operand of a leaf expression (others get a register)."""

    def builtin(self, register: int, name: str, *operands: Operand) -> None:
        """Emit a call of a builtin."""

    def allocated(self, info: StructInfo | None) -> Operand:
        """A new tensor of a struct info with a known shape."""

    def destinations(self, call: Call) -> tuple[list[Operand], Operand]:
        """Allocate the outputs of a destination-passing call; their operands, the result's."""

    def shape_operand(self, shape: RelaxExpr) -> Operand:
        """The operand of a shape: extents, or a variable that holds one."""


def _call_tir(builder: Emitter, call: Call, register: int) -> None:
    """``call_tir(kernel, args, tir_vars)``: outputs are allocated and passed last."""
    arguments = _arguments(builder, call.args[1])
    outputs, result = builder.destinations(call)
    scalars = _scalars(builder, call)
    callee = ("kernel", expect(call.args[0], GlobalVar).name_hint)
    builder.code.append(("call", -1, callee, (*arguments, *outputs, *scalars)))
    builder.builtin(register, "identity", result)


def _scalars(builder: Emitter, call: Call) -> list[Operand]:
    """The operands of ``tir_vars``: the kernel's scalar parameters."""
    if len(call.args) < 3:
        return []
    extents = builder.symbols.extents(expect(call.args[2], ShapeExpr).values)
    return [("expr", item) if isinstance(item, str) else ("value", item) for item in extents]


def _call_tir_inplace(builder: Emitter, call: Call, register: int) -> None:
    """Outputs named by ``inplace_indices`` are the arguments themselves; -1: a new tensor.

    A constant of the model is not written: the kernel gets a copy of it.
    """
    arguments = list(_arguments(builder, call.args[1]))
    info = call.sinfo_args[0]
    infos = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
    results, extra = [], []
    for index, item in zip(call.attrs["inplace_indices"], infos, strict=True):
        position = index.value if isinstance(index, IntImm) else int(index)
        if position < 0:
            output = builder.allocated(item)
        else:
            owned = builder.new_register()
            builder.builtin(owned, "detach", arguments[position])
            output = arguments[position] = ("reg", owned)
        results.append(output)
        if position < 0:
            extra.append(output)
    callee = ("kernel", expect(call.args[0], GlobalVar).name_hint)
    builder.code.append(("call", -1, callee, (*arguments, *extra, *_scalars(builder, call))))
    result = ("tuple", tuple(results)) if isinstance(info, TupleStructInfo) else results[0]
    builder.builtin(register, "identity", result)


def _call_dps_packed(builder: Emitter, call: Call, register: int) -> None:
    """A registered function in destination-passing style."""
    arguments = _arguments(builder, call.args[1])
    outputs, result = builder.destinations(call)
    callee = _foreign(builder, call.args[0])
    builder.code.append(("call", -1, callee, (*arguments, *outputs)))
    builder.builtin(register, "identity", result)


def _foreign(builder: Emitter, target: RelaxExpr) -> tuple[str, object]:
    """The callee of an instruction: a registered function, one of the module, or a closure."""
    if isinstance(target, ExternFunc):
        return ("packed", target.global_symbol)
    if isinstance(target, GlobalVar):
        kind = "kernel" if isinstance(builder.mod[target], PrimFunc) else "function"
        return (kind, target.name_hint)
    return ("register", builder.value(target)[1])


def _arguments(builder: Emitter, args: RelaxExpr) -> list[Operand]:
    """The operands of the argument tuple of a destination-passing call."""
    if isinstance(args, Tuple):
        return [builder.value(field) for field in args.fields]
    info = args.struct_info
    if not isinstance(info, TupleStructInfo):
        return [builder.value(args)]
    base, operands = builder.value(args), []
    for index in range(len(info.fields)):
        register = builder.new_register()
        builder.builtin(register, "tuple_getitem", base, ("value", index))
        operands.append(("reg", register))
    return operands


def _pure_packed(builder: Emitter, call: Call, register: int) -> None:
    """``call_pure_packed(function, args...)``."""
    operands = tuple([builder.value(arg) for arg in call.args[1:]])
    builder.code.append(("call", register, _foreign(builder, call.args[0]), operands))
    if call.sinfo_args and len(call.sinfo_args) == 1:
        what = f"{builder.name}: the result of {builder.code[-1][2][1]}"
        pattern = builder.symbols.pattern(call.sinfo_args[0])
        builder.code.append(("match", register, pattern, what))


def _invoke_closure(builder: Emitter, call: Call, register: int) -> None:
    """``invoke_closure(closure, (args...))``."""
    operands = tuple(_arguments(builder, call.args[1]))
    callee = ("register", builder.value(call.args[0])[1])
    builder.code.append(("call", register, callee, operands))


def _make_closure(builder: Emitter, call: Call, register: int) -> None:
    """``make_closure(function, (captured...))``."""
    captured = _arguments(builder, call.args[1])
    name = expect(call.args[0], GlobalVar).name_hint
    builder.builtin(register, "make_closure", ("value", name), *captured)


def _alloc_tensor(builder: Emitter, call: Call, register: int) -> None:
    """``builtin.alloc_tensor(shape, dtype, ...)``."""
    shape = builder.shape_operand(call.args[0])
    has_dtype = len(call.args) > 1
    dtype = expect(call.args[1], DataTypeImm).value if has_dtype else call.attrs["dtype"]
    builder.builtin(register, "alloc_tensor", shape, ("value", str(dtype)))


def _library(name: str) -> Callable[[Emitter, Call, int], None]:
    """A function of weft.runtime.vm.library on the same arguments."""

    def lower(builder: Emitter, call: Call, register: int) -> None:
        operands = tuple([builder.value(arg) for arg in call.args])
        builder.code.append(("call", register, ("packed", f"vm.builtin.{name}"), operands))

    return lower


def _kill(builder: Emitter, call: Call, register: int) -> None:
    """Nothing: the machine lets go of every register after its last use."""


def _with_context(builder: Emitter, call: Call, register: int) -> None:
    """``call_builtin_with_ctx(function, (args...))``: what the machine does with its own state."""
    name = expect(call.args[0], ExternFunc).global_symbol
    lower = MACHINE_FUNCTIONS.get(name)
    if lower is None:
        raise UnsupportedError(
            f"{builder.name}: call_builtin_with_ctx of {name}; there are "
            f"{', '.join(sorted(MACHINE_FUNCTIONS))}"
        )
    lower(builder, expect(call.args[1], Tuple).fields, register)


def _on_named(name: str) -> Callable[[Emitter, Sequence[RelaxExpr], int], None]:
    """A builtin of the name of a function of the module, and of further operands."""

    def lower(builder: Emitter, args: Sequence[RelaxExpr], register: int) -> None:
        operands = [builder.value(arg) for arg in args[1:]]
        builder.builtin(register, name, ("value", expect(args[0], GlobalVar).name_hint), *operands)

    return lower


def _machine_invoke(builder: Emitter, args: Sequence[RelaxExpr], register: int) -> None:
    operands = tuple([builder.value(arg) for arg in args[1:]])
    callee = ("register", builder.value(args[0])[1])
    builder.code.append(("call", register, callee, operands))


def _machine_heap(builder: Emitter, args: Sequence[RelaxExpr], register: int) -> None:
    builder.builtin(register, "alloc_shape_heap", builder.value(args[0]))


def _call_tir_dyn(builder: Emitter, call: Call, register: int) -> None:
    """``vm.call_tir_dyn(kernel, (args..., shape))``: the extents of the shape are scalars."""
    args = [call.args[0], *expect(call.args[1], Tuple).fields]
    _on_named("call_tir_dyn")(builder, args, register)


MACHINE_FUNCTIONS: Final[dict[str, Callable[[Emitter, Sequence[RelaxExpr], int], None]]] = {
    "vm.builtin.alloc_shape_heap": _machine_heap,
    "vm.builtin.call_tir_dyn": _on_named("call_tir_dyn"),
    "vm.builtin.invoke_closure": _machine_invoke,
    "vm.builtin.make_closure": _on_named("make_closure"),
}
"""Library functions that need the machine: its functions, its kernels."""


def _plain(name: str) -> Callable[[Emitter, Call, int], None]:
    def lower(builder: Emitter, call: Call, register: int) -> None:
        builder.builtin(register, name, *[builder.value(arg) for arg in call.args])

    return lower


def _formatted(name: str, place: int) -> Callable[[Emitter, Call, int], None]:
    """A builtin that takes the format, if there is one, as the operand of that place."""

    def lower(builder: Emitter, call: Call, register: int) -> None:
        operands = [builder.value(arg) for arg in call.args]
        if "format" in call.attrs:
            operands.insert(place, ("value", str(call.attrs["format"])))
        builder.builtin(register, name, *operands)

    return lower


def _to_vdevice(builder: Emitter, call: Call, register: int) -> None:
    device = expect(call.attrs["dst_vdevice"], VDevice)
    place = (int(device.target.get_target_device_type()), int(device.vdevice_id))
    operands = (builder.value(call.args[0]), *[("value", item) for item in place])
    builder.code.append(("call", register, ("packed", "vm.builtin.to_device"), operands))


def _hint_on_device(builder: Emitter, call: Call, register: int) -> None:
    builder.builtin(register, "identity", builder.value(call.args[0]))


OPERATORS: Final[dict[str, Callable[[Emitter, Call, int], None]]] = {
    "relax.call_tir": _call_tir,
    "relax.call_tir_with_grad": _call_tir,
    "relax.call_tir_inplace": _call_tir_inplace,
    "relax.call_dps_packed": _call_dps_packed,
    "relax.call_pure_packed": _pure_packed,
    "relax.call_inplace_packed": _pure_packed,
    "relax.invoke_closure": _invoke_closure,
    "relax.invoke_pure_closure": _invoke_closure,
    "relax.make_closure": _make_closure,
    "relax.builtin.alloc_tensor": _alloc_tensor,
    "relax.shape_of": _plain("shape_of"),
    "relax.tensor_to_shape": _plain("tensor_to_shape"),
    "relax.shape_to_tensor": _plain("shape_to_tensor"),
    "relax.null_value": _plain("null_value"),
    "relax.print": _formatted("print", 0),
    "relax.assert_op": _formatted("assert_op", 1),
    "relax.hint_on_device": _hint_on_device,
    "relax.to_vdevice": _to_vdevice,
    "relax.call_builtin_with_ctx": _with_context,
    "relax.memory.alloc_storage": _library("alloc_storage"),
    "relax.memory.alloc_tensor": _library("alloc_tensor"),
    "relax.memory.ensure_zero_offset": _library("ensure_zero_offset"),
    "relax.memory.kill_storage": _kill,
    "relax.memory.kill_tensor": _kill,
    "relax.memory.view": _library("view"),
    "relax.reshape": _library("reshape"),
    "relax.vm.alloc_storage": _library("alloc_storage"),
    "relax.vm.alloc_tensor": _library("alloc_tensor"),
    "relax.vm.call_tir_dyn": _call_tir_dyn,
    "relax.vm.kill_object": _kill,
}
