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


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("k", [-4, -1, 0, 3])
@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (0, 3), (3, 0), (2, 0, 2), (2, 4, 2)])
def test_trilu(check, floats, upper, k, shape):
    x = floats(*shape)
    check(topi.trilu, [x], np.triu(x, k) if upper else np.tril(x, k), k, upper)


def test_trilu_when_the_diagonal_is_a_tensor_or_rows_are_symbolic(check, check_symbolic, floats):
    x, k = floats(4, 3), np.array(1, "int64")
    check(lambda a, b: topi.trilu(a, b, True), [x, k], np.triu(x, 1))
    for rows in (0, 1, 4):
        x = floats(rows, 3)
        check_symbolic(topi.trilu, [x], np.tril(x, 1), 1, False)


def test_trilu_keeps_what_it_does_not_read(check):
    x = np.full((3, 3), np.nan, "float32")
    check(topi.trilu, [x], np.triu(np.full((3, 3), np.nan)), 0, True)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_elemwise_sum(check, floats, shape, count):
    arrays = [floats(*shape) for _ in range(count)]
    check(lambda *xs: topi.elemwise_sum(xs), arrays, sum(arrays))


def test_elemwise_sum_when_symbolic(check_symbolic, floats):
    for rows in (0, 1, 3):
        x, y = floats(rows, 2), floats(rows, 2)
        check_symbolic(lambda *xs: topi.elemwise_sum(xs), [x, y], x + y)


def test_elemwise_sum_when_shapes_differ_or_nothing_is_given():
    with pytest.raises(ValueError, match=r"one shape, got \(2, 3\) and \(3, 2\)"):
        topi.elemwise_sum([te.placeholder((2, 3)), te.placeholder((3, 2))])
    with pytest.raises(ValueError, match=r"one shape, got \(2, 3\) and \(2\)"):
        topi.elemwise_sum([te.placeholder((2, 3)), te.placeholder((2,))])
    with pytest.raises(ValueError, match="at least one tensor, got none"):
        topi.elemwise_sum([])
