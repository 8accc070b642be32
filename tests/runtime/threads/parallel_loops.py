"""Functions with parallel loops, written as LLVM IR by the tests, here and in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from weft import nd
from weft.runtime.call.spec import FunctionSpec, ParamSpec

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def spec(name):
    """A function of a vector of int64 and a number of threads."""
    params = (ParamSpec("buffer", "x", "int64", ("n",)), ParamSpec("scalar", "threads", "int32"))
    return FunctionSpec(name, params, ("n",))


def zeros(n):
    """Its first argument."""
    return nd.array(np.zeros(n, np.int64)) if n else nd.empty((0,), "int64")


def run_in_fresh_process(program):
    """Run a program in a process of its own; fail with its errors."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=ENVIRONMENT, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
