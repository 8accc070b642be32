"""Launches: calls that run the body of a parallel loop on several threads.

``OutlineLaunches`` has made a function of the body and ``T.launch(name, service, low, extent,
values...)`` of the loop. A launch is emitted as three things:

- in the caller, a *context*: memory on its stack that holds the captured values, and the call
  ``weft_parallel(part, context, n, -num_cores)`` of the runtime's service;
- ``part(context, begin, end)``, which a thread runs for some of the iterations: it loads the values
  from the context and calls the function with them;
- the function itself, whose parameters they are, so that its pointers can be ``noalias``.

A fault ends the part that it happens in; the service returns the first one's status.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.llvm.context import symbol
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import element_bytes, llvm_type
from weft.ir.expr import PrimExpr, StringImm
from weft.ir.node import expect
from weft.runtime.call.abi import PARALLEL, PARALLEL_BRIEF, TEAM
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import has_noalias

_SERVICES: Final = {"parallel": PARALLEL, "brief": PARALLEL_BRIEF, "team": TEAM}
_SLOT: Final = 64
"""Bytes of the context that a captured value takes; a long vector takes several times as many."""


def is_wide(dtype: DataType) -> bool:
    """Whether a value of that type is passed as i64, in which addresses are computed."""
    return dtype.is_int and dtype.lanes == 1


def captured_type(dtype: DataType) -> str:
    """The LLVM type of a captured value."""
    return "i64" if is_wide(dtype) else llvm_type(dtype)


def launched_header(func: PrimFunc, name: str) -> str:
    """The first line of a launched function, whose parameters are called ``%p0``, ``%p1`` ..."""
    clean = has_noalias(func)
    parameters = []
    for position, param in enumerate(func.params):
        kind = captured_type(param.dtype)
        parameters.append(f"{kind}{' noalias' if clean and kind == 'ptr' else ''} %p{position}")
    return f"define internal i32 {symbol(name)}({', '.join(parameters)}) noinline #0"


def launch(em: Emitter, call: e.Call) -> str:
    """Emit a ``T.launch``: the context, the part, and the call of the service."""
    _, _, low, extent, *captured = call.args
    name, service = (expect(text, StringImm).value for text in call.args[:2])
    context = em.context
    context.functions.append(_part_function([value.dtype for value in captured], name))
    frame, count = _frame(em, captured, em.index(low)), em.index(extent)
    part = symbol(name + ".part")
    args = [("ptr", part), ("ptr", frame), ("i64", count), ("i32", str(-context.num_cores))]
    em.b.check_code(em.b.call(_SERVICES[service], "i32", args))
    return "0"


def _places(types: Sequence[DataType]) -> tuple[list[int], int]:
    """The offset in bytes of each captured value in the context, and the context's size.

    At offset 0 stands the loop's lower bound.
    """
    places, size = [], _SLOT
    for dtype in types:
        places.append(size)
        nbytes = 8 if dtype.is_handle else element_bytes(dtype) * dtype.lanes
        size += -(-max(nbytes, 8) // _SLOT) * _SLOT
    return places, size


def _part_function(types: Sequence[DataType], name: str) -> str:
    """The text of ``part``: load everything from the context and call the launched function."""
    places, _ = _places(types)
    lines = [
        "  %low = load i64, ptr %context",
        "  %from = add i64 %low, %begin",
        "  %to = add i64 %low, %end",
    ]
    args = []
    for position, (dtype, place) in enumerate(zip(types, places, strict=True)):
        kind = captured_type(dtype)
        lines.append(f"  %at{position} = getelementptr i8, ptr %context, i64 {place}")
        lines.append(f"  %arg{position} = load {kind}, ptr %at{position}, align {_SLOT}")
        args.append(f"{kind} %arg{position}")
    call = ", ".join([*args, "i64 %from", "i64 %to"])
    lines += [f"  %code = call i32 {symbol(name)}({call})", "  ret i32 %code"]
    header = f"define internal i32 {symbol(name + '.part')}(ptr %context, i64 %begin, i64 %end) #0"
    return "\n".join([f"{header} {{", *lines, "}"])


def _frame(em: Emitter, captured: Sequence[PrimExpr], low: str) -> str:
    """The address of the context, on the caller's stack, with the values stored in it."""
    places, size = _places([value.dtype for value in captured])
    frame = em.b.alloca(f"[{size} x i8], align {_SLOT}")
    em.b.do(f"store i64 {low}, ptr {frame}")
    for value, place in zip(captured, places, strict=True):
        operand = em.index(value) if is_wide(value.dtype) else em.value(value)
        at = em.b.op(f"getelementptr i8, ptr {frame}, i64 {place}")
        em.b.do(f"store {captured_type(value.dtype)} {operand}, ptr {at}, align {_SLOT}")
    return frame
