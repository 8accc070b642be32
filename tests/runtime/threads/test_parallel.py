import os
import threading

import pytest

from tests.runtime.threads.parallel_loops import run_in_fresh_process, spec, zeros
from weft.runtime.call.spec import FunctionSpec
from weft.runtime.registry import register_func, remove_global_func
from weft.runtime.threads import parallel as threads
from weft.support.errors import RuntimeFault

# fill(x): x[i] = part number by begin, written in parallel over n parts of context %p
IR = """
@message = private constant [15 x i8] c"part {a} fails\\00"
define internal i32 @body(ptr %p, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, %begin
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
define internal i32 @outer(ptr %p, i64 %begin, i64 %end) {
  %at = getelementptr i64, ptr %p, i64 %begin
  %n = sub i64 %end, %begin
  %code = call i32 @weft_parallel(ptr @body, ptr %at, i64 %n, i32 4)
  ret i32 %code
}
define internal i32 @failing(ptr %p, i64 %begin, i64 %end) {
  %code = call i32 @weft_raise(i32 0, ptr @message, i64 %begin, i64 %end)
  ret i32 %code
}
define i32 @fill(ptr %p, i32 %threads, i64 %n) {
  %code = call i32 @weft_parallel(ptr @body, ptr %p, i64 %n, i32 %threads)
  ret i32 %code
}
define i32 @nest(ptr %p, i32 %threads, i64 %n) {
  %code = call i32 @weft_parallel(ptr @outer, ptr %p, i64 %n, i32 %threads)
  ret i32 %code
}
define i32 @fail(ptr %p, i32 %threads, i64 %n) {
  %code = call i32 @weft_parallel(ptr @failing, ptr %p, i64 %n, i32 %threads)
  ret i32 %code
}
"""


@pytest.fixture
def lib(load):
    return load(IR)


def test_loops_are_cut_in_contiguous_equal_parts(lib):
    x = zeros(10)
    lib.function(spec("fill"))(x, 4)
    assert x.tolist() == [0, 0, 0, 3, 3, 3, 6, 6, 8, 8]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_every_iteration_runs_once(lib, n, count):
    x = zeros(n)
    lib.function(spec("fill"))(x, count)
    parts = min(n, count)
    begins = [p * (n // parts) + min(p, n % parts) for p in range(parts)] if parts else []
    assert sorted(set(x.tolist())) == begins
    assert x.tolist() == sorted(x.tolist())


def test_zero_threads_mean_the_configured_number(lib):
    fill = lib.function(spec("fill"))
    threads.set_num_threads(3)
    try:
        x = zeros(6)
        fill(x, 0)
        assert x.tolist() == [0, 0, 2, 2, 4, 4]
        threads.set_num_threads(1)
        x = zeros(6)
        fill(x, 0)
        assert x.tolist() == [0] * 6
    finally:
        threads.set_num_threads(None)


def test_negative_threads_limit_the_configured_number(lib):
    fill = lib.function(spec("fill"))
    threads.set_num_threads(3)
    try:
        for limit, expected in ((-2, [0, 0, 0, 3, 3, 3]), (-64, [0, 0, 2, 2, 4, 4]), (-1, [0] * 6)):
            x = zeros(6)
            fill(x, limit)
            assert x.tolist() == expected
    finally:
        threads.set_num_threads(None)


def test_nested_loops_run_serially(lib):
    x = zeros(8)
    lib.function(spec("nest"))(x, 2)
    assert x.tolist() == [0] * 8


def test_the_first_fault_is_raised(lib):
    fail = lib.function(spec("fail"))
    for count in (1, 2, 8):
        with pytest.raises(RuntimeFault, match=r"part \d+ fails"):
            fail(zeros(8), count)


def test_many_python_threads_run_parallel_loops(lib):
    fill = lib.function(spec("fill"))
    wrong = []

    def work():
        for _ in range(50):
            x = zeros(10)
            fill(x, 2)
            if x.tolist() != [0] * 5 + [5] * 5:
                wrong.append(x.tolist())

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_callbacks_run_in_parallel_loops(load):
    ir = """
%value = type { i32, i32, i64 }
@name = private constant [14 x i8] c"test.parallel\\00"
define internal i32 @body(ptr %p, i64 %begin, i64 %end) {
  %arg = alloca %value
  %v = insertvalue %value { i32 0, i32 0, i64 0 }, i64 %begin, 2
  store %value %v, ptr %arg
  %code = call i32 @weft_call_packed(ptr @name, ptr %arg, i32 1, ptr null)
  ret i32 %code
}
define i32 @f() {
  %code = call i32 @weft_parallel(ptr @body, ptr null, i64 4, i32 4)
  ret i32 %code
}
"""
    f = load(ir).function(FunctionSpec("f", calls_packed=True))
    seen = []
    register_func("test.parallel", seen.append)
    try:
        f()
        assert sorted(seen) == [0, 1, 2, 3]
        register_func("test.parallel", lambda i: 1 // (i - 2), override=True)
        with pytest.raises(ZeroDivisionError):
            f()
    finally:
        remove_global_func("test.parallel")


def test_settings_are_checked(monkeypatch):
    for bad in (0, -1, 5000, "2"):
        with pytest.raises(ValueError, match=r"expected a number of threads from 1 to 4096"):
            threads.set_num_threads(bad)
    monkeypatch.setenv("WEFT_NUM_THREADS", "5")
    assert threads.num_threads() == 5
    monkeypatch.setenv("WEFT_NUM_THREADS", "many")
    with pytest.raises(ValueError, match=r"WEFT_NUM_THREADS: expected an integer, got 'many'"):
        threads.num_threads()
    monkeypatch.setenv("WEFT_NUM_THREADS", "0")
    with pytest.raises(ValueError, match=r"WEFT_NUM_THREADS: expected an integer of at least 1"):
        threads.num_threads()
    monkeypatch.delenv("WEFT_NUM_THREADS")
    assert threads.num_threads() == len(os.sched_getaffinity(0))


PROGRAM = """
import os, warnings
from tests.runtime.conftest import library
from tests.runtime.threads.parallel_loops import spec, zeros
from tests.runtime.threads.test_parallel import IR

lib = library(IR)
fill, nest, fail = (lib.function(spec(name)) for name in ("fill", "nest", "fail"))

def check(expected):
    x = zeros(6)
    fill(x, 3)
    assert x.tolist() == expected, x.tolist()

check([0, 0, 2, 2, 4, 4])
"""
NEST = """
x = zeros(8)
nest(x, 2)
assert x.tolist() == [0] * 8, x.tolist()
try:
    fail(zeros(8), 4)
except RuntimeError as error:
    assert "fails" in str(error)
else:
    raise SystemExit("no fault")
for _ in range(1000):
    check([0, 0, 2, 2, 4, 4])
"""
FORK = """
def child(action):
    pid = os.fork()
    if pid == 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action()
            check([0] * 6)
            text = [str(w.message) for w in caught if w.category is RuntimeWarning]
        os._exit(len(text) == 1 and "forked" in text[0])
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1

child(lambda: check([0] * 6))
check([0, 0, 2, 2, 4, 4])

pid = os.fork()
if pid == 0:
    warnings.simplefilter("error")
    try:
        check([0] * 6)
    except RuntimeWarning:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""


@pytest.mark.parametrize("part", [NEST, FORK], ids=["nest", "fork"])
def test_in_a_fresh_process(part):
    run_in_fresh_process(PROGRAM + part)


def parts(x):
    return len(set(x.tolist()))


def test_a_thread_may_have_a_number_of_its_own(lib):
    fill = lib.function(spec("fill"))
    before = threads.num_threads()
    threads.set_num_threads(2)
    try:
        seen = {}

        def work(count):
            x = zeros(60)
            with threads.own_num_threads(count):
                barrier.wait()
                fill(x, 0)
                assert threads.num_threads() == count
            seen[count] = parts(x)

        barrier = threading.Barrier(3)
        workers = [threading.Thread(target=work, args=(count,)) for count in (1, 3, 5)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        x = zeros(60)
        fill(x, 0)
        assert seen == {1: 1, 3: 3, 5: 5}
        assert parts(x) == 2
    finally:
        threads.set_num_threads(before)


def test_numbers_of_ones_own_nest(lib):
    fill = lib.function(spec("fill"))
    with threads.own_num_threads(4):
        with threads.own_num_threads(2):
            x = zeros(60)
            fill(x, 0)
        y = zeros(60)
        fill(y, 0)
    assert (parts(x), parts(y)) == (2, 4)
    with pytest.raises(ValueError, match="expected a number of threads from 1 to 4096, got 0"):
        threads.own_num_threads(0)
