"""``verify=True`` has a limit of work: what is larger runs compiled, which is said once."""

import warnings

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.transform import PassContext, module_pass
from weft.relax.reference.verify import VerifyGraphs
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import VerifyError
from weft.tir.interp.limited import LimitedRunner, VerifyWarning, operations_of

LIMIT = {"verify.max_operations": 100}


@I.ir_module
class Layers:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            R.output(z)
        return z


@T.prim_func
def triangle(a: T.handle, n: T.int32, b: T.Buffer((1,), "int32")):
    m = T.int32()
    A = T.match_buffer(a, (m,), "float32")
    for i in range(m):
        for j in range(i + 1):
            A[j] = A[j] + T.float32(1)
        if b[0] > 0:
            for k in range(n):
                A[i] = T.float32(k)
        else:
            A[i] = T.float32(0)


def test_operations_are_counted_by_the_extents_of_loops():
    arguments = [np.zeros(10, "float32"), 7, np.zeros(1, "int32")]
    assert operations_of(triangle, arguments) == 10 * (10 + 7)


def test_large_functions_run_compiled_and_one_warning_says_so():
    verify = VerifyGraphs()
    with pytest.warns(VerifyWarning, match="matmul does 2560 operations, more than 100") as said:
        with PassContext(instruments=[verify], config=LIMIT):
            relax.get_pipeline("zero")(Layers)
    assert len(said) == 1
    assert verify.runner.compiled["matmul"] == 5 * 16 * 16 * 2  # a block and its init
    assert (verify.left_out, verify.runner.skipped) == ({}, {})


def test_a_small_network_is_interpreted():
    verify = VerifyGraphs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with PassContext(instruments=[verify]):
            relax.transform.LegalizeOps()(Layers)
    assert verify.runner.compiled == {}


@module_pass(opt_level=0, name="Doubling")
def doubling(mod, ctx):
    """A pass that changes what the function stores."""
    return weft.IRModule({"main": doubled.with_attr("global_symbol", "main")})


@T.prim_func
def single(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        B[i, j] = A[i, j] * T.float32(3)


@T.prim_func
def doubled(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        B[i, j] = A[i, j] * T.float32(6)


def test_a_wrong_pass_is_found_in_compiled_functions():
    mod = weft.IRModule({"main": single.with_attr("global_symbol", "main")})
    with (
        pytest.warns(VerifyWarning, match="main does 4096 operations"),
        pytest.raises(VerifyError, match=r"pass Doubling changes what main computes: argument 1"),
        PassContext(verify=True, config=LIMIT),
    ):
        doubling(mod)


@T.prim_func
def foreign(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        B[i, j] = T.call_extern("float32", "weft_no_such_function", A[i, j])


def test_what_cannot_be_compiled_is_skipped():
    runner, arguments = LimitedRunner(), [np.zeros((64, 64), "float32") for _ in range(2)]
    with PassContext(config=LIMIT):
        for _ in range(2):
            with pytest.raises(weft.TVMError, match="foreign does 4096 operations and cannot"):
                with warnings.catch_warnings(record=True):
                    warnings.simplefilter("always")
                    runner("foreign", foreign, arguments, None)
    assert runner.skipped == {"foreign": 4096}


def test_regions_with_wrong_batch_numbers_are_left_out():
    @I.ir_module
    class Regions:
        @R.function
        def main(x: R.Tensor((2, 1, 4, 4), "float32"), r: R.Tensor((4, 5), "float32")):
            y = R.vision.roi_align(x, r, pooled_size=(2, 2), spatial_scale=0.5, sample_ratio=1)
            return y

    verify = VerifyGraphs()
    with PassContext(instruments=[verify]):
        relax.transform.LegalizeOps()(Regions)
    assert "roi_align: index -1 is out of range for 2 elements" in verify.left_out["main"]
