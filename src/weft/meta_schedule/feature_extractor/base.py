"""What a feature extractor is: it describes candidates by numbers, for a cost model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Context, Part
from weft.runtime.ndarray import NDArray
from weft.support.errors import UnsupportedError

_FOLDER: Final = "weft.meta_schedule.feature_extractor"
_KINDS: Final = {
    "per-store-feature": f"{_FOLDER}.per_store_feature:PerStoreFeature",
    "random": f"{_FOLDER}.random_feature_extractor:RandomFeatureExtractor",
}


class FeatureExtractor(Part):
    """Describes candidates.

    A class of the user derives from it (``PyFeatureExtractor``) and overrides ``extract_from``.
    """

    @abstractmethod
    def extract_from(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        """For each candidate a matrix: a row of features for each of its stores."""
        name = type(self).__name__
        raise UnsupportedError(f"{name}.extract_from: override it in a class of your own")

    @staticmethod
    def create(kind: str, *args: Any, **kwargs: Any) -> FeatureExtractor:
        """An extractor of a kind: "per-store-feature" or "random"."""
        return class_of_kind(FeatureExtractor, _KINDS, kind)(*args, **kwargs)


create = FeatureExtractor.create
PyFeatureExtractor: TypeAlias = FeatureExtractor
"""TVM's name of the class that users derive from."""
