"""Callbacks that raise, threads, forks and Ctrl-C around native code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import weft
from weft import te
from weft.script import tir as T


class Stop(Exception):
    pass


def test_a_raising_callback_gives_its_own_exception():
    problem = Stop("from the callback")

    @weft.register_func("tests.safety.stop", override=True)
    def stop(_value):
        raise problem

    @T.prim_func
    def main(y: T.Buffer((2,), "int32")):
        for i in range(2):
            y[i] = i + 1
            T.evaluate(T.call_packed("tests.safety.stop", i))

    y = weft.nd.array(np.zeros(2, "int32"))
    with pytest.raises(Stop) as caught:
        weft.build(main)(y)
    assert caught.value is problem
    assert y.numpy().tolist() == [1, 0]


def test_a_function_that_nobody_registered_is_named():
    @T.prim_func
    def main(y: T.Buffer((2,), "int32")):
        y[0] = 1
        T.evaluate(T.call_packed("tests.safety.nobody", 1))

    with pytest.raises(weft.TVMError, match="tests.safety.nobody"):
        weft.build(main)(weft.nd.array(np.zeros(2, "int32")))


def product(n=64):
    x, w = te.placeholder((n, n), name="x"), te.placeholder((n, n), name="w")
    k = te.reduce_axis((0, n), name="k")
    y = te.compute((n, n), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k))
    return weft.build(te.create_prim_func([x, w, y]))


def test_eight_threads_call_one_function():
    built = product()
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((2, 64, 64)).astype("float32") for _ in range(8)]
    results = [None] * 8

    def work(index):
        x, w = [weft.nd.array(a) for a in given[index]]
        for _ in range(20):
            out = weft.nd.empty((64, 64))
            built(x, w, out)
        results[index] = out.numpy()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (x, w), got in zip(given, results, strict=True):
        np.testing.assert_allclose(got, x @ w, rtol=1e-3, atol=1e-3)


PARALLEL = """
import numpy as np, weft
from weft.script import tir as T

@T.prim_func
def main(x: T.Buffer((4096,), "float32"), y: T.Buffer((4096,), "float32")):
    for i in T.parallel(4096):
        y[i] = x[i] * T.float32(2)

built = weft.build(main)
x, y = weft.nd.array(np.arange(4096, dtype="float32")), weft.nd.empty((4096,))
built(x, y)
"""


def run_script(tmp_path, text):
    file = tmp_path / "program.py"
    file.write_text(text)
    command = [sys.executable, str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_a_forked_child_runs_parallel_code(tmp_path):
    text = (
        PARALLEL
        + """
import os, sys, warnings
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    out = weft.nd.empty((4096,))
    built(x, out)
    os._exit(0 if (out.numpy() == y.numpy()).all() else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    )
    done = run_script(tmp_path, text)
    assert done.returncode == 0, done.stderr


LOOP = """
import numpy as np, sys, weft
from weft.script import tir as T
from weft.tir.interp import run

@T.prim_func
def main(n: T.int64, y: T.Buffer((1,), "int64")):
    for i in range(n):
        y[0] = T.bitwise_xor(y[0] * T.int64(3), T.shift_right(y[0], T.int64(7))) + i

y = weft.nd.array(np.ones(1, "int64"))
call = {call}
print("ready", flush=True)
try:
    call()
    for _ in range(100): pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
small = weft.nd.array(np.ones(1, "int64"))
weft.build(main)(2, small)
print(small.numpy()[0])
"""


@pytest.mark.parametrize(
    "call",
    ["(lambda f: (lambda: f(1_000_000_000, y)))(weft.build(main))",
     "lambda: run(main, 10_000_000, y)"],
    ids=["native", "interpreter"],
)  # fmt: skip
def test_ctrl_c_ends_a_long_loop(tmp_path, call):
    file = tmp_path / "program.py"
    file.write_text(LOOP.replace("{call}", call))
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "ready"
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert out.split() == ["interrupted", "10"], err
