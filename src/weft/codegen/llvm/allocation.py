"""Allocations: small ones on the stack, others on the heap."""

from __future__ import annotations

from typing import Final

from weft.codegen.llvm import memory
from weft.codegen.llvm.context import byte_text
from weft.codegen.llvm.emitter import Binding, Emitter
from weft.codegen.llvm.types import element_bytes, memory_type
from weft.runtime.call.abi import FaultKind
from weft.support.errors import CodegenError
from weft.tir.lowering.building import constant_of
from weft.tir.lowering.exact_sizes import LARGEST_MEMORY
from weft.tir.stmt import Allocate, AllocateConst

STACK_LIMIT: Final = 16 * 1024
"""Bytes of stack buffers in one native frame; what does not fit goes to the heap."""
SMALL: Final = 4 * 1024
"""Bytes of a buffer that LLVM can keep in registers while it is on the stack, as tiles of products
are. These have ``STACK_LIMIT`` bytes of their own: on the heap a tile would stay in memory, and be
allocated in the innermost loops."""
ON_HEAP: Final = "weft.on_heap"
"""The annotation of an allocation that takes heap memory, however small it is."""
_ALIGN: Final = 64


def allocate(em: Emitter, stmt: Allocate) -> None:
    """An Allocate: on the stack if small and constant, else on the heap until its scope ends.

    In a loop, memory whose size only the run tells is on the stack where that is small: a row of a
    softmax takes less time than the heap does. Functions that call themselves annotate theirs with
    ``weft.on_heap``, to spare the stack.
    """
    sizes = [constant_of(extent) for extent in stmt.extents]
    count = 1
    for size in sizes:
        count *= 1 if size is None else size
        if size is not None and size < 0:
            raise CodegenError(
                f"{em.function.name}: expected extents of 0 or more for {stmt.buffer_var.name}, "
                f"got {size}"
            )
    nbytes = count * element_bytes(stmt.dtype) * stmt.dtype.lanes
    limit = 2 * STACK_LIMIT if nbytes <= SMALL else STACK_LIMIT
    is_small = None not in sizes and em.b.stack_bytes + nbytes <= limit
    may_be_on_stack = ON_HEAP not in stmt.annotations
    if is_small and may_be_on_stack:
        em.b.stack_bytes += nbytes
        kind = memory_type(stmt.dtype)
        align = _ALIGN if nbytes >= _ALIGN else 16
        pointer = em.b.alloca(f"[{max(count, 1)} x {kind}], align {align}")
        em.bind(stmt.buffer_var, Binding(pointer))
        em.statement(stmt.body)
        return
    wanted = _bytes(em, stmt)
    has_room = em.b.stack_bytes + SMALL <= STACK_LIMIT
    if None in sizes and em.loops and may_be_on_stack and has_room:
        pointer, held = _stack_or_heap(em, stmt, wanted)
    else:
        pointer = held = _heap(em, stmt, wanted)
    em.bind(stmt.buffer_var, Binding(pointer))
    em.b.hold(held)
    em.statement(stmt.body)
    em.b.release()


def _stack_or_heap(em: Emitter, stmt: Allocate, size: str) -> tuple[str, str]:
    """The address of memory on the stack if that suffices, else on the heap; and what to free."""
    em.b.stack_bytes += SMALL
    room, before = em.b.alloca(f"[{SMALL} x i8], align {_ALIGN}"), em.b.block
    large, ready = em.b.label("large"), em.b.label("ready")
    em.b.branch_if(em.b.op(f"icmp ule i64 {size}, {SMALL}"), ready, large)
    em.b.start(large)
    heap, after = _heap(em, stmt, size), em.b.block
    em.b.branch(ready)
    em.b.start(ready)
    pointer = em.b.phi("ptr", [(room, before), (heap, after)])
    return pointer, em.b.phi("ptr", [("null", before), (heap, after)])


def _bytes(em: Emitter, stmt: Allocate) -> str:
    """How many bytes an Allocate asks for."""
    size = str(element_bytes(stmt.dtype) * stmt.dtype.lanes)
    for extent in stmt.extents:
        size = memory.times(em, size, em.index(extent))
    if size[0] != "%" and int(size) >= LARGEST_MEMORY:
        raise CodegenError(
            f"{em.function.name}: expected buffers of less than 2**47 bytes, "
            f"{stmt.buffer_var.name} has {size}"
        )
    return size


def _heap(em: Emitter, stmt: Allocate, size: str) -> str:
    """The address of heap memory, aligned to 64 bytes; a fault where there is not enough."""
    raised = em.b.op(f"add i64 {size}, {2 * _ALIGN - 1}")
    whole = em.b.op(f"and i64 {raised}, {-_ALIGN}")
    pointer = em.b.call("aligned_alloc", "noalias ptr", [("i64", str(_ALIGN)), ("i64", whole)])
    good = em.b.op(f"icmp ne ptr {pointer}, null")
    text = f"{em.function.name}: cannot allocate {{a}} bytes for {stmt.buffer_var.name}"
    em.b.raise_unless(good, FaultKind.ALLOCATION, text, size)
    return pointer


def allocate_const(em: Emitter, stmt: AllocateConst) -> None:
    """An AllocateConst: its array becomes constant data of the module."""
    data = stmt.data.numpy().tobytes()
    name = "@" + em.context.unique("const")
    em.context.constants.append(
        f"{name} = private unnamed_addr constant [{len(data)} x i8] {byte_text(data)}, align 64"
    )
    em.bind(stmt.buffer_var, Binding(name))
    em.statement(stmt.body)
