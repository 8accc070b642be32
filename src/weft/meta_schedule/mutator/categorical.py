"""Another outcome of a choice among numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence

from weft.tir.schedule.instruction import Instruction
from weft.tir.schedule.trace import Trace


def probabilities(inst: Instruction) -> list[float]:
    """How likely each candidate of a ``sample_categorical`` is."""
    _, given = inst.attrs
    assert isinstance(given, Sequence)
    return [float(str(getattr(item, "value", item))) for item in given]


def with_other_choice(trace: Trace, inst: Instruction, generator: random.Random) -> Trace | None:
    """The trace in which another candidate is taken; None if there is no other possible one."""
    decision = trace.decisions[inst]
    current = int(str(getattr(decision, "value", decision)))
    weights = probabilities(inst)
    weights[current] = 0.0
    if not any(weights):
        return None
    [chosen] = generator.choices(range(len(weights)), weights)
    return trace.with_decision(inst, chosen, remove_postproc=True)


def annotated_choices(trace: Trace, *keys: str) -> list[Instruction]:
    """The choices among numbers that become the value of an annotation of these keys."""
    values = {
        id(inst.inputs[1])
        for inst in trace.insts
        if inst.kind.name == "Annotate" and inst.attrs in [[key] for key in keys]
    }
    return [
        inst
        for inst in trace.insts
        if inst.kind.name == "SampleCategorical"
        and inst in trace.decisions
        and id(inst.outputs[0]) in values
    ]
