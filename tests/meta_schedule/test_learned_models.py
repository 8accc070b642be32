"""Models that learn: they rank what they have not seen, start at random, and survive files."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import weft
from tests.lib.tuning_programs import matmul
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model import CostModel, MLPModel
from weft.meta_schedule.cost_model.training_data import FeatureGroup
from weft.meta_schedule.feature_extractor import PyFeatureExtractor, RandomFeatureExtractor
from weft.meta_schedule.runner import RunnerResult
from weft.support.errors import IRValueError
from weft.support.facade import MissingPackageError
from weft.target import Target
from weft.tir.schedule.schedule import Schedule

CONTEXT = SimpleNamespace(mod=None, target=Target("llvm"))


class Given(PyFeatureExtractor):
    """The candidates are their features."""

    def extract_from(self, context, candidates):
        return [weft.nd.array(candidate) for candidate in candidates]


def candidates(count, seed):
    """Matrices of two rows of six numbers."""
    return list(np.random.default_rng(seed).random((count, 2, 6)))


def seconds(matrix):
    """What a candidate takes: it depends on two of the numbers of each row."""
    return float(1e-3 / (0.1 + (matrix[:, 0] ** 2 + matrix[:, 1]).sum()))


def measured(matrices):
    return [RunnerResult([seconds(matrix)] * 3, None) for matrix in matrices]


def xgb(**options):
    pytest.importorskip("xgboost")
    return CostModel.create("xgb", extractor=Given(), **options)


def mlp(**options):
    return MLPModel(extractor=Given(), **options)


@pytest.fixture(params=[xgb, mlp], ids=["xgb", "mlp"])
def new_model(request):
    return request.param


def correlation(x, y):
    """Spearman's: that of the ranks."""
    return np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1]


def test_fast_candidates_get_high_scores(new_model):
    model = new_model(num_warmup_samples=50)
    model.update(CONTEXT, candidates(300, 0), measured(candidates(300, 0)))
    unseen = candidates(100, 1)
    scores = model.predict(CONTEXT, unseen)
    assert scores.dtype == np.float64
    assert correlation(scores, [-seconds(matrix) for matrix in unseen]) > 0.8


def test_scores_are_random_until_enough_is_measured(new_model):
    model = new_model(num_warmup_samples=50)
    some = candidates(20, 0)
    model.update(CONTEXT, some, measured(some))
    scores = model.predict(CONTEXT, some)
    assert model.data_size == 20
    assert ((scores >= 0) & (scores < 1)).all()
    assert (scores != model.predict(CONTEXT, some)).any()
    model.update(CONTEXT, [], [])
    assert model.data_size == 20


def test_training_waits_until_the_data_has_grown_by_a_fifth(new_model):
    model = new_model(num_warmup_samples=10)
    sizes = []
    for count in (50, 9, 1, 12):
        some = candidates(count, count)
        model.update(CONTEXT, some, measured(some))
        sizes.append(model.last_train_size)
    assert sizes == [50, 50, 60, 72]


def test_failures_are_learned_as_the_slowest(new_model):
    model = new_model(num_warmup_samples=10)
    good = candidates(60, 0)
    bad = [matrix + 5 for matrix in candidates(60, 1)]
    results = [*measured(good), *[RunnerResult(None, "crash")] * 60]
    model.update(CONTEXT, [*good, *bad], results)
    scores = model.predict(CONTEXT, [*good, *bad])
    assert scores[:60].mean() > scores[60:].mean() + 0.1


def test_times_of_zero_are_learned(new_model):
    model = new_model(num_warmup_samples=1)
    some = candidates(20, 0)
    results = [RunnerResult([0.0, 0.0], None)] * 10 + [RunnerResult([1.0], None)] * 10
    model.update(CONTEXT, some, results)
    scores = model.predict(CONTEXT, some)
    assert np.isfinite(scores).all()
    assert scores[:10].mean() > scores[10:].mean()


def test_a_file_has_the_model_and_its_data(new_model, tmp_path):
    model, path = new_model(num_warmup_samples=10), str(tmp_path / "model")
    for task in (matmul(8), matmul(16)):
        context = SimpleNamespace(mod=task, target=None)
        some = candidates(40, len(model.data))
        model.update(context, some, measured(some))
    model.save(path)
    again = new_model(num_warmup_samples=10)
    again.load(path)
    np.testing.assert_array_equal(model.predict(CONTEXT, some), again.predict(CONTEXT, some))
    assert list(again.data) == list(model.data)
    assert again.data_size == again.last_train_size == 80
    for name, group in model.data.items():
        assert name == group.group_hash == again.data[name].group_hash
        np.testing.assert_array_equal(group.costs, again.data[name].costs)
        for one, other in zip(group.features, again.data[name].features, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_file_of_an_untrained_model(new_model, tmp_path):
    path = str(tmp_path / "model")
    new_model().save(path)
    again = new_model()
    again.load(path)
    assert again.data_size == 0
    assert len(again.predict(CONTEXT, candidates(3, 0))) == 3


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"pickle"])
def test_another_file_is_refused(new_model, tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(IRValueError, match=r"load: .*expected a file that \w+\.save wrote"):
        new_model().load(str(path))


def test_candidates_without_stores(new_model):
    """A program that only fills its result has no row of features."""
    model = new_model(num_warmup_samples=0)
    empty = [np.zeros((0, 6))] * 3
    model.update(CONTEXT, empty, [RunnerResult([1.0], None)] * 3)
    assert len(model.predict(CONTEXT, empty)) == 3
    mixed = [*empty, *candidates(30, 0)]
    model.update(CONTEXT, mixed, [*[RunnerResult([1.0], None)] * 3, *measured(mixed[3:])])
    assert np.isfinite(model.predict(CONTEXT, mixed)).all()


def test_models_with_features_of_schedules():
    pytest.importorskip("xgboost")
    model = CostModel.create("xgb", num_warmup_samples=1, tree_method="hist", num_tuning_cores=1)
    context = SimpleNamespace(mod=matmul(), target=Target("llvm"))
    schedules = [MeasureCandidate(Schedule(matmul()), [])]
    model.update(context, schedules, [RunnerResult([1.0, 2.0], None)])
    assert model.predict(context, schedules).shape == (1,)
    assert model.config.tree_method == "hist"
    assert model.config.nthread == 1


def test_random_features_do():
    pytest.importorskip("xgboost")
    model = CostModel.create("xgb", extractor=RandomFeatureExtractor(), num_warmup_samples=2)
    model.update(CONTEXT, [None] * 10, [RunnerResult([1.0 + i], None) for i in range(10)])
    assert model.predict(CONTEXT, [None] * 100).shape == (100,)


def test_progress_is_logged(caplog):
    pytest.importorskip("xgboost")
    some = candidates(30, 0)
    with caplog.at_level(logging.DEBUG, "weft.meta_schedule"):
        xgb(num_warmup_samples=1, verbose_eval=5).update(CONTEXT, some, measured(some))
    assert "tr-p-rmse" in caplog.text
    assert "tr-a-peak@32" in caplog.text


def test_scores_of_a_group():
    group = FeatureGroup("task", [np.zeros((1, 2))] * 2, np.array([2.0, 4.0]))
    group.append([np.zeros((1, 2))], np.array([1.0]))
    assert group.min_cost == 1.0
    assert group.scores.tolist() == [0.5, 0.25, 1.0]


def test_without_xgboost_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "xgboost"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    for name in ("xgb_model", "pack_sum"):
        monkeypatch.delitem(sys.modules, f"weft.meta_schedule.cost_model.{name}", raising=False)
    monkeypatch.delitem(vars(weft.meta_schedule.cost_model), "XGBModel", raising=False)
    with pytest.raises(MissingPackageError, match=r"pip install 'weft-compiler\[xgboost\]'"):
        CostModel.create("xgb")
