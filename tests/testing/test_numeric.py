"""Comparison of arrays, index expressions and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import testing, tir
from weft.ir.expr import Range


def test_close_arrays_pass_and_others_do_not():
    testing.assert_allclose(weft.nd.array(np.ones(3, "float32")), [1, 1, 1])
    testing.assert_allclose(np.float32(1) + 1e-8, 1)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 3"):
        testing.assert_allclose(np.array([1.0, 2, 4]), np.array([1.0, 2, 3]))


def test_shapes_must_agree():
    with pytest.raises(AssertionError, match=r"expected shape \(\), got \(3,\)"):
        testing.assert_allclose(np.ones(3), 1.0)


def test_a_torch_tensor_with_gradient_is_taken():
    torch = pytest.importorskip("torch")
    testing.assert_allclose(torch.ones(2, requires_grad=True), np.ones(2, "float32"))


def test_index_expressions_are_compared_by_proof():
    x = tir.Var("x", "int32")
    testing.assert_prim_expr_equal(x * 2 + x, x * 3)
    with pytest.raises(ValueError, match="not proved equal"):
        testing.assert_prim_expr_equal(x + 1, x)


def test_a_condition_is_tried_at_every_point():
    x = tir.Var("x", "int32")
    ranges = {x: Range(0, 5)}
    testing.check_bool_expr_is_true(x * x >= x, ranges)
    testing.check_bool_expr_is_true(x > 2, ranges, cond=x > 3)
    with pytest.raises(AssertionError, match="does not hold at x = 3"):
        testing.check_bool_expr_is_true(x < 3, ranges)


def test_gradients_are_compared_with_differences():
    value = np.array([1.0, 2.0, 3.0])
    testing.check_numerical_grads(lambda x: x**2, [value], [2 * value])
    testing.check_numerical_grads(
        lambda a, b: a * b, {"a": value, "b": value}, {"a": value, "b": value}
    )
    with pytest.raises(AssertionError, match="input 0: 3 of 3 elements are wrong"):
        testing.check_numerical_grads(lambda x: x**2, [value], [value])
