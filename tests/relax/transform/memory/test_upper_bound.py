"""Samples of sizes: what is equal has equal samples, within the bounds of the symbols."""

from weft import relax
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.script import relax as R
from weft.tir import Var
from weft.tir import max as tir_max
from weft.tir import min as tir_min

N, M = Var("n", "int64"), Var("m", "int64")


def bounds(**attrs) -> UpperBounds:
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((N, M), "float32"))
    with bb.function("main", [x], attrs=attrs):
        bb.emit_func_output(x)
    return UpperBounds(bb.get()["main"])


def test_equal_sizes_have_equal_samples():
    samples = bounds().sample
    assert samples(N * M * 4) == samples(M * (4 * N))
    assert samples((N + 1) * 4) == samples(4 * N + 4)
    assert len({samples(N), samples(M), samples(N + 1), samples(2 * N), samples(N * M)}) == 5


def test_sizes_that_are_equal_within_bounds_have_equal_samples():
    samples = bounds(tir_var_upper_bound={"n": 5}, tir_non_negative_var=["m"]).sample
    assert samples(tir_min(N, 5) * M) == samples(N * M)
    assert samples(tir_max(M, 0)) == samples(M)
