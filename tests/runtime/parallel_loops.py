"""Functions with parallel loops, written as LLVM IR by the tests, here and in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from weft import nd
from weft.runtime.spec import FunctionSpec, ParamSpec

ROOT = Path(__file__).parents[2]
_START = """
from weft.runtime import threads
if {backend!r} == "pthread":
    threads._find_openmp = lambda: None
assert threads.parallel_backend() == {backend!r}
"""


def spec(name):
    """A function of a vector of int64 and a number of threads."""
    params = (ParamSpec("buffer", "x", "int64", ("n",)), ParamSpec("scalar", "threads", "int32"))
    return FunctionSpec(name, params, ("n",))


def zeros(n):
    """Its first argument."""
    return nd.array(np.zeros(n, np.int64)) if n else nd.empty((0,), "int64")


def run_in_fresh_process(program, backend):
    """Run a program in a process whose parallel loops run on ``backend``; fail with its errors."""
    done = subprocess.run(
        [sys.executable, "-c", _START.format(backend=backend) + program], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
