"""Calls by the runtime's binary interface (weft.runtime.call.abi), returns, break and continue."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm.convert import convert
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import llvm_type, memory_type
from weft.ir.expr import IntImm, PrimExpr, StringImm
from weft.ir.op import Op
from weft.runtime.call.abi import CALL_PACKED, ValueKind
from weft.support.dtype import DataType
from weft.support.errors import CodegenError, UnsupportedError
from weft.tir import expr as e
from weft.tir.buffer import Buffer, BufferLoad

_VALUE_BYTES = 16
_TENSOR_BYTES = 48


def call_packed(em: Emitter, expr: e.Call) -> str:
    """``tvm_call_packed(name, args...)``: call a function of the runtime's registry by its name.

    The arguments are put into an array of WeftValue on the stack; its last place is for the result.
    """
    has_result = expr.dtype.is_integral or expr.dtype.is_float
    slot = _called(em, expr, has_result)
    return _result(em, slot, expr.dtype) if has_result else "0"


def call_traced(em: Emitter, expr: e.Call) -> str:
    """``tvm_call_trace_packed(name, args...)``: what the function gives, or the last argument.

    The last argument is the value where the function returns None.
    """
    value, text = em.value(expr.args[-1]), llvm_type(expr.dtype)
    slot = _called(em, expr, has_result=True)
    kind = em.b.op(f"load i32, ptr {slot}, align 4")
    is_none = em.b.op(f"icmp eq i32 {kind}, {int(ValueKind.NULL)}")
    result = _result(em, slot, expr.dtype)
    return em.b.op(f"select i1 {is_none}, {text} {value}, {text} {result}")


def _called(em: Emitter, expr: e.Call, has_result: bool) -> str:
    """Emit the call; the address of its result."""
    name, args = expr.args[0], expr.args[1:]
    if not isinstance(name, StringImm):
        raise CodegenError(f"{em.function.name}: call_packed expects the function's name first")
    em.function.calls_packed = True
    slots = em.b.alloca(f"[{_VALUE_BYTES * (len(args) + 1)} x i8], align 16")
    for position, arg in enumerate(args):
        kind, value, text = _packed_value(em, arg)
        _put(em, slots, _VALUE_BYTES * position, "i64", str(int(kind)))
        _put(em, slots, _VALUE_BYTES * position + 8, text, value)
    result = _at(em, slots, _VALUE_BYTES * len(args))
    code = em.b.call(
        CALL_PACKED,
        "i32",
        [
            ("ptr", em.context.string(name.value)),
            ("ptr", slots),
            ("i32", str(len(args))),
            ("ptr", result if has_result else "null"),
        ],
    )
    em.b.check_code(code)
    return result


def _result(em: Emitter, slot: str, dtype: DataType) -> str:
    """The number in a WeftValue, which may be an integer or a float, as ``dtype``."""
    kind = em.b.op(f"load i32, ptr {slot}, align 4")
    payload = em.b.op(f"getelementptr i8, ptr {slot}, i64 8")
    integer = em.b.op(f"load i64, ptr {payload}, align 8")
    floating = em.b.op(f"load double, ptr {payload}, align 8")
    is_float = em.b.op(f"icmp eq i32 {kind}, {int(ValueKind.FLOAT)}")
    from_integer = convert(em.b, integer, DataType("int64"), dtype)
    from_float = convert(em.b, floating, DataType("float64"), dtype)
    text = llvm_type(dtype)
    return em.b.op(f"select i1 {is_float}, {text} {from_float}, {text} {from_integer}")


def _packed_value(em: Emitter, arg: PrimExpr | Buffer) -> tuple[ValueKind, str, str]:
    """What a WeftValue holds for an argument: its kind, the operand, and its LLVM type."""
    if isinstance(arg, StringImm):
        return ValueKind.STRING, em.context.string(arg.value), "ptr"
    if isinstance(arg, Buffer):
        return ValueKind.TENSOR, _buffer_tensor(em, arg), "ptr"
    if isinstance(arg, e.Call) and isinstance(arg.op, Op) and arg.op.name.endswith("make_array"):
        return ValueKind.TENSOR, _array_tensor(em, arg), "ptr"
    dtype = arg.dtype
    value = em.value(arg)
    if dtype.lanes != 1:
        raise UnsupportedError(f"{em.function.name}: a packed call takes no vector ({dtype})")
    if dtype.is_handle:
        return ValueKind.HANDLE, value, "ptr"
    if dtype.is_float:
        return ValueKind.FLOAT, convert(em.b, value, dtype, DataType("float64")), "double"
    kind = ValueKind.BOOL if dtype.is_bool else ValueKind.INT
    return kind, convert(em.b, value, dtype, DataType("int64")), "i64"


def _buffer_tensor(em: Emitter, buffer: Buffer) -> str:
    """The address of a DLTensor that describes a buffer."""
    data = em.variable(buffer.data)
    start = buffer.elem_offset
    offset = em.index(start if start is not None else IntImm(DataType("int32"), 0))
    return _tensor(em, data, buffer.dtype, (buffer.shape, buffer.strides), offset)


def _array_tensor(em: Emitter, call: e.Call) -> str:
    """The address of the DLTensor that ``tvm_stack_make_array`` describes.

    Its arguments: data, shape, strides, number of dimensions, a value of the dtype, elem_offset.
    """
    data, shape, strides, _, sample, offset = call.args
    lists = [list(x.args) if isinstance(x, e.Call) else [] for x in (shape, strides)]
    return _tensor(em, em.value(data), sample.dtype, (lists[0], lists[1]), em.index(offset))


def _tensor(
    em: Emitter,
    data: str,
    dtype: DataType,
    layout: tuple[Sequence[PrimExpr], Sequence[PrimExpr]],
    offset: str,
) -> str:
    """The address of a DLTensor on the stack, whose fields weft.runtime.call.abi lists.

    ``layout`` is its shape and its strides, none where it is compact.
    """
    shape, strides = layout
    header = em.b.alloca(f"[{_TENSOR_BYTES} x i8], align 8")
    if offset != "0":
        data = em.b.op(f"getelementptr {memory_type(dtype)}, ptr {data}, i64 {offset}")
    _put(em, header, 0, "ptr", data)
    _put(em, header, 8, "i32", "1")
    _put(em, header, 12, "i32", "0")
    _put(em, header, 16, "i32", str(len(shape)))
    code = dtype.type_code | dtype.bits << 8 | dtype.lanes << 16
    _put(em, header, 20, "i32", str(code))
    _put(em, header, 24, "ptr", _numbers(em, shape))
    _put(em, header, 32, "ptr", _numbers(em, strides) if len(strides) else "null")
    _put(em, header, 40, "i64", "0")
    return header


def _numbers(em: Emitter, values: Sequence[PrimExpr]) -> str:
    """The address of an array of int64 on the stack; ``null`` for one without elements."""
    if not len(values):
        return "null"
    array = em.b.alloca(f"[{len(values)} x i64], align 8")
    for position, value in enumerate(values):
        _put(em, array, 8 * position, "i64", em.index(value))
    return array


def _at(em: Emitter, base: str, offset: int) -> str:
    return base if offset == 0 else em.b.op(f"getelementptr i8, ptr {base}, i64 {offset}")


def _put(em: Emitter, base: str, offset: int, kind: str, value: str) -> None:
    em.b.do(f"store {kind} {value}, ptr {_at(em, base, offset)}")


# Functions of the same module.


def call_function(em: Emitter, expr: e.Call) -> str:
    """A call of another PrimFunc of the module, by its GlobalVar."""
    return call_by_name(em, expr, expr.op.name_hint, expr.args)


def _first_element(em: Emitter, buffer: Buffer) -> str:
    """The address of a buffer's first element."""
    base, offset = em.variable(buffer.data), buffer.elem_offset
    start = "0" if offset is None else em.index(offset)
    if start == "0":
        return base
    return em.b.op(f"getelementptr {memory_type(buffer.dtype)}, ptr {base}, i64 {start}")


def call_by_name(em: Emitter, expr: e.Call, name: str, args: Sequence[PrimExpr | Buffer]) -> str:
    """The operand of a call of a PrimFunc of the module, with arguments in declared order.

    Buffers, elements of buffers and pointers are passed as pointers. The result comes through a
    place on the stack.
    """
    signature = em.context.signatures.get(name)
    if signature is None:
        raise CodegenError(f"{em.function.name}: the module has no function {name} to call")
    declared, implicit = len(signature.kinds), len(signature.implicit)
    if len(args) != declared + implicit:
        extra = f" and then {implicit} sizes as int64" if implicit else ""
        raise CodegenError(
            f"{em.function.name}: {name} takes {declared} arguments{extra}, got {len(args)}"
        )
    values = []
    kinds = (*signature.kinds, *["i64"] * implicit)
    for kind, arg in zip(kinds, args, strict=True):
        if isinstance(arg, Buffer):
            values.append((kind, _first_element(em, arg)))
            continue
        if isinstance(arg, BufferLoad) and kind == "ptr":
            arg = e.Call(DataType("handle"), "address_of", [arg])
        values.append((kind, em.value(arg)))
    slot = ""
    if signature.ret is not None:
        slot = em.b.alloca(f"{memory_type(signature.ret)}, align 8")
        values.append(("ptr", slot))
    # A call that runs once gains nothing from a copy of its callee, and a host function that holds
    # a copy for each of a model's hundreds of calls takes LLVM minutes.
    inline = "" if em.loops else "noinline"
    em.b.check_code(em.b.call_operand(signature.operand, "i32", values, inline))
    if signature.ret is None:
        return "0"
    loaded = em.b.op(f"load {memory_type(signature.ret)}, ptr {slot}")
    if signature.ret.is_bool:
        loaded = em.b.op(f"icmp ne i8 {loaded}, 0")
    return convert(em.b, loaded, signature.ret, expr.dtype)


# Jumps.


def return_value(em: Emitter, expr: e.Call) -> str:
    """``T.ret(value)``: store the value where the caller wants it and leave with status 0."""
    value: PrimExpr = expr.args[0]
    dtype = em.function.ret_type
    if dtype is None:
        if not isinstance(value, IntImm):
            raise em.internal("T.ret in a function whose return type was not found")
        em.b.exit_with("0")
        return "0"
    operand = convert(em.b, em.value(value), value.dtype, dtype)
    if dtype.is_bool:
        operand = em.b.op(f"zext i1 {operand} to i8")
    em.b.do(f"store {memory_type(dtype)} {operand}, ptr %out")
    em.b.exit_with("0")
    return "0"


def leave_loop(em: Emitter, expr: e.Call) -> str:
    """``break_loop`` and ``continue_loop``: free what the iteration allocated on the heap, then
    jump behind the innermost loop, or to its next iteration.
    """
    if not em.loops:
        raise CodegenError(f"{em.function.name}: {expr.op.name} outside of a loop")
    next_label, exit_label, held = em.loops[-1]
    is_break = expr.op.name.endswith("break_loop")
    if is_break and em.parallel_loops and em.parallel_loops[-1] == len(em.loops):
        raise CodegenError(
            f"{em.function.name}: expected break_loop in a loop whose iterations run in order, it "
            "stands in a parallel loop, whose other iterations may run already; make the loop "
            "serial, or test a condition in its body"
        )
    for item in reversed(em.b.held[held:]):
        em.b.free(item.pointer)
    em.b.branch(exit_label if is_break else next_label)
    return "0"
