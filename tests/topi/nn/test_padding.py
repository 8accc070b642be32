import numpy as np
import pytest

from weft import te, topi

WIDTHS = [(1, 2), (0, 1)]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("reflect_pad", "reflect"), ("mirror_pad", "symmetric"), ("replicate_pad", "edge"),
     ("circular_pad", "wrap")],
)  # fmt: skip
def test_pad_when_by_content(check, floats, name, mode):
    x = floats(3, 4)
    check(getattr(topi.nn, name), [x], np.pad(x, WIDTHS, mode=mode), (1, 0), (2, 1))


def test_pad_when_constant(check, floats):
    x = floats(3, 4)
    check(topi.nn.pad, [x], np.pad(x, WIDTHS), (1, 0), (2, 1))
    check(topi.nn.pad, [x], np.pad(x, 1, constant_values=-2), (1, 1), pad_value=-2.0)
    check(topi.nn.pad, [floats(0, 2)], np.zeros((2, 4)), (1, 1))


def test_pad_when_counts_differ():
    with pytest.raises(ValueError, match="got 1 amounts for a 2-dimensional"):
        topi.nn.pad(te.placeholder((2, 3)), (1,))
