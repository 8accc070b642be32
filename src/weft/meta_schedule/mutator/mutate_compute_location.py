"""Choosing another place for a block."""

from __future__ import annotations

from weft.meta_schedule.mutator.replaying import ReplayingMutator
from weft.tir.schedule.instruction import Instruction
from weft.tir.schedule.primitive.sampling import compute_locations
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.trace import Trace


class MutateComputeLocation(ReplayingMutator):
    """Changes one ``sample_compute_location`` to another place that is possible there."""

    def apply(self, trace: Trace) -> Trace | None:
        """A trace with another place; None if no block could stand elsewhere."""
        sch = self.schedule()
        candidates: list[tuple[Instruction, list[int]]] = []

        def note(
            inst: Instruction, inputs: list[object], _attrs: list[object], decision: object
        ) -> object:
            if inst.kind.name == "SampleComputeLocation":
                block = inputs[0]
                assert isinstance(block, BlockRV)
                places = compute_locations(sch, block)
                current = int(str(getattr(decision, "value", decision)))
                others = [place for place in sorted(places) if place != current]
                if others:
                    candidates.append((inst, others))
            return decision

        trace.apply_to_schedule(sch, remove_postproc=True, decision_provider=note)
        if not candidates:
            return None
        inst, places = self.random.choice(candidates)
        return trace.with_decision(inst, self.random.choice(places), remove_postproc=True)
