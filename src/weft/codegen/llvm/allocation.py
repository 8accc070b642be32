"""Allocations: small ones of constant size on the stack, others on the heap."""

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

    Functions that call themselves annotate theirs with ``weft.on_heap``, to spare the stack.
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
    if is_small and ON_HEAP not in stmt.annotations:
        em.b.stack_bytes += nbytes
        kind = memory_type(stmt.dtype)
        align = _ALIGN if nbytes >= _ALIGN else 16
        pointer = em.b.alloca(f"[{max(count, 1)} x {kind}], align {align}")
        em.bind(stmt.buffer_var, Binding(pointer))
        em.statement(stmt.body)
        return
    pointer = _heap(em, stmt)
    em.bind(stmt.buffer_var, Binding(pointer))
    em.b.hold(pointer)
    em.statement(stmt.body)
    em.b.release()


def _heap(em: Emitter, stmt: Allocate) -> str:
    """The address of heap memory, aligned to 64 bytes; a fault where there is not enough."""
    size = str(element_bytes(stmt.dtype) * stmt.dtype.lanes)
    for extent in stmt.extents:
        size = memory.times(em, size, em.index(extent))
    if size[0] != "%" and int(size) >= LARGEST_MEMORY:
        raise CodegenError(
            f"{em.function.name}: expected buffers of less than 2**47 bytes, "
            f"{stmt.buffer_var.name} has {size}"
        )
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
