"""``weft.tune``: choices, kernels, the journal, the search, processes of trials, the whole."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

import weft
from tests.lib.tuning import perceptron
from weft import te, tir, topi
from weft.backends.cpu.schedules import default
from weft.dlight.apply import ApplyDefaultSchedule
from weft.dlight.decisions import Decisions, decide, deciding, using
from weft.driver.tuning import trial_process
from weft.driver.tuning.journal import Entry, Journal
from weft.driver.tuning.kernels import kernels_of, stages
from weft.driver.tuning.search import Search
from weft.driver.tuning.trial import clock_of
from weft.driver.tuning.trial_process import TrialFailedError, TrialProcess
from weft.ir.structural import structural_digest
from weft.meta_schedule.testing.te_workload import depthwise_conv2d_nhwc
from weft.support.errors import IRValueError
from weft.target.machine import machine_of
from weft.target.target import target_meant

SMALL = weft.target.Target("llvm -mcpu=haswell -num-cores=2")


def product(rows=24, depth=1024, columns=96):
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((depth, columns), name="w")
    return te.create_prim_func([x, w, topi.nn.relu(topi.matmul(x, w))])


def scheduled(func, taken):
    decisions = Decisions(taken)
    with deciding(decisions):
        sch = default.schedule(tir.Schedule(func), machine_of(SMALL), ())
    return sch.mod["main"], decisions.offered


# Choices


def test_a_choice_is_the_cost_models_unless_something_decides():
    assert decide("size", 4, lambda: pytest.fail("nobody asked for others")) == 4
    with deciding(Decisions({"size": "8"})) as decisions:
        assert decide("size", 4, lambda: [2, 8]) == 8
        assert decide("order", True, lambda: [True]) is True
    assert decisions.offered == {"size": ["4", "2", "8"]}  # the other has one answer only
    with deciding(Decisions({"size": "of another version"})):
        assert decide("size", 4, lambda: [2, 8]) == 4


def check_answers(func, arrays, expected, choices, most):
    """Answers to each choice of a function compute what numpy does.

    ``choices`` are the first words of the choices that there must be; of the other answers to each
    ``most`` are tried, spread over all.
    """
    usual, offered = scheduled(func, {})
    assert {name.split()[0] for name in offered} == set(choices)
    forms = {structural_digest(usual): usual}
    for name, (_, *others) in offered.items():
        for answer in others[:: -(-len(others) // most)]:
            form, _ = scheduled(func, {name: answer})
            forms[structural_digest(form)] = form
    assert len(forms) > len(choices)
    for form in forms.values():
        result = weft.nd.array(np.full_like(expected, np.nan))
        weft.build(form, SMALL)["main"](*[weft.nd.array(x) for x in arrays], result)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=2e-3)


ALL = 100
SOME_OR_ALL = pytest.mark.parametrize("most", [2, pytest.param(ALL, marks=pytest.mark.slow)])


def random(*shapes):
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape).astype("f4") for shape in shapes]


@SOME_OR_ALL
def test_answers_of_a_product_compute_the_same(most):
    x, w = random((24, 1024), (1024, 96))
    choices = ("tile", "prefetches", "chunks", "order")
    check_answers(product(), [x, w], np.maximum(x @ w, 0), choices, most)


def depthwise_of(x, w, stride):
    """A depthwise convolution with padding of 1: images in NCHW, filters (channels, 3, 3)."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,cij->nchw", windows[:, :, ::stride, ::stride], w)


@SOME_OR_ALL
@pytest.mark.parametrize(("size", "stride"), [(8, 1), pytest.param(28, 2, marks=pytest.mark.slow)])
def test_answers_of_windows_along_rows_compute_the_same(size, stride, most):
    x, w = random((1, 4, size, size), (4, 1, 3, 3))
    image, filters = te.placeholder(x.shape, name="x"), te.placeholder(w.shape, name="w")
    convolution = topi.nn.depthwise_conv2d_nchw(image, filters, stride, 1, 1)
    func = te.create_prim_func([image, filters, topi.nn.relu(convolution)])
    expected = np.maximum(depthwise_of(x, w[:, 0], stride), 0)
    check_answers(func, [x, w], expected, ("band",), most)


@SOME_OR_ALL
def test_answers_of_windows_of_pixels_compute_the_same(most):
    x, w = random((1, 14, 14, 24), (1, 3, 3, 24))
    func = te.create_prim_func(list(depthwise_conv2d_nhwc(1, 14, 14, 24, 3, 1, 1)))
    expected = depthwise_of(x.transpose(0, 3, 1, 2), w[0].transpose(2, 0, 1), 1)
    check_answers(func, [x, w], expected.transpose(0, 2, 3, 1).copy(), ("tile",), most)


@SOME_OR_ALL
def test_answers_of_a_softmax_compute_the_same(most):
    [x] = random((64, 48))
    placeholder = te.placeholder(x.shape, name="x")
    func = te.create_prim_func([placeholder, topi.nn.softmax(placeholder)])
    powers = np.exp(x - x.max(-1, keepdims=True))
    choices = ("vectors", "rows", "joining")
    check_answers(func, [x], powers / powers.sum(-1, keepdims=True), choices, most)


@pytest.mark.parametrize("shape", [(64, 48), (6, 1000)])
def test_answers_of_a_sum_of_rows_compute_the_same(shape):
    [x] = random(shape)
    placeholder = te.placeholder(shape, name="x")
    func = te.create_prim_func([placeholder, topi.sum(placeholder, -1)])
    choices = ("vectors", *(["rows"] if shape[1] == 48 else []))
    check_answers(func, [x], x.sum(-1), choices, ALL)


def test_a_tuned_function_is_scheduled_as_it_was_tuned():
    func = product()
    default_form, offered = scheduled(func, {})
    name = next(name for name in offered if name.startswith("tile"))
    tuned = {structural_digest(func): {name: offered[name][1]}}
    module = weft.IRModule({"main": func})
    with SMALL, using(tuned):
        form = ApplyDefaultSchedule(weft.dlight.cpu.Default())(module)["main"]
        other = ApplyDefaultSchedule(weft.dlight.cpu.Default())(weft.IRModule({"main": product(8)}))
    expected, _ = scheduled(func, {name: offered[name][1]})
    assert weft.ir.structural_equal(form.body, expected.body)
    assert not weft.ir.structural_equal(form.body, default_form.body)
    with SMALL:
        usual = ApplyDefaultSchedule(weft.dlight.cpu.Default())(weft.IRModule({"main": product(8)}))
    assert weft.ir.structural_equal(other, usual)


# Kernels


def kernels(module):
    target = target_meant(None)
    with target:
        return kernels_of(stages(target).front(module))


def test_equal_kernels_are_counted_and_their_weights_known():
    several = kernels(perceptron())
    assert sorted(kernel.calls for kernel in several) == [1, 2]
    assert all(kernel.weights == (False, True) for kernel in several)


# The journal


def test_a_journal_keeps_trials_and_skips_what_a_kill_left(tmp_path):
    path = tmp_path / "trials.jsonl"
    journal = Journal(path, "here")
    journal.add(Entry("k", {"tile": "8"}, 2.5))
    journal.add(Entry("k", {"tile": "9"}, None))
    Journal(path, "elsewhere").add(Entry("k", {"tile": "8"}, 1.0))
    whole = path.read_text()
    path.write_text(whole + whole.splitlines()[0][:30])
    again = Journal(path, "here")
    assert again.of("k") == [Entry("k", {"tile": "8"}, 2.5), Entry("k", {"tile": "9"}, None)]
    assert again.of("other") == []
    path.write_text("\n[]\n{}\nnull\n" + whole)
    assert len(Journal(path, "here").of("k")) == 2


def test_a_journal_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(IRValueError, match="cannot be written to .*: .*; give another file as"):
        Journal(tmp_path / "no folder" / "trials", "here").add(Entry("k", {}, 1.0))


# The search


def searched(times, offered):
    """A search whose trials take what ``times`` says; the forms in the order of their trials."""
    search, order = Search(kernels(perceptron())[0]), []
    while (taken := search.proposal()) is not None:
        order.append(taken)
        search.learn(taken, times(taken), offered if not taken else {})
    return search, order


def test_a_search_changes_one_answer_at_a_time_and_keeps_what_is_faster():
    offered = {"tile": ["a", "b", "c"], "order": ["x", "y"]}
    gains = {"b": 10.0, "y": 5.0}
    search, order = searched(lambda t: 100 - sum(gains.get(v, -1) for v in t.values()), offered)
    assert search.taken == {"tile": "b", "order": "y"}
    assert (search.default, search.best) == (100, 85)
    assert order[:3] == [{}, {"tile": "b"}, {"tile": "b", "order": "y"}]
    assert len({json.dumps(taken, sort_keys=True) for taken in order}) == len(order)
    assert search.promise == 0.0


def test_two_answers_that_help_only_together_are_found():
    offered = {"tile": ["a", "b", "c"], "order": ["x", "y"]}
    times = {("b", "x"): 102, ("c", "x"): 150, ("a", "y"): 103, ("b", "y"): 80, ("c", "y"): 10}
    search, order = searched(
        lambda t: float(times.get((t.get("tile", "a"), t.get("order", "x")), 100)), offered
    )
    assert order[:5] == [{}, {"tile": "b"}, {"order": "y"}, {"tile": "c"},
                         {"order": "y", "tile": "b"}]  # fmt: skip
    assert (search.taken, search.best) == ({"tile": "c", "order": "y"}, 10)


def test_forms_that_fail_or_gain_nothing_are_not_kept():
    offered = {"tile": ["a", "b", "c"]}
    search, order = searched(lambda t: {"b": None, "c": 99.5}.get(t.get("tile"), 100.0), offered)
    assert (search.taken, search.best, len(order)) == ({}, 100.0, 3)


def test_a_default_that_met_a_busy_moment_is_measured_again(monkeypatch):
    """Its first time is twice the real one; then no form is faster, and none is kept."""
    offered = {"tile of matmul": ["a", "b"]}
    times = iter([200.0])
    monkeypatch.setattr(
        TrialProcess,
        "trial",
        lambda self, kernel, taken: (100.0 if taken else next(times, 100.0), offered),
    )
    compared = []

    def compare(self, kernel, taken, rounds):
        compared.append(rounds)
        return 100.0, 100.0

    monkeypatch.setattr(TrialProcess, "compare", compare)
    tuned = weft.tune(perceptron(), minutes=5, database=None)
    assert compared == [2]  # while searching; nothing is left to be settled
    assert all(row.default == 100.0 and not row.taken for row in tuned.tuning.kernels)


def test_a_kernel_whose_default_fails_is_left_alone():
    search, order = searched(lambda t: None, {"tile": ["a", "b"]})
    assert (search.taken, order, search.promise) == ({}, [{}], 0.0)


# Clocks


def test_one_thread_is_timed_by_its_own_clock():
    """Which stands still while the thread sleeps, as while the system runs something else."""
    clock, wall = clock_of(1), clock_of(2)
    begin = clock(), wall()
    time.sleep(0.2)
    assert clock() - begin[0] < (wall() - begin[1]) / 2
    assert clock_of(None) is wall


# Processes of trials


def test_a_trial_takes_a_time_and_tells_the_choices():
    [kernel, *_] = kernels(perceptron())
    process = TrialProcess(target_meant(None), 1, 300)
    try:
        microseconds, offered = process.trial(kernel, {})
        tile = next(name for name in offered if name.startswith("tile"))
        assert microseconds > 0
        assert process.trial(kernel, {tile: offered[tile][-1]})[0] > 0
        default, same = process.compare(kernel, {}, 1)
        assert min(default, same) > 0
    finally:
        process.close()


@pytest.mark.parametrize(
    ("program", "seconds", "message"),
    [
        ("import sys; sys.exit('no memory left')", 300, "ended with status 1: no memory left"),
        ("import os; os.kill(os.getpid(), 11)", 300, "ended with status -11"),
        ("import time; time.sleep(1000)", 0.3, "took longer than 0.3 seconds"),
        ("import json; print(json.dumps({'error': 'refused'}), flush=True); input()", 300,
         "refused"),
    ],
)  # fmt: skip
def test_crashes_and_hangs_end_the_trial_only(monkeypatch, program, seconds, message):
    [kernel, *_] = kernels(perceptron())
    process = TrialProcess(target_meant(None), 1, seconds)
    with monkeypatch.context() as patch:
        patch.setattr(trial_process, "_PROGRAM", program)
        with pytest.raises(TrialFailedError, match=message):
            process.trial(kernel, {})
    process.close()
    process = TrialProcess(target_meant(None), 1, 300)
    try:
        assert process.trial(kernel, {})[0] > 0
    finally:
        process.close()


# The whole


def test_a_tuned_model_computes_what_the_model_computes(tmp_path):
    module, path = perceptron(), tmp_path / "trials.jsonl"
    tuned = weft.tune(module, minutes=10, database=path)  # it ends when all was tried
    x = np.random.default_rng(3).standard_normal((4, 32)).astype("f4")
    np.testing.assert_allclose(tuned(x), weft.compile(module)(x), atol=1e-5)
    assert tuned.tuning.trials >= 2
    assert "times as fast" in str(tuned.tuning)
    lines = path.read_text().splitlines()
    assert {json.loads(line)["kernel"] for line in lines} == {
        kernel.digest.hex() for kernel in kernels(module)
    }


def test_what_wins_beside_the_default_is_compiled(monkeypatch, tmp_path):
    """A tile that is said to be twice as fast is in the model, if the whole is not slower."""
    from weft.driver.tuning import tune as whole

    offered: dict[str, list[str]] = {}

    def trial(self, kernel, taken):
        tile = next((v for k, v in taken.items() if k.startswith("tile")), None)
        name = "tile of matmul"
        return (100.0 if tile is None else 50.0), {name: offered[name]} if not taken else {}

    module = perceptron()
    real = TrialProcess(target_meant(None), 1, 300)
    try:
        for kernel in kernels(module):
            offered |= real.trial(kernel, {})[1]
    finally:
        real.close()
    monkeypatch.setattr(TrialProcess, "trial", trial)
    monkeypatch.setattr(TrialProcess, "compare", lambda self, kernel, taken, rounds: (100.0, 50.0))
    monkeypatch.setattr(whole, "_is_faster", lambda *models: True)
    tuned = weft.tune(module, minutes=5, database=None)
    assert tuned.tuning.gain == 2.0
    assert {name for row in tuned.tuning.kernels for name in row.taken} == {"tile of matmul"}
    default = weft.compile(module)
    assert tuned.kernels.get_source("ll") != default.kernels.get_source("ll")
    monkeypatch.setattr(whole, "_is_faster", lambda *models: False)
    kept = weft.tune(module, minutes=5, database=None)
    assert kept.tuning.gain == 1.0
    assert all(not row.taken for row in kept.tuning.kernels)


def test_ctrl_c_keeps_what_was_found(monkeypatch):
    calls = []

    def trial(self, kernel, taken):
        calls.append(taken)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return 100.0, {}

    monkeypatch.setattr(TrialProcess, "trial", trial)
    tuned = weft.tune(perceptron(), minutes=5, database=None)
    assert tuned.tuning.trials == 2


@pytest.mark.parametrize("minutes", [0, -1, "5", True, float("inf")])
def test_minutes_must_be_a_number_greater_than_zero(minutes):
    with pytest.raises(IRValueError, match="expected minutes greater than 0, got"):
        weft.tune(perceptron(), minutes=minutes)


def test_the_command_writes_a_model_that_runs(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    from weft.cli.main import main

    weights = numpy_helper.from_array(np.ones((16, 8), "float32"), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 8))], [weights],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), str(tmp_path / "m.onnx"))
    output = tmp_path / "m.weft"
    arguments = ["tune", str(tmp_path / "m.onnx"), "-o", str(output), "--minutes", "0.02"]
    assert main([*arguments, "--database", str(tmp_path / "t.jsonl")]) == 0
    assert "times as fast" in capsys.readouterr().out
    x = np.ones((3, 16), "float32")
    np.testing.assert_array_equal(weft.load(output)(x), x @ np.ones((16, 8), "float32"))
    assert Path(tmp_path / "t.jsonl").is_file()
