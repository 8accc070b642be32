"""Trees that tell which forms of a kernel are worth a trial, by their time beside the default.

Gradient-boosted trees over features of programs: Chen et al., "Learning to optimize tensor
programs", NeurIPS 2018. They are told the features of a form, how these differ from the default's,
and what the cost model of the schedule thinks of the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import xgboost
from numpy.typing import NDArray as NumpyArray

from weft.driver.tuning.collection import Described, Rows, Sample
from weft.support.errors import IRValueError

_ROUNDS: Final = 200
_SHARES: Final = (0.5, 2.0)
"""Shares beyond these count as these: nobody asks how bad a bad form is."""
_OPTIONS: Final = {
    "max_depth": 4,
    "eta": 0.05,
    "subsample": 0.7,
    "colsample_bytree": 0.3,
    "min_child_weight": 4,
    "seed": 1,
    "nthread": 1,
}
PLACES: Final = slice(-3, None)
"""The inputs that are no features of the program: what the cost model thinks, and the time."""

Vector = NumpyArray[np.floating[Any]]


class LearnedOrder:
    """Trees that were trained on samples.

    Args:
        samples: what was measured; forms that failed, and kernels without a sample of their
            default, teach nothing. Raises IRValueError if nothing is left.
        columns: the inputs that the trees are told.
    """

    def __init__(self, samples: Sequence[Sample], columns: slice = slice(None)) -> None:
        self._columns = columns
        described = [item for item in samples if item.features]
        usual = {item.kernel: summary(item.features) for item in described if not item.taken}
        known = [
            (item, item.microseconds)
            for item in described
            if item.taken and item.microseconds is not None and item.kernel in usual
        ]
        if not known:
            raise IRValueError(
                f"expected measured forms beside their defaults to learn from, found none among "
                f"{len(samples)} samples; collect more: weft tune --collect"
            )
        inputs = [
            inputs_of(Described(item.features, item.ranks), usual[item.kernel], item.default)
            for item, _ in known
        ]
        shares = np.array([time / item.default for item, time in known])
        label = np.log(np.clip(shares, *_SHARES))
        matrix = xgboost.DMatrix(np.array(inputs)[:, columns], label, nthread=1)
        self.booster = xgboost.train(_OPTIONS, matrix, num_boost_round=_ROUNDS)

    def predict(self, forms: Sequence[Described], usual: Rows, default: float) -> Vector:
        """For each form the logarithm of its time as a share of the default's.

        Args:
            forms: forms of one kernel.
            usual: the features of its default schedule.
            default: microseconds of that.
        """
        if not forms:
            return np.zeros(0)
        start = summary(usual)
        inputs = np.array([inputs_of(form, start, default) for form in forms])
        matrix = xgboost.DMatrix(inputs[:, self._columns], nthread=1)
        return np.asarray(self.booster.predict(matrix))


def summary(features: Rows) -> Vector:
    """One vector for a program: the sum and the largest of each feature over its stores."""
    matrix = np.array(features, np.float64)
    return np.concatenate([matrix.sum(0), matrix.max(0)])


def inputs_of(form: Described, usual: Vector, default: float) -> Vector:
    """What trees are told of a form: its features, how they differ, what the cost model thinks."""
    own = summary(form.features)
    rank = sum([place for place, _ in form.ranks])
    share = max([place / count for place, count in form.ranks], default=0.0)
    return np.concatenate([own, own - usual, [rank, share, np.log(default)]]).astype(np.float32)
