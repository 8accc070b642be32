"""The cost model of gradient-boosted trees (xgboost): Chen et al., "Learning to optimize tensor
programs", NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import xgboost
from numpy.typing import NDArray as NumpyArray

from weft.meta_schedule.cost_model.learned_model import LearnedModel
from weft.meta_schedule.cost_model.pack_sum import PackSum
from weft.meta_schedule.cost_model.training_data import Matrix
from weft.meta_schedule.feature_extractor.base import FeatureExtractor
from weft.meta_schedule.logging import get_logger
from weft.support.config import usable_processors

_ROUNDS: Final = 10000
_ROWS_A_THREAD: Final = 20000
"""Rows that are worth a thread. With few, threads wait for each other: 60 candidates of two threads
take five seconds where other processes compile, of one thread half a second."""
_PROGRESS: Final = 1e-4
"""By how much an error has to fall to count as progress; scores are from 0 to 1."""
_logger = get_logger(__name__)
Metric: TypeAlias = Callable[[Any, xgboost.DMatrix], tuple[str, float]]


class XGBConfig(NamedTuple):
    """Options of xgboost's training."""

    max_depth: int = 10
    gamma: float = 0.001
    min_child_weight: float = 0
    eta: float = 0.2
    seed: int = 43
    nthread: int | None = None
    tree_method: Literal["auto", "exact", "approx", "hist", "gpu_hist"] = "auto"

    def to_dict(self) -> dict[str, Any]:
        """The options by xgboost's names."""
        return self._asdict()


DEFAULT: Final = XGBConfig()


class XGBModel(LearnedModel):
    """Gradient-boosted trees over features of stores.

    Args:
        extractor: gives the features, or the name of its kind.
        config: options of xgboost.
        num_warmup_samples: with fewer measurements, scores are random.
        early_stopping_rounds: rounds without progress after which training ends.
        verbose_eval: progress is logged every so many rounds.
        average_peak_n: candidates of the metric ``a-peak``.
        adaptive_training: train only when the data has grown by a fifth.
        num_tuning_cores: the most threads of xgboost, which takes fewer for few candidates; those
            of this process by default.
        tree_method: how xgboost builds trees.

    Needs the package xgboost (``pip install 'weft-compiler[xgboost]'``).
    """

    def __init__(
        self,
        *,
        extractor: FeatureExtractor | str = "per-store-feature",
        config: XGBConfig = DEFAULT,
        num_warmup_samples: int = 100,
        early_stopping_rounds: int = 50,
        verbose_eval: int = 25,
        average_peak_n: int = 32,
        adaptive_training: bool = True,
        num_tuning_cores: int | None = None,
        tree_method: Literal["auto", "exact", "approx", "hist", "gpu_hist"] | None = None,
    ) -> None:
        super().__init__(
            extractor,
            num_warmup_samples=num_warmup_samples,
            adaptive_training=adaptive_training,
            seed=config.seed,
        )
        if config.nthread is None:
            config = config._replace(nthread=num_tuning_cores or usable_processors())
        self.config = config if tree_method is None else config._replace(tree_method=tree_method)
        self.early_stopping_rounds = early_stopping_rounds
        self.verbose_eval = verbose_eval
        self.average_peak_n = average_peak_n
        self.booster: xgboost.Booster | None = None

    def _train(self, features: list[Matrix], scores: Matrix) -> None:
        pack = PackSum(features, scores)
        threads = min(self.config.nthread or 1, 1 + len(pack.ids) // _ROWS_A_THREAD)
        self.booster = xgboost.train(
            {**self.config.to_dict(), "nthread": threads},
            pack.dmatrix,
            num_boost_round=_ROUNDS,
            obj=lambda predicted, _: pack.obj_square_error(predicted),
            callbacks=[
                StopEarly(
                    early_stopping_rounds=self.early_stopping_rounds,
                    verbose_eval=self.verbose_eval,
                    fevals=[
                        lambda predicted, _: pack.rmse(predicted),
                        lambda predicted, _: pack.average_peak_score(
                            predicted, self.average_peak_n
                        ),
                    ],
                    evals=[(pack.dmatrix, "tr")],
                )
            ],
        )

    def _predict(self, features: list[Matrix]) -> Matrix | None:
        if self.booster is None:
            return None
        pack = PackSum(features)
        if not len(pack.ids):
            return np.zeros(len(features))
        return pack.predict_with_score(self.booster.predict(pack.dmatrix))

    def _arrays(self) -> dict[str, NumpyArray[Any]]:
        raw = b"" if self.booster is None else bytes(self.booster.save_raw("ubj"))
        return {"booster": np.frombuffer(raw, np.uint8)}

    def _take(self, arrays: dict[str, NumpyArray[Any]]) -> None:
        raw = arrays["booster"].tobytes()
        self.booster = xgboost.Booster(model_file=bytearray(raw)) if raw else None


class StopEarly(xgboost.callback.TrainingCallback):
    """Ends the training when a metric has not become better for some rounds; keeps the best.

    Args:
        early_stopping_rounds: so many rounds.
        verbose_eval: metrics are logged every so many rounds.
        fevals: the metrics, functions of predictions and a matrix.
        evals: matrices and their names; a metric is called ``name-metric``.
        focused_metric: the one that has to become better (less).
        cvfolds: not supported: there is no cross validation here.
    """

    def __init__(
        self,
        early_stopping_rounds: int,
        verbose_eval: int,
        fevals: Sequence[Metric],
        evals: Sequence[tuple[xgboost.DMatrix, str]],
        focused_metric: str = "tr-p-rmse",
        cvfolds: None = None,
    ) -> None:
        super().__init__()
        del cvfolds
        self.early_stopping_rounds, self.verbose_eval = early_stopping_rounds, verbose_eval
        self.fevals, self.evals, self.focused_metric = fevals, evals, focused_metric
        self.best, self.best_round = float("inf"), 0

    def after_iteration(self, model: xgboost.Booster, epoch: int, evals_log: object) -> bool:
        """Whether the training is over."""
        metrics: dict[str, float] = {}
        for matrix, name in self.evals:
            predicted = model.predict(matrix, output_margin=True)
            for metric in self.fevals:
                key, value = metric(predicted, matrix)
                metrics[f"{name}-{key}"] = value
        if self.verbose_eval and epoch % self.verbose_eval == 0:
            shown = "\t".join([f"{key}: {value:.6f}" for key, value in metrics.items()])
            _logger.debug("XGB iter: %3d\t%s", epoch, shown)
        current = metrics[self.focused_metric]
        if current < self.best - _PROGRESS:
            self.best, self.best_round = current, epoch
        return epoch - self.best_round >= self.early_stopping_rounds

    def after_training(self, model: xgboost.Booster) -> xgboost.Booster:
        """The model up to its best round."""
        return model[: self.best_round + 1]


_get_custom_call_back = StopEarly
"""TVM's name, by which programs of its users import it."""
