"""How long a statement runs, roughly: whether it is worth a fork."""

from __future__ import annotations

import math
from typing import Any, Final

from weft.ir.expr import IntImm
from weft.ir.functor import Visitor, collect
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.lowering.facts import is_call
from weft.tir.lowering.mathematics.library import LIBRARY
from weft.tir.lowering.outline_launches import FOREIGN, Service

BRIEF_WORK: Final = 60_000
"""Cycles below which a loop does not wait for threads that have to be woken."""
_SMALLEST, _LARGEST = 8_000, 14_000
"""Cycles below which a fork saves too little: of a loop that writes next to nothing, of any."""
_UNKNOWN: Final = 64
"""Iterations of a loop whose extent is symbolic."""
_FUNCTION: Final = 20
"""Operations of an exponential, a logarithm or the like."""
_CALL: Final = 1000
"""Cycles of a call of another function, of C or Python."""
_SMALL: Final = 1 << 20
"""Bytes of a tensor that is taken to lie in the second cache."""
_NEAR, _FAR = 32, 8
"""Bytes that come from the second cache in a cycle, and from beyond it."""


def service_of(cores: int, vector_bits: int) -> Service:
    """Which loops run in parallel on so many cores (0: unknown): those that take long enough."""

    def service(loop: s.For) -> str | None:
        if cores == 1 or (isinstance(loop.extent, IntImm) and loop.extent.value <= 1):
            return None
        cycles = cycles_of(loop, vector_bits)
        if cycles < smallest_work(loop):
            return None
        return "brief" if cycles < BRIEF_WORK else "parallel"

    return service


def smallest_work(stmt: Any) -> int:
    """Cycles below which a fork of a loop saves too little, since what two cores wrote lies apart.

    What comes next reads half of it from the other core: a cycle for each byte, about.
    """
    buffers = {store.buffer for store in collect(stmt, s.BufferStore)}
    written = sum([_bytes_of(buffer) for buffer in buffers if buffer.scope() != "local"])
    return min(_SMALLEST + written, _LARGEST)


def cycles_of(stmt: Any, vector_bits: int) -> float:
    """Cycles on a core that starts two operations in each, on whole vectors.

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
        return _CALL if _leaves(stmt.value) else 1.0
    body = getattr(stmt, "body", None)
    return 1.0 if body is None else cycles_of(body, vector_bits)


def _leaves(value: Any) -> bool:
    """Whether a statement of its own runs another function, not an instruction as a prefetch is."""
    while isinstance(value, e.Let):
        value = value.body
    value = _untested(value)
    if not isinstance(value, e.Call):
        return False
    return not isinstance(value.op, Op) or value.op.name.endswith(FOREIGN)


def _cycles_of_value(value: Any, vector_bits: int) -> float:
    """What a name is bound to; numbers of places are free."""
    if value.dtype.lanes == 1 and not value.dtype.is_float:
        return 0.0
    counter = _Counter(vector_bits)
    counter.visit(value)
    return counter.cycles


def _cycles_in_turn(stmt: s.SeqStmt, vector_bits: int) -> float:
    """One after the other: what several load is loaded once, as rows of a tile do from a panel."""
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
    """Vectors that are computed and stored; an accumulator stays in its register."""
    value = _untested(stmt.value)
    before = _untested(value.a) if isinstance(value, e.Add) else None
    if isinstance(before, BufferLoad):
        if before.buffer is stmt.buffer and structural_equal(before.indices, stmt.indices):
            value = value.b
            if not isinstance(value, e.Mul):  # a product and its sum are one operation
                counter.cycles += counter.vectors(value) / 2
            counter.visit(value)
            return counter.cycles
    counter.visit(value)
    return counter.cycles + _memory(stmt.buffer, counter.vectors(value), value.dtype)


def _untested(value: Any) -> Any:
    """What a test of an access stands around; tests cost next to nothing."""
    while is_call(value, "checked"):
        value = value.args[0]
    return value


def _memory(buffer: Buffer, vectors: int, dtype: DataType) -> float:
    """Cycles in which memory gives or takes so many vectors."""
    if buffer.scope() == "local":
        return 0.0
    rate = _NEAR if _bytes_of(buffer) <= _SMALL else _FAR
    return max(dtype.bits * dtype.lanes / 8 / rate, vectors / 2)


def _bytes_of(buffer: Buffer) -> int:
    """The size of a tensor, about where it is symbolic."""
    sizes = [size.value for size in buffer.shape if isinstance(size, IntImm)]
    unknown = _UNKNOWN ** (len(buffer.shape) - len(sizes))
    result: int = math.prod(sizes) * unknown * buffer.dtype.bits * buffer.dtype.lanes // 8
    return result


def _spelling(place: Any) -> Any:
    """A key of a place: equal for places that are written alike, in a tenth of a hash's time."""
    if isinstance(place, IntImm):
        return place.value
    if isinstance(place, e.BinaryExpr):
        return type(place), _spelling(place.a), _spelling(place.b)
    if isinstance(place, e.Ramp):
        return _spelling(place.base), _spelling(place.stride), place.lanes
    return id(place)


class _Counter(Visitor):
    """Counts half a cycle for each operation on a vector; the arithmetic of places is free."""

    def __init__(self, vector_bits: int) -> None:
        self.vector_bits = vector_bits
        self.cycles = 0.0
        self.loaded: set[Any] = set()
        """What was counted already, by buffer and place."""

    def vectors(self, expr: Any) -> int:
        """Registers that hold a value."""
        bits: int = expr.dtype.lanes * expr.dtype.bits
        return -(-bits // self.vector_bits)

    def visit_BinaryExpr(self, expr: e.BinaryExpr) -> None:
        """One operation."""
        self.cycles += self.vectors(expr) / 2
        self.visit_default(expr)

    def visit_BufferLoad(self, expr: BufferLoad) -> None:
        """What memory takes, once; its place is not computed apart."""
        load = (expr.buffer, *map(_spelling, expr.indices))
        if load not in self.loaded:
            self.loaded.add(load)
            self.cycles += _memory(expr.buffer, self.vectors(expr), expr.dtype)

    def visit_Shuffle(self, expr: e.Shuffle) -> None:
        """An operation for each register that is put to the first."""
        self.cycles += self.vectors(expr) / 2 * max(len(expr.vectors) - 1, 1)
        self.visit_default(expr)

    def visit_Call(self, expr: e.Call) -> None:
        """A function of mathematics, or one operation."""
        if is_call(expr, "checked"):
            self.visit(_untested(expr))
            return
        if is_call(expr, "uncontracted"):  # a formula of names
            self.cycles += self.vectors(expr) / 2 * _FUNCTION
            return
        name = expr.op.name.removeprefix("tir.") if isinstance(expr.op, Op) else ""
        self.cycles += self.vectors(expr) / 2 * (_FUNCTION if name in LIBRARY else 1)
        self.visit_default(expr)
