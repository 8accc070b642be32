"""Sizes of what functions allocate, before and after memory is planned."""

import pytest

from weft import relax
from weft.ir.transform import Sequential
from weft.relax import transform
from weft.relax.analysis.memory_usage import memory_usage
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import IRTypeError

LOWER = Sequential(
    [
        transform.LegalizeOps(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
    ]
)


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((1024, 1024), "float32"), y: R.Tensor(("n",), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(a)
            c = R.exp(b)
            d = R.exp(c)
            e = R.exp(y)
            R.output(d, e)
        return d, e


def test_planning_shows_in_the_estimate():
    before = LOWER(Chain)
    after = transform.StaticPlanBlockMemory()(before)
    whole = 4 << 20
    usage = memory_usage(before["main"])
    assert (usage.tensors, usage.tensor_bytes, usage.storage_bytes) == (4, 4 * whole, 4 * whole)
    assert usage.dynamic == 1
    usage = memory_usage(after["main"])
    assert (usage.tensor_bytes, usage.storages, usage.storage_bytes) == (4 * whole, 3, 3 * whole)
    assert relax.analysis.estimate_memory_usage(after) == (
        "main:\n"
        "  tensors:  4 of constant size, 16 MiB, 1 of dynamic size\n"
        "  planned:  3 storages of constant size, 12 MiB\n"
        "  planned memory is 75.0%"
    )
    assert relax.analysis.estimate_memory_usage(before["main"]).endswith("is 100.0%")


def test_something_else_is_refused():
    with pytest.raises(IRTypeError, match="expected an IRModule or a Function, got int"):
        relax.analysis.estimate_memory_usage(3)
