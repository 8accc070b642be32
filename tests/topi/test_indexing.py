import numpy as np
import pytest

from weft import te, topi


def test_take_when_modes_vary(check, floats, ints):
    x, inside, outside = floats(2, 3, 4), ints(2, 2, high=3), ints(3, low=-4, high=9)
    check(topi.take, [x, inside], np.take(x, inside, 1), 1)
    check(topi.take, [x, inside], np.take(x, inside, 1), 1, mode="fast")
    check(topi.take, [x, outside], np.take(x, outside, 1, mode="wrap"), 1, mode="wrap")
    check(topi.take, [x, outside], np.take(x, outside, 1, mode="clip"), 1, mode="clip")
    check(topi.take, [x, outside], np.take(x, outside, mode="clip"))


def test_take_when_index_is_a_number(check, floats):
    x = floats(2, 3)
    check(lambda a: topi.take(a, 1, 1), [x], x[:, 1])


def test_take_when_batched(check, floats, ints):
    x, i = floats(2, 5), ints(2, 3)
    check(lambda a, b: topi.take(a, b, 1, 1), [x, i], np.take_along_axis(x, i.astype("int64"), 1))


def test_gather(check, floats, ints):
    x, i = floats(2, 3, 4), ints(2, 2, 4, high=3)
    expected = np.take_along_axis(x, i.astype("int64"), 1)
    check(lambda a, b: topi.gather(a, 1, b), [x, i], expected)
    pairs = np.array([[0, 1], [2, 0]], "int32")
    check(topi.gather_nd, [x, pairs], x[pairs[0], pairs[1]])


def test_where(check, floats):
    x, y = floats(2, 3), floats(3)
    check(topi.where, [x > 0, x, y], np.where(x > 0, x, y))


def test_sequence_mask(check, floats):
    x, lengths = floats(3, 2), np.array([1, 3], "int32")
    expected = np.where(np.arange(3)[:, None] < lengths, x, -1)
    check(topi.sequence_mask, [x, lengths], expected, -1.0, 0)


def test_errors_name_the_numbers():
    x, i = te.placeholder((2, 3)), te.placeholder((2,), "int32")
    with pytest.raises(ValueError, match="expected mode clip"):
        topi.take(x, i, 0, mode="raise")
    with pytest.raises(TypeError, match="must be integers, got float32"):
        topi.take(x, te.placeholder((2,)), 0)
    with pytest.raises(ValueError, match="indices have 1 dimensions, the data 2"):
        topi.gather(x, 0, i)
