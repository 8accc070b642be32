"""LargestOfSoftmax: the maximum of a softmax need not keep NaN; other maxima stay."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.ir.functor import collect
from weft.tir.interp import run
from weft.tir.transform import LargestOfSoftmax, MultiplyByReciprocal


def made_of(outs, x):
    """The function of these outputs before and after."""
    before = te.create_prim_func([x, *outs])
    mod = MultiplyByReciprocal()(weft.IRModule({"main": before}))
    return mod["main"], LargestOfSoftmax()(mod)["main"]


def test_softmax_selects_its_largest_element():
    x = te.placeholder((3, 5), "float32", "x")
    before, after = made_of([topi.nn.softmax(x)], x)
    assert collect(before.body, tir.Max)
    assert not collect(after.body, tir.Max)
    [chosen] = collect(after.body, tir.Select)
    assert str(chosen.condition) == "x[v_i0, v_k] > T_softmax_maxelem[v_i0]"
    rows = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")
    rows[1, 3], rows[2, 0], rows[2, 1] = np.nan, np.inf, -np.inf
    results = [np.zeros((3, 5), "float32") for _ in range(2)]
    run(before, rows, results[0])
    run(after, rows, results[1])
    np.testing.assert_array_equal(*results)


def outputs(kind, x):
    """Functions whose maxima stay."""
    if kind == "a maximum":
        return [topi.max(x, axis=1)]
    if kind == "log-softmax":
        return [topi.nn.log_softmax(x)]
    result = topi.nn.softmax(x)
    total = result.op.input_tensors[1]
    powers = total.op.input_tensors[0]
    return [result, {"powers": powers, "the largest": powers.op.input_tensors[1]}[kind]]


@pytest.mark.parametrize("kind", ["a maximum", "log-softmax", "the largest"])
def test_others_stay(kind):
    x = te.placeholder((3, 5), "float32", "x")
    before, after = made_of(outputs(kind, x), x)
    weft.ir.assert_structural_equal(before, after)


def test_float64_stays():
    x = te.placeholder((3, 5), "float64", "x")
    before, after = made_of([topi.nn.softmax(x)], x)
    weft.ir.assert_structural_equal(before, after)


def test_powers_that_something_else_reads_stay():
    x = te.placeholder((3, 5), "float32", "x")
    [result, powers] = outputs("powers", x)
    before, after = made_of([result, topi.add(powers, powers)], x)
    weft.ir.assert_structural_equal(before, after)
