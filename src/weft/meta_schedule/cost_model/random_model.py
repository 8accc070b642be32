"""A cost model that knows nothing: random scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray as NumpyArray

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.runner.base import RunnerResult
from weft.support.errors import IRValueError
from weft.support.files import write_whole


class RandomModel(CostModel):
    """Gives each candidate a random score between 0 and ``max_range``.

    Args:
        seed: of the random numbers; another one at each start by default.
        path: a file that ``save`` wrote, whose random numbers are continued.
        max_range: the largest score.

    >>> RandomModel(seed=1).predict(None, [None] * 2).round(1).tolist()
    [41.7, 72.0]
    """

    def __init__(
        self, *, seed: int | None = None, path: str | None = None, max_range: int = 100
    ) -> None:
        self.max_range = max_range
        self._random = np.random.RandomState(seed)
        if path is not None:
            self.load(path)

    @property
    def random_state(self) -> dict[str, Any]:
        """The state of the random numbers, as ``numpy.random.RandomState`` has it."""
        return self._random.get_state(legacy=False)

    def load(self, path: str) -> None:
        try:
            state = json.loads(Path(path).read_bytes())
            self._random.set_state({**state, "state": _with_array(state["state"])})
        except (ValueError, TypeError, KeyError) as error:
            raise IRValueError(
                f"RandomModel.load: {path}: expected a file that RandomModel.save wrote: {error}"
            ) from error

    def save(self, path: str) -> None:
        state = self.random_state
        inner = {**state["state"], "key": state["state"]["key"].tolist()}
        write_whole(Path(path), json.dumps({**state, "state": inner}).encode())

    def update(
        self,
        context: Context,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Nothing is learned."""

    def predict(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> NumpyArray[np.float64]:
        return self._random.rand(len(candidates)) * self.max_range


def _with_array(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "key": np.array(state["key"], np.uint32)}
