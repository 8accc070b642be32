"""Candidates for trees: a row for each store, the score of a candidate is the sum over its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xgboost
from numpy.typing import NDArray as NumpyArray

from weft.meta_schedule.cost_model.learned_model import LEAST_WEIGHT, segments_of
from weft.meta_schedule.cost_model.training_data import Matrix


class PackSum:
    """The rows of candidates as one matrix of xgboost.

    Args:
        xs: a matrix for each candidate.
        ys: the score of each, for training.
    """

    def __init__(self, xs: Sequence[Matrix], ys: Matrix | None = None) -> None:
        self.ids = segments_of(xs)
        self.count = len(xs)
        self.ys = np.zeros(len(xs)) if ys is None else np.asarray(ys, np.float64)
        rows = np.concatenate(xs) if len(xs) else np.zeros((0, 1))
        label = None if ys is None else self.ys[self.ids]
        self.dmatrix = xgboost.DMatrix(data=rows, label=label)

    def predict_with_score(self, pred: Matrix) -> Matrix:
        """The score of each candidate from those of its rows."""
        scores = np.zeros(self.count)
        np.add.at(scores, self.ids, pred)
        return scores

    def obj_square_error(
        self, ys_pred: Matrix
    ) -> tuple[NumpyArray[np.float64], NumpyArray[np.float64]]:
        """Gradient and second derivative of the squared error; fast candidates weigh more."""
        wanted = self.ys[self.ids]
        error = self.predict_with_score(ys_pred)[self.ids] - wanted
        weight = wanted + LEAST_WEIGHT
        return error * weight, weight

    def rmse(self, ys_pred: Matrix) -> tuple[str, float]:
        """The root of the mean squared error."""
        error = self.predict_with_score(ys_pred) - self.ys
        return "p-rmse", float(np.sqrt(np.square(error).mean()))

    def average_peak_score(self, ys_pred: Matrix, n: int) -> tuple[str, float]:
        """How near the best of the first 1, 2, ... ``n`` candidates comes to the best of all."""
        chosen = np.argsort(self.predict_with_score(ys_pred))[::-1][:n]
        curve = np.maximum.accumulate(self.ys[chosen]) / self.ys.max()
        return f"a-peak@{n}", float(curve.mean())
