"""Tests of the arguments with which one PrimFunc of a module calls another.

The arrays that Python passes are checked by the wrapper around a function. A call within the module
goes past it. So the memory behind each argument is compared with what the callee accesses, and the
arguments of a callee that promises ``tir.noalias`` are compared with each other. Raw handles, whose
memory is not known, are only tested to be addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.node import Node, expect
from weft.tir import expr as e
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.intrinsic import reinterpret
from weft.tir.lowering.building import either, wide
from weft.tir.lowering.effects import effects_of, has_noalias
from weft.tir.lowering.exact_sizes import Sizes, Test
from weft.tir.lowering.layouts import Layout, bytes_of, layout_of
from weft.tir.lowering.view_tests import whole_reach
from weft.tir.stmt_functor import substitute


@dataclass(frozen=True, eq=False)
class Argument:
    """A buffer of the callee, and what it is to the caller."""

    buffer: Buffer
    data: e.Var
    """The caller's pointer to the memory that is passed."""
    layout: Layout
    """Where the elements of ``buffer`` lie in that memory, in expressions of the caller."""


def arguments_of(
    callee: PrimFunc, args: Sequence[Node], memory_of: Callable[[e.Var], Layout | None]
) -> list[Argument]:
    """The buffers of a callee for which the caller passes memory of a known size."""
    symbols = (*callee.params, *implicit_symbols(callee))
    meaning = {
        var: op.cast(var.dtype, arg)
        for var, arg in zip(symbols, args, strict=True)
        if not var.dtype.is_handle and isinstance(arg, PrimExpr)
    }
    arguments = []
    for param, arg in zip(callee.params, args, strict=False):
        buffer = callee.buffer_map.get(param)
        start = None if buffer is None else _start(arg)
        if buffer is None or start is None or memory_of(start[0]) is None:
            continue
        data, offsets, unit = start
        arguments.append(Argument(buffer, data, _layout(buffer, meaning, offsets, unit)))
    return arguments


def raw_pointers(
    callee: PrimFunc, args: Sequence[Node], is_raw: Callable[[e.Var], bool]
) -> list[e.Var]:
    """The raw pointers that the caller passes on as memory of buffers of a callee."""
    pointers = []
    for param, arg in zip(callee.params, args, strict=False):
        if is_call(arg, "tvm_access_ptr"):
            arg = arg.args[1]
        if param in callee.buffer_map and isinstance(arg, e.Var) and is_raw(arg):
            pointers.append(arg)
    return pointers


def overlap_tests(
    callee: PrimFunc,
    name: str,
    arguments: Sequence[Argument],
    may_alias: Callable[[e.Var, e.Var], bool],
) -> list[Test]:
    """Tests that no two arguments overlap of which the callee writes one.

    None for a callee without ``tir.noalias``, and for arguments that cannot overlap.
    """
    if not has_noalias(callee):
        return []
    pairs = [
        (argument, other)
        for position, argument in enumerate(arguments)
        for other in arguments[:position]
        if may_alias(argument.data, other.data)
    ]
    if not pairs:
        return []
    effects = effects_of(callee)
    written = effects.written | effects.unknown
    return [
        _apart(argument, other, name)
        for argument, other in pairs
        if {id(argument.buffer.data), id(other.buffer.data)} & written
    ]


def _start(arg: Node) -> tuple[e.Var, tuple[PrimExpr, ...], int] | None:
    """The pointer that an argument is made of, the offset in it (a sum of parts), and how many
    bytes an element of the offset has; None for what is no pointer.
    """
    if isinstance(arg, Buffer):
        layout = layout_of(arg)
        return arg.data, layout.offsets, layout.nbytes
    if isinstance(arg, e.Var) and arg.dtype.is_handle:
        return arg, (), 1
    if isinstance(arg, BufferLoad):
        return arg.buffer.data, _offsets_of(arg), bytes_of(arg.buffer.dtype)
    if is_call(arg, "address_of"):
        return _start(arg.args[0])
    if is_call(arg, "tvm_access_ptr"):
        sample, data, offset = arg.args[:3]
        return expect(data, e.Var), (offset,), bytes_of(sample.dtype)
    return None


def _offsets_of(load: BufferLoad) -> tuple[PrimExpr, ...]:
    """The offset of ``A[i, j]``, whose address is passed, in parts: one for each axis, as int64.

    The element is not read, so that its indices may lie outside their axes, and products may wrap.
    """
    buffer = load.buffer
    strides = [wide(stride) for stride in buffer.strides]
    if not strides:
        step: PrimExpr = IntImm("int64", 1)
        for extent in reversed(buffer.shape):
            strides.insert(0, step)
            step = step * wide(extent)
    parts = [wide(index) * step for index, step in zip(load.indices, strides, strict=True)]
    return (*layout_of(buffer).offsets, *parts)


def _layout(
    buffer: Buffer, meaning: Mapping[e.Var, PrimExpr], offsets: tuple[PrimExpr, ...], unit: int
) -> Layout:
    """The layout of the callee's buffer in expressions of the caller.

    It counts elements; where the offset counts elements of another size, it counts bytes.
    """
    own = layout_of(buffer)
    shape, strides, starts = [
        tuple([substitute(term, meaning) for term in terms])
        for terms in (own.shape, own.strides, own.offsets)
    ]
    if not offsets or unit == own.nbytes:
        return Layout(shape, strides, (*offsets, *starts), own.nbytes, True)
    size = IntImm("int64", own.nbytes)
    steps = tuple([wide(stride) * size for stride in strides])
    in_bytes = [wide(start) * IntImm("int64", unit) for start in offsets]
    in_bytes += [wide(start) * size for start in starts]
    of_elements = (IntImm("int64", 1),) if strides else ()
    return Layout((*shape, size), (*steps, *of_elements), tuple(in_bytes), 1, True)


def _apart(argument: Argument, other: Argument, name: str) -> Test:
    """The test that one argument ends before the other one begins."""
    sizes = Sizes()
    (first, last), (begin, end) = _ends(sizes, argument), _ends(sizes, other)
    sizes.need(either(e.LE(last, begin), e.LE(end, first)))
    text = (
        f"{name} promises tir.noalias, but its arguments {other.buffer.name} and "
        f"{argument.buffer.name} overlap; pass a copy, or leave the promise out"
    )
    return sizes.test("index", text)


def _ends(sizes: Sizes, argument: Argument) -> tuple[PrimExpr, PrimExpr]:
    """The addresses of an argument's first byte and of the byte behind its last."""
    address = reinterpret("int64", argument.data)
    # Conditions on these sizes are left out: the test that the argument lies within its memory,
    # which runs before, has them.
    low, high = whole_reach(Sizes(sizes.names), argument.layout)
    return address + low, address + high
