"""Sizes that no machine has memory for: an error of weft from every way to run a program."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import weft
from tests.lib.python_process import output_of
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRValueError, TVMError
from weft.tir.interp import run


@I.ir_module
class Square:
    @R.function
    def main(x: R.Tensor(("n", 0), "float32"), y: R.Tensor(("m", 0), "float32")) -> R.Tensor(
        (), "float32"
    ):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            z = R.full((n, m), R.const(1, "float32"), dtype="float32")
            w = R.add(z, z)
            s = R.sum(w)
            R.output(s)
        return s


@I.ir_module
class Result:
    @R.function
    def main(x: R.Tensor(("n", 0), "float32"), y: R.Tensor(("m", 0), "float32")) -> R.Tensor(
        ("n", "m"), "float32"
    ):
        n = T.int64()
        m = T.int64()
        z = R.full((n, m), R.const(1, "float32"), dtype="float32")
        return z


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("size", [1 << 23, 1 << 30, 1 << 33, 1 << 60])
@pytest.mark.parametrize("mod", [Square, Result])
def test_a_symbolic_size_beyond_memory(mod, size, mode):
    """n * m of up to 2**120 elements: neither wraps nor leaves numpy's own errors."""
    machine = relax.VirtualMachine(relax.build(mod), weft.cpu(), exec_mode=mode)
    x, y = (np.empty((extent, 0), "float32") for extent in (size, size))
    with pytest.raises(TVMError, match=r"no memory for|of less than 2\*\*"):
        machine["main"](x, y)


@pytest.mark.parametrize("count", [-5, -(1 << 62), 1 << 46, 1 << 62])
def test_an_allocation_of_the_interpreter(count):
    @T.prim_func
    def main(n: T.int64, c: T.Buffer((1,), "int32")):
        scratch = T.alloc_buffer((n,), "int32")
        scratch[0] = 1
        c[0] = scratch[0]

    with pytest.raises(IRValueError, match=r"scratch: (expected an allocation|no memory for)"):
        run(main, count, np.zeros(1, "int32"))


PROGRAM = """
import resource
import numpy as np, weft
from weft import relax
n = weft.tir.Var("n", "int64")
builder = relax.BlockBuilder()
x = relax.Var("x", relax.TensorStructInfo((n,), "float32"))
with builder.function("main", [x]):
    builder.emit_func_output(builder.emit(relax.op.add(x, x)))
model = weft.compile(builder.get(), cache=False)
assert model(np.ones(3, "float32")).tolist() == [2, 2, 2]
given = np.zeros(1 << 26, "float32")
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    model(given)
except weft.TVMError as error:
    print(error)
assert model(np.ones(3, "float32")).tolist() == [2, 2, 2]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_no_memory_for_a_result_is_an_error_and_the_next_call_works():
    printed = output_of(PROGRAM)
    assert printed.startswith("no memory for an array of shape (67108864,), 268435456 bytes")
