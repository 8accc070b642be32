import numpy as np
import pytest

from weft import te, topi


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ii", [(3, 3)]),
        ("ij->ji", [(2, 3)]), ("i,i->", [(3,), (3,)]),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 2)]), ("bi,bj->bij", [(2, 3), (2, 4)]),
    ],
)  # fmt: skip
def test_einsum_when_numpy_allows(check, floats, text, shapes):
    arrays = [floats(*shape) for shape in shapes]
    check(lambda *t: topi.einsum(text, *t), arrays, np.einsum(text, *arrays))


def test_einsum_when_extents_differ():
    with pytest.raises(ValueError, match="'j' of 'ij,jk->ik' has the extents 3 and 4"):
        topi.einsum("ij,jk->ik", te.placeholder((2, 3)), te.placeholder((4, 5)))
    with pytest.raises(ValueError, match="2 terms for 1 tensors"):
        topi.einsum("ij,jk->ik", te.placeholder((2, 3)))
