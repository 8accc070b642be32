import numpy as np
import pytest

from weft import te, topi


def test_full_and_like(check, floats):
    x = floats(2, 3)
    check(lambda a: topi.full((2, 3), "int64", 3), [x], np.full((2, 3), 3))
    check(topi.full_like, [x], np.full((2, 3), 2.5), 2.5)
    check(topi.zeros_like, [x], np.zeros((2, 3)))
    check(topi.ones_like, [x], np.ones((2, 3)))
    check(lambda a: topi.full((), "float32", 1), [x], 1.0)


@pytest.mark.parametrize("bounds", [(5,), (2, 9, 3), (5, 0, -2), (0, 1, 0.25), (3, 3)])
def test_arange(check, floats, bounds):
    check(lambda a: topi.arange(*bounds, dtype="float32"), [floats(1)], np.arange(*bounds))


def test_arange_when_step_is_zero():
    with pytest.raises(ValueError, match="must not be 0"):
        topi.arange(0, 3, 0)


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangles(check, floats, k):
    x = floats(2, 3, 4)
    check(topi.tril, [x], np.tril(x, k), k)
    check(topi.triu, [x], np.triu(x, k), k)


def test_eye_one_hot(check, floats, ints):
    check(lambda a: topi.eye(3, 4, 1), [floats(1)], np.eye(3, 4, 1))
    i = ints(3, high=4)
    check(lambda a: topi.one_hot(a, 1, 0, 4, -1, "float32"), [i], np.eye(4)[i])
    check(lambda a: topi.one_hot(a, 2, -1, 4, 0, "int32"), [i], np.eye(4)[i].T * 3 - 1)


def test_trilu_when_one_dimensional():
    with pytest.raises(ValueError, match="at least 2 dimensions, got 1"):
        topi.tril(te.placeholder((3,)))
