"""What tests of ``weft.tune`` share: a small model, and processes of trials that fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import weft
from weft import relax
from weft.ir.module import IRModule


def perceptron(batch: int = 4) -> IRModule:
    """Three layers, two of them with the same kernel."""
    rng = np.random.default_rng(2)
    x = relax.Var("x", relax.TensorStructInfo((batch, 32), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for columns in (32, 32, 8):
                weights = relax.const(rng.standard_normal((32, columns)).astype("f4") / 8)
                value = builder.emit(relax.op.nn.relu(relax.op.matmul(value, weights)))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    module: IRModule = builder.get()
    return module


FAULTY = """
import json, os, sys, time
sys.path[:] = json.loads(sys.argv[1])
import numpy as np
from weft.dlight.decisions import decide
from weft.driver.tuning import trial, worker

FORMS = int(os.environ["FORMS"])
HANG, CRASH, LEAVE, REFUSE, WRONG, FAST = range(1, 7)

def decided(self):
    return decide("form", 0, lambda: range(FORMS))

def compiled(self, form):
    fault = form % 50
    if fault == HANG and "HANGS" in os.environ:
        time.sleep(1000)
    if fault == CRASH:
        os.abort()
    if fault == LEAVE:
        os._exit(0)
    if fault == REFUSE:
        raise MemoryError("no memory is left")
    seconds = {WRONG: 0.0, FAST: 0.0005}.get(form, 0.002 if form == 0 else 0.003)

    def call(*arrays):
        time.sleep(seconds)
        total = sum([float(np.sum(array)) for array in arrays])
        return np.full(4, total + (fault == WRONG), "float32")

    return call

trial.Bench._decided, trial.Bench._compiled = decided, compiled
worker.work()
"""
"""A process of trials whose forms are made up. Each has one choice, ``form``, with as many answers
as the environment's FORMS says. Of each 50 the first hangs (if HANGS is set), the next crash, end
without an answer, are refused, or give wrong results at once. Only number 6 is right and faster
than the default."""
FASTEST = "6"


def tune(database: str | Path) -> None:
    """Tune the perceptron with faulty trials."""
    from weft.driver.tuning import trial_process

    vars(trial_process)["_PROGRAM"] = FAULTY
    weft.tune(perceptron(), minutes=30, database=database)
