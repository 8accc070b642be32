"""Loads and stores.

Offsets are computed in 64 bits. A vector load takes the cheapest form that its index allows::

    A[T.Ramp(i, 1, 8)]      one wide load
    A[T.Ramp(i, -1, 8)]     one wide load, its lanes reversed
    A[T.Ramp(i, 3, 8)]      three wide loads, from which every third lane is picked
    A[T.Ramp(i, 100, 8)]    eight loads of one element
    A[B[T.Ramp(i, 1, 8)]]   a load for each lane (lane_loads), or else a gather

Indices are not tested here: ``weft.tir.lowering.insert_checks`` has written what tests they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.llvm import lane_loads, part_vectors
from weft.codegen.llvm.convert import mangled
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import (
    element_bytes,
    llvm_type,
    memory_type,
    with_lanes,
)
from weft.ir.expr import IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir import expr as e
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.joined_index import walks
from weft.tir.lanes import as_ramp
from weft.tir.lowering.access_tests import index_lanes
from weft.tir.lowering.building import constant_of
from weft.tir.stmt import BufferStore

_I64: Final = DataType("int64")
_SKIPPED: Final = 4
"""The largest stride at which elements are picked out of wide loads."""


def load(em: Emitter, expr: BufferLoad) -> str:
    """The operand of a BufferLoad."""
    buffer, dtype = expr.buffer, expr.dtype
    if index_lanes(expr.indices) == 1:
        return _load_one(em, _pointer(em, buffer, expr.indices), buffer.dtype)
    if buffer.dtype.lanes != 1:
        raise UnsupportedError(
            f"{em.function.name}: a vector index into {buffer.name} of {buffer.dtype} is not "
            "available; index single elements"
        )
    mask = em.value(expr.predicate) if expr.predicate is not None else None
    ramp = as_ramp(expr.indices[-1])
    if mask is None and lane_loads.fits(expr.indices):
        return _load_lanes(em, expr)
    if ramp is None or mask is not None or index_lanes(expr.indices[:-1]) != 1:
        return _gather(em, buffer, expr.indices, dtype, mask, ramp)
    return _load_ramp(em, buffer, expr.indices, ramp, dtype)


def _load_ramp(
    em: Emitter,
    buffer: Buffer,
    indices: Sequence[PrimExpr],
    ramp: tuple[PrimExpr, int],
    dtype: DataType,
) -> str:
    """A load of elements at a constant stride: ``ramp`` is the last index (first element, step)."""
    base, stride = ramp
    lanes = dtype.lanes
    stride *= _last_stride(buffer)
    pointer = _pointer(em, buffer, [*indices[:-1], base])
    if stride == 0:
        return broadcast(em, _load_one(em, pointer, buffer.dtype), dtype)
    if stride == 1 and part_vectors.fits(em, buffer.scope(), dtype):
        return part_vectors.load(em, pointer, dtype)
    if stride in (1, -1):
        return _load_run(em, pointer, dtype, stride)
    if 2 <= stride <= _SKIPPED and lanes >= _SKIPPED and not buffer.dtype.is_bool:
        return _load_strided(em, pointer, dtype, stride)
    places = range(0, lanes * stride, stride)
    return _joined(em, dtype, [step(em, pointer, dtype.element, place) for place in places])


def _load_lanes(em: Emitter, expr: BufferLoad) -> str:
    """A load of one element for each lane; see lane_loads."""
    places = lane_loads.lanes_of(expr.indices, expr.dtype.lanes)
    return _joined(em, expr.dtype, [_pointer(em, expr.buffer, place) for place in places])


def _joined(em: Emitter, dtype: DataType, pointers: list[str]) -> str:
    """The vector of the elements at ``pointers``, each loaded by itself."""
    kind, element, result = memory_type(dtype), memory_type(dtype.element), "poison"
    for lane, pointer in enumerate(pointers):
        value = em.b.op(f"load {element}, ptr {pointer}, align {element_bytes(dtype)}")
        result = em.b.op(f"insertelement {kind} {result}, {element} {value}, i64 {lane}")
    return em.b.op(f"icmp ne {kind} {result}, zeroinitializer") if dtype.is_bool else result


def _load_strided(em: Emitter, pointer: str, dtype: DataType, stride: int) -> str:
    """Every ``stride``-th element, picked out of ``stride`` wide loads.

    Four lanes at stride 2 take the elements 0, 2, 4 and 6. The loads are of 0 to 3 and of 3 to 6:
    the last one ends at the last element wanted, so that none reads behind it. A shuffle takes 0
    and 2 from the first, another one adds 4 and 6 from the second.
    """
    lanes, kind, align = dtype.lanes, memory_type(dtype), element_bytes(dtype)
    last = (lanes - 1) * stride + 1 - lanes
    result, have = "", 0
    for start in [min(part * lanes, last) for part in range(stride)]:
        at = step(em, pointer, dtype.element, start)
        part = em.b.op(f"load {kind}, ptr {at}, align {align}")
        until = (start + lanes + stride - 1) // stride  # lanes that lie in the parts so far
        order = [lane if lane < have else lanes + lane * stride - start for lane in range(until)]
        order += [-1] * (lanes - until)
        mask = ", ".join([f"i32 {n}" if n >= 0 else "i32 poison" for n in order])
        first = result or "poison"
        result = em.b.op(f"shufflevector {kind} {first}, {kind} {part}, <{lanes} x i32> <{mask}>")
        have = until
    return result


def _load_run(em: Emitter, pointer: str, dtype: DataType, stride: int) -> str:
    """One wide load of elements side by side; ``stride`` -1: ``pointer`` is that of the last."""
    if stride == -1:
        pointer = step(em, pointer, dtype.element, 1 - dtype.lanes)
    kind, align = memory_type(dtype), element_bytes(dtype)
    value = em.b.op(f"load {kind}, ptr {pointer}, align {align}")
    if dtype.is_bool:
        value = em.b.op(f"icmp ne {kind} {value}, zeroinitializer")
    return reverse(em, value, dtype) if stride == -1 else value


def reverse(em: Emitter, value: str, dtype: DataType) -> str:
    """A vector with its lanes in the opposite order."""
    order = ", ".join([f"i32 {lane}" for lane in reversed(range(dtype.lanes))])
    kind = llvm_type(dtype)
    mask = f"<{dtype.lanes} x i32> <{order}>"
    return em.b.op(f"shufflevector {kind} {value}, {kind} poison, {mask}")


def broadcast(em: Emitter, value: str, dtype: DataType) -> str:
    """The vector of type ``dtype`` that has a scalar operand in every lane."""
    kind, element = llvm_type(dtype), llvm_type(dtype.element)
    first = em.b.op(f"insertelement {kind} poison, {element} {value}, i64 0")
    zeros = f"<{dtype.lanes} x i32> zeroinitializer"
    return em.b.op(f"shufflevector {kind} {first}, {kind} poison, {zeros}")


def _load_one(em: Emitter, pointer: str, dtype: DataType) -> str:
    kind = memory_type(dtype)
    value = em.b.op(f"load {kind}, ptr {pointer}, align {element_bytes(dtype)}")
    if dtype.is_bool:
        zero = "0" if dtype.lanes == 1 else "zeroinitializer"
        return em.b.op(f"icmp ne {kind} {value}, {zero}")
    return value


def store(em: Emitter, stmt: BufferStore) -> None:
    """A BufferStore: of a scalar, of elements side by side, at a stride, or a scatter."""
    buffer, value = stmt.buffer, stmt.value
    operand = em.value(value)
    lanes = index_lanes(stmt.indices)
    if lanes == 1:
        _store_one(em, _pointer(em, buffer, stmt.indices), operand, buffer.dtype)
        return
    mask = em.value(stmt.predicate) if stmt.predicate is not None else None
    ramp = as_ramp(stmt.indices[-1])
    if ramp is None or mask is not None or index_lanes(stmt.indices[:-1]) != 1:
        _scatter(em, buffer, stmt.indices, operand, value.dtype, mask, ramp)
        return
    base, stride = ramp
    stride *= _last_stride(buffer)
    pointer = _pointer(em, buffer, [*stmt.indices[:-1], base])
    if stride == 1 and part_vectors.fits(em, buffer.scope(), value.dtype):
        part_vectors.store(em, pointer, operand, value.dtype)
        return
    if stride == 1:
        _store_one(em, pointer, operand, value.dtype)
        return
    for lane in range(lanes):
        _store_lane(em, step(em, pointer, buffer.dtype, lane * stride), operand, value.dtype, lane)


def _store_lane(em: Emitter, pointer: str, vector: str, dtype: DataType, lane: int) -> None:
    element = em.b.op(f"extractelement {llvm_type(dtype)} {vector}, i64 {lane}")
    _store_one(em, pointer, element, dtype.element)


def _store_one(em: Emitter, pointer: str, operand: str, dtype: DataType) -> None:
    kind = memory_type(dtype)
    if dtype.is_bool:
        operand = em.b.op(f"zext {llvm_type(dtype)} {operand} to {kind}")
    em.b.do(f"store {kind} {operand}, ptr {pointer}, align {element_bytes(dtype)}")


# Addresses.


def _last_stride(buffer: Buffer) -> int:
    """How many elements lie from one to the next of the last dimension; 1 for a compact buffer."""
    if not buffer.strides:
        return 1
    last = buffer.strides[-1]
    if not isinstance(last, IntImm):
        raise UnsupportedError(
            f"a vector access to {buffer.name}, whose last stride is not a constant, is not "
            "available; make the last dimension compact or do not vectorize it"
        )
    return last.value


def step(em: Emitter, pointer: str, dtype: DataType, elements: int) -> str:
    """The address ``elements`` elements behind a pointer."""
    if elements == 0:
        return pointer
    return em.b.op(f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {elements}")


def flat_offset(em: Emitter, buffer: Buffer, indices: Sequence[PrimExpr]) -> str:
    """How many elements lie before that at scalar ``indices``, as i64."""
    total = "0"
    if buffer.strides:
        for index, stride in zip(indices, buffer.strides, strict=True):
            total = plus(em, total, times(em, em.index(index), em.index(stride)))
    else:
        for index, extents in walks(indices, buffer.shape):
            for extent in extents if total != "0" else ():
                total = times(em, total, em.index(extent))
            total = plus(em, total, em.index(index))
    offset = buffer.elem_offset
    if offset is None or constant_of(offset) == 0:
        return total
    return plus(em, total, em.index(offset))


def plus(em: Emitter, a: str, b: str) -> str:
    """``a + b`` in i64; of constants, which do not begin with ``%``, it is a constant."""
    if a == "0":
        return b
    if b == "0":
        return a
    if a[0] != "%" and b[0] != "%":
        return str(int(a) + int(b))
    return em.b.op(f"add nsw i64 {a}, {b}")


def times(em: Emitter, a: str, b: str) -> str:
    """``a * b`` in i64; of constants, which do not begin with ``%``, it is a constant."""
    if a == "0" or b == "0":
        return "0"
    if a == "1":
        return b
    if b == "1":
        return a
    if a[0] != "%" and b[0] != "%":
        return str(int(a) * int(b))
    return em.b.op(f"mul nsw i64 {a}, {b}")


def _pointer(em: Emitter, buffer: Buffer, indices: Sequence[PrimExpr]) -> str:
    base = em.variable(buffer.data)
    offset = flat_offset(em, buffer, indices)
    if offset == "0":
        return base
    kind = memory_type(buffer.dtype)
    return em.b.op(f"getelementptr inbounds {kind}, ptr {base}, i64 {offset}")


def element_pointer(em: Emitter, expr: BufferLoad) -> str:
    """The address of the first element of a BufferLoad, which is not loaded."""
    indices = list(expr.indices)
    last = as_ramp(indices[-1]) if indices else None
    if last is not None:
        indices[-1] = last[0]
    return _pointer(em, expr.buffer, indices)


# Gathers and scatters.


def _lane_indices(em: Emitter, indices: Sequence[PrimExpr], lanes: int) -> list[str]:
    """Each index as a vector of i64; a scalar one is repeated."""
    dtype = _I64.with_lanes(lanes)
    parts = []
    for index in indices:
        if index.dtype.lanes == 1:
            parts.append(broadcast(em, em.index(index), dtype))
        else:
            parts.append(em.value(e.Cast(dtype, index) if index.dtype is not dtype else index))
    return parts


def _offsets(em: Emitter, buffer: Buffer, parts: list[str], lanes: int) -> str:
    """How many elements lie before each lane's, as a vector of i64; ``parts`` are the indices."""
    dtype = _I64.with_lanes(lanes)
    kind = llvm_type(dtype)
    total = ""
    for position, part in enumerate(parts):
        if buffer.strides:
            scale = broadcast(em, em.index(buffer.strides[position]), dtype)
            part = em.b.op(f"mul {kind} {part}, {scale}")
        elif total:
            scale = broadcast(em, em.index(buffer.shape[position]), dtype)
            total = em.b.op(f"mul {kind} {total}, {scale}")
        total = em.b.op(f"add {kind} {total}, {part}") if total else part
    start = buffer.elem_offset
    if start is None or constant_of(start) == 0:
        return total
    return em.b.op(f"add {kind} {total}, {broadcast(em, em.index(start), dtype)}")


def _gather(
    em: Emitter,
    buffer: Buffer,
    indices: Sequence[PrimExpr],
    dtype: DataType,
    mask: str | None,
    ramp: tuple[PrimExpr, int] | None,
) -> str:
    """The lanes at any indices that ``mask`` lets through, others 0; a masked load where the
    elements lie side by side (``ramp``), else a gather.
    """
    lanes = dtype.lanes
    memory, align = memory_type(dtype), element_bytes(dtype)
    offsets = _offsets(em, buffer, _lane_indices(em, indices, lanes), lanes)
    flags = with_lanes("i1", lanes)
    active = mask or "splat (i1 true)"
    kept = (flags, active), (memory, "zeroinitializer")
    stored = DataType("int8").with_lanes(lanes) if dtype.is_bool else dtype
    if ramp is not None and ramp[1] == 1 and index_lanes(indices[:-1]) == 1:
        at = _pointer(em, buffer, [*indices[:-1], ramp[0]])
        name = f"llvm.masked.load.{mangled(stored)}.p0"
        value = em.b.call(name, memory, [(f"ptr align {align}", at), *kept])
    else:
        pointers = _lane_pointers(em, buffer, offsets, lanes)
        name = f"llvm.masked.gather.{mangled(stored)}.v{lanes}p0"
        value = em.b.call(name, memory, [(f"<{lanes} x ptr> align {align}", pointers), *kept])
    if dtype.is_bool:
        return em.b.op(f"icmp ne {memory} {value}, zeroinitializer")
    return value


def _lane_pointers(em: Emitter, buffer: Buffer, offsets: str, lanes: int) -> str:
    base = em.variable(buffer.data)
    kind = memory_type(buffer.dtype)
    return em.b.op(f"getelementptr {kind}, ptr {base}, <{lanes} x i64> {offsets}")


def _scatter(
    em: Emitter,
    buffer: Buffer,
    indices: Sequence[PrimExpr],
    operand: str,
    dtype: DataType,
    mask: str | None,
    ramp: tuple[PrimExpr, int] | None,
) -> None:
    """Store the lanes that ``mask`` lets through, by a masked store or a scatter (``_gather``)."""
    lanes = dtype.lanes
    offsets = _offsets(em, buffer, _lane_indices(em, indices, lanes), lanes)
    memory, align = memory_type(dtype), element_bytes(dtype)
    stored = dtype
    if dtype.is_bool:
        stored = DataType("int8").with_lanes(lanes)
        operand = em.b.op(f"zext {llvm_type(dtype)} {operand} to {memory}")
    active = (with_lanes("i1", lanes), mask or "splat (i1 true)")
    if ramp is not None and ramp[1] == 1 and index_lanes(indices[:-1]) == 1:
        at = (f"ptr align {align}", _pointer(em, buffer, [*indices[:-1], ramp[0]]))
        name = f"llvm.masked.store.{mangled(stored)}.p0"
    else:
        at = (f"<{lanes} x ptr> align {align}", _lane_pointers(em, buffer, offsets, lanes))
        name = f"llvm.masked.scatter.{mangled(stored)}.v{lanes}p0"
    em.b.call(name, "void", [(memory, operand), at, active])
