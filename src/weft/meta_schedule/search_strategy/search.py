"""One search of one task: what it begins with, and the batches that it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.module import IRModule
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.search_strategy.trials import Trials
from weft.support.errors import IRValueError
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace


@dataclass(frozen=True)
class Beginning:
    """What a search begins with.

    Attributes:
        context: the task; ``mod`` is its module.
        trials: how many trials it may make.
        design_spaces: the schedules that are varied.
        database: what was measured before; None if nothing is kept.
        cost_model: what scores candidates; None if nothing does.
    """

    context: Context
    mod: IRModule
    trials: Trials
    design_spaces: Sequence[Schedule]
    database: Database | None
    cost_model: CostModel | None

    def traces(self, strategy: str) -> list[Trace]:
        """The traces of the design space without their decisions; there is at least one."""
        traces = [sch.trace.simplified(True) for sch in self.design_spaces if sch.trace is not None]
        if not traces:
            raise IRValueError(f"{strategy}: the design space has no schedule with a trace")
        return traces


class Search(ABC):
    """A search that goes on.

    Attributes:
        trials: how many trials it may make, and how many it made.
    """

    trials: Trials

    @abstractmethod
    def batch(self) -> list[MeasureCandidate] | None:
        """The next candidates; None if there is nothing left to try."""
