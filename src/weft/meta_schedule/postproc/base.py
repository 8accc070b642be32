"""What a postprocessor is: it finishes a schedule before it is built, or refuses it."""

from __future__ import annotations

from abc import abstractmethod

from weft.meta_schedule.protocols import Part
from weft.tir.schedule.schedule import Schedule


class Postproc(Part):
    """Rewrites what rules have only annotated, or checks what the target demands."""

    @abstractmethod
    def apply(self, sch: Schedule) -> bool:
        """Change ``sch``; False if this schedule must not be built."""


PyPostproc = Postproc
"""TVM's name of the class that users derive from."""
