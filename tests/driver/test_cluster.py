"""Machines of a Ray cluster: jobs, lost machines, and the tuners that use them."""

from __future__ import annotations

import functools
import json
import sys
import threading
import time

import numpy as np
import pytest

import weft
from tests.lib.ray_cluster import Clerk, seconds_by_code, two_nodes
from tests.lib.tuning import perceptron
from tests.lib.tuning_programs import matmul, tiled
from weft import meta_schedule as ms
from weft.driver import cluster
from weft.driver.cluster.errors import JobLostError, NoMachineError
from weft.driver.cluster.host import Host, about_here
from weft.driver.tuning.journal import Journal
from weft.driver.tuning.kernels import Kernel
from weft.driver.tuning.search import Search
from weft.driver.tuning.trial_machines import process_there
from weft.driver.tuning.trial_process import TrialProcess
from weft.driver.tuning.trials import make_trials
from weft.ir.module import IRModule
from weft.support.errors import IRValueError
from weft.support.facade import MissingPackageError
from weft.support.functions_by_value import dumps
from weft.target import Target

# What needs no cluster


def test_a_host_starts_each_part_once_and_answers_for_it():
    host, setup = Host(), dumps(list)
    assert host.do(setup, "append", dumps((3,))) is None
    assert host.do(setup, "count", dumps((3,))) == 1
    assert host.do(dumps(dict), "get", dumps((3, "none"))) == "none"
    assert host.about() == about_here()


def test_a_target_must_mean_the_same_processor_on_every_machine():
    target = Target("llvm")
    with pytest.raises(IRValueError, match=r"means 486 for the machine that tunes, .*-mcpu="):
        process_there(target, 1, 60.0, ("x86_64", "486", ""))


def test_a_kind_of_machine_needs_a_cluster():
    with pytest.raises(IRValueError, match=r"machine='zen4' is a kind of machines of ray="):
        weft.tune(perceptron(), minutes=0.01, machine="zen4", database=None)


def test_without_ray_the_error_says_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "weft.driver.cluster.machines", raising=False)
    monkeypatch.delitem(vars(cluster), "Machines", raising=False)
    with pytest.raises(MissingPackageError, match=r"needs the package ray.*weft-compiler\[ray\]"):
        weft.tune(perceptron(), minutes=0.01, ray="auto", database=None)


class Several(TrialProcess):
    """Trials that are made two at once, each of which waits for the other."""

    def __init__(self, *, last=10**6):
        self.both, self.left = threading.Barrier(2, timeout=300), last
        self.capacity_seen = 0

    capacity = 2

    def start(self, function, *arguments):
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(1)
        future = pool.submit(function, *arguments)
        pool.shutdown(wait=False)
        return future

    def trial(self, kernel, taken):
        self.left -= 1
        if self.left < 0:
            raise NoMachineError("all have gone")
        if taken:
            self.both.wait()
        return 10.0 + len(taken), {"form": [str(n) for n in range(5)]}


def search():
    return Search(Kernel("product", b"digest", 1, IRModule(), ()))


def test_several_trials_of_a_kernel_go_on_at_once(tmp_path):
    maker, one, path = Several(), search(), tmp_path / "trials.jsonl"
    make_trials([one], Journal(path, "here"), maker, time.monotonic() + 600, lambda line: None)
    assert one.trials == 5  # the default alone, then twice two forms, each once
    taken = [json.loads(line)["taken"] for line in path.read_text().splitlines()]
    assert sorted([item.get("form", "") for item in taken]) == ["", "1", "2", "3", "4"]


def test_a_search_without_machines_ends_and_keeps_what_it_found(tmp_path):
    maker, one, path = Several(last=3), search(), tmp_path / "trials.jsonl"
    with pytest.warns(UserWarning, match="the search ends here: all have gone"):
        make_trials([one], Journal(path, "here"), maker, time.monotonic() + 600, lambda line: None)
    assert len(path.read_text().splitlines()) == one.trials == 3


# Two nodes


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray")
    with two_nodes() as nodes:
        yield nodes


def tuned(folder, builder, runner):
    """A database of 24 trials of a search that learns, all of whose times are made up."""
    database = ms.tune_tir(
        matmul(16), Target("llvm -mcpu=haswell -num-cores=1"), str(folder), 24,
        num_trials_per_iter=8, builder=builder, runner=runner, cost_model="mlp", seed=7,
        strategy=ms.search_strategy.EvolutionarySearch(population_size=16, init_min_unmeasured=8),
    )  # fmt: skip
    return [
        (record.trace.as_json(), [float(secs) for secs in record.run_secs])
        for record in database.get_all_tuning_records()
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_two_nodes_give_the_database_of_one_process(nodes, tmp_path):
    make_builder = functools.partial(ms.builder.LocalBuilder, max_workers=1)
    make_runner = functools.partial(ms.runner.LocalRunner, f_run_evaluator=seconds_by_code)
    alone = tuned(tmp_path / "alone", make_builder(), make_runner())
    builder, runner = ms.builder.RayBuilder(make_builder), ms.runner.RayRunner(make_runner)
    together = tuned(tmp_path / "together", builder, runner)
    assert len(together) == 24
    assert together == alone
    assert len({secs for _, [secs] in together}) > 5


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_lost_machine_loses_its_job_only(nodes, tmp_path):
    machines = cluster.Machines(Clerk)
    try:
        machines.wait()
        assert machines.capacity == 2
        names = {future.result(600) for future in [machines.submit("node") for _ in range(20)]}
        assert len(names) == 2
        with pytest.raises(KeyError, match="not on my list"):
            machines.submit("refuse").result(600)
        others = [machines.submit("node") for _ in range(4)]
        assert machines.submit("die_once", str(tmp_path / "died")).result(600) in names
        with pytest.raises(JobLostError, match="2 machines were lost with it"):
            machines.submit("die").result(600)
        assert {future.result(600) for future in others} <= names
        assert machines.submit("node").result(600) in names
    finally:
        machines.close()
    with pytest.raises(IRValueError, match="were let go"):
        machines.submit("node")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_model_is_tuned_on_a_kind_of_machine(nodes, tmp_path):
    database = tmp_path / "trials.jsonl"
    model = weft.tune(
        perceptron(), minutes=0.5, ray="auto", machine="second", num_threads=1, database=database
    )
    rows = [json.loads(line) for line in database.read_text().splitlines()]
    assert model.tuning.trials == len([row for row in rows if not row["is_winner"]])
    assert [row for row in rows if not row["taken"] and row["microseconds"]]
    x = np.random.default_rng(3).standard_normal((4, 32)).astype("f4")
    np.testing.assert_allclose(model(x), weft.compile(perceptron())(x), atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_killed_node_loses_its_trial_only(nodes):  # the last test: the node does not come back
    machines = cluster.Machines(Clerk)
    try:
        machines.wait()
        assert machines.capacity == 2
        [node] = nodes.worker_nodes
        nodes.remove_node(node, allow_graceful=False)
        first = {future.result(600) for future in [machines.submit("node") for _ in range(10)]}
        assert len(first) <= 2  # its process may live a moment longer
        for _ in range(1000):
            if len({machines.submit("node").result(600) for _ in range(10)}) == 1:
                break
        assert machines.capacity == 1
    finally:
        machines.close()
    builder = ms.builder.RayBuilder(functools.partial(ms.builder.LocalBuilder, max_workers=1))
    [built] = builder.build([ms.builder.BuilderInput(tiled(matmul(8)).mod, Target("llvm"))])
    assert built.error_msg is None


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_job_ends_when_its_process_leaves_the_cluster(nodes):
    import ray

    machines = cluster.Machines(Clerk)
    machines.wait()
    future = machines.submit("rest")
    ray.shutdown()
    with pytest.raises((JobLostError, NoMachineError)):
        future.result(600)
    with pytest.raises(IRValueError, match="were let go"):
        machines.submit("node")
    assert not ray.is_initialized()
