import numpy as np
import pytest

from weft import te, topi

SHAPES = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (5, 4, 2)),
    ((3, 0), (0, 2)), ((1, 4), (4, 1)), ((0, 4), (4, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul_when_numpy_allows(check, floats, left, right):
    a, b = floats(*left), floats(*right)
    check(topi.matmul, [a, b], np.matmul(a, b))


def test_matmul_when_transposed(check, floats):
    a, b = floats(2, 4, 3), floats(5, 4)
    check(topi.matmul, [a, b], a.transpose(0, 2, 1) @ b.T, True, True)


def test_tensordot(check, floats):
    a, b = floats(2, 3, 4), floats(4, 3, 5)
    check(topi.tensordot, [a, b], np.tensordot(a, b, ([1, 2], [1, 0])), ([1, 2], [1, 0]))


def test_matmul_when_depths_differ():
    with pytest.raises(ValueError, match="do not multiply: 3 and 4 differ"):
        topi.matmul(te.placeholder((2, 3)), te.placeholder((4, 5)))
    with pytest.raises(ValueError, match="0-d operand"):
        topi.matmul(te.placeholder(()), te.placeholder((4,)))
