"""``weft.tune`` when trials crash, hang, end halfway or compute something else, the disk is full,
and processes are killed: nothing wrong wins, and no trial is lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import weft
from tests.lib.tuning import FASTEST, FAULTY, perceptron, tune
from weft.dlight.decisions import decide
from weft.driver.tuning import journal as journals
from weft.driver.tuning import trial_process
from weft.driver.tuning import tune as whole
from weft.driver.tuning.journal import Entry, Journal
from weft.driver.tuning.kernels import kernels_of, stages
from weft.driver.tuning.trial import Bench, random_arguments
from weft.ir.json_text import save_json
from weft.support.errors import IRValueError
from weft.target.target import target_meant

# Searches whose trials fail


@pytest.mark.parametrize("forms", [8, pytest.param(110, marks=pytest.mark.slow)])
def test_what_fails_never_wins_and_every_trial_is_kept(monkeypatch, tmp_path, forms):
    monkeypatch.setattr(trial_process, "_PROGRAM", FAULTY)
    monkeypatch.setattr(whole, "_is_faster", lambda *models: True)
    monkeypatch.setenv("FORMS", str(forms))
    if forms > 8:  # which takes time
        monkeypatch.setattr(whole, "_TRIAL_SECONDS", 20.0)
        monkeypatch.setenv("HANGS", "1")
    database = tmp_path / "trials.jsonl"
    model = weft.tune(perceptron(), minutes=30, database=database)
    assert [row.taken for row in model.tuning.kernels] == [{"form": FASTEST}] * 2
    rows = [json.loads(line) for line in database.read_text().splitlines()]
    trials = [row for row in rows if not row["is_winner"]]
    assert len(trials) == model.tuning.trials >= 2 * forms
    failed = {int(row["taken"]["form"]) % 50 for row in trials if row["microseconds"] is None}
    assert failed == {*([1] if forms > 8 else []), 2, 3, 4, 5}
    x = np.random.default_rng(3).standard_normal((4, 32)).astype("f4")
    np.testing.assert_allclose(model(x), weft.compile(perceptron())(x), atol=1e-5)


@pytest.mark.slow
def test_a_killed_search_loses_its_last_trial_at_most_and_its_processes_end(tmp_path, monkeypatch):
    database = tmp_path / "trials.jsonl"
    driver = subprocess.Popen(
        [sys.executable, "-c", f"from tests.lib.tuning import tune; tune({str(database)!r})"],
        env={**os.environ, "FORMS": "300", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        wait_until(
            lambda: database.is_file() and len(database.read_bytes().splitlines()) > 20, driver
        )
        workers = Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text().split()
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: not any(is_running(int(pid)) for pid in workers))
    before = database.read_bytes()
    assert all(json.loads(line) for line in before.splitlines()[:-1])
    monkeypatch.setenv("FORMS", "30")
    monkeypatch.setattr(trial_process, "_PROGRAM", FAULTY)
    tune(database)
    assert database.read_bytes().startswith(before)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(holds, process=None):
    for _ in range(6000):
        if holds():
            return
        assert process is None or process.poll() is None, "the process ended before"
        time.sleep(0.1)
    pytest.fail("it did not happen")


def test_a_process_that_is_killed_loses_one_trial(monkeypatch):
    monkeypatch.setattr(trial_process, "_PROGRAM", FAULTY)
    monkeypatch.setenv("FORMS", "3")
    kernel = a_kernel()
    process = trial_process.TrialProcess(target_meant(None), None, 300)
    try:
        assert process.trial(kernel, {})[0] > 0
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.wait()
        assert process.trial(kernel, {})[0] > 0
    finally:
        process.close()


# What a trial checks


def a_kernel():
    target = target_meant(None)
    with target:
        return kernels_of(stages(target).front(perceptron()))[0]


@pytest.fixture
def bench(monkeypatch):
    """A bench whose forms add the answer to ``plus`` to the right result."""
    kernel = a_kernel()
    bench = Bench(save_json(kernel.module), kernel.weights, target_meant(None).export(), None)

    def compiled(self, plus):
        return lambda x: np.where(x[0, 0] == arrays[0, 0], x, x + plus)

    [arrays] = bench._arrays
    answers = [1.0, 1e-6]
    monkeypatch.setattr(Bench, "_decided", lambda self: decide("plus", 0.0, lambda: answers))
    monkeypatch.setattr(Bench, "_compiled", compiled)
    return bench


def test_a_new_process_compares_with_the_default_first(bench, monkeypatch):
    """As after a crash: the first form that it is asked for must not be taken for the default."""
    monkeypatch.setattr(bench, "_arrays", [bench._arrays[0] + 1])
    with pytest.raises(IRValueError, match=r"the results with \{'plus': '1.0'\} differ from the"):
        bench.trial({"plus": "1.0"})
    assert bench.trial({"plus": "1e-06"}).microseconds > 0


def test_a_form_is_compared_for_other_arguments_before_it_wins(bench):
    assert bench.trial({"plus": "1.0"}).microseconds > 0  # right for the first arguments alone
    with pytest.raises(IRValueError, match=r"the results with \{'plus': '1.0'\} differ from the"):
        bench.compare({"plus": "1.0"}, 1)
    assert min(bench.compare({"plus": "1e-06"}, 1)) > 0


def test_bytes_are_random_and_other_integers_may_be_indices():
    from weft import relax

    infos = [relax.TensorStructInfo((64,), dtype) for dtype in ("int8", "uint8", "int64", "bool")]
    signed, unsigned, indices, truths = random_arguments(infos, {})
    assert len(set(signed.tolist())) > 4 < len(set(unsigned.tolist()))
    assert not indices.any()
    assert not truths.any()


# The file


def test_a_line_after_a_torn_one_is_kept(tmp_path):
    path = tmp_path / "trials.jsonl"
    Journal(path, "here").add(Entry("k", {"tile": "8"}, 2.5))
    path.write_bytes(path.read_bytes() + b'{"format": 1, "pla')  # a kill, or a full disk
    Journal(path, "here").add(Entry("k", {"tile": "9"}, 3.5))
    assert [entry.microseconds for entry in Journal(path, "here").of("k")] == [2.5, 3.5]


def test_a_search_goes_on_when_the_disk_is_full(tmp_path, monkeypatch):
    path, write = tmp_path / "trials.jsonl", os.write
    journal = Journal(path, "here")
    journal.add(Entry("k", {}, 2.5))
    monkeypatch.setattr(journals.os, "write", lambda file, text: write(file, text[:10]))
    with pytest.warns(UserWarning, match="No space left on device; the search goes on without"):
        journal.add(Entry("k", {"tile": "8"}, 1.5))
    journal.add(Entry("k", {"tile": "9"}, 1.0))
    assert [entry.microseconds for entry in journal.of("k")] == [2.5, 1.5, 1.0]
    monkeypatch.undo()
    again = Journal(path, "here")
    assert [entry.microseconds for entry in again.of("k")] == [2.5]
    again.add(Entry("k", {}, 4.5))
    assert [entry.microseconds for entry in Journal(path, "here").of("k")] == [2.5, 4.5]
