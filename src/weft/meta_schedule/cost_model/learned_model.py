"""What the cost models that learn have in common: their data, and when they learn from it."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray as NumpyArray

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.cost_model.training_data import (
    Matrix,
    TrainingData,
    collected,
    costs_of,
    read_data,
    task_of,
    write_data,
)
from weft.meta_schedule.feature_extractor.base import FeatureExtractor
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.runner.base import RunnerResult
from weft.support.errors import IRValueError
from weft.support.files import write_whole
from weft.tir.store_features.rows import USUAL_LAYOUT

LEAST_WEIGHT: Final = 0.1
"""How much the error of a candidate weighs that takes very long: the fastest weighs 1 more."""
_GROWTH: Final = 5
"""A model learns anew when its data has grown by a fifth."""


class LearnedModel(CostModel):
    """A model that is trained from scratch with all that was measured.

    Until there are ``num_warmup_samples`` measurements, it gives random scores.

    Args:
        extractor: gives the features, or the name of its kind.
        num_warmup_samples: as above.
        adaptive_training: train only when the data has grown by a fifth.
        seed: of random scores and of the training.
    """

    def __init__(
        self,
        extractor: FeatureExtractor | str,
        *,
        num_warmup_samples: int,
        adaptive_training: bool,
        seed: int,
    ) -> None:
        if not isinstance(extractor, FeatureExtractor):
            extractor = FeatureExtractor.create(extractor)
        self.extractor = extractor
        self.num_warmup_samples = num_warmup_samples
        self.adaptive_training = adaptive_training
        self.data = TrainingData()
        self.last_train_size = 0
        self._random = np.random.default_rng(seed)

    @property
    def data_size(self) -> int:
        """The number of measured candidates."""
        return self.data.size

    @abstractmethod
    def _train(self, features: list[Matrix], scores: Matrix) -> None:
        """Learn from scratch: the matrix of each candidate, and its score from 0 to 1."""

    @abstractmethod
    def _predict(self, features: list[Matrix]) -> Matrix | None:
        """A score for each matrix; None for a model that was not trained."""

    @abstractmethod
    def _arrays(self) -> dict[str, NumpyArray[Any]]:
        """What was learned, for a file."""

    @abstractmethod
    def _take(self, arrays: dict[str, NumpyArray[Any]]) -> None:
        """Take what ``_arrays`` gave."""

    def _features(self, context: Context, candidates: Sequence[MeasureCandidate]) -> list[Matrix]:
        matrices = self.extractor.extract_from(context, candidates)
        return [np.asarray(matrix.numpy(), np.float32) for matrix in matrices]

    def update(
        self,
        context: Context,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Add measurements, and train if there are enough new ones."""
        if not candidates:
            return
        features = self._features(context, candidates)
        self.data.add(task_of(context), features, costs_of(results))
        self._train_if_grown()

    def learn_from(self, path: str | Path) -> None:
        """Add what ``weft tune --collect`` wrote, a task for each kernel, and train.

        The features of that file are those of ``PerStoreFeature()``, so the model needs this
        extractor. Raises IRValueError if it has another one.
        """
        if getattr(self.extractor, "feature_vector_length", None) != USUAL_LAYOUT.length:
            raise IRValueError(
                f"{type(self).__name__}.learn_from: expected the extractor PerStoreFeature(), of "
                f"whose features {path} consists, found {self.extractor}"
            )
        for name, features, costs in collected(path):
            self.data.add(name, features, costs)
        self._train_if_grown()

    def _train_if_grown(self) -> None:
        """Train if there are enough measurements, and enough new ones."""
        size = self.data_size
        has_few = size - self.last_train_size < self.last_train_size / _GROWTH
        if size < self.num_warmup_samples or (self.adaptive_training and has_few):
            return
        self.last_train_size = size
        matrices, scores = self.data.all()
        if any(len(matrix) for matrix in matrices):
            self._train(matrices, scores)

    def predict(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> NumpyArray[np.float64]:
        if self.data_size >= self.num_warmup_samples:
            scores = self._predict(self._features(context, candidates))
            if scores is not None:
                return np.asarray(scores, np.float64)
        return self._random.random(len(candidates))

    def save(self, path: str) -> None:
        """Write what was learned, and the data that it was learned from, without pickles."""
        file = io.BytesIO()
        write_data(file, self.data, **self._arrays())
        write_whole(Path(path), file.getvalue())

    def load(self, path: str) -> None:
        self.data, arrays = read_data(path, type(self).__name__)
        self.last_train_size = self.data_size
        self._take(arrays)


def segments_of(features: Sequence[Matrix]) -> NumpyArray[np.int64]:
    """For each row of all matrices, the number of its matrix."""
    return np.repeat(np.arange(len(features)), [len(matrix) for matrix in features])
