"""Watched services: parallel loops run as before, and each part of them is noted."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.runtime.threads.parallel import own_num_threads
from weft.runtime.threads.watched import WatchedServices
from weft.script import tir as T


@T.prim_func
def squared(A: T.Buffer((1 << 20,), "float32"), B: T.Buffer((1 << 20,), "float32")):
    for i in T.parallel(1 << 10):
        for j in range(1 << 10):
            with T.block("B"):
                vi = T.axis.spatial(1 << 20, i * 1024 + j)
                B[vi] = A[vi] * A[vi]


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_parallel_loops_are_noted(threads):
    services = WatchedServices()
    with services.watched():
        kernel = weft.build(squared, target="llvm -num-cores=2")["squared"]
    plain = weft.build(squared, target="llvm -num-cores=2")["squared"]
    x = weft.nd.array(np.arange(1 << 20, dtype="float32"))
    outputs = [weft.nd.empty((1 << 20,), "float32") for _ in range(2)]
    services.clear()
    with own_num_threads(threads):
        plain(x, outputs[0])
        assert len(services.parts()) == 0
        kernel(x, outputs[1])
    np.testing.assert_array_equal(*[output.numpy() for output in outputs])
    parts = services.parts()
    assert len(parts) >= 1
    assert len({int(thread) for thread in parts[:, 0]}) <= threads
    assert (parts[:, 1] <= parts[:, 2]).all()
