"""ShuffleLoad: a vector of elements that lie near each other is loaded as a run and shuffled.

A gather takes a load for each lane. If the distances between the lanes of an index are constants, a
load of a run of memory and a shuffle of constant order do the same (Anderson, Malik and Gregg,
"Automatic vectorization of interleaved data revisited", 2015, do so for strides). An example that
repeats each element::

    y[i * 16:i * 16 + 16] = x[T.Ramp(i * 16, 1, 16) // T.Broadcast(2, 16)]

After::

    y[i * 16:i * 16 + 16] = T.Shuffle([x[i * 8:i * 8 + 8]], [0, 0, 1, 1, 2, 2, ... 7, 7])

An index without variables, as in unrolled vectors of a resized image, may hold any arithmetic: the
interpreter computes it. Two loads of a statement that pick neighbouring elements of one buffer, as
the pixels left and right of a new one, load the same run if it is no wider than each alone. Sums
and products of loads that are shuffled in the same order are computed before the shuffle, so that
one shuffle is enough. Runs after loops are unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, contains
from weft.support.errors import UnsupportedError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import (
    Add,
    BinaryExpr,
    Broadcast,
    Call,
    FloorDiv,
    FloorMod,
    Let,
    Mul,
    Ramp,
    Select,
    Shuffle,
    Sub,
    Var,
)
from weft.tir.function import PrimFunc
from weft.tir.interp.machine import constant_value
from weft.tir.lanes import lane_of
from weft.tir.stmt import BufferStore, For, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

_APART: Final = (2, 3, 4)
"""Strides of loads that become a load of whole vectors and a shuffle."""
_VECTORS: Final = 4
"""The most vectors that a run may fill: to shuffle more takes as long as to gather."""

_Span = tuple[int, int]
"""(first element, element after the last)"""


class _Shuffles(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.spans: dict[Buffer, list[_Span]] = {}
        """For the current statement: buffer -> the runs that loads with constant lanes need."""

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        """Collect the runs that loads of the statement need, so that neighbours share one."""
        spans: dict[Buffer, list[_Span]] = {}
        for load in collect(store.value, BufferLoad):
            places = _constants(load.indices[-1]) if _is_picked(load) else None
            if places is not None:
                spans.setdefault(load.buffer, []).append((min(places[1]), max(places[1]) + 1))
        self.spans = {buffer: _together(several) for buffer, several in spans.items()}
        result: Stmt = self.visit_default(store)
        self.spans = {}
        return result

    def visit_For(self, loop: For) -> For:
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        return self.visit_default(loop)

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        inner: BufferLoad = self.visit_default(load)
        if _is_vector(inner) and isinstance(inner.indices[-1], Ramp):
            return self._apart(inner, inner.indices[-1])
        if not _is_picked(inner):
            return inner
        last = inner.indices[-1]
        places = _constants(last) or self._differences(last)
        return inner if places is None else self._picked(inner, *places)

    def _apart(self, load: BufferLoad, ramp: Ramp) -> PrimExpr:
        """A load with a stride of 2 to 4 as a load of the whole run and a shuffle.

        Loads of neighbouring elements have the same run, which is then read once for them.
        """
        stride = ramp.stride.value if isinstance(ramp.stride, IntImm) else 0
        if stride not in _APART or load.buffer.strides or load.buffer.dtype.is_bool:
            return load
        past = self.analyzer.simplify(op.floormod(ramp.base, stride))
        if not isinstance(past, IntImm):
            return load
        start = self.analyzer.simplify(op.subtract(ramp.base, past))
        lanes = load.dtype.lanes
        span = stride * lanes
        if not self.analyzer.can_prove(op.less_equal(op.add(start, span), load.buffer.shape[-1])):
            return load
        run = load.with_(indices=[*load.indices[:-1], Ramp(start, IntImm(start.dtype, 1), span)])
        return Shuffle([run], [past.value + stride * lane for lane in range(lanes)])

    def visit_BinaryExpr(self, expr: BinaryExpr) -> PrimExpr:
        """Compute with two shuffles of the same order before shuffling, so that one is enough."""
        inner: BinaryExpr = self.visit_default(expr)
        if not inner.dtype.is_float or not isinstance(inner, (Add, Sub, Mul)):
            return inner
        picked = [side for side in (inner.a, inner.b) if isinstance(side, Shuffle)]
        if not picked or not expr_deep_equal(picked[0].indices, picked[-1].indices):
            return inner
        width = picked[0].vectors[0].dtype.lanes
        a, b = _before(inner.a, width), _before(inner.b, width)
        if a is None or b is None or width > inner.dtype.lanes:
            return inner
        return Shuffle([type(inner)(a, b)], picked[0].indices)

    def _differences(self, index: PrimExpr) -> tuple[PrimExpr, list[int]] | None:
        """The first lane of an index and the distance of each lane from it; None: not constant."""
        if contains(index, (Call, Select)) or not contains(index, (FloorDiv, FloorMod)):
            return None
        lanes = [self.analyzer.simplify(lane_of(index, at)) for at in range(index.dtype.lanes)]
        distances = [self.analyzer.simplify(op.subtract(lane, lanes[0])) for lane in lanes]
        places = [place.value for place in distances if isinstance(place, IntImm)]
        return (lanes[0], places) if len(places) == len(lanes) else None

    def _picked(self, load: BufferLoad, first: PrimExpr, places: list[int]) -> PrimExpr:
        """A load of the run that holds all elements ``first + places``, and a shuffle of it."""
        low, end = min(places), max(places) + 1
        if op.is_const_int(first, 0):
            known = self.spans.get(load.buffer, [])
            held = [span for span in known if span[0] <= low and end <= span[1]]
            low, end = held[0] if held else (low, end)
        span = end - low
        if span > _VECTORS * len(places):
            return load
        start = self.analyzer.simplify(op.add(first, low))
        *outer, _ = load.indices
        width = self._width(load.buffer, start, span)
        if isinstance(start, IntImm) and width > span:  # begin earlier if the row ends too soon
            size = load.buffer.shape[-1]
            assert isinstance(size, IntImm)
            start_at = min(start.value, size.value - width)
            low, start = low - (start.value - start_at), IntImm(start.dtype, start_at)
        if width == 1:
            return Broadcast(load.with_(indices=[*outer, start]), len(places))
        run = BufferLoad(load.buffer, [*outer, Ramp(start, IntImm(start.dtype, 1), width)])
        return Shuffle([run], [place - low for place in places])

    def _width(self, buffer: Buffer, start: PrimExpr, span: int) -> int:
        """How many elements are read: a power of two if the row has as many, else ``span``."""
        width = _width_of(span)
        size = buffer.shape[-1]
        if isinstance(start, IntImm):
            return width if isinstance(size, IntImm) and width <= size.value else span
        return width if self.analyzer.can_prove(op.less_equal(op.add(start, width), size)) else span


def _width_of(span: int) -> int:
    """The smallest power of two that is at least ``span``.

    >>> _width_of(1), _width_of(9)
    (1, 16)
    """
    return 1 << (span - 1).bit_length()


def _together(spans: Sequence[_Span]) -> list[_Span]:
    """Join neighbouring spans, if their union is as wide as the wider of them (as powers of two).

    >>> _together([(8, 17), (7, 16), (40, 48)])
    [(7, 17), (40, 48)]
    """
    joint: list[_Span] = []
    widest = 0
    for low, end in sorted(spans):
        widest = max(widest, _width_of(end - low))
        first, last = joint[-1] if joint else (low, low)
        joined = (first, max(last, end))
        if joint and _width_of(joined[1] - first) <= widest:
            joint[-1] = joined
        else:
            joint.append((low, end))
            widest = _width_of(end - low)
    return joint


def _before(side: PrimExpr, width: int) -> PrimExpr | None:
    """An operand before its shuffle, if that has ``width`` lanes; else None."""
    if isinstance(side, Broadcast):
        return Broadcast(side.value, width)
    if isinstance(side, Shuffle) and len(side.vectors) == 1:
        return side.vectors[0] if side.vectors[0].dtype.lanes == width else None
    return None


def _is_vector(load: BufferLoad) -> bool:
    """Whether a load is of a vector with lanes in its last index only, and without a mask."""
    if load.dtype.lanes == 1 or load.buffer.dtype.lanes > 1 or load.predicate is not None:
        return False
    return all(index.dtype.lanes == 1 for index in load.indices[:-1])


def _is_apart(load: BufferLoad) -> bool:
    """Whether a load is of elements at a stride for which the whole run may be loaded."""
    last = load.indices[-1] if _is_vector(load) else None
    stride = last.stride if isinstance(last, Ramp) else None
    return isinstance(stride, IntImm) and stride.value in _APART


def _is_picked(load: BufferLoad) -> bool:
    """Whether a load is no run of memory, and its lanes may be known."""
    return _is_vector(load) and not _is_simple(load.buffer, load.indices[-1])


def _is_simple(buffer: Buffer, index: PrimExpr) -> bool:
    """Whether an index is a run already, or loads by it cannot be shuffles (bits, data)."""
    return (
        isinstance(index, (Ramp, Broadcast))
        or bool(buffer.strides)
        or buffer.dtype.is_bool
        or contains(index, (BufferLoad, Let, Shuffle))
    )


def _constants(index: PrimExpr) -> tuple[PrimExpr, list[int]] | None:
    """Zero and the lanes of an index without variables; None for other indices."""
    if contains(index, Var):
        return None
    try:
        lanes = constant_value(index)
    except UnsupportedError:
        return None
    return op.const(0, index.dtype.element), [int(lane) for lane in np.asarray(lanes)]


def shuffle_loads(func: PrimFunc) -> PrimFunc:
    """Replace loads of known lanes in a function by loads of runs and shuffles."""
    loads = collect(func.body, BufferLoad)
    if not contains(func.body, Shuffle) and not any(
        _is_apart(load) or _is_picked(load) for load in loads
    ):
        return func
    return rewrite_body(func, _Shuffles())


ShuffleLoad = define_pass("ShuffleLoad", shuffle_loads)
