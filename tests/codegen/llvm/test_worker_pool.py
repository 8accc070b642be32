"""Compile workers: they give what LLVM gives here, and no end of theirs is an end of ours."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.lib.python_process import output_of
from weft.codegen.llvm import compile as compiling
from weft.codegen.llvm import worker_pool
from weft.codegen.llvm.compile import compile_text, optimized
from weft.codegen.llvm.worker_pool import Batch, NotTranslatedError, WorkerPool
from weft.codegen.llvm.worker_process import Worker
from weft.support.config import worker_count
from weft.support.errors import CodegenError, InternalError
from weft.target.host import llvm_options

pytestmark = pytest.mark.skipif(os.name != "posix", reason="compile workers need POSIX")

HOST = llvm_options(None)
TARGETS = (
    "llvm", "llvm -mcpu=x86-64-v3 -mtriple=x86_64-unknown-linux-gnu", "llvm -opt-level=0",
    "llvm -mtriple=aarch64-linux-gnu -mattr=+sve",
)  # fmt: skip


def text_of(number):
    body = f"%y = fadd double %x, {number}.5 ret double %y"
    return f"define double @weft__f{number}(double %x) {{ {body} }}"


ABORTS = """
declare <2 x double> @llvm.aarch64.neon.fmulx.v2f64(<2 x double>, <2 x double>)
define <2 x double> @weft__planted(<2 x double> %x) {
    %y = call <2 x double> @llvm.aarch64.neon.fmulx.v2f64(<2 x double> %x, <2 x double> %x)
    ret <2 x double> %y
}
"""


MISSED = """
define void @weft__counts(ptr %p, i64 %n) {
entry:
    br label %loop
loop:
    %i = phi i64 [ 0, %entry ], [ %next, %loop ]
    store volatile i64 %i, ptr %p
    %next = add nsw i64 %i, 1
    %again = icmp slt i64 %next, %n
    br i1 %again, label %loop, label %done, !llvm.loop !0
done:
    ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.vectorize.enable", i1 true}
"""
"""LLVM cannot make vectors of the loop, and says so."""


@pytest.fixture
def pool(monkeypatch):
    """A pool of two workers that stands where the process's own stood."""
    monkeypatch.setenv("WEFT_COMPILE_WORKERS", "2")
    mine = WorkerPool(renew_after=50)
    monkeypatch.setattr(compiling, "POOL", mine)
    yield mine
    mine.close()


def here(monkeypatch, text, options, translate=compile_text):
    """What LLVM gives in this process."""
    with monkeypatch.context() as patch:
        patch.setenv("WEFT_COMPILE_WORKERS", "0")
        return translate(text, options)


def translated_by(pool, text, job):
    with Batch(pool) as batch:
        return batch.answer(batch.add(text, job))


def wait_until(is_true):
    for _ in range(30_000):
        if is_true():
            return
        time.sleep(0.01)
    pytest.fail("waited for five minutes")


def test_what_llvm_could_not_transform_is_not_told_to_users(pool, capsys):
    job = compiling.job_of(HOST, "object")
    assert translated_by(pool, MISSED, job)
    assert capsys.readouterr().err == ""


def lives(pid):
    """Whether a process runs that is not only waited for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def python(program, *arguments, **environment):
    """Run a program in a new process and give what it printed."""
    return output_of(program, *arguments, env={"WEFT_NO_CACHE": "1", **environment})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("translate", [compile_text, optimized])
def test_a_worker_gives_what_llvm_gives_here(pool, monkeypatch, target, translate):
    options = llvm_options(target)
    assert translate(text_of(1), options) == here(monkeypatch, text_of(1), options, translate)
    assert pool.pids()


def test_a_text_that_llvm_refuses_costs_no_worker(pool, monkeypatch):
    compile_text(text_of(1), HOST)
    pids = pool.pids()
    messages = []
    for translate in (compile_text, lambda *given: here(monkeypatch, *given)):
        with pytest.raises(InternalError, match="LLVM refuses the IR that weft wrote: ") as caught:
            translate("define i32 @f( {", HOST)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert pool.pids() == pids


def test_an_unknown_target_is_an_error_before_a_worker_is_asked(pool):
    with pytest.raises(CodegenError, match="this LLVM has no target for the triple 'abacus-x'"):
        compile_text(text_of(1), HOST._replace(triple="abacus-x", cpu="", features=""))
    assert not pool.pids()


def test_an_abort_of_llvm_is_an_error(pool, monkeypatch):
    monkeypatch.setattr(compiling, "check_instructions", lambda *_: None)
    message = r"LLVM cannot compile planted \(0 kB of LLVM IR\): its process was ended by signal "
    with pytest.raises(CodegenError, match=message + r"SIGABRT \(.*Cannot select.*report it"):
        compile_text(ABORTS, llvm_options("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64"))
    assert compile_text(text_of(1), HOST)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process")
def test_memory_that_ends_in_llvm_is_an_error(pool):
    compile_text(text_of(1), HOST)
    (pid,) = pool.pids()
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    most = resource.prlimit(pid, resource.RLIMIT_AS)[1]
    resource.prlimit(pid, resource.RLIMIT_AS, (size + (1 << 20), most))
    many = "\n".join([text_of(number) for number in range(8_000)])
    with pytest.raises(CodegenError, match="f0, f1, f2 and 7997 other functions.* more memory"):
        compile_text(many, HOST)
    assert not lives(pid)
    assert compile_text(text_of(1), HOST)


def stop(pool):
    """Stop the worker, so that it has a request and does not answer."""
    compile_text(text_of(1), HOST)
    (pid,) = pool.pids()
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_a_worker_that_is_killed_at_work_is_replaced(pool, monkeypatch):
    pid = stop(pool)
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
    assert compile_text(text_of(2), HOST) == here(monkeypatch, text_of(2), HOST)
    assert pid not in pool.pids()


def test_a_program_whose_workers_are_all_killed_is_an_error(pool, monkeypatch):
    ask = Worker.ask

    def killed(self, text, job):
        os.kill(self.pid, signal.SIGKILL)
        return ask(self, text, job)

    monkeypatch.setattr(Worker, "ask", killed)
    message = r"LLVM cannot compile f1 .* ended by signal SIGKILL; give it more memory"
    with pytest.raises(CodegenError, match=message):
        compile_text(text_of(1), HOST)
    assert not pool.pids()
    monkeypatch.undo()
    assert compile_text(text_of(1), HOST)


def test_an_interrupt_leaves_no_answer_behind(pool, monkeypatch):
    pid = stop(pool)

    def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Timer(0.2, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        compile_text(text_of(2), HOST)
    assert not lives(pid)
    assert compile_text(text_of(3), HOST) == here(monkeypatch, text_of(3), HOST)


def test_workers_are_renewed(pool):
    pids = set()
    for number in range(120):
        compile_text(text_of(number), HOST)
        pids.update(pool.pids())
    (last,) = pool.pids()
    assert [pid for pid in pids if lives(pid)] == [last]
    assert len(pids) == 3


def test_distinct_jobs_leave_no_memory_in_a_worker(pool, monkeypatch):
    monkeypatch.setattr(pool, "renew_after", 1000)
    sizes = []
    for number in range(300):
        compile_text(text_of(number), HOST)
        sizes.append(pool._waiting[0].resident)
    assert len(pool.pids()) == 1
    assert sizes[-1] - sizes[20] < 5 << 10  # KiB; a pass manager that is kept is 30 to 50


def test_a_worker_that_has_grown_is_renewed(pool, monkeypatch):
    monkeypatch.setattr(worker_pool, "RENEW_ABOVE", 1)
    compile_text(text_of(1), HOST)
    assert not pool.pids()


def test_the_memory_of_a_worker_is_not_that_of_its_parent(pool):
    ballast = np.ones(300 << 20, "uint8")
    compile_text(text_of(1), HOST)
    assert 0 < pool._waiting[0].resident < ballast.nbytes >> 10


def test_threads_compile_side_by_side(pool, monkeypatch):
    expected = {number: here(monkeypatch, text_of(number), HOST) for number in range(40)}
    results, most = {}, []

    def compile_some(first):
        for number in range(first, 40, 8):
            results[number] = compile_text(text_of(number), HOST)
            most.append(len(pool.pids()))

    threads = [threading.Thread(target=compile_some, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == expected
    assert max(most) <= 2


def test_an_idle_worker_ends_and_another_one_starts():
    pool = WorkerPool(idle_seconds=2)
    job = compiling.job_of(HOST, "object")
    first = translated_by(pool, text_of(1), job)
    (pid,) = pool.pids()
    wait_until(lambda: not lives(pid))
    assert translated_by(pool, text_of(1), job) == first
    assert pid not in pool.pids()
    pool.close()


def no_processes(*_, **__):
    raise PermissionError("no processes here")


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("kind", ["none", "embedded", "forbidden", "fails", "other", "no setting"])
def test_where_no_process_can_be_started_llvm_runs_here(kind, pool, monkeypatch, tmp_path):
    expected = here(monkeypatch, text_of(1), HOST)
    if kind == "forbidden":
        monkeypatch.setattr(subprocess, "Popen", no_processes)
    elif kind == "no setting":
        monkeypatch.setenv("WEFT_COMPILE_WORKERS", "0")
    else:
        programs = {
            "none": "", "embedded": "/usr/bin/true",
            "fails": write_program(tmp_path / "python-a", "#!/bin/sh\nexit 1\n"),
            "other": write_program(tmp_path / "python-b", "#!/bin/sh\nyes\n"),
        }  # fmt: skip
        monkeypatch.setattr(sys, "executable", programs[kind])
    for _ in range(2):
        assert compile_text(text_of(1), HOST) == expected
    assert not pool.pids()


def test_the_number_of_workers_is_a_setting(monkeypatch):
    monkeypatch.delenv("WEFT_COMPILE_WORKERS", raising=False)
    assert worker_count() >= 1
    monkeypatch.setenv("WEFT_COMPILE_WORKERS", "3")
    assert worker_count() == 3


PRELUDE = """
import os, resource, signal, sys, threading, time, warnings
from weft.codegen.llvm.compile import compile_text
from weft.codegen.llvm.worker_pool import POOL
from weft.support.errors import TVMError
from weft.target.host import llvm_options

warnings.simplefilter("ignore", DeprecationWarning)
options = llvm_options(None)

def text_of(number, count=1):
    body = f"{{ %y = xor i32 %x, {number} ret i32 %y }}"
    return "\\n".join([f"define i32 @f{n}(i32 %x) {body}" for n in range(count)])

def build(number, count=1):
    return compile_text(text_of(number, count), options)

build(0)
(pid,) = POOL.pids()
"""


@pytest.mark.parametrize("way", ["standard input", "file"])
def test_no_worker_outlives_a_program(way, tmp_path):
    program = PRELUDE + "print(pid)"
    path = tmp_path / "no main guard.py"
    path.write_text(program)
    command = [sys.executable, "-W", "error", *([str(path)] if way == "file" else [])]
    done = subprocess.run(
        command, input=program, text=True, capture_output=True,
        timeout=300, check=False, env={**os.environ, "WEFT_NO_CACHE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    wait_until(lambda: not lives(int(done.stdout)))


@pytest.mark.parametrize("at_work", [False, True])
def test_no_worker_outlives_a_killed_program(at_work):
    """Not even where a forked child of it lives on."""
    program = (
        PRELUDE
        + """
child = os.fork()
if child == 0:
    time.sleep(600)
if len(sys.argv) > 1:
    threading.Thread(target=build, args=(1, 20_000)).start()
    while not POOL._busy:
        time.sleep(0.01)
print(pid, child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    done = subprocess.Popen(
        [sys.executable, "-c", program, *(["x"] if at_work else [])], stdout=subprocess.PIPE,
        text=True, env={**os.environ, "WEFT_NO_CACHE": "1"},
    )  # fmt: skip
    pid, child = map(int, done.stdout.readline().split())
    try:
        assert done.wait(300) == -signal.SIGKILL
        wait_until(lambda: not lives(pid))
        assert lives(child)
    finally:
        os.kill(child, signal.SIGKILL)
        done.stdout.close()


def test_a_forked_child_has_workers_of_its_own():
    program = (
        PRELUDE
        + """
child = os.fork()
if child == 0:
    assert POOL.pids() == []
    build(1)
    assert POOL.pids() not in ([], [pid])
    POOL.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert POOL.pids() == [pid]
build(2)
assert POOL.pids() == [pid]
"""
    )
    python(program)


def test_a_program_that_ignores_its_children_compiles():
    python("import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n" + PRELUDE + "build(1)")


@pytest.mark.parametrize("limit", ["with", "without"])
def test_a_process_without_memory_lives_on(limit):
    """Its worker started with the limit or without it."""
    program = (
        PRELUDE
        + """
if sys.argv[1] == "with":
    POOL.close()
    POOL.__init__()
large = text_of(1) + " @table = constant [300000000 x i8] zeroinitializer"
with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * resource.getpagesize() + (1 << 20)
resource.setrlimit(resource.RLIMIT_AS, (size, size))
try:
    compile_text(large, options)
except TVMError as error:
    assert "more memory" in str(error), error
else:
    sys.exit("compiled")
build(3)
"""
    )
    python(program, limit)


def job_for(options=HOST):
    return compiling.job_of(options, "object")


def test_a_batch_gives_its_answers_by_place(pool, monkeypatch):
    expected = [here(monkeypatch, text_of(number), HOST) for number in range(7)]
    with Batch(pool) as batch:
        places = [batch.add(text_of(number), job_for()) for number in range(7)]
        assert len(pool.pids()) <= 2
        assert [batch.answer(place) for place in reversed(places)] == expected[::-1]
        assert batch.answer(places[3]) == expected[3]


def test_a_batch_that_fails_ends_its_other_workers(pool, monkeypatch):
    bad = "define i32 @f( {"
    with pytest.raises(NotTranslatedError) as caught, Batch(pool) as batch:
        first = batch.add(bad, job_for())
        batch.add(text_of(1), job_for())
        batch.answer(first)
    assert caught.value.text == bad
    assert not pool._busy
    assert compile_text(text_of(2), HOST) == here(monkeypatch, text_of(2), HOST)


def test_a_worker_of_a_batch_that_is_killed_at_work_is_replaced(pool, monkeypatch):
    pid = stop(pool)
    with Batch(pool) as batch:
        places = [batch.add(text_of(number), job_for()) for number in range(2)]
        os.kill(pid, signal.SIGKILL)
        answers = [batch.answer(place) for place in places]
    assert answers == [here(monkeypatch, text_of(number), HOST) for number in range(2)]


def test_an_interrupt_in_a_batch_ends_its_workers(pool):
    pid = stop(pool)
    with pytest.raises(KeyboardInterrupt), Batch(pool) as batch:
        batch.add(text_of(1), job_for())
        raise KeyboardInterrupt
    assert not lives(pid)
    assert not pool._busy


def test_threads_share_workers_between_batches(pool, monkeypatch):
    """More batches than workers: none waits for ever for a worker that another one holds."""
    expected = [here(monkeypatch, text_of(number), HOST) for number in range(6)]
    results = []

    def compile_some():
        with Batch(pool) as batch:
            places = [batch.add(text_of(number), job_for()) for number in range(6)]
            results.append([batch.answer(place) for place in places])

    threads = [threading.Thread(target=compile_some) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert results == [expected] * 5
