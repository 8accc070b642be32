"""How a loop runs: parallel, vectorize, bind, unroll."""

from __future__ import annotations

from typing import Final

from weft.ir.functor import collect, mentions
from weft.tir import op
from weft.tir.buffer import BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import checks, flags, independence, surgery, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.cache_stage import region_text
from weft.tir.schedule.primitive.loop.loops import LoopStartError
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import Block, BlockRealize, BufferStore, ForKind

THREAD_TAGS: Final = (
    *[f"{name}.{axis}" for name in ("blockIdx", "threadIdx", "vthread") for axis in "xyz"],
    "vthread",
)
WORDS: Final = {
    ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized",
    ForKind.THREAD_BINDING: "bound to a thread",
}  # fmt: skip


class ThreadTagError(ScheduleFailure):
    """There is no thread axis of that name."""

    hint = "blockIdx.x, threadIdx.x or vthread.x, and the same with y and z"


class LoopCarriedError(ScheduleFailure):
    """The iterations of the loop depend on each other."""


class RepeatedReductionError(ScheduleFailure):
    """Every iteration of the loop would run the same reduction into shared memory."""


@primitive("Parallel", "loop")
def parallel(self: Session, loop: LoopRV) -> None:
    """Let the iterations of a loop run on several threads at once.

    The loop must be independent: each block inside may use it for spatial axes only, so that no
    iteration needs what another one computes.

    Args:
        loop: the loop. It keeps its LoopRV.

    Raises:
        LoopCarriedError: an iteration needs, or may overwrite, what another one computes.
        NotAffineBindingError: how a block's axes depend on the loop is not clear.
        NotCompactDataflowError: a block inside is neither complete nor a reduction.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> i, j = sch.get_loops("B")
    >>> sch.parallel(i)
    >>> sch.get(i).kind.name
    'PARALLEL'
    """
    _set_kind(self, loop, ForKind.PARALLEL)


@primitive("Vectorize", "loop")
def vectorize(self: Session, loop: LoopRV) -> None:
    """Let the iterations of a loop run at once, each in a lane of vector instructions.

    The iterations must be independent of each other, as for ``parallel``. The extent must be
    constant when the program is built.

    Args:
        loop: the loop. It keeps its LoopRV.

    Raises:
        LoopCarriedError: an iteration needs, or may overwrite, what another one computes.
        NotAffineBindingError: how a block's axes depend on the loop is not clear.
        NotCompactDataflowError: a block inside is neither complete nor a reduction.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> outer, inner = sch.split(sch.get_loops("B")[1], factors=[None, 8])
    >>> sch.vectorize(inner)
    >>> sch.get(inner).kind.name
    'VECTORIZED'
    """
    _set_kind(self, loop, ForKind.VECTORIZED)


@primitive("Bind", "loop")
def bind(self: Session, loop: LoopRV, thread_axis: str) -> None:
    """Give the iterations of a loop to the threads of a launch, one to each.

    The iterations must be independent of each other, as for ``parallel``; but a reduction may be
    bound to ``threadIdx``, whose threads then reduce together.

    Args:
        loop: the loop; it starts at 0. It keeps its LoopRV.
        thread_axis: ``blockIdx``, ``threadIdx`` or ``vthread``, with ``.x``, ``.y`` or ``.z``.

    Raises:
        ThreadTagError: there is no such thread axis.
        LoopStartError: the loop does not start at 0.
        LoopCarriedError: an iteration needs, or may overwrite, what another one computes.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> i, j = sch.get_loops("B")
    >>> sch.bind(i, "blockIdx.x")
    >>> sch.bind(j, "threadIdx.x")
    >>> sch.get(j).thread_binding.thread_tag
    'threadIdx.x'
    """
    if thread_axis not in THREAD_TAGS:
        raise ThreadTagError(self.state, f"there is no thread axis {thread_axis!r}")
    _set_kind(self, loop, ForKind.THREAD_BINDING, thread_axis)


@primitive("Unroll", "loop")
def unroll(self: Session, loop: LoopRV) -> None:
    """Write the iterations of a loop out, one after the other, when the program is built.

    Args:
        loop: the loop. It keeps its LoopRV.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> outer, inner = sch.split(sch.get_loops("B")[1], factors=[None, 4])
    >>> sch.unroll(inner)
    >>> sch.get(inner).kind.name
    'UNROLLED'
    """
    sref = self._sref(loop)
    old = loop_of(sref)
    _check_unbound(self.state, sref)
    self.state.replace(sref, old.with_(kind=ForKind.UNROLLED))


def _set_kind(self: Session, loop: LoopRV, kind: ForKind, thread_axis: str = "") -> None:
    sref = self._sref(loop)
    old = loop_of(sref)
    if not op.is_const_int(old.min, 0):
        raise LoopStartError(self.state, f"{name_of(sref)} starts at {old.min}, not at 0", sref)
    if kind is not ForKind.THREAD_BINDING:
        _check_unbound(self.state, sref)
    checks.check_subtree_compact_dataflow(self.state, sref)
    for realize in tree.child_realizes(old):
        _check_block(self.state, sref, realize, kind, thread_axis)
    _check_between_blocks(self.state, sref, kind)
    binding = None
    if kind is ForKind.THREAD_BINDING:
        binding = IterVar(None, Var("", old.loop_var.dtype), IterVar.ThreadIndex, thread_axis)
    self.state.replace(sref, old.with_(kind=kind, thread_binding=binding))


def _check_unbound(state: ScheduleState, sref: StmtSRef) -> None:
    binding = loop_of(sref).thread_binding
    if binding is not None:
        raise LoopCarriedError(
            state, f"{name_of(sref)} is bound to {binding.thread_tag} already", sref
        )


def _check_block(
    state: ScheduleState, sref: StmtSRef, realize: BlockRealize, kind: ForKind, tag: str
) -> None:
    """The iterations of the loop may run at the same time, as far as this block goes."""
    if not state.enable_check:
        return
    block_sref = state.sref_of(realize)
    if kind is ForKind.THREAD_BINDING or not _repeats_privately(state, sref, block_sref):
        checks.check_affine_binding(state, block_sref)
    variable, used = loop_of(sref).loop_var, False
    pinned = independence.pinned_axes(realize.block)
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if not mentions(value, variable):
            continue
        used = True
        together = (
            axis.iter_type == IterVar.CommReduce
            and tag.startswith("threadIdx")
            and realize.block.init is not None
        )
        if axis.iter_type != IterVar.DataPar and not together:
            what = "a reduction" if axis.iter_type == IterVar.CommReduce else "no spatial axis"
            raise LoopCarriedError(
                state,
                f"{name_of(sref)} cannot be {WORDS[kind]}: it runs axis {axis.var.name} of "
                f"{name_of(block_sref)}, which is {what}",
                (sref, block_sref),
                _reduction_hint(realize.block, tag)
                if axis.iter_type == IterVar.CommReduce
                else None,
            )
        if not together and axis.var not in pinned and not op.is_const_int(loop_of(sref).extent, 1):
            raise _overlap(state, (sref, block_sref), axis.var, kind)
    repeats = not op.is_const_int(loop_of(sref).extent, 1) and not (
        used and _runs_once(state, block_sref, realize)
    )
    if repeats and _stores_again(realize.block):
        _check_private(state, sref, block_sref, kind)


def _reduction_hint(block: Block, tag: str) -> str:
    """What to do instead of running the terms of a reduction at the same time."""
    if tag.startswith("threadIdx"):
        return "threads reduce together where the init is a part of the block: bind the loop first"
    if flags.is_update(block):
        return "before decompose_reduction, rfactor makes partial results that are independent"
    return "rfactor makes partial results that are independent"


def _runs_once(state: ScheduleState, sref: StmtSRef, realize: BlockRealize) -> bool:
    loops = [loop_of(item) for item in tree.loops_above(sref)]
    return not _accumulates(realize.block) or surgery.runs_once_per_instance(realize, loops)


def _stores_again(block: Block) -> bool:
    """Whether an instance of the block stores an element more than once, or adds to it."""
    return _accumulates(block) or len(collect(block.body, BufferStore)) > 1


def _accumulates(block: Block) -> bool:
    return block.init is not None or flags.is_update(block)


def _overlap(
    state: ScheduleState, srefs: tuple[StmtSRef, StmtSRef], axis: Var, kind: ForKind
) -> LoopCarriedError:
    """Iterations of a loop that store to the same elements."""
    loop, block = srefs
    places = ", ".join([region_text(region) for region in tree.block_of(block).writes])
    return LoopCarriedError(
        state,
        f"{name_of(loop)} cannot be {WORDS[kind]}: instances of {name_of(block)} that differ in "
        f"{axis.name} may store to the same elements of {places}",
        srefs,
        "make the axis a reduction, or use enable_check=False if the elements differ",
    )


def _check_between_blocks(state: ScheduleState, sref: StmtSRef, kind: ForKind) -> None:
    """No block reads or writes what another one below the loop writes in another iteration."""
    if not state.enable_check or op.is_const_int(loop_of(sref).extent, 1):
        return
    carried = independence.carried_between_blocks(state, sref)
    if carried is not None:
        raise LoopCarriedError(
            state,
            f"{name_of(sref)} cannot be {WORDS[kind]}: block {carried.writer.name_hint} writes "
            f"{region_text(carried.region)}, and block {carried.other.name_hint} may access the "
            "same elements in another iteration",
            (sref, *[state.sref_of(block) for block in (carried.writer, carried.other)]),
            checks.BEFORE_DECOMPOSING if flags.is_update(carried.other) else None,
        )


def _repeats_privately(state: ScheduleState, sref: StmtSRef, block_sref: StmtSRef) -> bool:
    """Whether iterations that run the same instance of a block do so in memory of their own.

    Such are the margins of tiles that a padded input is computed for.
    """
    block = tree.block_of(block_sref)
    return not _stores_again(block) and _seen_outside(sref, block) is None


def _check_private(
    state: ScheduleState, sref: StmtSRef, block_sref: StmtSRef, kind: ForKind
) -> None:
    """A reduction that every iteration repeats writes memory that only the iteration sees."""
    region = _seen_outside(sref, tree.block_of(block_sref))
    if region is not None:
        raise RepeatedReductionError(
            state,
            f"{name_of(sref)} cannot be {WORDS[kind]}: every iteration computes all of "
            f"{name_of(block_sref)} into {region.buffer.name}, which is seen outside of it",
            (sref, block_sref),
        )


def _seen_outside(sref: StmtSRef, block: Block) -> BufferRegion | None:
    """A region that a block below the loop writes and that is seen outside of the loop."""
    root = tree.scope_of(sref)
    assert root is not None
    assert isinstance(root.stmt, Block)
    allocated = {buffer.data for buffer in root.stmt.alloc_buffers}
    inside = {id(item) for item in tree.all_references(loop_of(sref))}
    outside = [
        other
        for other in tree.all_references(root.stmt)
        if isinstance(other, Block) and id(other) not in inside and other is not root.stmt
    ]
    for region in block.writes:
        data = region.buffer.data
        accesses = (r for other in outside for r in (*other.reads, *other.writes))
        if data not in allocated or any(r.buffer.data is data for r in accesses):
            return region
    return None
