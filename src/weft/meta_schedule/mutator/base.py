"""What a mutator is: from the trace of one schedule to that of a similar one."""

from __future__ import annotations

import random
from abc import abstractmethod

from weft.meta_schedule.protocols import Context, Part
from weft.meta_schedule.target_kinds import parts_of_kind
from weft.tir.schedule.trace import Trace


class Mutator(Part):
    """Changes one decision of a trace."""

    random: random.Random = random.Random()  # noqa: S311 - for a search
    """Where choices come from: a generator of the task's, or without one the system's."""

    def _initialize_with_tune_context(self, context: Context) -> None:
        self.random = random.Random(context.fork_seed())

    @abstractmethod
    def apply(self, trace: Trace) -> Trace | None:
        """A trace with another decision; None if this one has nothing to change."""

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """The mutators that TVM uses for a kind of target, with how often each is used.

        Args:
            kind: one of ``weft.meta_schedule.target_kinds.TARGET_KINDS``: "llvm", "cuda", ...

        >>> {type(item).__name__: share for item, share in Mutator.create("cuda").items()}
        {'MutateTileSize': 0.9, 'MutateUnroll': 0.08, 'MutateThreadBinding': 0.02}
        """
        mutators: dict[Mutator, float] = parts_of_kind("mutator", kind, "Mutator.create")
        return mutators


PyMutator = Mutator
"""TVM's name of the class that users derive from."""
