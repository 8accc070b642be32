"""Choosing another number of threads."""

from __future__ import annotations

from collections.abc import Iterator

from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.mutator.categorical import with_other_choice
from weft.tir.schedule.instruction import Instruction
from weft.tir.schedule.trace import Trace


class MutateThreadBinding(Mutator):
    """Changes one choice by which a loop was split and its inner part bound to ``threadIdx.x``."""

    def apply(self, trace: Trace) -> Trace | None:
        """A trace with another number of threads; None if it chooses none."""
        choices = list(_thread_counts(trace))
        if not choices:
            return None
        return with_other_choice(trace, self.random.choice(choices), self.random)


def _thread_counts(trace: Trace) -> Iterator[Instruction]:
    """The choices, one for each loop that is bound to so many threads."""
    sampled: dict[object, Instruction] = {}
    inner: dict[object, Instruction] = {}
    for inst in trace.insts:
        name = inst.kind.name
        if name == "SampleCategorical" and inst in trace.decisions:
            sampled[id(inst.outputs[0])] = inst
        elif name == "Split" and len(inst.inputs) == 3 and inst.inputs[1] is None:
            choice = sampled.get(id(inst.inputs[2]))
            if choice is not None:
                inner[id(inst.outputs[1])] = choice
        elif name == "Bind" and inst.attrs == ["threadIdx.x"] and id(inst.inputs[0]) in inner:
            yield inner[id(inst.inputs[0])]
