"""ShiftTiles: along an axis of symbolic extent the last tile begins earlier, without guards.

A schedule cuts an axis of ``n`` elements into tiles of 8 that stay in registers; each element of a
tile is guarded, because the last tile may be cut off. In a loop over ``k`` inside of the tile these
guards are most of the work. Before::

    for o in range((n + 7) // 8):
        for v in T.unroll(8): if o * 8 + v < n: s[v] = 0
        for k in range(64):
            for v in T.unroll(8): if o * 8 + v < n: s[v] += x[o * 8 + v, k] * w[k]
        for v in T.unroll(8): if o * 8 + v < n: y[o * 8 + v] = s[v]

After (``TILE(size, begin)`` is the body without guards, with ``begin`` for ``o * 8``)::

    if 8 <= n:
        for o in range(n // 8): TILE(8, T.min(o * 8, n - 8))
    done = ...  # how many elements these tiles have: 0 if n < 8
    if 7 <= n and (n - done + 6) // 7 * 9 <= (n - done + 3) // 4 * 6:
        for o in range((n - done + 6) // 7): TILE(7, T.min(done + o * 7, n - 7))
    ...  # and so on, with tiles of 4, 2
    else: for o in range(n - done): TILE(1, done + o)

The last tile computes some elements a second time. These are few: what remains after whole tiles of
8 has tiles of the size that takes the least time, where a tile's time is that of two elements more
than it has; if more remains than a tile of the second size holds (of 14 and 7 elements, say), it is
one more tile of the first. Tiles that run in parallel, and vectors, all have one size. The
repetition must not be seen: where the body reads memory that it writes (a result that takes the
place of an argument), tiles do not overlap::

    for o in range(n // 8): TILE(8, o * 8)
    for o in range(n % 8 // 7): TILE(7, n // 8 * 8 + o * 7)
    for o in range(n % 8 % 7 // 4): TILE(4, n // 8 * 8 + n % 8 // 7 * 7 + o * 4)
    ...  # and so on, with tiles of 2, 1

So it is, too, where the body has ``v`` without ``o * 8``, as in ``v % 2`` for
``(o * 8 + v) % 2``. In tiles that begin elsewhere, ``(begin + v) % 8`` takes its place.

Vectors along the axis become shorter in the same way (48 lanes, 16, 4): with a guard for each lane
they would be no vectors. A loop is left as it is if its variable stands anywhere but in a place of
the axis, such as ``o * 8 + v`` or ``o * 16 + v * 2 + k``, or if memory from outside of the loop is
written without that guard. Runs before
PartitionGuardedLoops, which would copy the tile with its guards. Libraries of products shift their
last tile likewise (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
2008, have the tile in registers that this keeps whole).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.data import has_data
from weft.backends.cpu.vectors.tile_uses import Guard, TiledAxis, Uses, axis_of
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, mentions
from weft.tir.buffer import BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import EQ, GE, LE, Add, And, Select, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    seq,
)
from weft.tir.stmt_functor import redefined
from weft.tir.transform.decided_condition import DecidedConditions
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

_Size = TypeVar("_Size", int, PrimExpr)
GROWTH: Final = 128
"""Stores in unrolled tiles that the pass may add to a function."""
_CUT: Final = 6
"""Tiles of so many elements are cut into smaller ones before single elements."""
_MANY_SIZES: Final = 5
"""Of more sizes of tiles than these the second can be left out: the third has eight elements."""
_BESIDE: Final = 2
"""What a tile takes beside its elements, in the time of elements."""


@dataclass(frozen=True)
class _Tiles:
    """The tiles of a loop: ``size`` elements of an axis of ``extent``, each tile whole or cut."""

    loop: For
    size: int
    extent: PrimExpr
    guards: list[Guard]
    inner: set[Var]
    """The variables of the loops over the elements of a tile."""
    is_vector: bool
    own: set[Var]
    """The memory that each tile has for itself."""
    may_overlap: bool

    def number(self, value: int) -> PrimExpr:
        """A constant of the type of the extent."""
        return fold.const(self.extent.dtype, value)


def _tiles_of(loop: For, analyzer: Analyzer) -> _Tiles | None:
    """The tiles of a loop that this pass can shift, or None."""
    if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or not is_const_int(loop.min, 0):
        return None
    if isinstance(loop.extent, IntImm) or not collect(loop.body, IfThenElse):
        return None
    axis = axis_of(loop)
    if axis is None:
        return None
    uses = Uses(axis)
    uses.visit(loop.body)
    if uses.others or uses.calls_out:
        return None
    size, elements, dtype = axis.size, axis.elements, loop.loop_var.dtype
    if (
        any(guard.size != size or guard.extent.dtype != dtype for guard in uses.guards)
        or any(has_data(guard.extent) for guard in uses.guards)
        or mentions([guard.extent for guard in uses.guards], loop.loop_var, *uses.loops)
        or not all(_is_tile_loop(uses.loops.get(var), size) for var in elements)
        or uses.written_unguarded - uses.own
    ):
        return None
    extent = _extent_of(loop, size, uses.guards, analyzer)
    outside = uses.written - uses.own
    is_vector = any(uses.loops[var].kind is ForKind.VECTORIZED for var in elements)
    may_overlap = not outside & uses.read and not uses.has_alone
    return _Tiles(loop, size, extent, uses.guards, elements, is_vector, uses.own, may_overlap)


def _extent_of(loop: For, size: int, guards: Sequence[Guard], analyzer: Analyzer) -> PrimExpr:
    """The number of elements that the tiles of a loop have in all.

    Where it is a minimum (``n`` and ``m`` of guards ``o * 8 + v < n and o * 8 + v < m``), the
    number of tiles is not compared with it, but is a part of it.
    """
    extents: list[PrimExpr] = []
    for guard in guards:
        if not any(analyzer.can_prove(EQ(guard.extent, known)) for known in extents):
            extents.append(guard.extent)
    width, more = (fold.const(loop.extent.dtype, number) for number in (size, size - 1))
    count = fold.floordiv(fold.add(extents[0], more), width)
    if len(extents) > 1 or not analyzer.can_prove(EQ(loop.extent, count)):
        extents.append(fold.mul(loop.extent, width))
    return functools.reduce(fold.min_, extents)


def _is_tile_loop(loop: For | None, size: int) -> bool:
    return (
        loop is not None
        and loop.kind in (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTORIZED)
        and is_const_int(loop.min, 0)
        and is_const_int(loop.extent, size)
    )


class _AtPlace(DecidedConditions):
    """The body of a tile of ``size`` elements that begins at ``begin``, without its guards.

    ``is_usual`` says that ``begin`` is a multiple of the size that tiles have in the loop as it is.
    """

    def __init__(self, tiles: _Tiles, size: int, begin: PrimExpr, *, is_usual: bool) -> None:
        super().__init__(True)
        self.tiles, self.size, self.begin = tiles, size, begin
        self.axis = TiledAxis(tiles.loop.loop_var, tiles.size, tiles.inner)
        self.guards = {id(guard.test) for guard in tiles.guards}
        self._stays = is_usual
        """Whether a variable of elements stands for itself here."""

    def is_decided(self, expr: PrimExpr) -> bool:
        return id(expr) in self.guards

    def visit_Add(self, total: Add) -> PrimExpr:
        place, others = self.axis.split(total)
        if place is None:
            return self.visit_PrimExpr(total)
        begin = fold.mul(self.begin, fold.const(total.dtype, place.times))
        terms = [begin, place.element, *[self.visit(term) for term in others]]
        return functools.reduce(fold.add, terms)

    def visit_Var(self, var: Var) -> PrimExpr:
        if self._stays or var not in self.tiles.inner:
            return var
        return fold.floormod(fold.add(self.begin, var), fold.const(var.dtype, self.tiles.size))

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        return load.with_(indices=self._index(load))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        return store.with_(value=self.visit(store.value), indices=self._index(store))

    def _index(self, access: BufferLoad | BufferStore) -> list[PrimExpr]:
        before = self._stays
        self._stays = before or access.buffer.data in self.tiles.own
        indices = [self.visit(index) for index in access.indices]
        self._stays = before
        return indices

    def visit_For(self, loop: For) -> Stmt:
        body = self.visit(loop.body)
        if loop.loop_var not in self.tiles.inner:
            return loop.with_(body=body)
        is_vector = loop.kind is ForKind.VECTORIZED and self.size > 1
        kind = loop.kind if is_vector or loop.kind is ForKind.SERIAL else ForKind.UNROLLED
        return loop.with_(kind=kind, extent=fold.const(loop.extent.dtype, self.size), body=body)

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        done = self.visit_default(stmt)
        if isinstance(done, IfThenElse) and is_const_int(done.condition, 1):
            return done.then_case
        return done


class _Shift(StmtMutator):
    """Shifts the last tiles of loops, of outer loops first."""

    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.growth = GROWTH

    def visit_For(self, loop: For) -> Stmt:
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        tiles = _tiles_of(loop, self.analyzer)
        if tiles is None:
            return loop.with_(body=self.visit(loop.body))
        stores = len(collect(loop.body, BufferStore))
        sizes = _affordable(tiles, self.growth // max(stores, 1))
        if not sizes:
            return loop.with_(body=self.visit(loop.body))
        self.growth -= stores * _copies(tiles, sizes)
        arrange = _arrangement(tiles)
        if isinstance(tiles.extent, Var):
            return self.visit(arrange(tiles, sizes))
        extent = Var("extent", loop.loop_var.type_annotation)
        shifted = self.visit(arrange(replace(tiles, extent=extent), sizes))
        return LetStmt(extent, tiles.extent, shifted)


def tile_sizes(size: int) -> list[int]:
    """The sizes of tiles, from the largest to 1, that an axis of symbolic extent is cut into.

    The second one is about half of the first, or seven: rows of images that were halved a few times
    often have a multiple of seven pixels, or almost that. The others are halves.

    >>> tile_sizes(14), tile_sizes(9), tile_sizes(6), tile_sizes(4)
    ([14, 7, 4, 2, 1], [9, 7, 4, 2, 1], [6, 5, 3, 2, 1], [4, 1])
    """
    if size < _CUT:
        return [size, 1]
    sizes = [size, max((size + 1) // 2, min(size - 1, 7))]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def tiles_of_extent(size: int, extent: int) -> list[tuple[int, int]]:
    """``(size, how many)`` of the tiles of an axis of symbolic extent when it has ``extent``.

    >>> [tiles_of_extent(14, extent) for extent in (56, 55, 17, 13, 3)]
    [[(14, 4)], [(14, 4)], [(14, 1), (4, 1)], [(7, 2)], [(2, 2)]]
    """
    sizes = tile_sizes(size)
    count = _whole_tiles(extent, size, sizes[1]) if extent >= size else 0
    parts = [(size, count)] if count else []
    rest = extent - count * size
    if rest > 0:
        fitting = [each for each in sizes[1:] if each <= extent]
        times = [-(-rest // each) * (each + _BESIDE) for each in fitting]
        slower = [time > following for time, following in itertools.pairwise(times)]
        best = fitting[[*slower, False].index(False)]
        parts.append((best, -(-rest // best)))
    return parts


def _whole_tiles(extent: _Size, size: int, second: int) -> _Size:
    """How many tiles of ``size`` there are: what remains fits into one of the second size."""
    return (extent + (size - 1 - second)) // size


def _sizes(tiles: _Tiles) -> list[int]:
    """The sizes of tiles, from the largest to 1, that are worth their code."""
    if tiles.is_vector:
        return [tiles.size, *[lanes for lanes in (16, 4) if lanes < tiles.size], 1]
    return tile_sizes(tiles.size)


def _affordable(tiles: _Tiles, most: int) -> list[int]:
    """The sizes of tiles that take at most ``most`` copies: of large tiles, without the second."""
    sizes = _sizes(tiles)
    if _copies(tiles, sizes) > most and len(sizes) > _MANY_SIZES:
        del sizes[1]
    return sizes if _copies(tiles, sizes) <= most else []


def _copies(tiles: _Tiles, sizes: Sequence[int]) -> int:
    """How many copies of the body's statements all tiles but the largest are."""
    return len(sizes) - 1 if tiles.is_vector else sum(sizes[1:])


def _arrangement(tiles: _Tiles) -> Callable[[_Tiles, Sequence[int]], Stmt]:
    if not tiles.may_overlap:
        return _apart
    is_even = tiles.is_vector or tiles.loop.kind is ForKind.PARALLEL
    return _of_one_size if is_even else _largest_first


def _of_one_size(tiles: _Tiles, sizes: Sequence[int]) -> Stmt:
    return _overlapping(tiles, sizes, tiles.number(0))


def _largest_first(tiles: _Tiles, sizes: Sequence[int]) -> Stmt:
    """Tiles of the largest size, and of one smaller size for what remains."""
    size, *smaller = sizes
    width = tiles.number(size)
    fits = GE(tiles.extent, width)
    count = _whole_tiles(tiles.extent, size, smaller[0])
    last = fold.sub(tiles.extent, width)
    whole = _loop(tiles, size, count, partial(_shifted, width, last, tiles.number(0)))
    done = Var("done", tiles.loop.loop_var.type_annotation)
    behind = fold.min_(fold.mul(count, width), tiles.extent)
    rest = _overlapping(tiles, smaller, done)
    return seq(IfThenElse(fits, whole), LetStmt(done, Select(fits, behind, tiles.number(0)), rest))


def _overlapping(tiles: _Tiles, sizes: Sequence[int], done: PrimExpr) -> Stmt:
    """Tiles of the size that fits best, for the elements behind ``done``; the last one begins so
    that it ends with the axis.
    """
    rest = fold.sub(tiles.extent, done)
    result = _loop(tiles, 1, rest, partial(fold.add, done))
    for size, smaller in reversed(list(itertools.pairwise(sizes))):
        width = tiles.number(size)
        last = fold.sub(tiles.extent, width)
        count = _count(tiles, rest, size)
        whole = _loop(tiles, size, count, partial(_shifted, width, last, done))
        fits: PrimExpr = GE(tiles.extent, width)
        if not tiles.is_vector:
            fits = And(fits, LE(_time(tiles, rest, size), _time(tiles, rest, smaller)))
        result = IfThenElse(fits, whole, result)
    return result


def _count(tiles: _Tiles, extent: PrimExpr, size: int) -> PrimExpr:
    """How many tiles of a size ``extent`` elements have."""
    return fold.floordiv(fold.add(extent, tiles.number(size - 1)), tiles.number(size))


def _time(tiles: _Tiles, extent: PrimExpr, size: int) -> PrimExpr:
    return fold.mul(_count(tiles, extent, size), tiles.number(size + _BESIDE))


def _shifted(width: PrimExpr, last: PrimExpr, done: PrimExpr, place: PrimExpr) -> PrimExpr:
    return fold.min_(fold.add(done, fold.mul(place, width)), last)


def _apart(tiles: _Tiles, sizes: Sequence[int]) -> Stmt:
    """Tiles of each size behind those of the larger sizes."""
    parts: list[Stmt] = []
    done, rest = tiles.number(0), tiles.extent
    for size in sizes:
        width = tiles.number(size)
        count = fold.floordiv(rest, width)
        begin = partial(_behind, width, done)
        parts.append(_loop(tiles, size, count, begin, is_usual=size == tiles.size))
        done, rest = fold.add(done, fold.mul(count, width)), fold.floormod(rest, width)
    return seq(*parts)


def _behind(width: PrimExpr, done: PrimExpr, place: PrimExpr) -> PrimExpr:
    return fold.add(done, fold.mul(place, width))


def _loop(
    tiles: _Tiles,
    size: int,
    count: PrimExpr,
    begin: Callable[[PrimExpr], PrimExpr],
    *,
    is_usual: bool = False,
) -> Stmt:
    """A loop over ``count`` tiles of ``size`` elements, which begin where ``begin`` says."""
    loop = tiles.loop
    place, start = (Var(loop.loop_var.name, loop.loop_var.type_annotation) for _ in range(2))
    body = _AtPlace(tiles, size, start, is_usual=is_usual).visit(loop.body)
    if size != tiles.size:
        body = redefined(body)
    inside = LetStmt(start, begin(place), body)
    return loop.with_(loop_var=place, extent=count, body=inside)


def shift_tiles(func: PrimFunc) -> PrimFunc:
    """The function with the last tiles of loops of symbolic extent shifted."""
    if not func.attrs.get("tir.noalias"):
        return func  # what is written may be read under another name
    return rewrite_body(func, _Shift())


ShiftTiles = define_pass("ShiftTiles", shift_tiles)
