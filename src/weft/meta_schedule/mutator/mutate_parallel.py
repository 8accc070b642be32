"""Choosing how many loops are fused into the parallel one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from weft.meta_schedule.annotations import PARALLEL
from weft.meta_schedule.block_questions import constant_extent
from weft.meta_schedule.mutator.replaying import ReplayingMutator
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.target_facts import cores, target_of
from weft.tir.expr import IterType
from weft.tir.schedule import tree
from weft.tir.schedule.analysis.block_kinds import loop_kind
from weft.tir.schedule.instruction import Instruction
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace
from weft.tir.stmt import Block, For


class MutateParallel(ReplayingMutator):
    """Changes the number of iterations that ``ParallelizeVectorizeUnroll`` asked for.

    Only numbers that change how many loops are fused somewhere are tried.

    Args:
        max_jobs_per_core: how many iterations a parallel loop has for each core, at most.
    """

    def __init__(self, max_jobs_per_core: int) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self._most_parallel = -1

    def _initialize_with_tune_context(self, context: Context) -> None:
        super()._initialize_with_tune_context(context)
        target = target_of(context, "MutateParallel")
        self._most_parallel = cores(target) * self.max_jobs_per_core

    def apply(self, trace: Trace) -> Trace | None:
        """A trace with another number; None if no other number makes a difference."""
        marks = [
            inst for inst in trace.insts
            if inst.kind.name == "Annotate" and inst.attrs == [PARALLEL]
        ]  # fmt: skip
        if not marks:
            return None
        mark = self.random.choice(marks)
        others = self._other_numbers(trace, mark)
        return None if not others else _with_number(trace, mark, self.random.choice(others))

    def _other_numbers(self, trace: Trace, mark: Instruction) -> list[int]:
        """Numbers that fuse other loops than the present one, one for each way to fuse."""
        sch = self.schedule()
        trace.apply_to_schedule(sch, remove_postproc=True)
        name, function = _block_name(trace, mark.inputs[0])
        products = _loop_products(sch, sch.get_block(name, function), self._most_parallel)
        value = mark.inputs[1]
        present = _fused_loops(products, int(str(getattr(value, "value", value))))
        by_plan = {
            _fused_loops(products, limit): limit
            for limit in sorted({item for row in products for item in row})
            if limit <= self._most_parallel
        }
        by_plan.pop(present, None)
        return list(by_plan.values())


def _loop_products(sch: Schedule, marked: BlockRV, most: int) -> list[list[int]]:
    """For each block inside the marked one, the iterations of its 1, 2, ... outer spatial loops."""
    root: Block = sch.get(marked)
    rows = []
    for realize in tree.child_realizes(root):
        row: list[int] = []
        for loop in tree.loops_above(sch.state.sref_of(realize)):
            assert isinstance(loop.stmt, For)
            extent = constant_extent(loop.stmt)
            if extent is None or loop_kind(loop.stmt) != IterType.DataPar:
                break
            row.append((row[-1] if row else 1) * extent)
            if row[-1] >= most:
                break
        if row:
            rows.append(row)
    return rows


def _block_name(trace: Trace, block: object) -> tuple[str, str]:
    """The names by which the trace looked a block up."""
    assert isinstance(block, BlockRV)
    for inst in trace.insts:
        if inst.kind.name == "GetBlock" and inst.outputs[0] is block:
            return str(inst.attrs[0]), str(inst.attrs[1])
    raise AssertionError("a block that is marked was looked up before")


def _fused_loops(products: Sequence[Sequence[int]], limit: int) -> tuple[int, ...]:
    """How many loops of each block are fused to give about ``limit`` iterations."""
    return tuple([min(bisect_left(row, limit) + 1, len(row)) for row in products])


def _with_number(trace: Trace, mark: Instruction, limit: int) -> Trace:
    """The trace, without postprocessing, in which the mark has another number."""
    changed = Instruction(mark.kind, [mark.inputs[0], limit], mark.attrs, mark.outputs)
    insts = [changed if inst is mark else inst for inst in _without_postprocessing(trace)]
    return Trace(insts, {inst: trace.decisions[inst] for inst in insts if inst in trace.decisions})


def _without_postprocessing(trace: Trace) -> list[Instruction]:
    names = [inst.kind.name for inst in trace.insts]
    end = names.index("EnterPostproc") if "EnterPostproc" in names else len(names)
    return trace.insts[:end]
