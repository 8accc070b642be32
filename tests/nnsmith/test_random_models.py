"""Random models of NNSmith: PyTorch, ONNX Runtime and a float64 judge beside weft, two ways.

``make slow`` installs nnsmith and runs 600 fixed seeds; WEFT_FUZZ_MINUTES gives new ones so many
minutes. What a difference is explained by: ``tests/lib/float64_rules.py``.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.lib import network_batches

COUNT = 600
AT_LEAST = 500
"""Networks that PyTorch runs, so that there is something to compare."""
MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))


def checked(found):
    print(network_batches.table(found), flush=True)  # noqa: T201 - the report
    failures = network_batches.failures(found)
    assert not failures, "\n\n".join([f"{len(failures)} of {len(found)} networks", *failures[:10]])


@pytest.mark.slow
def test_random_models_of_fixed_seeds():
    found = list(network_batches.outcomes(0, COUNT))
    checked(found)
    judged = [one for one in found if any(way["status"] == "right" for way in one["ways"].values())]
    assert len(judged) >= AT_LEAST
    operators = {kind for one in found for kind in one["operators"]}
    assert len(operators) >= 75
    assert {dtype for one in found for dtype in one["dtypes"]} >= {
        "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool",
        "complex64", "complex128",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_random_models_of_new_seeds():
    start = random.SystemRandom().randrange(1 << 30)
    end = time.monotonic() + 60 * MINUTES
    checked(list(network_batches.outcomes(start, 1 << 30, end=end)))
