"""Einstein sums over letters of which a tensor has one element, as numpy broadcasts them."""

import numpy as np
import pytest

import weft
from weft import te, topi


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("bij,bjk->bik", [(2, 3, 1), (2, 4, 5)]),
        ("ij,jk->ik", [(1, 4), (1, 3)]),
        ("i,i->i", [(1,), (5,)]),
    ],
)
def test_one_element_stands_for_all(text, shapes):
    tensors = [te.placeholder(shape, "float32") for shape in shapes]
    made = topi.einsum(text, *tensors)
    func = weft.build(te.create_prim_func([*tensors, made]), target="llvm")
    data = [np.arange(np.prod(shape), dtype="float32").reshape(shape) + 1 for shape in shapes]
    expected = np.einsum(text, *data)
    out = weft.nd.array(np.zeros(expected.shape, "float32"))
    func(*[weft.nd.array(item) for item in data], out)
    np.testing.assert_array_equal(out.numpy(), expected)
