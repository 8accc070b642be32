"""Sparse tensors inside of models, beside torch."""

from __future__ import annotations

import pytest
import torch

import weft
from tests.lib.aten import Model, check_model
from weft.relax.frontend.missing import UnsupportedOperatorsError
from weft.support.errors import UnsupportedError

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Sparse"),
]


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
@pytest.mark.parametrize("cache", [True, False])
def test_a_sparse_tensor_that_a_model_holds(layout, cache):
    edges = getattr((torch.rand(6, 6) > 0.6).float(), layout)()

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("edges", edges)
            self.linear = torch.nn.Linear(4, 3)

        def forward(self, x):
            return self.edges @ self.linear(x)

    x, layer = torch.randn(6, 4), Layer().eval()
    torch.testing.assert_close(weft.compile(layer, (x,), cache=cache)(x), layer(x))


def test_products_sums_and_layouts():
    x, y = torch.randn(4, 6), torch.randn(6, 2)
    x[x < 0] = 0

    def products(x, y):
        sparse = x.to_sparse()
        return (
            torch.sparse.mm(sparse, y), sparse @ y, x.to_sparse_csr() @ y, sparse.t().t() @ y,
            torch.sparse.addmm(y[:4], sparse, y, beta=0.5, alpha=2.0), sparse.to_dense(),
            torch.sparse.sum(sparse, 1).to_dense(), torch.sparse.sum(sparse),
            (sparse * x).to_dense(),
        )  # fmt: skip

    check_model(Model(products), x, y)


def test_tensors_of_entries():
    """Those at one place add up; an entry may be a row."""
    places, values, rows = torch.tensor([[0, 1, 1], [2, 3, 3]]), torch.randn(3), torch.randn(3, 5)

    def entries(places, values, rows):
        matrix = torch.sparse_coo_tensor(places, values, (4, 6))
        stacked = torch.sparse_coo_tensor(places[:1], rows, (4, 5))
        return matrix.to_dense(), matrix.coalesce() @ torch.ones(6, 2), stacked.to_dense()

    check_model(Model(entries), places, values, rows)


def test_sparse_inputs_and_results_are_refused():
    x = torch.eye(3)
    with pytest.raises(UnsupportedError, match=r"result 0 .*sparse_coo; return y\.to_dense\(\)"):
        weft.compile(Model(lambda x: x.to_sparse()), (x,), cache=False)
    with pytest.raises(UnsupportedError, match=r"expected a dense tensor.*give x\.to_dense\(\)"):
        weft.compile(Model(lambda x: x @ torch.ones(3)), (x.to_sparse(),), cache=False)


def test_what_asks_for_the_entries_is_refused():
    with pytest.raises(UnsupportedOperatorsError, match=r"aten\.values\.default"):
        weft.compile(Model(lambda x: x.to_sparse().values()), (torch.eye(3),), cache=False)
