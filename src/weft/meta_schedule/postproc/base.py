"""What a postprocessor is: it finishes a schedule before it is built, or refuses it."""

from __future__ import annotations

from abc import abstractmethod

from weft.meta_schedule.protocols import Part
from weft.meta_schedule.target_kinds import parts_of_kind
from weft.tir.schedule.schedule import Schedule


class Postproc(Part):
    """Rewrites what rules have only annotated, or checks what the target demands."""

    @abstractmethod
    def apply(self, sch: Schedule) -> bool:
        """Change ``sch``; False if this schedule must not be built."""

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The postprocessors that TVM uses for a kind of target, in their order.

        Args:
            kind: one of ``weft.meta_schedule.target_kinds.TARGET_KINDS``: "llvm", "cuda", ...

        >>> [type(postproc).__name__ for postproc in Postproc.create("llvm")][-1]
        'RewriteLayout'
        """
        postprocs: list[Postproc] = parts_of_kind("postproc", kind, "Postproc.create")
        return postprocs


PyPostproc = Postproc
"""TVM's name of the class that users derive from."""
