"""Moving the inits of reductions out of the loops that reduce."""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir.functor import mentions
from weft.meta_schedule.annotations import TENSORIZE, TENSORIZE_INIT, annotation
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.scheduled_functions import block_variable, functions
from weft.tir.expr import IterType, Var
from weft.tir.schedule import tree
from weft.tir.schedule.analysis.block_kinds import loop_kind
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import BlockRealize, For, Stmt
from weft.tir.transform.threads.thread_scope import binding_of


class RewriteReductionBlock(Postproc):
    """Gives each reduction a block for its init, before the outermost loop that is not spatial.

    Reductions that threads share keep theirs.
    """

    def apply(self, sch: Schedule) -> bool:
        """Decompose the reductions; always True."""
        while pending := list(_reductions(sch)):
            for sref, place in pending:
                block = block_variable(sch, sref)
                init = sch.decompose_reduction(block, sch.get_loops(block)[place])
                _mark_intrinsics(sch, block, init)
        return True


def _reductions(sch: Schedule) -> Iterator[tuple[StmtSRef, int]]:
    """The blocks with an init, and the outermost of their loops that is not spatial."""
    for _, func in functions(sch):
        for realize in _without_threads(func.body, frozenset()):
            sref = sch.state.sref_of(realize)
            kinds = [
                loop_kind(loop.stmt) for loop in tree.loops_above(sref)
                if isinstance(loop.stmt, For)
            ]  # fmt: skip
            place = next((n for n, kind in enumerate(kinds) if kind != IterType.DataPar), None)
            if place is not None:
                yield sref, place


def _without_threads(stmt: Stmt, threads: frozenset[Var]) -> Iterator[BlockRealize]:
    """The blocks with an init whose reduction axes no thread runs, outer ones first."""
    if isinstance(stmt, For):
        binding = binding_of(stmt)
        if binding is not None and not binding.is_virtual:
            threads |= {stmt.loop_var}
    if isinstance(stmt, BlockRealize) and stmt.block.init is not None:
        axes = zip(stmt.block.iter_vars, stmt.iter_values, strict=True)
        reduced = [value for axis, value in axes if axis.iter_type == IterType.CommReduce]
        if not threads or not mentions(reduced, *threads):
            yield stmt
    for inner in tree.substatements(stmt):
        yield from _without_threads(inner, threads)


def _mark_intrinsics(sch: Schedule, block: BlockRV, init: BlockRV) -> None:
    """Give the init of a block that is to be tensorized the intrinsic of the init."""
    if annotation(sch.get(block), TENSORIZE) is None:
        return
    sch.unannotate(init, TENSORIZE)
    own = annotation(sch.get(block), TENSORIZE_INIT)
    # An empty name tells ``RewriteTensorize`` that the init has no intrinsic.
    sch.annotate(init, TENSORIZE, "" if own is None else own)
    if own is not None:
        sch.unannotate(block, TENSORIZE_INIT)
        sch.unannotate(init, TENSORIZE_INIT)
