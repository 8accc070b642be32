"""Primitives with which a user hides, or sets, what a block declares to read and write.

Other primitives trust these declarations, so both are for users who know more than the analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.expr import ExprLike, PrimExpr, Range, as_prim_expr
from weft.ir.functor import substitute
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import Var
from weft.tir.index_map import IndexMap
from weft.tir.schedule import checks, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.instruction import index_map_text
from weft.tir.schedule.primitive.buffer.buffer_argument import KINDS
from weft.tir.schedule.primitive.cache.cache_access import accesses
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef


class AccessKindError(ScheduleFailure):
    """Accesses are called "read" or "write"."""


class AccessIndexError(ScheduleFailure):
    """The block has no such access."""


class AccessRegionError(ScheduleFailure):
    """The region given does not fit the buffer or what the block does with it."""


def _check_kind(state: ScheduleState, sref: StmtSRef, kind: object) -> None:
    if kind not in KINDS:
        raise AccessKindError(
            state, f'{name_of(sref)}: expected buf_type "read" or "write", got {kind!r}', sref
        )


# ---- unsafe_hide_buffer_access


def _plain_places(self: Session, arguments: dict[str, Any]) -> None:
    given = arguments["buf_index_array"]
    if not hasattr(given, "__iter__") or isinstance(given, str):
        raise IRTypeError(
            "sch.unsafe_hide_buffer_access: buf_index_array: expected a list of ints, got "
            f"{given!r}"
        )
    arguments["buf_index_array"] = [getattr(item, "value", item) for item in given]


@primitive("UnsafeHideBufferAccess", "block buf_type buf_index_array", canonical=_plain_places)
def unsafe_hide_buffer_access(
    self: Session, block: BlockRV | str, buf_type: str, buf_index_array: list[int]
) -> None:
    """Take buffers out of those that a block declares to read or write.

    Unsafe: other primitives no longer see that the block depends on them.

    Args:
        block: the block, or its name.
        buf_type: "read" or "write".
        buf_index_array: the places of the buffers among the block's reads or writes.

    Raises:
        AccessKindError: ``buf_type`` is neither of the two.
        AccessIndexError: the block has no access at one of the places, or a place occurs twice.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.unsafe_hide_buffer_access("C", "read", [0])
    >>> len(sch.get(sch.get_block("C")).reads)
    0
    """
    sref = self._sref(block)
    _check_kind(self.state, sref, buf_type)
    old = tree.block_of(sref)
    regions = old.reads if buf_type == "read" else old.writes
    for place in buf_index_array:
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(regions):
            raise AccessIndexError(
                self.state,
                f"{name_of(sref)} {buf_type}s {len(regions)} buffers, got place {place}",
                sref,
            )
    kept = [item for place, item in enumerate(regions) if place not in buf_index_array]
    new = old.with_(reads=kept) if buf_type == "read" else old.with_(writes=kept)
    self.state.replace(sref, new, {old: new})


# ---- annotate_buffer_access


def ranges_text(index_map: IndexMap) -> str:
    """A map to begins and ends as a lambda that gives their pairs."""
    head = index_map_text(index_map).split(":", 1)[0]
    ends = list(index_map.final_indices)
    pairs = []
    for low, high in zip(ends[::2], ends[1::2], strict=True):
        parts = []
        for item in (low, high):
            text = index_map_text(IndexMap(index_map.initial_indices, [item]))
            parts.append(text.split(":", 1)[1].strip().removeprefix("(").removesuffix(",)"))
        pairs.append(f"({parts[0]}, {parts[1]})")
    return f"{head}: [{', '.join(pairs)}]"


def _with_ranges(self: Session, arguments: dict[str, Any]) -> None:
    kind = getattr(arguments["buf_type"], "value", arguments["buf_type"])
    if isinstance(kind, int) and kind in (0, 1):  # as TVM's JSON has it
        kind = KINDS[kind]
    arguments["buf_type"] = kind
    ranges = arguments["gen_new_ranges"]
    if isinstance(ranges, IndexMap):
        return
    if not callable(ranges):
        raise IRTypeError(
            "sch.annotate_buffer_access: gen_new_ranges: expected a function from the axes of the "
            f"block to ranges, got {type(ranges).__name__}"
        )
    axes = [axis.var for axis in self.get(arguments["block"]).iter_vars]
    fresh = [axis.copy_with_suffix("") for axis in axes]
    arguments["gen_new_ranges"] = IndexMap(fresh, _ends(_returned(ranges, fresh)))


def _returned(ranges: Callable[..., Any], axes: Sequence[Var]) -> list[Any]:
    result = ranges(*axes)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _ends(ranges: Sequence[ExprLike | tuple[ExprLike, ...] | list[ExprLike]]) -> list[PrimExpr]:
    """Begin and end of each range; one expression is the range of one element."""
    ends: list[PrimExpr] = []
    for item in ranges:
        if isinstance(item, (list, tuple)):
            if len(item) != 2:
                raise IRValueError(
                    f"sch.annotate_buffer_access: expected (begin, end), got {len(item)} items"
                )
            ends += [as_prim_expr(part) for part in item]
        else:
            start = as_prim_expr(item)
            ends += [start, start + 1]
    return ends


@primitive(
    "AnnotateBufferAccess",
    "block buffer_index buf_type gen_new_ranges",
    canonical=_with_ranges,
    texts={"gen_new_ranges": ranges_text},
)
def annotate_buffer_access(
    self: Session, block: BlockRV | str, buffer_index: int, buf_type: str | int, gen_new_ranges: Any
) -> None:
    """Declare which region of a buffer a block accesses, where the analysis of its body knows less.

    The region must hold every access. One that surely leaves something out is refused, all others
    are taken on trust.

    Args:
        block: the block, or its name.
        buffer_index: the buffer's place among the block's reads or writes.
        buf_type: "read" or "write".
        gen_new_ranges: a function from the block's axes to one item for each axis of the buffer:
            a pair ``(begin, end)``, or an index where it is one element.

    Raises:
        AccessKindError: ``buf_type`` is neither of the two.
        AccessRegionError: the region does not fit the buffer, or an access is outside it.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.annotate_buffer_access("B", 0, "read", lambda i, j: (i, (0, 32)))
    >>> sch.get(sch.get_block("B")).reads[0].region
    [I.Range.from_min_extent(v_i, 1), I.Range(0, 32)]
    """
    sref = self._sref(block)
    state = self.state
    _check_kind(state, sref, buf_type)
    assert isinstance(buf_type, str)
    buffer, _ = checks.nth_access(state, sref, buffer_index, write=buf_type == "write")
    old = tree.block_of(sref)
    region = _region(state, sref, buffer, gen_new_ranges)
    _check_accesses(state, sref, region, buf_type)
    field = f"{buf_type}s"
    regions = list(old.writes if buf_type == "write" else old.reads)
    regions[buffer_index] = region
    key = f"explicit_{buf_type}_region"
    known = [getattr(item, "value", item) for item in old.annotations.get(key, [])]
    places = known if buffer_index in known else [*known, buffer_index]
    new = old.with_(**{field: regions, "annotations": {**old.annotations, key: places}})
    state.replace(sref, new, {old: new})


def _region(state: ScheduleState, sref: StmtSRef, buffer: Buffer, ranges: IndexMap) -> BufferRegion:
    axes = [axis.var for axis in tree.block_of(sref).iter_vars]
    if len(ranges.initial_indices) != len(axes):
        raise AccessRegionError(
            state,
            f"{name_of(sref)} has {len(axes)} axes, the ranges are of "
            f"{len(ranges.initial_indices)}",
            sref,
        )
    if len(ranges.final_indices) != 2 * buffer.ndim:
        raise AccessRegionError(
            state,
            f"{buffer.name} has {buffer.ndim} axes, got {len(ranges.final_indices) // 2} ranges",
            sref,
        )
    mapping = dict(zip(ranges.initial_indices, axes, strict=True))
    ends = substitute(list(ranges.final_indices), mapping)
    analyzer = Analyzer()
    return BufferRegion(
        buffer,
        [
            Range.from_min_extent(low, analyzer.simplify(op.subtract(high, low)))
            for low, high in zip(ends[::2], ends[1::2], strict=True)
        ],
    )


def _check_accesses(state: ScheduleState, sref: StmtSRef, region: BufferRegion, kind: str) -> None:
    """No access of the block is surely outside of the region."""
    if not state.enable_check:
        return
    uses = accesses(sref.stmt, region.buffer)
    analyzer = tree.analyzer_above(sref)
    for access in uses.loads if kind == "read" else uses.stores:
        for index, rng in zip(access.indices, region.region, strict=True):
            before = op.less(index, rng.min)
            after = op.greater_equal(index, rng.min + rng.extent)
            if analyzer.can_prove(before) or analyzer.can_prove(after):
                raise AccessRegionError(
                    state,
                    f"{name_of(sref)} {kind}s {region.buffer.name} at {index}, which is not in "
                    f"{rng.min} to {rng.min + rng.extent}",
                    sref,
                    "the end of a range is not part of it",
                )
