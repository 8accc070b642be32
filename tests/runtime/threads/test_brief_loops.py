"""Loops that are shorter than waking a thread (``weft_parallel_brief``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.threads.parallel_loops import run_in_fresh_process, spec, zeros
from weft.runtime.threads import parallel as threads
from weft.support.errors import RuntimeFault

# who(x): a brief loop whose parts take some microseconds and write which thread ran them;
# plain(x): the same, not brief; fail(x): a brief loop whose parts fail
IR = """
@message = private constant [15 x i8] c"part {a} fails\\00"
declare i64 @pthread_self()
define internal i32 @body(ptr %p, i64 %begin, i64 %end) {
entry:
  %self = call i64 @pthread_self()
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %last ]
  %at = getelementptr i64, ptr %p, i64 %i
  br label %wait
wait:
  %step = phi i64 [ 0, %loop ], [ %more, %wait ]
  store volatile i64 %self, ptr %at
  %more = add i64 %step, 1
  %long = icmp eq i64 %more, 4000
  br i1 %long, label %last, label %wait
last:
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %end
  br i1 %again, label %loop, label %done
done:
  ret i32 0
}
define internal i32 @failing(ptr %p, i64 %begin, i64 %end) {
  %code = call i32 @weft_raise(i32 0, ptr @message, i64 %begin, i64 %end)
  ret i32 %code
}
define i32 @who(ptr %p, i32 %threads, i64 %n) {
  %code = call i32 @weft_parallel_brief(ptr @body, ptr %p, i64 %n, i32 %threads)
  ret i32 %code
}
define i32 @plain(ptr %p, i32 %threads, i64 %n) {
  %code = call i32 @weft_parallel(ptr @body, ptr %p, i64 %n, i32 %threads)
  ret i32 %code
}
define i32 @fail(ptr %p, i32 %threads, i64 %n) {
  %code = call i32 @weft_parallel_brief(ptr @failing, ptr %p, i64 %n, i32 %threads)
  ret i32 %code
}
"""


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_iteration_runs(load, n, count):
    who = load(IR).function(spec("who"))
    for _ in range(40):
        x = zeros(n)
        who(x, count)
        assert all(x.tolist())
        assert len(set(x.tolist())) <= count


def test_a_fault_is_the_loops(load):
    lib = load(IR)
    with pytest.raises(RuntimeFault, match=r"part \d fails"):
        lib.function(spec("fail"))(zeros(4), 2)
    x = zeros(4)
    lib.function(spec("who"))(x, 2)
    assert all(x.tolist())


def test_one_thread_is_the_caller(load):
    with threads.own_num_threads(1):
        x = zeros(4)
        load(IR).function(spec("who"))(x, 0)
        assert len(set(x.tolist())) == 1


SLEEPERS = """
import os, time
from pathlib import Path
from tests.runtime.conftest import library
from tests.runtime.threads.parallel_loops import spec, zeros
from tests.runtime.threads.test_brief_loops import IR

lib = library(IR)
who, plain = lib.function(spec("who")), lib.function(spec("plain"))

def ran(function):
    x = zeros(2)
    function(x, 2)
    return len(set(x.tolist()))

def sleeps(task):
    return (task / "stat").read_text().rpartition(")")[2].split()[0] == "S"

before = set(os.listdir("/proc/self/task"))
plain(zeros(2), 2)
[worker] = set(os.listdir("/proc/self/task")) - before
end = time.monotonic() + 600
while not sleeps(Path("/proc/self/task") / worker) and time.monotonic() < end:
    time.sleep(0.01)
assert [ran(who) for _ in range(15)] == [1] * 15, "a brief loop woke a worker"
end = time.monotonic() + 600
while ran(who) == 1:  # in quick succession
    if time.monotonic() > end:
        raise SystemExit("brief loops never have a second thread")
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of threads")
def test_workers_that_sleep_are_woken_seldom():
    run_in_fresh_process(SLEEPERS)
