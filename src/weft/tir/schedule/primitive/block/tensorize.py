"""tensorize: part of a program computed by the instructions of a tensor intrinsic."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, Range
from weft.ir.functor import Visitor
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Ramp
from weft.tir.function import PrimFunc
from weft.tir.schedule import tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import RootBlockError, ScheduleFailure, name_of
from weft.tir.schedule.primitive.block.block_division import blockized
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tensorize_match import Matched, Mismatch, compare
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, MatchBufferRegion
from weft.tir.stmt_functor import renew_defs
from weft.tir.tensor_intrinsic import TensorIntrin

logger = logging.getLogger(__name__)


class TensorIntrinMismatchError(ScheduleFailure):
    """The program does not compute what the intrinsic does."""


class TensorIntrinError(ScheduleFailure):
    """The implementation of the intrinsic does not suit its description, or this program."""


@primitive("Tensorize", "block_or_loop")
def tensorize(
    self: Session,
    block_or_loop: BlockRV | LoopRV | str,
    tensor_intrin: str,
    preserve_unit_iters: bool = True,
) -> None:
    """Replace a piece of a program by the implementation of a tensor intrinsic.

    What the piece computes must be the description of the intrinsic, but for the names of variables
    and the place of the buffers' regions.

    Args:
        block_or_loop: the block, or a loop; all inside the loop becomes a block first.
        tensor_intrin: the name under which ``tir.TensorIntrin.register`` has the intrinsic;
            ``import weft.tensor_intrin`` registers those of weft.
        preserve_unit_iters: keep axes of extent 1 in what the new block's axes are bound to.

    Raises:
        TensorIntrinMismatchError: the piece is not what the intrinsic describes; the message names
            the first difference.
        TensorIntrinError: the implementation does not suit its description, or this program.
        IRValueError: no such intrinsic is registered.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> from weft.script import tir as T
    >>> @T.prim_func
    ... def double8(a: T.handle, b: T.handle) -> None:
    ...     A = T.match_buffer(a, (8,), offset_factor=1)
    ...     B = T.match_buffer(b, (8,), offset_factor=1)
    ...     with T.block("root"):
    ...         T.reads(A[0:8])
    ...         T.writes(B[0:8])
    ...         for i in range(8):
    ...             with T.block("B"):
    ...                 v = T.axis.spatial(8, i)
    ...                 B[v] = A[v] * T.float32(2)
    >>> @T.prim_func
    ... def double8_vector(a: T.handle, b: T.handle) -> None:
    ...     A = T.match_buffer(a, (8,), offset_factor=1)
    ...     B = T.match_buffer(b, (8,), offset_factor=1)
    ...     with T.block("root"):
    ...         T.reads(A[0:8])
    ...         T.writes(B[0:8])
    ...         B[T.ramp(0, 1, 8)] = A[T.ramp(0, 1, 8)] * T.broadcast(T.float32(2), 8)
    >>> _ = tir.TensorIntrin.register("example.double8", double8, double8_vector, override=True)
    >>> outer, inner = sch.split(sch.get_loops("B")[1], factors=[None, 8])
    >>> sch.tensorize(inner, "example.double8")
    """
    state, sref = self.state, self._sref(block_or_loop)
    intrinsic = TensorIntrin.get(tensor_intrin)
    assert intrinsic is not None
    if sref.parent is None:
        raise RootBlockError(state, f"{name_of(sref)} is the root block", sref)
    old = sref.stmt
    if isinstance(old, For):
        realize, _ = blockized(state, sref, preserve_unit_iters)
    else:
        realize = tree.realize_of(state, sref)
    matched = _matched(state, sref, realize, tensor_intrin, intrinsic)
    impl = renew_defs(intrinsic.impl)
    places = _places(state, sref, (tensor_intrin, intrinsic.desc), impl, matched)
    block = _replaced(realize.block, impl, places, tensor_intrin)
    if isinstance(old, Block):
        state.replace(sref, block, {old: block})
    else:
        state.replace(sref, realize.with_(block=block), {})


def _matched(
    state: ScheduleState, sref: StmtSRef, realize: BlockRealize, name: str, intrinsic: TensorIntrin
) -> Matched:
    desc = intrinsic.desc.body
    assert isinstance(desc, BlockRealize)
    outside = {}
    item: StmtSRef | None = sref if isinstance(sref.stmt, For) else sref.parent
    while item is not None:
        if isinstance(item.stmt, For):
            outside[item.stmt.loop_var] = item.stmt.domain
        item = item.parent
    try:
        matched = compare(realize, desc, outside)
    except Mismatch as error:
        raise TensorIntrinMismatchError(
            state,
            f"{name_of(sref)} is not what {name} computes; {error}",
            sref,
            _hint(error.what),
        ) from None
    for param in intrinsic.desc.params:
        buffer = intrinsic.desc.buffer_map[param]
        if buffer not in matched.buffers:
            raise TensorIntrinError(
                state,
                f"the description of {name} has no region of its parameter {buffer.name}",
                sref,
            )
    return matched


def _hint(what: str) -> str:
    if what.startswith("buffers that the block reads"):
        return "an intrinsic that adds to its output needs the init apart: decompose_reduction"
    if what == "predicate":
        return "let the tile divide the extents, or pad the buffers (pad_einsum)"
    if what.startswith("scope of"):
        return "put the data there with cache_read or cache_write, or use set_scope"
    return ""


# ---- where the buffers of the implementation lie


def _places(
    state: ScheduleState,
    sref: StmtSRef,
    intrinsic: tuple[str, PrimFunc],
    impl: PrimFunc,
    matched: Matched,
) -> list[MatchBufferRegion]:
    name, desc = intrinsic
    body = impl.body
    assert isinstance(body, BlockRealize)
    regions = {r.buffer: r.region for r in (*body.block.writes, *body.block.reads)}
    bindings = []
    for param, model in zip(impl.params, desc.params, strict=True):
        buffer = impl.buffer_map[param]
        current = matched.buffers[desc.buffer_map[model]]
        if buffer not in regions:
            raise TensorIntrinError(
                state, f"the implementation of {name} has no region of {buffer.name}", sref
            )
        _check_like(state, sref, name, buffer, desc.buffer_map[model])
        starts = matched.starts[current]
        lead = len(starts) - len(regions[buffer])
        ranges = [Range.from_min_extent(start, IntImm(start.dtype, 1)) for start in starts[:lead]]
        for start, part in zip(starts[lead:], regions[buffer], strict=True):
            ranges.append(Range.from_min_extent(start, op.cast(start.dtype, part.extent)))
        _check_compact(state, sref, (name, impl), buffer, BufferRegion(current, ranges))
        bindings.append(MatchBufferRegion(buffer, BufferRegion(current, ranges)))
    return bindings


def _check_like(
    state: ScheduleState, sref: StmtSRef, name: str, buffer: Buffer, model: Buffer
) -> None:
    """Check that the buffer of the implementation agrees with that of the description."""
    analyzer = Analyzer()
    same = buffer.dtype is model.dtype and len(buffer.shape) == len(model.shape)
    if not same or not all(
        analyzer.can_prove_equal(a, b) for a, b in zip(buffer.shape, model.shape, strict=True)
    ):
        shapes = [f"{item.dtype} {[str(e) for e in item.shape]}" for item in (model, buffer)]
        raise TensorIntrinError(
            state,
            f"parameter {model.name} of {name} is {shapes[0]} in the description and {shapes[1]} "
            "in the implementation",
            sref,
        )


def _check_compact(
    state: ScheduleState,
    sref: StmtSRef,
    intrinsic: tuple[str, PrimFunc],
    buffer: Buffer,
    region: BufferRegion,
) -> None:
    """A buffer without strides lies in one piece, or is accessed element by element."""
    if buffer.strides or _is_in_one_piece(region, len(buffer.shape)):
        return
    name, impl = intrinsic
    uses = _WholeUses(buffer)
    uses.visit(impl.body)
    if uses.found:
        shown = ", ".join([str(part.extent) for part in region.region])
        raise TensorIntrinError(
            state,
            f"{name} takes {buffer.name} in one piece, but ({shown}) of {region.buffer.name} "
            f"{[str(extent) for extent in region.buffer.shape]} is not",
            sref,
            "pack the buffer with transform_layout or a cached copy, tile by tile",
        )


def _is_in_one_piece(region: BufferRegion, rank: int) -> bool:
    """Whether the last ``rank`` dimensions of a region are consecutive in memory."""
    if region.buffer.strides:
        return False
    analyzer = Analyzer()
    parts = list(zip(region.region, region.buffer.shape, strict=True))[-rank:] if rank else []
    while parts and op.is_const_int(parts[0][0].extent, 1):
        parts.pop(0)
    return all(
        analyzer.can_prove_equal(part.extent, op.cast(part.extent.dtype, extent))
        for part, extent in parts[1:]
    )


class _WholeUses(Visitor):
    """Finds accesses of a buffer that go beyond one element or one row.

    Calls that get a bare pointer are not checked.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer, self.found = buffer, False

    def visit_BufferRegion(self, node: BufferRegion) -> None:
        """A region is no access."""

    def visit_MatchBufferRegion(self, node: MatchBufferRegion) -> None:
        if node.source.buffer is self.buffer:
            self.found = True

    def visit_Buffer(self, node: Buffer) -> None:
        """Another buffer over the same memory is a use of all of it."""
        if node is not self.buffer and node.data is self.buffer.data:
            self.found = True

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.access(node)
        self.visit(node.indices)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.access(node)
        self.visit([*node.indices, node.value])

    def access(self, node: BufferLoad | BufferStore) -> None:
        if node.buffer is not self.buffer:
            self.visit_Buffer(node.buffer)
            return
        for position, index in enumerate(node.indices):
            if index.dtype.lanes == 1:
                continue
            extent, end = self.buffer.shape[position], None
            if isinstance(index, Ramp):
                end = _last(index)
            inside = (
                isinstance(index, Ramp)
                and position == len(node.indices) - 1
                and op.is_const_int(index.stride, 1)
                and isinstance(extent, IntImm)
                and end is not None
                and end <= extent.value
            )
            if not inside:
                self.found = True


def _last(index: Ramp) -> int | None:
    """One past the last lane of a ramp from a constant; None of another."""
    base = index.base
    return base.value + index.dtype.lanes if isinstance(base, IntImm) else None


# ---- the new block


def _replaced(
    block: Block, impl: PrimFunc, places: Sequence[MatchBufferRegion], name: str
) -> Block:
    realize = impl.body
    assert isinstance(realize, BlockRealize)
    annotations = dict(block.annotations or {})
    for key, value in dict(realize.block.annotations or {}).items():
        if key in annotations and str(annotations[key]) != str(value):
            logger.warning(
                "tensorize: %s has %r = %s and the block %s; the block's is kept",
                name,
                key,
                value,
                annotations[key],
            )
            continue
        annotations[key] = value
    return block.with_(
        body=realize.block.body,
        alloc_buffers=[*block.alloc_buffers, *realize.block.alloc_buffers],
        match_buffers=[*places, *realize.block.match_buffers],
        annotations=annotations,
    )
