"""``verify=True`` compares native code with the interpreter and names the function that differs."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.codegen.llvm import expr
from weft.ir.transform import PassContext
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import VerifyError
from weft.tir.expr import Add
from weft.tir.interp import VerifyResults
from weft.tir.interp.code_check import first_difference
from weft.tir.interp.limited import operations_of
from weft.tir.interp.shortened import shortened


@pytest.fixture
def additions_subtract(monkeypatch):
    """The code generator writes fsub for fadd."""
    monkeypatch.setitem(expr.EXPRESSIONS, Add, expr._arithmetic("add", "fsub"))


@I.ir_module
class Kernels:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    @T.prim_func
    def shift(x: T.Buffer((2, 3), "float32"), y: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            y[i, j] = x[i, j] + T.float32(1)


@T.prim_func
def large(x: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
    z = T.alloc_buffer((64, 64), "float32")
    for i, j in T.grid(64, 64):
        with T.block("z"):
            vi, vj = T.axis.remap("SS", [i, j])
            z[vi, vj] = x[vi, vj] + T.float32(1)
    for i, j, k in T.grid(64, 64, 64):
        with T.block("y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + z[vi, vk] * x[vk, vj]


@I.ir_module
class Graph:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3,), "float32")):
        with R.dataflow():
            a = R.multiply(x, w)
            b = R.add(a, w)
            R.output(b)
        return b


DIFFERS = (
    r"code generation changes what shift computes: y\[0, 0\]: the interpreter gives \S+, native "
    r"code \S+ \(6 of 6 elements differ\)"
)


def test_the_function_is_named_with_its_first_wrong_element(additions_subtract):
    with PassContext(verify=True), pytest.raises(VerifyError, match=DIFFERS):
        weft.build(Kernels)
    instrument = VerifyResults()
    with PassContext(instruments=[instrument]), pytest.raises(VerifyError, match=DIFFERS):
        weft.build(Kernels)


def test_a_model_names_its_kernel_and_no_pass(additions_subtract):
    with pytest.raises(VerifyError, match=r"code generation changes what fused_multiply_add\w*"):
        weft.compile(Graph, verify=True)


def test_right_code_passes_and_is_listed():
    instrument = VerifyResults()
    with PassContext(instruments=[instrument]):
        weft.build(Kernels)
    assert instrument.code == {"scale": "as a whole", "shift": "as a whole"}


def test_a_large_function_is_compared_in_its_first_iterations(monkeypatch):
    instrument = VerifyResults()
    context = PassContext(instruments=[instrument], config={"verify.max_operations": 2000})
    with context, pytest.warns(UserWarning, match="run compiled"):
        weft.build(large)
    assert instrument.code == {"large": "in the first 8 iterations of each loop"}
    monkeypatch.setitem(expr.EXPRESSIONS, Add, expr._arithmetic("add", "fsub"))
    with (
        context,
        pytest.warns(UserWarning, match="run compiled"),
        pytest.raises(VerifyError, match=r"code generation changes what large computes: y\[0, 0\]"),
    ):
        weft.build(large)


def test_no_pass_is_blamed_for_what_ran_compiled(additions_subtract):
    x = relax.Var("x", relax.TensorStructInfo((200, 100), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, x)))
    with (
        PassContext(verify=True),
        pytest.warns(UserWarning, match="run compiled"),
        pytest.raises(VerifyError, match="code generation changes what compiled computes"),
    ):
        relax.transform.LegalizeOps()(builder.get())


def test_shortened_functions_keep_to_the_limit_or_are_left():
    lowered = weft.lower(large)["large"]
    arguments = [np.zeros((64, 64), "float32")] * 2
    cut, iterations = shortened(lowered, arguments, 1000)
    assert iterations == 4
    assert operations_of(cut, arguments) <= 1000
    assert shortened(lowered, arguments, 1) is None


def test_differences_of_values():
    assert first_difference(None, None) is None
    assert first_difference(3, 3) is None
    one = np.array([1, np.nan, np.inf, 4], "float32")
    assert first_difference(one, one * np.float32(1 + 1e-6)) is None
    assert first_difference(one, np.array([1, np.nan, np.inf, 5], "float32")) == (
        "[3]: the interpreter gives 4.0, native code 5.0 (1 of 4 elements differ)"
    )
    assert first_difference(one, np.nan_to_num(one)) is not None
    integers = np.array([[1, 2]], "int8")
    assert first_difference(integers, integers + 1, may_round=True) is None
    assert first_difference(integers, integers + 1).startswith("[0, 0]: the interpreter gives 1,")
    assert first_difference(np.array([True]), np.array([False]), may_round=True) is not None
