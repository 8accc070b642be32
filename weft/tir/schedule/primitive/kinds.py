"""How a loop runs: parallel, vectorize, bind, unroll."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.ir.functor import collect
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import checks, flags, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.loops import LoopStartError, loop_of
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.rewrite import is_constant
from weft.tir.stmt import Block, BlockRealize, ForKind

if TYPE_CHECKING:
    from weft.tir.schedule.schedule import Schedule
    from weft.tir.schedule.state import ScheduleState, StmtSRef

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
    """Every iteration of the loop would run one and the same reduction into shared memory."""


@primitive("Parallel", "loop")
def parallel(self: Schedule, loop: LoopRV) -> None:
    """Run the iterations of a loop on several threads.

    Every block below is complete or a reduction there, bound affinely, and uses the loop for
    spatial axes only: then no iteration needs what another one makes.
    """
    _set_kind(self, loop, ForKind.PARALLEL)


@primitive("Vectorize", "loop")
def vectorize(self: Schedule, loop: LoopRV) -> None:
    """Run the iterations of a loop in the lanes of vectors; conditions as for ``parallel``."""
    _set_kind(self, loop, ForKind.VECTORIZED)


@primitive("Bind", "loop")
def bind(self: Schedule, loop: LoopRV, thread_axis: str) -> None:
    """Give the iterations to ``blockIdx``, ``threadIdx`` or ``vthread`` (``.x``, ``.y``, ``.z``).

    The conditions are those of parallel, but that a reduction may be bound to ``threadIdx``: the
    threads then reduce together.
    """
    if thread_axis not in THREAD_TAGS:
        raise ThreadTagError(self.state, f"there is no thread axis {thread_axis!r}")
    _set_kind(self, loop, ForKind.THREAD_BINDING, thread_axis)


@primitive("Unroll", "loop")
def unroll(self: Schedule, loop: LoopRV) -> None:
    """Write the iterations of a loop one after the other."""
    sref = self._sref(loop)
    old = loop_of(sref)
    _check_unbound(self.state, sref)
    self.state.replace(sref, old.with_(kind=ForKind.UNROLLED))


def _set_kind(self: Schedule, loop: LoopRV, kind: ForKind, thread_axis: str = "") -> None:
    sref = self._sref(loop)
    old = loop_of(sref)
    if not is_constant(old.min, 0):
        raise LoopStartError(self.state, f"{name_of(sref)} starts at {old.min}, not at 0", sref)
    if kind is not ForKind.THREAD_BINDING:
        _check_unbound(self.state, sref)
    checks.check_subtree_compact_dataflow(self.state, sref)
    for realize in tree.child_realizes(old):
        _check_block(self.state, sref, realize, kind, thread_axis)
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
    checks.check_affine_binding(state, block_sref)
    variable, used = loop_of(sref).loop_var, False
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if not any(found is variable for found in collect(value, Var)):
            continue
        used = True
        together = axis.iter_type == IterVar.CommReduce and tag.startswith("threadIdx")
        if axis.iter_type != IterVar.DataPar and not together:
            what = "a reduction" if axis.iter_type == IterVar.CommReduce else "no spatial axis"
            raise LoopCarriedError(
                state,
                f"{name_of(sref)} cannot be {WORDS[kind]}: it runs axis {axis.var.name} of "
                f"{name_of(block_sref)}, which is {what}",
                (sref, block_sref),
                "rfactor makes partial results that are independent"
                if axis.iter_type == IterVar.CommReduce else None,
            )  # fmt: skip
    if not used and realize.block.init is not None:
        _check_private(state, sref, block_sref, kind)


def _check_private(
    state: ScheduleState, sref: StmtSRef, block_sref: StmtSRef, kind: ForKind
) -> None:
    """A reduction that every iteration repeats writes memory that only the iteration sees."""
    block = block_sref.stmt
    assert isinstance(block, Block)
    root = flags.scope_of(sref)
    assert root is not None
    assert isinstance(root.stmt, Block)
    allocated = {buffer.data for buffer in root.stmt.alloc_buffers}
    inside = {id(item) for item in tree.all_references(loop_of(sref))}
    for region in block.writes:
        data = region.buffer.data
        seen = [
            other for other in tree.all_references(root.stmt)
            if isinstance(other, Block) and id(other) not in inside and other is not root.stmt
            and any(r.buffer.data is data for r in (*other.reads, *other.writes))
        ]  # fmt: skip
        if data not in allocated or seen:
            raise RepeatedReductionError(
                state,
                f"{name_of(sref)} cannot be {WORDS[kind]}: every iteration computes all of "
                f"{name_of(block_sref)} into {region.buffer.name}, which is seen outside of it",
                (sref, block_sref),
            )
