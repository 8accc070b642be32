"""What a cost model is: it ranks candidates before they are measured."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray as NumpyArray

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Context, Part
from weft.meta_schedule.runner.base import RunnerResult
from weft.support.errors import UnsupportedError

_FOLDER: Final = "weft.meta_schedule.cost_model"
_KINDS: Final = {
    "xgb": f"{_FOLDER}:XGBModel",  # its facade says what to install where xgboost is not
    "mlp": f"{_FOLDER}.mlp_model:MLPModel",
    "random": f"{_FOLDER}.random_model:RandomModel",
    "none": f"{_FOLDER}.base:CostModel",
}
_OF_TREES: Final = ("num_tuning_cores", "tree_method")
"""Options that only the kind "xgb" has; the others let them pass."""


class CostModel(Part):
    """Scores candidates: the larger, the faster.

    A class of the user derives from it (``PyCostModel``) and overrides all four methods.
    """

    @abstractmethod
    def load(self, path: str) -> None:
        """Read what ``save`` wrote."""
        raise UnsupportedError(f"{type(self).__name__}.load: override it in a class of your own")

    @abstractmethod
    def save(self, path: str) -> None:
        """Write what was learned to a file."""
        raise UnsupportedError(f"{type(self).__name__}.save: override it in a class of your own")

    @abstractmethod
    def update(
        self,
        context: Context,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Learn from measurements."""
        raise UnsupportedError(f"{type(self).__name__}.update: override it in a class of your own")

    @abstractmethod
    def predict(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> NumpyArray[np.float64]:
        """A score for each candidate."""
        raise UnsupportedError(f"{type(self).__name__}.predict: override it in a class of your own")

    @staticmethod
    def create(kind: str, *args: Any, **kwargs: Any) -> CostModel | None:
        """A model of a kind: "xgb", "mlp", "random"; None for "none".

        >>> CostModel.create("none") is None
        True
        """
        kind_class = class_of_kind(CostModel, _KINDS, kind)
        if kind == "none":
            return None
        if kind != "xgb":
            kwargs = {name: value for name, value in kwargs.items() if name not in _OF_TREES}
        return kind_class(*args, **kwargs)


create = CostModel.create
PyCostModel: TypeAlias = CostModel
"""TVM's name of the class that users derive from."""
