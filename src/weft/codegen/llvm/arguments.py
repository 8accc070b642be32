"""Arguments of calls between the functions of a module: memory that the callee fits in.

A caller from Python has its arrays checked by the wrapper; a PrimFunc that calls another does not.
Here the memory behind each argument is compared with what the callee reaches, and two arguments of
a callee that promises ``tir.noalias`` are compared with each other. Raw handles are trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.codegen.llvm import views
from weft.ir.expr import IntImm, PrimExpr
from weft.runtime.call.abi import FaultKind
from weft.tir import expr as e
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.lowering.layouts import Layout, bytes_of, layout_of
from weft.tir.stmt_functor import substitute

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter
    from weft.codegen.llvm.signature import Signature


@dataclass(frozen=True, eq=False)
class _Given:
    """What the callee reaches from an argument: a layout over the caller's data."""

    name: str
    data: Any
    layout: Layout
    is_written: bool


def check(em: Emitter, signature: Signature, args: Any, name: str) -> None:
    """Test the arguments of a call."""
    if not em.context.checks:
        return
    symbols = (*signature.params, *signature.implicit)
    meaning = {
        var: op.cast(var.dtype, arg)
        for var, arg in zip(symbols, args, strict=True)
        if isinstance(var, e.Var) and not var.dtype.is_handle
    }
    given = []
    for position, buffer in enumerate(signature.buffers):
        if buffer is None:
            continue
        start = _start(args[position])
        if start is None or id(start[0]) not in em.function.memory:
            continue
        data, offsets, unit = start
        layout = _layout(buffer, meaning, offsets, unit)
        what = f"{em.function.name}: {name}: argument {buffer.name}"
        views.fits(em, layout, em.function.memory[id(data)], what)
        is_written = signature.spec.params[position].is_output is not False
        given.append(_Given(buffer.name, data, layout, is_written))
    if signature.noalias:
        _check_apart(em, given, name)


def _start(arg: Any) -> tuple[Any, tuple[PrimExpr, ...], int] | None:
    """The data of an argument, where it starts, and in elements of how many bytes; else None."""
    if isinstance(arg, Buffer):
        layout = layout_of(arg)
        return arg.data, layout.offsets, layout.nbytes
    if isinstance(arg, e.Var) and arg.dtype.is_handle:
        return arg, (), 1
    name = getattr(getattr(arg, "op", None), "name", "")
    if name == "tir.address_of":
        return _start(arg.args[0])
    if name == "tir.tvm_access_ptr":
        return arg.args[1], (arg.args[2],), bytes_of(arg.args[0].dtype)
    if isinstance(arg, e.BufferLoad):
        return arg.buffer.data, _offsets_of(arg), bytes_of(arg.buffer.dtype)
    return None


def _offsets_of(load: e.BufferLoad) -> tuple[PrimExpr, ...]:
    """The offset of an element in parts, one for each axis, in 64 bits as its address has it.

    No index is tested against its axis, so that products may wrap here that do not where elements
    are read.
    """
    buffer = load.buffer
    strides = [_wide(stride) for stride in buffer.strides]
    if not strides:
        step: PrimExpr = IntImm("int64", 1)
        for extent in reversed(buffer.shape):
            strides.insert(0, step)
            step = step * _wide(extent)
    parts = [_wide(index) * step for index, step in zip(load.indices, strides, strict=True)]
    return (*layout_of(buffer).offsets, *parts)


def _layout(
    buffer: Buffer, meaning: Any, offsets: tuple[PrimExpr, ...], unit: int
) -> Layout:
    """The callee's buffer in the caller's terms; in bytes where an offset counts other elements."""
    own = layout_of(buffer)
    replaced = [
        tuple([substitute(term, meaning) for term in terms])
        for terms in (own.shape, own.strides, own.offsets)
    ]
    shape, strides, starts = replaced
    if not offsets or unit == own.nbytes:
        return Layout(shape, strides, (*offsets, *starts), own.nbytes, True)
    size = IntImm("int64", own.nbytes)
    steps = tuple([_wide(stride) * size for stride in strides])
    in_bytes = [_wide(start) * IntImm("int64", unit) for start in offsets]
    in_bytes += [_wide(start) * size for start in starts]
    of_elements = (IntImm("int64", 1),) if strides else ()
    return Layout((*shape, size), (*steps, *of_elements), tuple(in_bytes), 1, True)


def _wide(expr: PrimExpr) -> PrimExpr:
    return op.cast("int64", expr)


def _check_apart(em: Emitter, given: list[_Given], name: str) -> None:
    """The memory of two arguments, of which one is written, must not overlap."""
    for position, first in enumerate(given):
        for other in given[:position]:
            is_written = first.is_written or other.is_written
            if is_written and not _are_apart(em, first.data, other.data):
                _test_apart(em, first, other, name)


def _are_apart(em: Emitter, first: Any, other: Any) -> bool:
    """Whether two data variables are known to be different memory."""
    parameters = em.function.parameters
    if first is other:
        return False
    return em.function.noalias or id(first) not in parameters or id(other) not in parameters


def _test_apart(em: Emitter, argument: _Given, other: _Given, name: str) -> None:
    b = em.b
    first, last = _ends(em, argument)
    begin, end = _ends(em, other)
    before = b.op(f"icmp sle i64 {last}, {begin}")
    after = b.op(f"icmp sle i64 {end}, {first}")
    good = b.op(f"or i1 {before}, {after}")
    text = (
        f"{em.function.name}: {name} promises tir.noalias, but its arguments {other.name} and "
        f"{argument.name} overlap; pass a copy, or leave the promise out"
    )
    b.raise_unless(good, FaultKind.INDEX, text)


def _ends(em: Emitter, given: _Given) -> tuple[str, str]:
    """The addresses of the first byte of an argument and of that behind its last."""
    address = em.b.op(f"ptrtoint ptr {em.variable(given.data)} to i64")
    low, high = views.reach_at_run_time(em, given.layout)
    return em.b.op(f"add i64 {address}, {low}"), em.b.op(f"add i64 {address}, {high}")


