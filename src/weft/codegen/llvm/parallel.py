"""Parallel loops: the body becomes a function of its own, called once for each part of the range.

``weft_parallel(part, context, n, -num_cores)`` runs ``part(context, begin, end)``; ``part`` unpacks
the captured values from the context and calls the body function with them as parameters, so that
pointers keep their ``noalias``. A fault in a part ends the part; the region returns the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.codegen.llvm.context import symbol
from weft.codegen.llvm.types import element_bytes, llvm_type
from weft.codegen.llvm.work import BRIEF_WORK, FOREIGN, cycles_of, smallest_work
from weft.ir.expr import GlobalVar, IntImm
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.runtime.call.abi import PARALLEL, PARALLEL_BRIEF, TEAM
from weft.tir import expr as e
from weft.tir import stmt as s

if TYPE_CHECKING:
    from weft.codegen.llvm.context import ModuleContext
    from weft.codegen.llvm.emitter import Emitter
    from weft.tir.function import PrimFunc

_PARALLEL: Final = s.ForKind.PARALLEL
_SLOT: Final = 64
"""Bytes from one captured value in the context to the next; a long vector takes several."""


def worthwhile(em: Emitter, stmt: Any) -> bool:
    """Whether the loop is to run in parallel: not nested in another, and not too small."""
    if em.parent is not None or em.context.num_cores == 1:
        return False
    if isinstance(stmt.extent, IntImm) and stmt.extent.value <= 1:
        return False
    return cycles_of(stmt, em.context.vector_bits) >= smallest_work(stmt)


def calls_in(stmt: Any) -> list[Any]:
    """Every call of an intrinsic below a statement."""
    return [call for call in collect(stmt, e.Call) if isinstance(call.op, Op)]


def leads_team(context: ModuleContext, func: PrimFunc) -> bool:
    """Whether a function starts several parallel loops, by calls of functions emitted before.

    One that calls Python is none: a library that is called there may have threads of its own.
    """
    calls = collect(func.body, e.Call)
    if any(isinstance(call.op, Op) and call.op.name.endswith(FOREIGN) for call in calls):
        return False
    names = [call.op.name_hint for call in calls if isinstance(call.op, GlobalVar)]
    return sum(name in context.forking for name in names) > 1


def emit_in_team(em: Emitter, body: Any) -> None:
    """A body whose parallel loops share the threads of one region."""
    once = s.For(e.Var("once", "int64"), IntImm("int64", 0), IntImm("int64", 1), _PARALLEL, body)
    _emit(em, once, TEAM)


def emit(em: Emitter, stmt: Any) -> None:
    """The body function, the part function, and the call that runs it in parallel."""
    is_brief = cycles_of(stmt, em.context.vector_bits) < BRIEF_WORK
    _emit(em, stmt, PARALLEL_BRIEF if is_brief else PARALLEL)


def _emit(em: Emitter, stmt: Any, service: str) -> None:
    em.tables.bind_loop(em, stmt)
    low, extent = em.index(stmt.min), em.index(stmt.extent)
    inner = em.tables.emitter(em.context, em.function, em.tables, em)
    em.tables.counted(inner, stmt, ("%begin", "%end"), True)
    captured = list(inner.captured.values())
    name = em.context.unique(f"weft.parallel.{em.function.name}")
    em.context.functions.append(_body_function(em, inner, name))
    em.context.functions.append(_part_function(captured, name))
    frame = _frame(em, captured, low)
    part = symbol(name + ".part")
    args = [("ptr", part), ("ptr", frame), ("i64", extent), ("i32", str(-em.context.num_cores))]
    em.b.check_code(em.b.call(service, "i32", args))
    em.context.forking.add(em.function.name)


def _kind(var: e.Var, inner: Any) -> str:
    return "i64" if inner.wide is not None else llvm_type(var.dtype)


def _operand(inner: Any) -> str:
    return str(inner.wide if inner.wide is not None else inner.value)


def _places(captured: list[Any]) -> tuple[list[int], int]:
    """Where each captured value is in the context, after the loop's lower bound, and its size."""
    places, size = [], _SLOT
    for var, _ in captured:
        places.append(size)
        nbytes = 8 if var.dtype.is_handle else element_bytes(var.dtype) * var.dtype.lanes
        size += -(-max(nbytes, 8) // _SLOT) * _SLOT
    return places, size


def _body_function(em: Emitter, inner: Emitter, name: str) -> str:
    params = []
    for var, binding in inner.captured.values():
        clean = em.function.noalias and not em.function.has_pointer_aliases
        kind = _kind(var, binding)
        params.append(f"{kind}{' noalias' if clean and kind == 'ptr' else ''} {_operand(binding)}")
    header = (
        f"define internal i32 {symbol(name)}({', '.join([*params, 'i64 %begin', 'i64 %end'])}) "
        "noinline #0"
    )
    return inner.b.finish(header)


def _part_function(captured: list[Any], name: str) -> str:
    """Unpack the context: the loop's lower bound first, then the captured values."""
    places, _ = _places(captured)
    lines = [
        "  %low = load i64, ptr %context",
        "  %from = add i64 %low, %begin",
        "  %to = add i64 %low, %end",
    ]
    args = []
    for position, (var, binding) in enumerate(captured):
        kind = _kind(var, binding)
        place = places[position]
        lines.append(f"  %at{position} = getelementptr i8, ptr %context, i64 {place}")
        lines.append(f"  %arg{position} = load {kind}, ptr %at{position}, align {_SLOT}")
        args.append(f"{kind} %arg{position}")
    call = ", ".join([*args, "i64 %from", "i64 %to"])
    lines += [f"  %code = call i32 {symbol(name)}({call})", "  ret i32 %code"]
    header = f"define internal i32 {symbol(name + '.part')}(ptr %context, i64 %begin, i64 %end) #0"
    return "\n".join([f"{header} {{", *lines, "}"])


def _frame(em: Emitter, captured: list[Any], low: str) -> str:
    """The context in the caller's frame."""
    places, size = _places(captured)
    frame = em.b.alloca(f"[{size} x i8], align {_SLOT}")
    em.b.do(f"store i64 {low}, ptr {frame}")
    for position, (var, binding) in enumerate(captured):
        outer = em.binding(var)
        operand = _operand(outer)
        at = em.b.op(f"getelementptr i8, ptr {frame}, i64 {places[position]}")
        em.b.do(f"store {_kind(var, binding)} {operand}, ptr {at}, align {_SLOT}")
    return frame
