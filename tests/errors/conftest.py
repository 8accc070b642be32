"""Programs that the tests of misuse break in many ways."""

from __future__ import annotations

import pytest

import weft

TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def add1(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + 1.0

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.add1, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y
"""


@pytest.fixture(scope="session")
def module():
    """A module with one kernel and one graph function."""
    return weft.script.from_source(TEXT)


@pytest.fixture(scope="session")
def built(module):
    """The module, built."""
    return weft.relax.build(module)


@pytest.fixture
def vm(built):
    """A machine that runs it."""
    return weft.relax.VirtualMachine(built, weft.cpu())
