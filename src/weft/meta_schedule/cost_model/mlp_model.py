"""The cost model of a small neural network, in numpy.

Each row of features passes two layers; their sum over the rows of a candidate gives its score, as
in TenSet (Zheng et al., NeurIPS 2021). It is trained by Adam (Kingma and Ba, ICLR 2015).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray as NumpyArray

from weft.meta_schedule.cost_model.learned_model import LEAST_WEIGHT, LearnedModel, segments_of
from weft.meta_schedule.cost_model.training_data import Matrix
from weft.meta_schedule.feature_extractor.base import FeatureExtractor

_RATE, _DECAY_1, _DECAY_2, _SMALL = 2e-3, 0.9, 0.999, 1e-8
_LAYERS: Final = ("w1", "b1", "w2", "b2", "w3", "b3")
Weights = dict[str, NumpyArray[np.float64]]


class MLPModel(LearnedModel):
    """Two layers for each store, and their sum.

    Args:
        extractor: gives the features, or the name of its kind.
        hidden: numbers of each layer.
        epochs: how often the training goes over the data.
        batch: candidates of one step.
        num_warmup_samples: with fewer measurements, scores are random.
        adaptive_training: train only when the data has grown by a fifth.
        seed: of the first weights and of the order of candidates.
    """

    def __init__(
        self,
        *,
        extractor: FeatureExtractor | str = "per-store-feature",
        hidden: int = 32,
        epochs: int = 60,
        batch: int = 32,
        num_warmup_samples: int = 64,
        adaptive_training: bool = True,
        seed: int = 43,
    ) -> None:
        super().__init__(
            extractor,
            num_warmup_samples=num_warmup_samples,
            adaptive_training=adaptive_training,
            seed=seed,
        )
        self.hidden, self.epochs, self.batch, self.seed = hidden, epochs, batch, seed
        self.weights: Weights = {}

    def _train(self, features: list[Matrix], scores: Matrix) -> None:
        rows = np.concatenate(features).astype(np.float64)
        random = np.random.default_rng(self.seed)
        weights = _first_weights(random, rows, self.hidden)
        means = {name: np.zeros_like(weights[name]) for name in _LAYERS}
        squares = {name: np.zeros_like(weights[name]) for name in _LAYERS}
        step = 0
        for _ in range(self.epochs):
            order = random.permutation(len(features))
            for begin in range(0, len(order), self.batch):
                chosen = order[begin : begin + self.batch]
                some, wanted = [features[i] for i in chosen], scores[chosen]
                step += 1
                for name, gradient in _gradients(weights, some, wanted).items():
                    means[name] += (1 - _DECAY_1) * (gradient - means[name])
                    squares[name] += (1 - _DECAY_2) * (gradient**2 - squares[name])
                    mean = means[name] / (1 - _DECAY_1**step)
                    square = squares[name] / (1 - _DECAY_2**step)
                    weights[name] -= _RATE * mean / (np.sqrt(square) + _SMALL)
        self.weights = weights

    def _predict(self, features: list[Matrix]) -> Matrix | None:
        return _forward(self.weights, features)[0] if self.weights else None

    def _arrays(self) -> dict[str, NumpyArray[Any]]:
        return dict(self.weights)

    def _take(self, arrays: dict[str, NumpyArray[Any]]) -> None:
        self.weights = arrays


def _first_weights(random: np.random.Generator, rows: Matrix, hidden: int) -> Weights:
    """Random layers, and how features are brought to the mean 0 and the deviation 1."""
    width = rows.shape[1]

    def layer(inputs: int, outputs: int) -> NumpyArray[np.float64]:
        return np.asarray(random.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs))

    deviation = rows.std(axis=0)
    return {
        "mean": rows.mean(axis=0),
        "scale": np.where(deviation > 1e-6, 1 / np.maximum(deviation, 1e-6), 0.0),
        "w1": layer(width, hidden),
        "b1": np.zeros(hidden),
        "w2": layer(hidden, hidden),
        "b2": np.zeros(hidden),
        "w3": layer(hidden, 1)[:, 0] / 10,  # scores begin near 0: few measurements teach more
        "b3": np.zeros(1),
    }


def _forward(weights: Weights, features: list[Matrix]) -> tuple[Matrix, tuple[Matrix, ...]]:
    """Scores, and what the way back needs: inputs, both layers, their sums."""
    inputs = (np.concatenate(features) - weights["mean"]) * weights["scale"]
    first = np.maximum(inputs @ weights["w1"] + weights["b1"], 0.0)
    second = np.maximum(first @ weights["w2"] + weights["b2"], 0.0)
    sums = np.zeros((len(features), second.shape[1]))
    np.add.at(sums, segments_of(features), second)
    return sums @ weights["w3"] + weights["b3"], (inputs, first, second, sums)


def _gradients(weights: Weights, features: list[Matrix], wanted: Matrix) -> Weights:
    """The gradient of the mean squared error, in which fast candidates weigh more."""
    scores, (inputs, first, second, sums) = _forward(weights, features)
    error = 2 * (scores - wanted) * (wanted + LEAST_WEIGHT) / len(features)
    of_second = error[segments_of(features)][:, None] * weights["w3"] * (second > 0)
    of_first = of_second @ weights["w2"].T * (first > 0)
    return {
        "w1": inputs.T @ of_first,
        "b1": of_first.sum(axis=0),
        "w2": first.T @ of_second,
        "b2": of_second.sum(axis=0),
        "w3": sums.T @ error,
        "b3": error.sum(keepdims=True),
    }
