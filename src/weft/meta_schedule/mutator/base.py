"""What a mutator is: from the trace of one schedule to that of a similar one."""

from __future__ import annotations

from abc import abstractmethod

from weft.meta_schedule.protocols import Part
from weft.tir.schedule.trace import Trace


class Mutator(Part):
    """Changes one decision of a trace."""

    @abstractmethod
    def apply(self, trace: Trace) -> Trace | None:
        """A trace with another decision; None if this one has nothing to change."""


PyMutator = Mutator
"""TVM's name of the class that users derive from."""
