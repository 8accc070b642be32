"""What a feature extractor is: it describes candidates by numbers, for a cost model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.protocols import Context, Part
from weft.runtime.ndarray import NDArray


class FeatureExtractor(Part):
    """Describes candidates."""

    @abstractmethod
    def extract_from(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        """For each candidate a matrix: a row of features for each of its stores."""


PyFeatureExtractor = FeatureExtractor
"""TVM's name of the class that users derive from."""
