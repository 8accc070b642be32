"""Runners: times of programs, failures as results, a quiet machine while they measure."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import weft
from tests.lib.tuning_programs import matmul, tiled
from weft.meta_schedule.arg_info import ArgInfo, TensorInfo
from weft.meta_schedule.builder import BuilderInput, LocalBuilder
from weft.meta_schedule.processes import pool, quiet
from weft.meta_schedule.processes.quiet import QuietTimes
from weft.meta_schedule.runner import (
    EvaluatorConfig,
    LocalRunner,
    LocalRunnerFuture,
    PyRunner,
    PyRunnerFuture,
    RPCRunner,
    Runner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
)
from weft.support.errors import IRValueError, UnsupportedError
from weft.target import Target

QUICK = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "matmul.bin"
    weft.build(tiled(matmul(8)).mod, "llvm").export_library(str(path))
    return str(path)


@pytest.fixture(scope="module")
def runner():
    runner = LocalRunner(evaluator_config=QUICK)
    yield runner
    runner.close()


def given(artifact):
    return RunnerInput(artifact, "cpu", ArgInfo.from_entry_func(matmul(8)))


def results(runner, *inputs):
    return [future.result() for future in runner.run(inputs)]


def test_times_of_a_program(runner, artifact):
    first, second = results(runner, given(artifact), given(artifact))
    assert first.error_msg is second.error_msg is None
    assert len(first.run_secs) == 2
    assert all(0 < sec.value < 10 for sec in first.run_secs)


def test_a_future_says_when_it_is_done(runner, artifact):
    [future] = runner.run([given(artifact)])
    result = future.result()
    assert future.done()
    assert future.result() == result


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "bool", "bfloat16"])
def test_arguments_of_every_type(runner, tmp_path, dtype):
    from weft import te

    x = te.placeholder((5, 3), dtype, name="x")
    copy = te.create_prim_func([x, te.compute((5, 3), lambda i, j: x[i, j], name="copy")])
    path = str(tmp_path / "copy.bin")
    weft.build(copy, "llvm").export_library(path)
    [result] = results(runner, RunnerInput(path, "cpu", [TensorInfo(dtype, (5, 3))] * 2))
    assert result.error_msg is None


def test_cold_caches_and_several_lists_of_arguments(artifact):
    config = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0, enable_cpu_cache_flush=True)
    [result] = results(LocalRunner(evaluator_config=config, alloc_repeat=3), given(artifact))
    assert len(result.run_secs) == 6


def test_a_file_that_is_no_program(runner, tmp_path, artifact):
    damaged = tmp_path / "damaged.bin"
    damaged.write_bytes(b"x".join(Path(artifact).read_bytes().split(b"ELF")))
    missing = RunnerInput(str(tmp_path / "none.bin"), "cpu", [])
    first, second, third = results(
        runner, missing, RunnerInput(str(damaged), "cpu", []), given(artifact)
    )
    assert first.error_msg.startswith("LocalRunner: An exception occurred\n")
    assert first.run_secs is None
    assert "damaged" in second.error_msg
    assert third.error_msg is None


def test_a_program_that_crashes_or_hangs(artifact):
    calls = artifact + ".calls"

    def evaluate(module, device, config, arguments):
        with open(calls, "a") as file:
            file.write("x")
        count = os.path.getsize(calls)
        if count == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        while count == 2:
            time.sleep(0.01)
        return [1.0, 2.0]

    runner = LocalRunner(timeout_sec=3, f_run_evaluator=evaluate)
    crash, hang, good = results(runner, *[given(artifact)] * 3)
    assert crash.error_msg.startswith("LocalRunner: The worker process was ended by signal SIGSEGV")
    assert hang.error_msg == "LocalRunner: Timeout, killed after 3 seconds"
    assert good == RunnerResult((1.0, 2.0), None)


def test_functions_of_the_user(artifact, tmp_path):
    log = str(tmp_path / "log")

    def allocate(device, args_info, alloc_repeat):
        return [[weft.nd.empty(shape, dtype) for _, dtype, shape in args_info]] * alloc_repeat

    def evaluate(module, device, config, arguments):
        return [float(len(arguments)), float(len(arguments[0])), float(config.number)]

    def cleanup():
        with open(log, "a") as file:
            file.write("cleaned\n")

    runner = LocalRunner(
        evaluator_config=QUICK,
        alloc_repeat=2,
        f_alloc_argument=allocate,
        f_run_evaluator=evaluate,
        f_cleanup=cleanup,
    )
    assert results(runner, given(artifact))[0].run_secs == (2.0, 3.0, 1.0)
    assert Path(log).read_text() == "cleaned\n"
    with pytest.raises(IRValueError, match="no function is registered as 'no.such'"):
        LocalRunner(f_cleanup="no.such")


def test_futures():
    assert LocalRunnerFuture([1.0]).result() == RunnerResult((1.0,), None)
    assert LocalRunnerFuture(error_message="no").result() == RunnerResult(None, "no")
    with pytest.raises(IRValueError, match="either seconds or an error message, got neither"):
        LocalRunnerFuture()
    future = RunnerFuture(f_done=lambda: False, f_result=lambda: RunnerResult([2.0], None))
    assert not future.done()
    assert future.result().run_secs == [2.0]
    with pytest.raises(UnsupportedError, match="give f_result, or override it"):
        PyRunnerFuture().result()


def test_kinds_and_classes_of_users(artifact):
    class Constant(PyRunner):
        def run(self, runner_inputs):
            return [LocalRunnerFuture([0.5]) for _ in runner_inputs]

    assert results(Constant(), given(artifact)) == [RunnerResult((0.5,), None)]
    assert isinstance(Runner.create("local", max_workers=3), LocalRunner)
    with pytest.raises(UnsupportedError, match="measure on this machine with LocalRunner"):
        Runner.create("rpc")
    with pytest.raises(UnsupportedError, match="no RPC servers"):
        RPCRunner()


class Recorded:
    """In place of a process: the signals that it got."""

    def __init__(self):
        self.signals = []

    def signal(self, number):
        self.signals.append(signal.Signals(number).name)


def test_processes_stand_still_while_one_measures():
    times, before, meanwhile = QuietTimes(), Recorded(), Recorded()
    with times.working(before):
        with times.quiet():
            assert before.signals == ["SIGSTOP"]
            with times.working(meanwhile):
                assert meanwhile.signals == ["SIGSTOP"]
            assert meanwhile.signals == ["SIGSTOP", "SIGCONT"]
        assert before.signals == ["SIGSTOP", "SIGCONT"]
        assert times.stood_still() > 0
        first = times.stood_still()
        assert times.stood_still() == first


def test_no_build_runs_during_a_measurement_and_its_time_does_not_count(
    artifact, tmp_path, monkeypatch
):
    """A build with a limit of 500 seconds succeeds though it stands still for 1,000."""
    begun, seen, ends = tmp_path / "begun", tmp_path / "seen", tmp_path / "ends"
    later = [0.0]
    for module in (pool, quiet):
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later[0])
        monkeypatch.setattr(module, "time", clock)

    def build(mod, target, params):
        begun.touch()
        while not ends.exists():
            time.sleep(0.05)
        return weft.build(mod, target)

    def evaluate(module, device, config, arguments):
        while not seen.exists():
            time.sleep(0.05)
        ends.touch()
        return [1.0]

    builder = LocalBuilder(max_workers=1, f_build=build, timeout_sec=500)
    runner = LocalRunner(f_run_evaluator=evaluate, timeout_sec=5000)
    building = builder.submit(BuilderInput(matmul(8), Target("llvm")))
    while not begun.exists():
        time.sleep(0.01)
    [measuring] = runner.run([given(artifact)])
    pid = builder._pool.pids()[0]
    while not measuring.done():
        with open(f"/proc/{pid}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
        if state == "T" and not later[0]:
            later[0] = 1000.0
            seen.touch()
        time.sleep(0.05)
    assert building.result().error_msg is None
    assert measuring.result().error_msg is None
