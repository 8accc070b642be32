"""What ``weft tune --collect`` keeps, and what learns from it."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pytest

import weft
from tests.lib.tuning import perceptron
from weft import meta_schedule as ms
from weft.driver import learned
from weft.driver.tuning.collection import Collection, Described, Sample, samples_of
from weft.driver.tuning.journal import Journal
from weft.driver.tuning.kernels import Kernel, kernels_of, stages
from weft.driver.tuning.observers import Collector, Draft
from weft.driver.tuning.search import Search
from weft.driver.tuning.trial_process import TrialFailedError, TrialProcess
from weft.driver.tuning.trials import make_trials
from weft.ir.module import IRModule
from weft.support.errors import IRValueError
from weft.support.facade import MissingPackageError
from weft.target.target import target_meant
from weft.tir.store_features.rows import USUAL_LAYOUT

OFFERED = {"tile": ["a", "b", "c", "d"], "order": ["x", "y"]}


def row(number: float) -> list[float]:
    """Features of a store: all zeros but one."""
    return [number, *[0.0] * (USUAL_LAYOUT.length - 1)]


def sample(kernel: str, answer: str, share: float | None, number: float) -> Sample:
    """A form of a kernel whose default takes 50 microseconds."""
    taken = {"tile": answer} if answer else {}
    microseconds = None if share is None else 50 * share
    ranks = [(1, 4)] if answer else []
    return Sample(kernel, "product", taken, ranks, microseconds, 50.0, [row(number)])


class MadeUp(TrialProcess):
    """Trials whose times and features are made up; ``d`` cannot be scheduled."""

    def __init__(self, times):
        self.times = times
        self.tried: list[dict[str, str]] = []

    def trial(self, kernel, taken):
        self.tried.append(dict(taken))
        if self.times.get(taken.get("tile")) is None:
            raise TrialFailedError("refused")
        return self.times[taken.get("tile")], OFFERED if not taken else {}

    def compare(self, kernel, taken, rounds):
        return self.times[None], self.times[taken.get("tile")]

    def describe(self, kernel, taken):
        if taken.get("tile") == "d":
            raise TrialFailedError("refused")
        return [row(float(len(taken)))]


def search_with(observers, times):
    maker = MadeUp(times)
    search = Search(Kernel("product", b"digest", 1, IRModule(), ()))
    end = time.monotonic() + 600
    make_trials([search], Journal(None, "here"), maker, end, lambda line: None, observers(maker))
    return search, maker.tried


# The file


def test_samples_are_read_as_they_were_written(tmp_path):
    collection, path = Collection(tmp_path / "c.jsonl"), tmp_path / "c.jsonl"
    samples = [sample("k", "", 1.0, 0.25), sample("k", "b", None, 3.0)]
    for item in samples:
        collection.add(item)
    with path.open("a") as file:
        file.write('{"format": 1, "kernel": "cut o')
    collection.add(samples[0])
    other = json.loads(path.read_text().splitlines()[0])
    with path.open("a") as file:
        for change in ({"format": 2}, {"features": [[1.0, 2.0]]}, {"taken": []}):
            file.write(json.dumps({**other, **change}) + "\n")
    assert samples_of(path) == [samples[0], samples[1], samples[0]]


def test_a_file_without_samples_is_refused(tmp_path):
    (tmp_path / "empty").write_text("{}\n")
    for name, problem in (("empty", "found no measured form in"), ("none", "No such file")):
        with pytest.raises(IRValueError, match=f"expected a file that weft tune .*{problem}"):
            samples_of(tmp_path / name)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(IRValueError, match="cannot be written to .*give another file as collect="):
        Collection(tmp_path / "no" / "folder").add(sample("k", "", 1.0, 0.0))


# The search


def test_each_trial_of_a_schedule_is_collected_with_its_default(tmp_path):
    path = tmp_path / "c.jsonl"
    times = {None: 100.0, "b": 90.0, "c": None, "d": 110.0}
    search_with(lambda maker: [Collector(Collection(path), maker)], times)
    samples = samples_of(path)
    assert (samples[0].taken, samples[0].microseconds) == ({}, 100.0)
    assert {item.default for item in samples} == {100.0}
    by_form = {str(item.taken): item for item in samples}
    assert by_form["{'tile': 'b'}"].microseconds == 90.0
    assert by_form["{'tile': 'b'}"].ranks == [(1, 4)]
    assert by_form["{'tile': 'c'}"].microseconds is None
    assert not any("'d'" in form for form in by_form)  # it has no features


def test_a_model_decides_which_form_is_tried_first():
    class Likes:
        def predict(self, forms, usual, default):
            assert (usual, default) == ([row(0.0)], 100.0)
            return [{1: 5.0, 2: -5.0}.get(form.ranks[0][0], 0.0) for form in forms]

    times = dict.fromkeys([None, "a", "b", "c", "d"], 100.0)
    _, plain = search_with(lambda maker: [], times)
    _, drafted = search_with(lambda maker: [Draft(Likes(), maker)], times)
    assert plain[:4] == [{}, {"tile": "b"}, {"order": "y"}, {"tile": "c"}]
    assert drafted[:4] == [{}, {"tile": "c"}, {"tile": "b"}, {"order": "y"}]
    assert sorted(map(str, drafted)) == sorted(map(str, plain))  # nothing is left out


def test_features_of_a_real_kernel_differ_by_form():
    target = target_meant(None)
    with target:
        kernel = kernels_of(stages(target).front(perceptron(batch=32)))[0]
    process = TrialProcess(target, 1, 300)
    try:
        _, offered = process.trial(kernel, {})
        name = next(name for name in offered if name.startswith("tile"))
        usual, other = (process.describe(kernel, taken) for taken in ({}, {name: offered[name][1]}))
    finally:
        process.close()
    assert {len(item) for item in usual} == {USUAL_LAYOUT.length}
    assert usual != other


# What learns


def shares(count: int, seed: int) -> list[Sample]:
    """Kernels with four forms: the larger the first feature, the faster."""
    numbers = np.random.default_rng(seed).uniform(1, 5, (count, 4))
    samples = []
    for kernel, own in enumerate(numbers):
        samples.append(sample(f"kernel {kernel}", "", 1.0, 0.0))
        samples += [sample(f"kernel {kernel}", "abcd"[i], 2 / n, n) for i, n in enumerate(own)]
    return samples


def test_trees_learn_which_forms_are_fast():
    pytest.importorskip("xgboost")
    model = learned.LearnedOrder([*shares(40, 0), sample("kernel 0", "e", None, 0.0)])
    forms = [Described([row(number)], [(1, 4)]) for number in (1.5, 4.5, 3.0)]
    slow, fast, middle = model.predict(forms, [row(0.0)], 50.0)
    assert fast < middle < slow
    assert model.predict([], [row(0.0)], 50.0).shape == (0,)


def test_samples_without_a_default_teach_nothing():
    pytest.importorskip("xgboost")
    with pytest.raises(IRValueError, match=r"beside their defaults .*found none among 1 samples"):
        learned.LearnedOrder([sample("k", "b", 0.5, 1.0)])


def test_without_xgboost_the_error_says_what_brings_it(monkeypatch, tmp_path):
    Collection(tmp_path / "c.jsonl").add(sample("k", "", 1.0, 0.0))
    monkeypatch.setitem(sys.modules, "xgboost", None)
    monkeypatch.delitem(sys.modules, "weft.driver.learned.trees", raising=False)
    monkeypatch.delitem(vars(learned), "LearnedOrder", raising=False)
    with pytest.raises(MissingPackageError, match=r"needs the package xgboost"):
        weft.tune(perceptron(), minutes=0.01, database=None, learn_from=tmp_path / "c.jsonl")


@pytest.mark.parametrize("kind", ["xgb", "mlp"])
def test_a_model_of_meta_schedule_learns_from_the_file(tmp_path, kind):
    if kind == "xgb":
        pytest.importorskip("xgboost")
    path = tmp_path / "c.jsonl"
    for item in [*shares(40, 0), sample("kernel 0", "e", None, 0.0)]:
        Collection(path).add(item)
    model = ms.cost_model.CostModel.create(kind, num_warmup_samples=100)
    model.learn_from(path)
    assert (model.data_size, len(model.data), model.last_train_size) == (201, 40, 201)
    group = model.data["kernel 0"]
    assert group.costs[[0, -1]] == pytest.approx([50e-6, 1e10])
    slow, fast = model._predict([np.array([row(n)], np.float32) for n in (1.2, 4.8)])
    assert fast > slow
    other = ms.cost_model.CostModel.create(kind, extractor="random")
    with pytest.raises(IRValueError, match=r"learn_from: expected the extractor PerStoreFeature"):
        other.learn_from(path)


# The whole


def test_a_search_collects_and_another_learns(tmp_path):
    pytest.importorskip("xgboost")
    path = tmp_path / "c.jsonl"
    tuned = weft.tune(perceptron(), minutes=10, database=None, collect=path, num_threads=1)
    samples = samples_of(path)
    assert len(samples) == tuned.tuning.trials
    assert all(item.features for item in samples)
    again = weft.tune(perceptron(6), minutes=0.1, database=None, learn_from=path, num_threads=1)
    x = np.random.default_rng(3).standard_normal((6, 32)).astype("f4")
    np.testing.assert_allclose(again(x), weft.compile(perceptron(6))(x), atol=1e-5)
