import numpy as np
import pytest

from weft import te, topi

AXES = [(None, False), (1, True), ((-1, 0), False), (0, False), ((), False)]


@pytest.mark.parametrize(("axis", "keepdims"), AXES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_reduce_when_axes_vary(check, floats, name, axis, keepdims):
    x = floats(2, 3, 4)
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    check(getattr(topi, name), [x], expected, axis, keepdims)


def test_reduce_when_zero_size(check, floats):
    check(topi.sum, [floats(0, 3)], np.zeros(3), 0)
    check(topi.prod, [floats(2, 0)], np.ones(2), 1)


def test_reduce_when_zero_dimensional(check, floats):
    x = floats()
    check(topi.sum, [x], x)


@pytest.mark.parametrize("axis", [None, 1, -1])
def test_argmax_argmin(check, floats, axis):
    x = floats(2, 3, 4)
    check(topi.argmax, [x], np.argmax(x, axis), axis)
    check(topi.argmin, [x], np.argmin(x, axis), axis)


def test_argmax_when_elements_are_equal(check):
    x = np.array([[1, 3, 3], [2, 2, 1]], "float32")
    check(topi.argmax, [x], np.array([1, 0]), 1)
    check(topi.argmax, [x], np.array([2, 1]), 1, False, True)
    check(topi.argmax, [x], np.array([[1], [0]]), 1, True)


def test_all_any(check, floats):
    x = floats(2, 3, 4) > 0
    check(topi.all, [x], x.all(1), 1)
    check(topi.any, [x], x.any((0, 2)), (0, 2))


def test_collapse_sum(check, floats):
    x = floats(2, 3, 4)
    check(topi.collapse_sum, [x], x.sum(0).sum(0, keepdims=True), (1, 4))


def test_errors_name_the_numbers():
    x = te.placeholder((2, 3))
    with pytest.raises(IndexError, match="sum: axis 2 is out of range for a 2-dimensional"):
        topi.sum(x, 2)
    with pytest.raises(ValueError, match="given twice"):
        topi.sum(x, (1, -1))
    with pytest.raises(ValueError, match="extent 0"):
        topi.argmax(te.placeholder((2, 0)), 1)
    with pytest.raises(TypeError, match="expected a bool tensor, got float32"):
        topi.all(x)


def test_names_when_printed():
    x = te.placeholder((2, 3), name="x")
    text = te.create_prim_func([x, topi.sum(x, 1)]).script()
    assert "for ax0, k1 in T.grid(2, 3)" in text
    assert 'T.block("x_red")' in text


def test_sums_and_products_of_narrow_floats_are_taken_in_float32(check):
    ones = np.full((2, 5000), 1.0, "float16")
    check(topi.sum, [ones], np.full(2, 5000.0), 1)
    check(topi.collapse_sum, [ones], np.full((2, 1), 5000.0), (2, 1))
    near = np.full((2, 300), 1.001, "float16")
    check(topi.prod, [near], np.prod(near.astype("float64"), 1).astype("float16"), 1)
