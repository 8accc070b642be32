"""Builders: whatever a build does, its outcome is a result, and the next build runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import weft
from tests.lib.tuning_programs import matmul, tiled
from weft.meta_schedule.builder import Builder, BuilderInput, BuilderResult, LocalBuilder, PyBuilder
from weft.support.errors import IRTypeError, IRValueError, TVMError, UnsupportedError
from weft.target import Target

LLVM = Target("llvm")
INPUT = BuilderInput(matmul(8), LLVM)


def crash_on_small(mod, target, params):
    """Ends the process for the smallest product."""
    from tests.lib.tuning_programs import mod_extent

    if mod_extent(mod) == 4:
        os.abort()
    return weft.build(mod, target)


@pytest.fixture(scope="module")
def builder():
    builder = LocalBuilder(max_workers=2)
    yield builder
    builder.close()


def with_build(f_build, **options):
    return LocalBuilder(max_workers=1, f_build=f_build, **options)


def test_programs_are_built_and_load(builder):
    results = builder.build([BuilderInput(tiled(matmul(n)).mod, LLVM) for n in (8, 16, 8)])
    assert [result.error_msg for result in results] == [None] * 3
    assert len({result.artifact_path for result in results}) == 3
    for result, n in zip(results, (8, 16, 8), strict=True):
        a, c = np.random.default_rng(0).random((n, n), "float32"), weft.nd.empty((n, n))
        weft.runtime.load_module(result.artifact_path)(weft.nd.array(a), weft.nd.array(a), c)
        np.testing.assert_allclose(c.numpy(), a @ a, rtol=1e-5)
        os.remove(result.artifact_path)
        os.rmdir(os.path.dirname(result.artifact_path))


def test_workers_stay_for_the_next_batch(builder):
    builder.build([INPUT])
    pids = builder._pool.pids()
    builder.build([INPUT] * 4)
    assert set(pids) <= set(builder._pool.pids())


def test_a_program_that_cannot_be_compiled(builder):
    wrong = BuilderInput(weft.IRModule({}), LLVM)
    first, second = builder.build([wrong, INPUT])
    assert first.error_msg.startswith("LocalBuilder: An exception occurred\n")
    assert "expected at least one function" in first.error_msg
    assert first.artifact_path is None
    assert second.error_msg is None


def test_an_error_of_the_user_s_function_says_where():
    def fail(mod, target, params):
        raise ValueError("no luck")

    [result] = with_build(fail).build([INPUT])
    assert result.error_msg.startswith("LocalBuilder: An exception occurred\nValueError: no luck")
    assert "in fail, " in result.error_msg


def test_a_crash_is_the_result_of_its_program_alone():
    inputs = [BuilderInput(matmul(n), LLVM) for n in (4, 8, 4, 16)]
    results = with_build(crash_on_small).build(inputs)
    assert [result.error_msg is None for result in results] == [False, True, False, True]
    for crashed in results[::2]:
        assert crashed.error_msg.startswith("LocalBuilder: The worker process was ended by signal")
        assert "SIGABRT" in crashed.error_msg
        assert "crash_on_small" in crashed.error_msg  # the last words of Python's fault handler


def test_a_process_that_ends_itself():
    [result] = with_build(lambda mod, target, params: os._exit(3)).build([INPUT])
    assert result.error_msg == "LocalBuilder: The worker process ended with status 3"


def test_a_hang_ends_after_its_time():
    def hang_once(mod, target, params):
        from tests.lib.tuning_programs import mod_extent

        while mod_extent(mod) == 4:
            time.sleep(0.01)
        return weft.build(mod, target)

    builder = LocalBuilder(max_workers=1, f_build=hang_once, timeout_sec=3.0)
    first, second = builder.build([BuilderInput(matmul(4), LLVM), INPUT])
    assert first.error_msg == "LocalBuilder: Timeout, killed after 3 seconds"
    assert second.error_msg is None


def test_a_build_that_takes_all_memory():
    def fill(mod, target, params):
        return [np.ones(1 << 24) for _ in range(1 << 20)]

    [result] = with_build(fill, memory_bytes=1 << 30).build([INPUT])
    assert "Unable to allocate" in result.error_msg


def test_what_a_build_prints_does_not_disturb():
    def talk(mod, target, params):
        sys.stdout.write("loud")
        os.write(1, b"louder\n")
        return weft.build(mod, target)

    [result] = with_build(talk).build([INPUT])
    assert result.error_msg is None


def test_functions_of_an_initializer_are_called_by_name():
    def register():
        @weft.register_func("test.builder.export")
        def export(mod):
            return f"exported {mod.entry_name}"

    builder = LocalBuilder(max_workers=1, f_export="test.builder.export", initializer=register)
    assert builder.build([INPUT]) == [BuilderResult("exported main", None)]


def test_a_wrong_name_or_initializer_is_refused_at_once():
    with pytest.raises(IRValueError, match="no function is registered as 'no.such.function'"):
        LocalBuilder(f_build="no.such.function")
    with pytest.raises(IRValueError, match="setup of a worker process failed: ZeroDivisionError"):
        LocalBuilder(initializer=lambda: 1 // 0)


def test_a_function_that_cannot_be_sent_is_refused():
    lock = threading.Lock()
    with pytest.raises(IRTypeError, match="cannot be sent to another process.*lock"):
        LocalBuilder(f_build=lambda mod, target, params: lock)


def test_what_a_build_returns_must_be_the_path_of_a_file():
    [result] = LocalBuilder(max_workers=1, f_build=lambda *_: 1, f_export=lambda _: 2).build(
        [INPUT]
    )
    assert result == BuilderResult("2", None)


def test_a_closed_builder_builds_no_more():
    builder = LocalBuilder(max_workers=1)
    builder.build([INPUT])
    [pid] = builder._pool.pids()
    builder.close()
    with pytest.raises(IRValueError, match="worker processes were closed"):
        builder.build([INPUT])
    wait_for_end(pid)


def wait_for_end(pid):
    for _ in range(3000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} still runs")


@pytest.mark.parametrize("what", ["time.sleep(1000)", "pass"])
def test_workers_end_with_their_parent(what):
    """Even when it is killed, and while they work."""
    program = f"""
        import time
        from tests.lib.tuning_programs import matmul
        from weft.meta_schedule.builder import BuilderInput, LocalBuilder
        from weft.target import Target

        def work(mod, target, params):
            {what}

        builder = LocalBuilder(max_workers=1, f_build=work, f_export=str)
        future = builder.submit(BuilderInput(matmul(4), Target("llvm")))
        while not builder._pool.pids():
            time.sleep(0.01)
        print(builder._pool.pids()[0], flush=True)
        time.sleep(1000)
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        pid = int(process.stdout.readline())
        process.kill()
    wait_for_end(pid)


def test_the_files_of_trials_go_with_the_process():
    program = """
        import os
        from tests.lib.tuning_programs import matmul
        from weft.meta_schedule.builder import BuilderInput, LocalBuilder
        from weft.target import Target

        [result] = LocalBuilder(max_workers=1).build([BuilderInput(matmul(4), Target("llvm"))])
        pid = os.fork()
        if not pid:
            raise SystemExit
        os.waitpid(pid, 0)
        print(result.artifact_path, os.path.isfile(result.artifact_path))
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    path, was_there = done.stdout.split()
    assert was_there == "True"
    assert not os.path.exists(os.path.dirname(os.path.dirname(path)))


def test_ctrl_c_is_for_the_parent():
    builder = LocalBuilder(max_workers=1, f_build=lambda *_: time.sleep(0.5), f_export=str)
    future = builder.submit(INPUT)
    while not builder._pool.pids():
        time.sleep(0.01)
    assert os.getpgid(builder._pool.pids()[0]) != os.getpgid(0)
    assert future.result() == BuilderResult("None", None)


def test_kinds_and_classes_of_users():
    class Refusing(PyBuilder):
        def build(self, build_inputs):
            return [BuilderResult(None, "refused") for _ in build_inputs]

    assert Refusing().build([INPUT]) == [BuilderResult(None, "refused")]
    with pytest.raises(UnsupportedError, match=r"PyBuilder|Builder\.build: override it"):
        PyBuilder().build([INPUT])
    assert isinstance(Builder.create("local", max_workers=1), LocalBuilder)
    with pytest.raises(IRValueError, match="expected a kind of 'local', 'ray', got 'remote'"):
        Builder.create("remote")


@pytest.mark.slow
def test_every_outcome_of_many_builds_is_that_of_its_program():
    """Crashes, hangs, exits, errors and good builds in any order, two at once."""

    def fail(mod, target, params):
        kind = int(mod.get_attr("kind"))
        if kind == 1:
            os.abort()
        if kind == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == 3:
            raise ValueError("refused")
        while kind == 4:
            time.sleep(0.01)
        return weft.build(mod, target)

    random = np.random.default_rng(0)
    kinds = random.permutation([0] * 30 + [1] * 5 + [2] * 5 + [3] * 15 + [4] * 5).tolist()
    inputs = [BuilderInput(matmul(8).with_attr("kind", kind), LLVM) for kind in kinds]
    expected = ["None", "SIGABRT", "SIGKILL", "ValueError: refused", "Timeout, killed after 20"]
    with_faults = LocalBuilder(max_workers=2, f_build=fail, timeout_sec=20)
    results = with_faults.build(inputs)
    assert len(results) == 60
    for kind, result in zip(kinds, results, strict=True):
        assert expected[kind] in str(result.error_msg)
        assert (result.artifact_path is not None) == (kind == 0)


def test_a_program_that_is_no_python_starts_no_worker(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/usr/bin/program")
    with pytest.raises(TVMError, match="program is no Python; build and measure by a builder"):
        LocalBuilder(max_workers=1).build([INPUT])


def test_a_killed_worker_is_replaced(builder):
    builder.build([INPUT])
    os.kill(builder._pool.pids()[0], signal.SIGKILL)
    results = builder.build([INPUT] * 4)
    assert sum(result.error_msg is None for result in results) >= 3
    assert [result.error_msg for result in builder.build([INPUT] * 2)] == [None, None]
