"""``SpaceGeneratorUnion``: several design spaces as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, Unpack

from weft.ir.module import IRModule
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.space_generator.base import SpaceGenerator, SpaceParts
from weft.tir.schedule.schedule import Schedule


class SpaceGeneratorUnion(SpaceGenerator):
    """The schedules of several generators.

    Args:
        space_generators: the generators.
        parts: rules, postprocessors and mutators of the union as a whole, as in ``SpaceGenerator``.
    """

    def __init__(
        self, space_generators: Sequence[SpaceGenerator], **parts: Unpack[SpaceParts]
    ) -> None:
        super().__init__(**parts)
        self.space_generators = list(space_generators)

    def _initialize_with_tune_context(self, context: Context) -> None:
        super()._initialize_with_tune_context(context)
        for generator in self.space_generators:
            generator._initialize_with_tune_context(context)

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The schedules of all spaces, in the order of the generators."""
        return [
            sch
            for generator in self.space_generators
            for sch in generator.generate_design_space(mod)
        ]

    def clone(self) -> Self:
        """A copy with copies of its generators and parts."""
        twin = super().clone()
        twin.space_generators = [generator.clone() for generator in self.space_generators]
        return twin
