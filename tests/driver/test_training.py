"""The warning of models that are compiled in training mode."""

from __future__ import annotations

import warnings

import pytest

import weft
from weft.driver.training import TrainingModeWarning, warn_of_training

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.torch

DIFFERENT = [
    nn.BatchNorm2d(2), nn.InstanceNorm1d(2, track_running_stats=True), nn.Dropout(0.1),
    nn.Dropout2d(), nn.AlphaDropout(), nn.RReLU(), nn.LSTM(2, 2, num_layers=2, dropout=0.5),
    nn.MultiheadAttention(2, 1, dropout=0.5),
]  # fmt: skip
SAME = [
    nn.Linear(2, 2), nn.ReLU(), nn.Dropout(0.0), nn.BatchNorm1d(2, track_running_stats=False),
    nn.InstanceNorm2d(2), nn.LayerNorm(2), nn.LSTM(2, 2), nn.MultiheadAttention(2, 1),
]  # fmt: skip


@pytest.mark.parametrize("layer", DIFFERENT, ids=repr)
def test_layers_that_differ_are_named(layer):
    model = nn.Sequential(nn.Linear(2, 2), layer)
    with pytest.warns(TrainingModeWarning, match=r"Sequential is in training mode: 1 compute wh"):
        warn_of_training(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_training(model.eval())


class Unhashable(nn.Dropout):
    __hash__ = None


@pytest.mark.parametrize("layer", [*SAME, Unhashable(), 3, None], ids=repr)
def test_others_are_silent(layer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_training(layer)


def test_many_layers_are_counted():
    model = nn.Sequential(*[nn.Dropout() for _ in range(5)])
    with pytest.warns(TrainingModeWarning, match="training mode: 0, 1, 2 and 2 more compute"):
        warn_of_training(model)


def test_compiling_warns_at_the_line_of_the_call(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    for _ in range(2):  # compiled, and from the cache
        with pytest.warns(
            TrainingModeWarning, match=r"Dropout is in training mode: Dropout"
        ) as all:
            weft.compile(nn.Dropout(0.5), (torch.ones(2),))
        assert all[0].filename == __file__
