"""ShuffleLoad: a vector of elements near each other is read as a run of memory and put in order.

Where the lanes of an index are known up to one number that all share, what they pick is known when
code is generated, and a load and a shuffle of constant order take the place of a gather, which
takes a load for each lane (Anderson, Malik and Gregg, "Automatic vectorization of interleaved data
revisited", 2015, do the same for strides). Repeated rows, for a number ``i``::

    y[i * 16:i * 16 + 16] = x[T.Ramp(i * 16, 1, 16) // T.Broadcast(2, 16)]

After::

    y[i * 16:i * 16 + 16] = T.Shuffle([x[i * 8:i * 8 + 8]], [0, 0, 1, 1, 2, 2, ... 7, 7])

An index that depends on nothing, as the columns of an image that is resized in unrolled vectors,
may hold any arithmetic, which the reference interpreter carries out. What a statement picks from
rows of one buffer is the same run for neighbours, as the pixels on both sides of a new one, where
that is no wider. Sums and products of what is picked in one order are computed before it is picked:
once for the neighbours, too. Runs when loops are unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Final

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.transform import Pass
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
from weft.tir.interp.expression import ExprCompiler
from weft.tir.lanes import lane_of
from weft.tir.stmt import BufferStore, For, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body

_APART: Final = (2, 3, 4)
"""Steps of a vector that is picked out of whole vectors."""
_VECTORS: Final = 4
"""Vectors that a run may fill: from more it takes as long to pick as to gather."""

_Span = tuple[int, int]
"""The first element, and the one after the last."""


class _Shuffles(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.spans: dict[Buffer, list[_Span]] = {}
        """Of the statement at hand: what is read of rows of buffers where lanes are constants."""

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        """What a statement picks from the same elements, as neighbours of pixels, is one run."""
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
        inner: For = self.visit_default(loop)
        return inner

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
        """Every second to fourth element of a run, which is the same for loads that begin beside
        each other: together they read it once.
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
        """Rows picked from in one order are computed with before they are picked from."""
        inner: BinaryExpr = self.visit_default(expr)
        if not inner.dtype.is_float or not isinstance(inner, Add | Sub | Mul):
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
        """The first lane of an index, and how far each lane is from it."""
        if collect(index, (Call, Select)) or not collect(index, (FloorDiv, FloorMod)):
            return None
        lanes = [self.analyzer.simplify(lane_of(index, at)) for at in range(index.dtype.lanes)]
        distances = [self.analyzer.simplify(op.subtract(lane, lanes[0])) for lane in lanes]
        places = [place.value for place in distances if isinstance(place, IntImm)]
        return (lanes[0], places) if len(places) == len(lanes) else None

    def _picked(self, load: BufferLoad, first: PrimExpr, places: list[int]) -> PrimExpr:
        """The run of memory that holds all ``first + places``, and the lanes of it."""
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
        if isinstance(start, IntImm) and width > span:  # as far from the end as that is
            size = load.buffer.shape[-1]
            assert isinstance(size, IntImm)
            start_at = min(start.value, size.value - width)
            low, start = low - (start.value - start_at), IntImm(start.dtype, start_at)
        if width == 1:
            return Broadcast(load.with_(indices=[*outer, start]), len(places))
        run = BufferLoad(load.buffer, [*outer, Ramp(start, IntImm(start.dtype, 1), width)])
        return Shuffle([run], [place - low for place in places])

    def _width(self, buffer: Buffer, start: PrimExpr, span: int) -> int:
        """How many elements are read: a power of two where the row holds as many."""
        width = _width_of(span)
        size = buffer.shape[-1]
        if isinstance(start, IntImm):
            return width if isinstance(size, IntImm) and width <= size.value else span
        return width if self.analyzer.can_prove(op.less_equal(op.add(start, width), size)) else span


def _width_of(span: int) -> int:
    """The lanes of a run of so many elements: a power of two.

    >>> _width_of(1), _width_of(9)
    (1, 16)
    """
    return 1 << (span - 1).bit_length()


def _together(spans: Sequence[_Span]) -> list[_Span]:
    """Spans that hold all of these, several where one as wide as the widest of them does.

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
    """An operand of ``width`` lanes, before they are picked; None if it has not as many."""
    if isinstance(side, Broadcast):
        return Broadcast(side.value, width)
    if isinstance(side, Shuffle) and len(side.vectors) == 1:
        return side.vectors[0] if side.vectors[0].dtype.lanes == width else None
    return None


def _is_vector(load: BufferLoad) -> bool:
    """Whether a load has lanes in its last index only, all of which are read."""
    if load.dtype.lanes == 1 or load.buffer.dtype.lanes > 1 or load.predicate is not None:
        return False
    return all(index.dtype.lanes == 1 for index in load.indices[:-1])


def _is_picked(load: BufferLoad) -> bool:
    """Whether the lanes of a load may be known, and are no run already."""
    return _is_vector(load) and not _is_simple(load.buffer, load.indices[-1])


def _is_simple(buffer: Buffer, index: PrimExpr) -> bool:
    """Whether an index is a run already or cannot be known, or its elements are told by bits."""
    return (
        isinstance(index, Ramp | Broadcast) or bool(buffer.strides) or buffer.dtype.is_bool
        or bool(collect(index, (BufferLoad, Let, Shuffle)))
    )  # fmt: skip


def _constants(index: PrimExpr) -> tuple[PrimExpr, list[int]] | None:
    """The lanes of an index that depends on nothing, from zero."""
    if collect(index, Var):
        return None
    try:
        lanes = ExprCompiler().compile(index)(SimpleNamespace(values={}, buffers={}))
    except UnsupportedError:
        return None
    return op.const(0, index.dtype.element), [int(lane) for lane in np.asarray(lanes)]


def shuffle_loads(func: PrimFunc) -> PrimFunc:
    """The function with loads of known lanes as runs of memory in another order."""
    return rewrite_body(func, _Shuffles())


def ShuffleLoad() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.ShuffleLoad``."""
    return make_pass("ShuffleLoad", shuffle_loads)
