"""What a space generator is: from a module, the schedules whose decisions a search varies."""

from __future__ import annotations

from abc import abstractmethod

from weft.ir.module import IRModule
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.protocols import Context, Part
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.tir.schedule.schedule import Schedule


class SpaceGenerator(Part):
    """Gives the design space of a module, and what belongs to it: rules, postprocessors, mutators.

    The three are set when the generator learns its task.
    """

    sch_rules: list[ScheduleRule] | None = None
    postprocs: list[Postproc] | None = None
    mutator_probs: dict[Mutator, float] | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        """Tell the parts their task."""
        for part in (
            *(self.sch_rules or ()), *(self.postprocs or ()), *(self.mutator_probs or ())
        ):  # fmt: skip
            part._initialize_with_tune_context(context)

    @abstractmethod
    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The schedules of the space, each with its trace."""


PySpaceGenerator = SpaceGenerator
"""TVM's name of the class that users derive from."""
