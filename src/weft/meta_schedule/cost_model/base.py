"""What a cost model is: it ranks candidates before they are measured."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray as NumpyArray

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.protocols import Context, Part
from weft.meta_schedule.runner.base import RunnerResult


class CostModel(Part):
    """Scores candidates: the larger, the faster."""

    @abstractmethod
    def load(self, path: str) -> None:
        """Read what ``save`` wrote."""

    @abstractmethod
    def save(self, path: str) -> None:
        """Write what was learned to a file."""

    @abstractmethod
    def update(
        self,
        context: Context,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Learn from measurements."""

    @abstractmethod
    def predict(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> NumpyArray[np.float64]:
        """A score for each candidate."""


PyCostModel = CostModel
"""TVM's name of the class that users derive from."""
