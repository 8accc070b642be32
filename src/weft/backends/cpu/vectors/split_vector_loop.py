"""SplitVectorLoop: a vectorized loop whose extent is no power of two becomes several vectors.

LLVM takes a vector of 24 or 48 lanes apart into scalars if it lives across the iterations of a
loop, but keeps one of 16 lanes and one of 8 in registers. Runs before VectorizeLoop. Before:
``for i in T.vectorized(40)``. After: ``for i in T.unroll(2): for i_1 in T.vectorized(16)`` with
``i * 16 + i_1`` for ``i``, and ``for i in T.vectorized(8)`` with ``i + 32`` for ``i``.

- An extent of at most 16 stays as it is; LLVM pads it.
- If there would be more than 16 vectors, they are a serial loop over vectors of 128 bytes, followed
  by shorter ones. The last one to three elements are scalars.
- If indices are computed with floats, as in resized images, up to 64 vectors follow each other
  without a loop, so that ShuffleLoad knows which elements each one picks.
- Vectors of float16 that are added or multiplied have eight lanes.
- A loop that has no vector form, as one that loads every 19th element, becomes one serial loop:
  in parts it would have as many scalar instructions as iterations, over which LLVM takes seconds.
- A loop of unknown length is one over vectors of 16 lanes, one over 4, and one over what is left.
- An unrolled loop whose variable decides the extents of vectorized loops is unrolled here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, substitute
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import Add, Call, Cast, Div, Max, Min, Mul, Select, Sub, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind, Stmt, seq
from weft.tir.stmt_functor import redefined
from weft.tir.transform.prim_func_pass import define_pass, rewrite_body
from weft.tir.transform.vectorize_loop import has_vector_form

SHORTEST: Final = 4
PADDED: Final = 16
"""Loops of up to so many lanes stay one vector; LLVM pads it to a power of two."""
MOST_VECTORS: Final = 16
"""The most vectors that follow each other without a loop."""
LONGEST: Final = 64
"""The most lanes of one vector, if they are a power of two."""
_HALF: Final = DataType("float16")
_HALVES: Final = 8
"""Lanes of vectors of float16 that are computed with in float32. One instruction converts eight of
them as it loads or stores them; conversions of 16 take longer than two of 8 on processors that
execute them in two halves, as Zen 4 does."""
_LONG_BITS: Final = 128 * 8
_MOST_KNOWN: Final = 64
"""The most vectors without a loop where each one picks its elements in an order of its own."""


class _Split(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()

    def visit_For(self, loop: For) -> Stmt:
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        if isinstance(loop.extent, IntImm) and _decides_lengths(loop):
            return seq(*[self.visit(_iteration(loop, at)) for at in range(loop.extent.value)])
        visited: For = self.visit_default(loop)
        if visited.kind is not ForKind.VECTORIZED or not is_const_int(visited.min, 0):
            return visited
        if not isinstance(visited.extent, IntImm):
            has_form = has_vector_form(visited, PADDED, self.analyzer)
            return _of_any_length(visited) if has_form else visited
        extent = visited.extent.value
        is_power = extent & (extent - 1) == 0
        if extent > _HALVES and _converts_halves(visited):
            return _long(visited, extent, _HALVES)
        if extent <= PADDED or (is_power and extent <= LONGEST):
            return visited
        if not has_vector_form(visited, PADDED, self.analyzer):
            return visited.with_(kind=ForKind.SERIAL)
        lanes = extent & -extent  # the largest power of two that divides it
        lanes = min(max(lanes, PADDED), LONGEST)
        if _MOST_KNOWN * PADDED >= extent and _computes_places(visited):
            whole, rest = divmod(extent, PADDED)
            return seq(_vectors(visited, whole, PADDED), *_rest(visited, extent, rest))
        whole, rest = divmod(extent, lanes)
        if is_power or whole + rest.bit_count() > MOST_VECTORS:
            return _long(visited, extent, _long_lanes(visited))
        return seq(_vectors(visited, whole, lanes), *_rest(visited, extent, rest))


def _of_any_length(loop: For, sizes: Sequence[int] = (PADDED, SHORTEST)) -> Stmt:
    """Vectors for as many elements as fill them, shorter vectors, and then scalars."""
    if not sizes:
        return loop.with_(kind=ForKind.SERIAL)
    old, lanes = loop.loop_var, IntImm(loop.loop_var.dtype, sizes[0])
    whole = op.floordiv(loop.extent, lanes)
    rest = Var(old.name, old.dtype)
    body = redefined(substitute(loop.body, {old: op.add(op.multiply(whole, lanes), rest)}))
    last = loop.with_(loop_var=rest, extent=op.floormod(loop.extent, lanes), body=body)
    vectors = _vectors(loop, whole, sizes[0], ForKind.SERIAL)
    return seq(vectors, _of_any_length(last, sizes[1:]))


def _decides_lengths(loop: For) -> bool:
    """Whether a loop is unrolled and its variable is in the extents of vectorized loops inside."""
    if loop.kind is not ForKind.UNROLLED:
        return False
    inside = [item for item in collect(loop.body, For) if item.kind is ForKind.VECTORIZED]
    return any(loop.loop_var in collect(item.extent, Var) for item in inside)


def _iteration(loop: For, at: int) -> Stmt:
    """The body for iteration ``at``, with the extents of its vectorized loops simplified."""
    value = op.add(loop.min, at)
    return _Lengths().visit(redefined(substitute(loop.body, {loop.loop_var: value})))


class _Lengths(Mutator):
    """Simplifies the extents of vectorized loops."""

    def visit_For(self, loop: For) -> Stmt:
        inner: For = self.visit_default(loop)
        is_vector = inner.kind is ForKind.VECTORIZED
        return inner.with_(extent=Analyzer().simplify(inner.extent)) if is_vector else inner


def _computes_places(loop: For) -> bool:
    """Whether an index of a load is computed from the lane with floats."""
    indices = [index for load in collect(loop.body, BufferLoad) for index in load.indices]
    casts = [cast for index in indices for cast in collect(index, Cast)]
    return any(cast.value.dtype.is_float and loop.loop_var in collect(cast, Var) for cast in casts)


def _converts_halves(loop: For) -> bool:
    """Whether a loop only adds, subtracts, multiplies or divides float16, in memory.

    Such a loop spends its time on conversions to float32 and back. Maxima and minima need none, and
    functions take longer than conversions, so loops with those are left out.
    """
    stores = collect(loop.body, BufferStore)
    values = [store.value for store in stores if store.value.dtype == _HALF]
    buffers = [store.buffer for store in stores]
    buffers += [load.buffer for load in collect(loop.body, BufferLoad)]
    return (
        any(isinstance(value, (Add, Sub, Mul, Div)) for value in values)
        and not collect(loop.body, (Call, For, Select, Max, Min))
        and all(buffer.scope() == "global" for buffer in buffers)
    )


def _long_lanes(loop: For) -> int:
    """How many elements of the widest type that a loop stores have 128 bytes, at least 16."""
    widest = max([store.value.dtype.bits for store in collect(loop.body, BufferStore)], default=32)
    return max(_LONG_BITS // max(widest, 8), PADDED)


def _long(loop: For, extent: int, lanes: int) -> Stmt:
    """A serial loop over vectors of ``lanes``, then shorter vectors for what is left."""
    whole, rest = divmod(extent, lanes)
    vectors = _vectors(loop, whole, lanes, ForKind.SERIAL)
    return seq(vectors, *_rest(loop, extent, rest))


def _rest(loop: For, extent: int, rest: int) -> list[Stmt]:
    """The last ``rest`` elements, in vectors of powers of two and up to three scalars."""
    parts: list[Stmt] = []
    start, width = extent - rest, 1 << rest.bit_length()
    while width > SHORTEST:
        width //= 2
        if rest & width:
            parts.append(_vector(loop, start, width))
            start += width
    if rest % SHORTEST:
        last = _vector(loop, start, rest % SHORTEST)
        parts.append(last.with_(kind=ForKind.SERIAL))
    return parts


def _vectors(loop: For, count: int | PrimExpr, lanes: int, kind: ForKind = ForKind.UNROLLED) -> For:
    """A loop over the first ``count`` vectors; the vector itself if it is one."""
    if isinstance(count, int) and count == 1:
        return _vector(loop, 0, lanes)
    old = loop.loop_var
    outer, inner = Var(old.name, old.dtype), Var(f"{old.name}_1", old.dtype)
    body = redefined(substitute(loop.body, {old: outer * lanes + inner}))
    vector = loop.with_(loop_var=inner, extent=IntImm(old.dtype, lanes), body=body)
    zero = IntImm(old.dtype, 0)
    extent = IntImm(old.dtype, count) if isinstance(count, int) else count
    return For(outer, zero, extent, kind, vector)


def _vector(loop: For, start: int, lanes: int) -> For:
    """The vector of ``lanes`` elements that begins at ``start``."""
    old = loop.loop_var
    inner = Var(old.name, old.dtype)
    body = redefined(substitute(loop.body, {old: inner + start if start else inner}))
    return loop.with_(loop_var=inner, extent=IntImm(old.dtype, lanes), body=body)


def split_vector_loops(func: PrimFunc) -> PrimFunc:
    """Split the vectorized loops of a function whose extents do not fit vectors."""
    return rewrite_body(func, _Split())


SplitVectorLoop = define_pass("SplitVectorLoop", split_vector_loops)
