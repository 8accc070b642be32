import numpy as np
import pytest

from weft import te, topi

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("inner", [(), (3,)])
def test_nll_loss(check, floats, ints, reduction, inner):
    x, target, weight = floats(4, 5, *inner), ints(4, *inner), np.abs(floats(5)) + 0.1
    target.reshape(-1)[0] = 2
    expected = torch.nn.functional.nll_loss(
        torch.tensor(x), torch.tensor(target).long(), torch.tensor(weight), reduction=reduction,
        ignore_index=2,
    ).numpy()  # fmt: skip
    check(topi.nn.nll_loss, [x, target, weight], expected, reduction, 2)


def test_nll_loss_when_shapes_differ():
    x, target = te.placeholder((4, 5)), te.placeholder((3,), "int32")
    with pytest.raises(ValueError, match=r"want targets \(4,?\), got \(3,?\)"):
        topi.nn.nll_loss(x, target, te.placeholder((5,)), "sum", -1)
