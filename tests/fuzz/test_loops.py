"""Random ONNX loops and branches: native code, bytecode and ONNX Runtime agree.

``make test`` runs fixed seeds; ``make fuzz MINUTES=30`` runs new ones for its share of the time.
"""

from __future__ import annotations

import os
import random
import time

import numpy as np
import pytest

import weft
from tests.lib.random_loops import RandomLoops
from weft import relax
from weft.relax.frontend.onnx import from_onnx

onnxruntime = pytest.importorskip("onnxruntime")

MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))
SHARE = 1 / 10
SIZES = ((0, 2), (1, 1), (3, 3), (6, 2))
"""Numbers of steps, and lengths of vectors."""


def assert_same(result, right, where):
    """Raise AssertionError unless a tensor, or a tuple for a sequence, is what it should be."""
    if isinstance(right, list):
        assert len(result) == len(right), where
        for item, wanted in zip(result, right, strict=True):
            assert_same(item, wanted, where)
    else:
        np.testing.assert_array_equal(result.numpy(), right, where)


def check(seed: int) -> bool:
    """Compare one model at all sizes; whether it is native."""
    draw = RandomLoops(seed)
    model = draw.model()
    executable = weft.compile(from_onnx(model), target="llvm")
    is_native = executable.program.functions["main"].native is not None
    modes = ("native", "bytecode") if is_native else ("bytecode",)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    for steps, length in SIZES:
        inputs = draw.inputs(steps, length)
        expected = session.run(None, inputs)
        for mode in modes:
            machine = relax.VirtualMachine(executable, exec_mode=mode)
            results = machine["main"](*inputs.values())
            for result, right, output in zip(results, expected, model.graph.output, strict=True):
                where = f"seed {seed}, {mode}, {steps} steps, length {length}: {output.name}"
                assert_same(result, right, where)
    return is_native


@pytest.mark.parametrize("seed", [2, 3, 5, 8, 9, 11])
def test_fixed_seeds(seed):
    assert check(seed) == (seed % 2 == 0)


@pytest.mark.skipif(not MINUTES, reason="make fuzz sets the minutes")
def test_new_seeds():
    end = time.monotonic() + MINUTES * 60 * SHARE
    while time.monotonic() < end:
        check(random.randrange(1 << 30))
