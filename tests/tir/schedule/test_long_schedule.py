"""The schedule that ``benchmarks/schedule.py`` measures: sixty edits of a convolution."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import tir

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "schedule.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("schedule_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def native(func_or_mod, arrays):
    out = weft.nd.empty((1, 64, 56, 56), "float32")
    weft.build(func_or_mod)["main"](*[weft.nd.array(array) for array in arrays], out)
    return out.numpy()


def test_the_schedule_keeps_the_result_and_has_the_lengths_it_says(benchmark):
    func = benchmark.convolution()
    rng = np.random.default_rng(0)
    shapes = [(1, 64, 56, 56), (64, 64, 3, 3), (1, 64, 1, 1)]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    expected = native(func, arrays)
    sch = tir.Schedule(func, seed=1)
    for part, edits in ((benchmark.tiled, 15), (benchmark.finished, 30), (benchmark.refined, 60)):
        part(sch)
        assert benchmark.edits(sch.trace) == edits
        np.testing.assert_allclose(native(sch.mod, arrays), expected, rtol=1e-3, atol=1e-3)


def test_a_shorter_trace_is_the_start_of_the_long_one(benchmark):
    sch = tir.Schedule(benchmark.convolution(), seed=1)
    benchmark.tiled(sch)
    short = benchmark.first(sch.trace, 5)
    assert benchmark.edits(short) == 5
    assert short.insts == sch.trace.insts[: len(short.insts)]
