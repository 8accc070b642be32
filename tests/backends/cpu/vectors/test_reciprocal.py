"""MultiplyByReciprocal: the sums of a softmax are divided into one, other divisors stay."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax, te, tir, topi
from weft.ir.functor import collect
from weft.tir.transform import MultiplyByReciprocal


def divisions(outs, ins):
    func = te.create_prim_func([*ins, outs])
    made = MultiplyByReciprocal()(weft.IRModule({"main": func}))["main"]
    return collect(made.body, tir.Div), func, made


def test_softmax_divides_once_a_row():
    x = te.placeholder((3, 5), "float32", "x")
    found, _, _ = divisions(topi.nn.softmax(x), [x])
    assert [(div.a.value, str(div.b)) for div in found] == [
        (1.0, "T_softmax_expsum[v_i0]"),
    ]  # fmt: skip


@pytest.mark.parametrize("divisor", ["sum of elements", "sum of powers"])
def test_other_sums_stay(divisor):
    x = te.placeholder((3, 5), "float32", "x")
    y = topi.exp(x) if divisor == "sum of powers" else x
    _, before, after = divisions(topi.divide(x, topi.sum(y, axis=1, keepdims=True)), [x])
    weft.ir.assert_structural_equal(before, after)


def test_float64_stays():
    x = te.placeholder((3, 5), "float64", "x")
    _, before, after = divisions(topi.nn.softmax(x), [x])
    weft.ir.assert_structural_equal(before, after)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("size", [1, 7, 64, 197])
def test_results_are_those_of_float64(target, size):
    rng = np.random.default_rng(3)
    data = (rng.standard_normal((9, size)) * 30).astype("float32")
    got = softmax_of(data, target)
    powers = np.exp((data - data.max(-1, keepdims=True)).astype(np.float64))
    np.testing.assert_allclose(got, powers / powers.sum(-1, keepdims=True), rtol=1e-6, atol=1e-38)


def test_special_rows_are_as_in_pytorch():
    """Rows with NaN, +inf or -inf only are NaN; -inf among others has the weight 0."""
    inf, nan = np.inf, np.nan
    rows = np.array([[-inf] * 20, [0] * 19 + [nan], [nan] + [0] * 19, [inf] + [1] * 19,
                     [-inf] + [2.0] * 19, [3e38] * 10 + [-3e38] * 10], "float32")  # fmt: skip
    got = softmax_of(rows, "llvm")
    assert np.isnan(got[:4]).all()
    np.testing.assert_allclose(got[4], [0, *[1 / 19] * 19], rtol=1e-6)
    np.testing.assert_allclose(got[5], [*[0.1] * 10, *[0] * 10], rtol=1e-6)


def softmax_of(data, target):
    x = relax.Var("x", relax.TensorStructInfo(data.shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.softmax(x))
        builder.emit_func_output(out)
    made = weft.compile(builder.get(), target=target)
    machine = relax.VirtualMachine(made, weft.cpu())
    return machine["main"](weft.nd.array(data)).numpy()
