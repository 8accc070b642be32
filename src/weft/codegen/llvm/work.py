"""A rough estimate of how long a parallel loop runs: whether threads are worth their start."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final

from weft.arith.deep_equal import all_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import is_call
from weft.tir.lowering.mathematics.library import LIBRARY
from weft.tir.lowering.outline_launches import FOREIGN, Service

BRIEF_WORK: Final = 60_000
"""Cycles of a loop below which it uses awake threads only: waking others takes too long."""
_SMALLEST, _LARGEST = 8_000, 14_000
"""Cycles of a loop below which it runs on one thread: if it writes next to nothing, and at most."""
_UNKNOWN: Final = 64
"""How many iterations a loop of symbolic extent is taken to have."""
_FUNCTION: Final = 20
"""How many operations an exponential, a logarithm or the like takes."""
_CALL: Final = 1000
"""How many cycles a call of another function takes, of C or Python."""
_SMALL: Final = 1 << 20
"""The most bytes of a tensor that is taken to lie in the second cache."""
_NEAR, _FAR = 32, 8
"""How many bytes a cycle brings from the second cache, and from beyond it."""


def service_of(cores: int, vector_bits: int) -> Service:
    """The function that names the runtime's service for a parallel loop; None: it runs serially.

    A loop that takes long enough runs in parallel. ``cores`` 0 is an unknown number.
    """

    def service(loop: s.For) -> str | None:
        if cores == 1 or (isinstance(loop.extent, IntImm) and loop.extent.value <= 1):
            return None
        cycles = cycles_of(loop, vector_bits)
        if cycles < _LARGEST and cycles < smallest_work(loop):
            return None
        return "brief" if cycles < BRIEF_WORK else "parallel"

    return service


def smallest_work(stmt: s.Stmt) -> int:
    """The cycles of a loop below which it is not worth running in parallel.

    Two cores that share a loop each have half of what it wrote in their cache. The next loop reads
    the other half from the other core, which takes about a cycle for each byte.
    """
    buffers = {store.buffer for store in collect(stmt, s.BufferStore)}
    written = sum([_bytes_of(buffer) for buffer in buffers if buffer.scope() != "local"])
    return min(_SMALLEST + written, _LARGEST)


def cycles_of(stmt: s.Stmt, vector_bits: int) -> float:
    """The cycles of a statement on a core that starts two operations on whole vectors in each.

    >>> from weft.script import tir as T
    >>> @T.prim_func
    ... def f(A: T.Buffer((64,), "float32")):
    ...     for i in range(64):
    ...         A[i] = A[i] * T.float32(2)
    >>> cycles_of(f.body, 256)
    96.0
    """
    if isinstance(stmt, s.For):
        extent = stmt.extent.value if isinstance(stmt.extent, IntImm) else _UNKNOWN
        return max(extent, 0) * cycles_of(stmt.body, vector_bits)
    if isinstance(stmt, s.SeqStmt):
        return _cycles_in_turn(stmt, vector_bits)
    if isinstance(stmt, s.IfThenElse):
        branches = [stmt.then_case] + ([] if stmt.else_case is None else [stmt.else_case])
        return max([cycles_of(branch, vector_bits) for branch in branches])
    if isinstance(stmt, s.While):
        return _UNKNOWN * cycles_of(stmt.body, vector_bits)
    if isinstance(stmt, s.BufferStore):
        return _cycles_of_store(stmt, _Counter(vector_bits))
    if isinstance(stmt, s.LetStmt):
        return _cycles_of_value(stmt.value, vector_bits) + cycles_of(stmt.body, vector_bits)
    if isinstance(stmt, s.Evaluate):
        return _CALL if _calls_function(stmt.value) else 1.0
    body: s.Stmt | None = getattr(stmt, "body", None)
    return 1.0 if body is None else cycles_of(body, vector_bits)


def _calls_function(value: PrimExpr) -> bool:
    """Whether the call that a statement consists of runs another function.

    Some run a single instruction, as a prefetch does.
    """
    while isinstance(value, e.Let):
        value = value.body
    value = _untested(value)
    if not isinstance(value, e.Call):
        return False
    return not isinstance(value.op, Op) or value.op.name.endswith(FOREIGN)


def _cycles_of_value(value: PrimExpr, vector_bits: int) -> float:
    """The cycles of the value of a LetStmt; scalar integers, which are places, cost nothing."""
    if value.dtype.lanes == 1 and not value.dtype.is_float:
        return 0.0
    counter = _Counter(vector_bits)
    counter.visit(value)
    return counter.cycles


def _cycles_in_turn(stmt: s.SeqStmt, vector_bits: int) -> float:
    """The cycles of statements in order. A place that several of them load is loaded once: the rows
    of a tile of a product all load the same panel.
    """
    counter = _Counter(vector_bits)
    cycles = 0.0
    for item in stmt.seq:
        if isinstance(item, s.BufferStore):
            counter.cycles = 0.0
            cycles += _cycles_of_store(item, counter)
        else:
            cycles += cycles_of(item, vector_bits)
    return cycles


def _cycles_of_store(stmt: s.BufferStore, counter: _Counter) -> float:
    """The cycles of a store. ``C[i] = C[i] + x``: C stays in a register, only ``x`` is counted."""
    value = _untested(stmt.value)
    if isinstance(value, e.Add):
        before, added = _untested(value.a), value.b
        if (
            isinstance(before, BufferLoad)
            and before.buffer is stmt.buffer
            and all_deep_equal(before.indices, stmt.indices)
        ):
            if not isinstance(added, e.Mul):  # a product and its sum are one operation
                counter.cycles += counter.vectors(added) / 2
            counter.visit(added)
            return counter.cycles
    counter.visit(value)
    return counter.cycles + _memory(stmt.buffer, counter.vectors(value), value.dtype)


def _untested(value: PrimExpr) -> PrimExpr:
    """The value of a ``T.checked``; tests are taken to cost nothing."""
    while is_call(value, "checked"):
        value = value.args[0]
    return value


def _memory(buffer: Buffer, vectors: int, dtype: DataType) -> float:
    """The cycles of loading or storing a value of type ``dtype`` that fills so many registers."""
    if buffer.scope() == "local":
        return 0.0
    rate = _NEAR if _bytes_of(buffer) <= _SMALL else _FAR
    return max(dtype.bits * dtype.lanes / 8 / rate, vectors / 2)


def _bytes_of(buffer: Buffer) -> int:
    """How many bytes a tensor has; symbolic extents are taken to be ``_UNKNOWN``."""
    sizes = [size.value for size in buffer.shape if isinstance(size, IntImm)]
    unknown = _UNKNOWN ** (len(buffer.shape) - len(sizes))
    return int(math.prod(sizes) * unknown * buffer.dtype.bits * buffer.dtype.lanes // 8)


def _spelling(place: PrimExpr) -> Hashable:
    """A key of an index: equal for indices that are written alike.

    A structural hash would do the same in ten times the time.
    """
    if isinstance(place, IntImm):
        return place.value
    if isinstance(place, e.BinaryExpr):
        return type(place), _spelling(place.a), _spelling(place.b)
    if isinstance(place, e.Ramp):
        return _spelling(place.base), _spelling(place.stride), place.lanes
    return id(place)


class _Counter(Visitor):
    """Counts half a cycle for each operation on a register; indices are computed for nothing."""

    def __init__(self, vector_bits: int) -> None:
        self.vector_bits = vector_bits
        self.cycles = 0.0
        self.loaded: set[tuple[Hashable, ...]] = set()
        """The buffers and places whose load was counted."""

    def vectors(self, expr: PrimExpr) -> int:
        """How many registers hold a value."""
        return -(-expr.dtype.lanes * expr.dtype.bits // self.vector_bits)

    def visit_BinaryExpr(self, expr: e.BinaryExpr) -> None:
        """One operation."""
        self.cycles += self.vectors(expr) / 2
        self.visit_default(expr)

    def visit_BufferLoad(self, expr: BufferLoad) -> None:
        """The time of the memory, once for each place."""
        load = (expr.buffer, *map(_spelling, expr.indices))
        if load not in self.loaded:
            self.loaded.add(load)
            self.cycles += _memory(expr.buffer, self.vectors(expr), expr.dtype)

    def visit_Shuffle(self, expr: e.Shuffle) -> None:
        """One operation for each vector that is joined to the first."""
        self.cycles += self.vectors(expr) / 2 * max(len(expr.vectors) - 1, 1)
        self.visit_default(expr)

    def visit_Call(self, expr: e.Call) -> None:
        """As many operations as a function of mathematics takes, or one."""
        if is_call(expr, "checked"):
            self.visit(_untested(expr))
            return
        if is_call(expr, "uncontracted"):  # a function that DecomposeMath has written out
            self.cycles += self.vectors(expr) / 2 * _FUNCTION
            return
        name = expr.op.name.removeprefix("tir.") if isinstance(expr.op, Op) else ""
        self.cycles += self.vectors(expr) / 2 * (_FUNCTION if name in LIBRARY else 1)
        self.visit_default(expr)
