import numpy as np
import pytest

from weft import te, topi


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(check, floats, ints, right):
    side = "right" if right else "left"
    sequence, values = np.sort(floats(5)), floats(2, 3)
    check(topi.searchsorted, [sequence, values], np.searchsorted(sequence, values, side), right)
    sequence, values = np.sort(ints(6, high=4)), ints(7, high=4)
    check(topi.searchsorted, [sequence, values], np.searchsorted(sequence, values, side), right)
    check(topi.searchsorted, [floats(0), floats(2)], np.zeros(2), right)


def test_searchsorted_row_for_row(check, floats):
    rows, values = np.sort(floats(2, 3, 4), -1), floats(2, 3, 5)
    expected = np.empty(values.shape, "int32")
    for place in np.ndindex(2, 3):
        expected[place] = np.searchsorted(rows[place], values[place])
    check(topi.searchsorted, [rows, values], expected, False, "int32")


def test_searchsorted_when_nan_counts_as_largest(check):
    sequence = np.array([1, 2, np.nan], "float32")
    values = np.array([np.nan, 3, 1], "float32")
    check(topi.searchsorted, [sequence, values], np.searchsorted(sequence, values))
    check(topi.searchsorted, [sequence, values], np.searchsorted(sequence, values, "right"), True)


def test_index_tensor_and_index_put(check, floats):
    x, i, j = floats(3, 4), np.array([[0], [-1]], "int32"), np.array([1, -2], "int64")
    check(lambda a, b, c: topi.index_tensor(a, [b, c]), [x, i, j], x[i, j])
    values, expected = floats(2), x.copy()
    expected[i, j] = values
    check(lambda a, b, c, v: topi.index_put(a, [b, c], v), [x, i, j, values], expected)


def test_errors_name_the_numbers():
    x = te.placeholder((2, 3))
    with pytest.raises(ValueError, match="must have the same leading axes"):
        topi.searchsorted(x, te.placeholder((3, 3)))
    with pytest.raises(ValueError, match="expected a sequence of 1 or more dimensions, got 0"):
        topi.searchsorted(te.placeholder(()), x)
    with pytest.raises(ValueError, match="expected 1 to 2 index tensors .* got 3"):
        topi.index_tensor(x, [te.placeholder((1,), "int32")] * 3)
    with pytest.raises(TypeError, match="index_put: the indices must be integers, got float32"):
        topi.index_put(x, [x], x)
    with pytest.raises(ValueError, match="slice_scatter: expected a step of 1 or more, got 0"):
        topi.slice_scatter(x, x, 0, 1, 0)
    with pytest.raises(ValueError, match="repeat: expected 0 or more repeats, got -1"):
        topi.repeat(x, -1, 0)
