"""Random features, to test cost models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.feature_extractor.base import FeatureExtractor
from weft.meta_schedule.protocols import Context
from weft.runtime.ndarray import NDArray, array
from weft.support.errors import IRValueError


class RandomFeatureExtractor(FeatureExtractor):
    """Gives each candidate a matrix of random numbers between 0 and 1, of float64.

    Args:
        feature_size: columns.
        max_block_num: the most rows that a candidate may get.
        seed: of the random numbers.

    >>> [features] = RandomFeatureExtractor(feature_size=4).extract_from(None, [None])
    >>> features.shape[1], features.dtype
    (4, 'float64')
    """

    def __init__(
        self, *, feature_size: int = 30, max_block_num: int = 5, seed: int | None = 0
    ) -> None:
        if max_block_num < 1:
            raise IRValueError(f"expected max_block_num of at least 1, got {max_block_num}")
        self.feature_size, self.max_block_num = feature_size, max_block_num
        self._random = np.random.RandomState(seed)

    @property
    def random_state(self) -> Any:
        """The state of the random numbers; it may be set."""
        return self._random.get_state()

    @random_state.setter
    def random_state(self, state: Any) -> None:
        self._random.set_state(state)

    def extract_from(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        rows = [self._random.randint(1, self.max_block_num + 1) for _ in candidates]
        return [array(self._random.rand(count, self.feature_size)) for count in rows]
