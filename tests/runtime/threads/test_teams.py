"""Teams: parallel loops of one call share its threads (weft/runtime/threads/team.ll)."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import weft
from tests.runtime.threads.parallel_loops import run_in_fresh_process, spec, zeros
from weft.runtime.threads import parallel as threads
from weft.script import tir as T
from weft.support.errors import RuntimeFault

LOOPS = 20

# many(x): LOOPS parallel loops, each of which adds 1 to every element; faulty(x): one that fails in
# the second half of the range, then one more; nested(x): a loop whose parts start loops; twice(x):
# a team in a team
IR = (
    """
%given = type { ptr, i64 }
@message = private constant [15 x i8] c"part {a} fails\\00"
define internal i32 @add(ptr %p, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
define internal i32 @add.inside(ptr %p, i64 %begin, i64 %end) {
  %at = getelementptr i64, ptr %p, i64 %begin
  %n = sub i64 %end, %begin
  %code = call i32 @weft_parallel(ptr @add, ptr %at, i64 %n, i32 4)
  ret i32 %code
}
define internal i32 @fail(ptr %p, i64 %begin, i64 %end) {
  %code = call i32 @weft_raise(i32 0, ptr @message, i64 %begin, i64 %end)
  ret i32 %code
}
define internal i32 @loops(ptr %given, i64 %begin, i64 %end) {
entry:
  %p = load ptr, ptr %given
  %n.at = getelementptr %given, ptr %given, i32 0, i32 1
  %n = load i64, ptr %n.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %code = call i32 @weft_parallel(ptr @add, ptr %p, i64 %n, i32 0)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, LOOPS
  br i1 %more, label %loop, label %done
done:
  ret i32 %code
}
define internal i32 @loop.of.loops(ptr %given, i64 %begin, i64 %end) {
  %p = load ptr, ptr %given
  %n.at = getelementptr %given, ptr %given, i32 0, i32 1
  %n = load i64, ptr %n.at
  %code = call i32 @weft_parallel(ptr @add.inside, ptr %p, i64 %n, i32 0)
  ret i32 %code
}
define internal i32 @fault(ptr %given, i64 %begin, i64 %end) {
  %p = load ptr, ptr %given
  %n.at = getelementptr %given, ptr %given, i32 0, i32 1
  %n = load i64, ptr %n.at
  %code = call i32 @weft_parallel(ptr @fail, ptr %p, i64 %n, i32 0)
  %after = call i32 @weft_parallel(ptr @add, ptr %p, i64 %n, i32 0)
  %bad = icmp ne i32 %after, 0
  %result = select i1 %bad, i32 0, i32 %code
  ret i32 %result
}
define internal i32 @team.inside(ptr %given, i64 %begin, i64 %end) {
  %code = call i32 @weft_team(ptr @loops, ptr %given, i64 1, i32 0)
  ret i32 %code
}
"""
    + "".join(
        f"""
define i32 @{name}(ptr %p, i32 %threads, i64 %n) {{
  %given = alloca %given
  store ptr %p, ptr %given
  %n.at = getelementptr %given, ptr %given, i32 0, i32 1
  store i64 %n, ptr %n.at
  %code = call i32 @weft_team(ptr @{body}, ptr %given, i64 1, i32 %threads)
  ret i32 %code
}}
"""
        for name, body in (
            ("many", "loops"), ("nested", "loop.of.loops"), ("faulty", "fault"),
            ("twice", "team.inside"),
        )
    )
).replace("LOOPS", str(LOOPS))  # fmt: skip


@pytest.fixture
def lib(load):
    return load(IR)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 1000])
def test_every_loop_runs_each_iteration_once(lib, n, count):
    with threads.own_num_threads(count):
        x = zeros(n)
        for _ in range(10):
            lib.function(spec("many"))(x, 0)
        assert set(x.tolist()) <= {10 * LOOPS}


def test_a_limit_of_threads_and_one_thread(lib):
    with threads.own_num_threads(4):
        for limit in (-1, -2, -64):
            x = zeros(50)
            lib.function(spec("many"))(x, limit)
            assert set(x.tolist()) == {LOOPS}


@pytest.mark.parametrize("name", ["nested", "twice"])
def test_what_is_nested_runs_in_its_thread(lib, name):
    with threads.own_num_threads(3):
        x = zeros(30)
        lib.function(spec(name))(x, 0)
        assert set(x.tolist()) == {1 if name == "nested" else LOOPS}


def test_a_fault_ends_its_loop_only(lib):
    with threads.own_num_threads(3):
        x = zeros(30)
        with pytest.raises(RuntimeFault, match=r"part \d+ fails"):
            lib.function(spec("faulty"))(x, 0)
        assert set(x.tolist()) == {1}


def test_many_callers_have_teams_at_once(lib):
    many, wrong = lib.function(spec("many")), []

    def work():
        with threads.own_num_threads(3):
            for _ in range(30):
                x = zeros(17)
                many(x, 0)
                if set(x.tolist()) != {LOOPS}:
                    wrong.append(x.tolist())

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


SETUP = """
import os, warnings
from weft.runtime.threads import parallel as threads
from tests.runtime.conftest import library
from tests.runtime.threads.parallel_loops import spec, zeros
from tests.runtime.threads.test_teams import IR, LOOPS

many = library(IR).function(spec("many"))

def check():
    x = zeros(100)
    with threads.own_num_threads(4):
        many(x, 0)
    assert set(x.tolist()) == {LOOPS}

"""
PROGRAM = (
    SETUP
    + """
for _ in range(200):
    check()
pid = os.fork()
if pid == 0:
    warnings.simplefilter("ignore")
    check()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
)
CHANGING = """
import sys, time
from pathlib import Path
for step in range(3000):  # other parts, pieces and numbers of threads in each loop of a call
    with threads.own_num_threads(2 + step % 5):
        x = zeros(1 + step % 13)
        many(x, 0)
    assert set(x.tolist()) == {LOOPS}, (step, x.tolist())
    if step % 100 == 0:
        time.sleep(0.01)  # its workers sleep
def sleeps(task):
    return (task / "stat").read_text().rpartition(")")[2].split()[0] == "S"

workers = [item for item in Path("/proc/self/task").glob("*") if item.name != str(os.getpid())]
asleep = looks = 0
while asleep < 20:  # looks in a row: a worker that waits for work by asking for it is seen awake
    asleep = asleep + 1 if all(map(sleeps, workers)) else 0
    looks += 1
    if looks > 30_000:
        sys.exit("workers that have nothing to do do not sleep")
    time.sleep(0.01)
"""
REFUSED = """
import resource  # no thread can be had: the caller does all
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
os.setuid(65534) if os.getuid() == 0 else None
with threads.own_num_threads(9):
    check()
"""


@pytest.mark.parametrize("program", [PROGRAM, SETUP + CHANGING, SETUP + REFUSED])
def test_in_a_fresh_process(program):
    run_in_fresh_process(program)


def heavy(steps):
    @T.prim_func(private=True)
    def func(a: T.Buffer((64, 64), "float32"), b: T.Buffer((64, 64), "float32")):
        for i in T.parallel(64):
            for j in range(64):
                b[i, j] = T.exp(a[i, j]) * T.float32(steps)

    return func


def caller(number):
    """A module whose ``main`` calls ``number`` functions with parallel loops."""
    builder = weft.relax.BlockBuilder()
    x = weft.relax.Var("x", weft.relax.TensorStructInfo((64, 64), "float32"))
    with builder.function("main", [x]):
        value = x
        for step in range(number):
            kernel = builder.add_func(heavy(step + 1), f"heavy{step}")
            value = builder.emit(
                weft.relax.call_tir(
                    kernel, [value], out_sinfo=weft.relax.TensorStructInfo((64, 64), "float32")
                )
            )
        builder.emit_func_output(value)
    return builder.get()


@pytest.mark.parametrize(("number", "expected"), [(1, False), (2, True), (3, True)])
def test_a_model_of_several_parallel_kernels_has_a_team(number, expected):
    executable = weft.relax.build(caller(number))
    assert ("@weft_team" in executable.kernels.get_source("ll")) is expected
    machine = weft.relax.VirtualMachine(executable, weft.cpu())
    value = x = np.linspace(-2, 0, 64 * 64, dtype=np.float32).reshape(64, 64)
    for step in range(number):
        value = np.exp(value) * np.float32(step + 1)
    with threads.own_num_threads(2):
        found = machine["main"](weft.nd.array(x)).numpy()
    np.testing.assert_allclose(found, value, rtol=1e-4)
