"""Random choices: a number, the extents of tiles, a place to compute at.

Each method draws from the schedule's own random numbers (``seed``, ``fork_seed``), or takes the
``decision`` that a trace holds. Tilings are drawn uniformly without rejection: for each prime
factor of the extent, its exponent is divided among the tiles, and products are weighted by the
number of tilings that have them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.ir.expr import IntImm
from weft.support.errors import IRTypeError
from weft.tir.constant import is_const_int
from weft.tir.expr import IterType
from weft.tir.schedule import dependence, tree
from weft.tir.schedule.analysis.block_kinds import loop_kind, would_apply
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.compute.compute_at import compute_at
from weft.tir.schedule.primitive.compute.compute_inline import compute_inline
from weft.tir.schedule.primitive.tilings import below, divisor_by_weight, divisors, tiling, ways
from weft.tir.schedule.random_variable import BlockRV, ExprRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import INLINE_MARK, ROOT_MARK, StmtSRef, loop_of


class CandidateError(ScheduleFailure):
    """The candidates and their probabilities do not fit each other."""


class TileCountError(ScheduleFailure):
    """The loop cannot be tiled in that way."""


class DecisionError(ScheduleFailure):
    """The decision given is none that the method could have made."""

    hint = "leave decision out to have one drawn"


# ---- a number


def _plain_lists(self: Session, arguments: dict[str, Any]) -> None:
    arguments["candidates"] = [_integer("candidates", item) for item in arguments["candidates"]]
    probs = [float(getattr(item, "value", item)) for item in arguments["probs"]]
    # Whole numbers are recorded as int, as TVM writes them.
    arguments["probs"] = [int(item) if item.is_integer() else item for item in probs]


def _integer(what: str, value: object) -> int:
    number = getattr(value, "value", value)
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise IRTypeError(f"{what}: expected ints, got {type(value).__name__} {value!r}")
    return int(number)


@primitive("SampleCategorical", pure=True, canonical=_plain_lists)
def sample_categorical(
    self: Session, candidates: list[int], probs: list[float], decision: int | None = None
) -> ExprRV:
    """Draw one of several numbers, each with its own probability.

    Args:
        candidates: the numbers to draw from.
        probs: how likely each of them is, relative to the others.
        decision: the place of the number to take, counted from 0. Left out, it is drawn.

    Returns:
        A number that other primitives take as a factor or an annotation; the trace keeps the place.

    Raises:
        CandidateError: the two lists differ in length or are empty, or a probability is negative.
        DecisionError: ``decision`` is no place in the list.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> width = sch.sample_categorical([4, 8, 16], probs=[0.25, 0.5, 0.25], decision=1)
    >>> sch.get(width)
    8
    """
    count = len(candidates)
    if not count or count != len(probs):
        raise CandidateError(
            self.state,
            f"expected as many probabilities as candidates, and at least one; got "
            f"{count} candidates and {len(probs)} probabilities",
        )
    total = math.fsum(probs)
    if not (all(p >= 0 for p in probs) and 0 < total < math.inf):
        raise CandidateError(
            self.state, f"expected probabilities >= 0 that are not all 0, got {probs}"
        )
    if decision is None:
        chosen = _weighted(self, probs, total)
    else:
        chosen = _integer("decision", decision)
        if not 0 <= chosen < count:
            raise DecisionError(
                self.state, f"decision {chosen} is no place among {count} candidates"
            )
    _decide(self, chosen)
    return self._number_rv(candidates[chosen])


def _weighted(self: Session, probs: Sequence[float], total: float) -> int:
    point = below(self, 1 << 53) / (1 << 53) * total
    last = 0
    for place, prob in enumerate(probs):
        if prob > 0:
            last = place
            if point < prob:
                break
        point -= prob
    return last


# ---- tiles


@primitive("SamplePerfectTile", "loop", pure=True)
def sample_perfect_tile(
    self: Session,
    loop: LoopRV,
    n: int,
    max_innermost_factor: int = 16,
    decision: list[int] | None = None,
) -> list[ExprRV | None]:
    """Draw the factors for splitting a loop into tiles that fill it exactly.

    Args:
        loop: the loop to be split. One whose extent is no constant gets the one answer that
            always fits: None, then ones.
        n: the number of factors.
        max_innermost_factor: the largest last factor; -1 for no limit.
        decision: the factors to take. Left out, they are drawn. They are made to fit an extent
            that they do not fill: going from the last factor outwards, one that does not divide
            what is left takes all of it, and the first is what remains.

    Returns:
        The factors, outermost first, for ``split``.

    Raises:
        TileCountError: ``n`` or ``max_innermost_factor`` is too small.
        DecisionError: ``decision`` does not hold ``n`` positive numbers.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> loop = sch.get_loops("B")[1]
    >>> factors = sch.sample_perfect_tile(loop, n=2, decision=[4, 8])
    >>> [sch.get(factor) for factor in factors]
    [4, 8]
    >>> sch.split(loop, factors)
    [LoopRV(j_0), LoopRV(j_1)]
    """
    sref = self._sref(loop)
    _check_count(self.state, sref, n)
    if max_innermost_factor != -1 and (max_innermost_factor < 1 or n == 1):
        raise TileCountError(
            self.state,
            f"{name_of(sref)}: n = {n}, max_innermost_factor = {max_innermost_factor}; expected a "
            "limit of at least 1 and two tiles, or -1 for no limit",
            sref,
        )
    given = _checked_tiles(self.state, sref, n, decision)
    extent = _extent(self.state, sref)
    if extent is None:
        _decide(self, [-1] + [1] * (n - 1))
        return [None, *[self._number_rv(1) for _ in range(n - 1)]]
    if given is not None:
        tiles = _fitted(given, extent)
    elif max_innermost_factor == -1:
        tiles = tiling(self, extent, n)
    else:
        last = divisor_by_weight(
            self,
            {d: ways(extent // d, n - 1) for d in divisors(extent) if d <= max_innermost_factor},
        )
        tiles = [*tiling(self, extent // last, n - 1), last]
    _decide(self, tiles)
    return [self._number_rv(tile) for tile in tiles]


@primitive("SamplePartitionedTile", "loop", pure=True)
def sample_partitioned_tile(
    self: Session,
    loop: LoopRV,
    n: int,
    partition_pos: int = 0,
    innerpart_factor: int = 1,
    decision: list[int] | None = None,
) -> list[ExprRV | None]:
    """Draw factors for splitting a loop whose inner ones multiply to a multiple of a number.

    Args:
        loop: the loop to be split; its extent must be constant.
        n: the number of factors.
        partition_pos: the first of the inner factors, counted from 0.
        innerpart_factor: what divides the product of the inner factors. It must divide the extent.
        decision: the factors to take, made to fit as by ``sample_perfect_tile``. Left out, they
            are drawn.

    Returns:
        The factors, outermost first, for ``split``.

    Raises:
        TileCountError: the numbers do not fit each other or the extent.
        DecisionError: ``decision`` does not hold ``n`` positive numbers.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> loop = sch.get_loops("B")[1]
    >>> outer, inner = sch.sample_partitioned_tile(loop, n=2, partition_pos=1, innerpart_factor=8)
    >>> sch.get(inner) % 8
    0
    """
    sref = self._sref(loop)
    _check_count(self.state, sref, n)
    given = _checked_tiles(self.state, sref, n, decision)
    extent = _extent(self.state, sref)
    _check_partition(self.state, sref, n, (partition_pos, innerpart_factor), extent)
    assert extent is not None
    if given is None:
        inner = divisor_by_weight(
            self,
            {
                d: ways(extent // d, partition_pos) * ways(d, n - partition_pos)
                for d in divisors(extent)
                if d % innerpart_factor == 0
            },
        )
        tiles = tiling(self, extent // inner, partition_pos)
        tiles += tiling(self, inner, n - partition_pos)
    else:
        tiles = _fitted(given, extent)
        if math.prod(tiles[partition_pos:]) % innerpart_factor:
            tiles = [1] * n
            tiles[partition_pos] = innerpart_factor
            tiles[0] *= extent // innerpart_factor
    _decide(self, tiles)
    return [self._number_rv(tile) for tile in tiles]


def _check_count(state: ScheduleState, sref: StmtSRef, n: int) -> None:
    if n < 1:
        raise TileCountError(state, f"{name_of(sref)}: expected at least 1 tile, got n = {n}", sref)


def _extent(state: ScheduleState, sref: StmtSRef) -> int | None:
    """The extent of the loop, if it is constant."""
    extent = loop_of(sref).extent
    if not isinstance(extent, IntImm):
        return None
    if extent.value < 1:
        raise TileCountError(state, f"{name_of(sref)} has extent {extent}", sref)
    return extent.value


def _check_partition(
    state: ScheduleState, sref: StmtSRef, n: int, partition: tuple[int, int], extent: int | None
) -> None:
    place, factor = partition
    if extent is None:
        raise TileCountError(
            state,
            f"{name_of(sref)} has extent {loop_of(sref).extent}, which is not constant: no factor "
            "is known to divide it",
            sref,
            "sample_perfect_tile tiles such a loop trivially",
        )
    if not 0 <= place <= n or (place == n and factor != 1):
        raise TileCountError(
            state, f"{name_of(sref)}: partition_pos {place} is no place among {n} tiles", sref
        )
    if factor < 1 or extent % factor:
        raise TileCountError(
            state, f"{name_of(sref)}: innerpart_factor {factor} does not divide {extent}", sref
        )


def _checked_tiles(
    state: ScheduleState, sref: StmtSRef, n: int, decision: Sequence[object] | None
) -> list[int] | None:
    """The decision as plain numbers; the first is not looked at, it follows from the others."""
    if decision is None:
        return None
    tiles = [_integer("decision", item) for item in decision]
    if len(tiles) != n or any(tile < 1 for tile in tiles[1:]):
        raise DecisionError(
            state, f"{name_of(sref)}: expected {n} tiles of at least 1, got {tiles}", sref
        )
    return tiles


def _fitted(tiles: Sequence[int], extent: int) -> list[int]:
    """The tiles made to divide ``extent``, from the last to the first."""
    fitted = list(tiles)
    left = extent
    for place in range(len(fitted) - 1, 0, -1):
        if left % fitted[place]:
            fitted[place] = left
        left //= fitted[place]
    fitted[0] = left
    return fitted


def _decide(self: Session, decision: object) -> None:
    """Note the decision with the call, for the trace."""
    assert self._call is not None
    self._call.decision = decision


# ---- a place


@primitive("SampleComputeLocation", "block", pure=True)
def sample_compute_location(
    self: Session, block: BlockRV | str, decision: int | None = None
) -> LoopRV:
    """Draw the loop that ``compute_at`` moves a block to.

    Args:
        block: the block to be moved, or its name.
        decision: which place to take: the number of a loop around the first consumer, counted
            from 0; -1 for where the block stands; -2 for inlining it. One that is not possible
            becomes the nearest possible one before it. Left out, the place is drawn.

    Returns:
        What ``compute_at`` and ``reverse_compute_at`` take as their loop; a LoopRV also where the
        place is no loop.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> place = sch.sample_compute_location("B", decision=0)
    >>> sch.compute_at("B", place)
    >>> sch.get_child_blocks(sch.get_loops("C")[0])
    [BlockRV(B), BlockRV(C)]
    """
    if decision is None:
        places = compute_locations(self, block)
        numbers = sorted(places)
        chosen = numbers[below(self, len(numbers))]
        place = places[chosen]
    else:
        chosen, place = _nearest_place(self, block, _integer("decision", decision))
    _decide(self, chosen)
    return self._loop_rv(place)


def compute_locations(self: Session, block: BlockRV | str) -> dict[int, StmtSRef]:
    """The possible decisions of ``sample_compute_location``, with what they stand for."""
    places = {-1: ROOT_MARK}
    if would_apply(self, lambda: compute_inline(self, block)):
        places[-2] = INLINE_MARK
    for number, loop in _candidate_loops(self.state, self._sref(block)):
        if _can_move(self, block, loop):
            places[number] = loop
    return places


def _nearest_place(self: Session, block: BlockRV | str, decision: int) -> tuple[int, StmtSRef]:
    """The last possible decision up to the given one: -1 if there is none before it."""
    candidates = _candidate_loops(self.state, self._sref(block))
    for number, loop in reversed(candidates):
        if number <= decision and _can_move(self, block, loop):
            return number, loop
    if decision == -2 and would_apply(self, lambda: compute_inline(self, block)):
        return -2, INLINE_MARK
    return -1, ROOT_MARK


def _can_move(self: Session, block: BlockRV | str, loop: StmtSRef) -> bool:
    variable = self._loop_rv(loop)
    return would_apply(self, lambda: compute_at(self, block, variable, True))


def _candidate_loops(state: ScheduleState, sref: StmtSRef) -> list[tuple[int, StmtSRef]]:
    """The loops around all consumers that are worth trying, with their numbers.

    Loops of extent 1 are left out, spatial loops inside of others, and others inside of all
    spatial ones.
    """
    scope = tree.scope_of(sref)
    if scope is None:
        return []
    consumers = [
        state.sref_of(item)
        for item in dependence.consumers_of(tree.block_of(sref), tree.block_of(scope))
    ]
    if not consumers:
        return []
    around = tree.loops_above(consumers[0])
    boundary = tree.lowest_common_ancestor(consumers) if len(consumers) > 1 else consumers[0].parent
    if boundary not in around:
        return []
    loops = around[: around.index(boundary) + 1]
    kinds = [loop_kind(loop_of(loop)) for loop in loops]
    last = max([i for i, kind in enumerate(kinds) if kind == IterType.DataPar], default=-1)
    candidates = []
    reduced = False
    for number, (loop, kind) in enumerate(zip(loops, kinds, strict=True)):
        extent = loop_of(loop).extent
        if is_const_int(extent, 1):
            continue
        if reduced if kind == IterType.DataPar else number > last:
            break
        reduced = reduced or kind != IterType.DataPar
        candidates.append((number, loop))
    return candidates
