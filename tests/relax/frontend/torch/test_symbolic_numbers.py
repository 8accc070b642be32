"""Numbers that a model computes of symbolic sizes, with Python's functions and PyTorch's."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

import weft

pytestmark = pytest.mark.torch
ROWS, COLUMNS = torch.export.Dim("rows", min=4), torch.export.Dim("columns", min=5, max=600)


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x, *x.shape)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n, m: x / math.sqrt(m) + math.log(n) * math.log(m, 2) + math.exp(-n),
        lambda x, n, m: x * math.sin(n) + math.log2(m) * math.tanh(n / 7),
        lambda x, n, m: x * float(m) + float(n) / 3,
        lambda x, n, m: x[:, : int(m * 0.5)] + x[: int(n / 2 + 1), : math.ceil(m / 2)].sum(),
        lambda x, n, m: x * torch.linspace(-1, 1, m) + torch.linspace(0, n - 1, n)[:, None],
        lambda x, n, m: x * torch.linspace(0.5, 0.1, n // 2, dtype=torch.float64).sum(),
        lambda x, n, m: x * torch.fft.fftfreq(m) + torch.fft.rfftfreq(n, 0.5).sum(),
        lambda x, n, m: x * torch.arange(len(x))[:, None] / len(x),
        lambda x, n, m: x + torch.as_tensor(x.shape)[0] + x.new_tensor([m, n / 2])[1],
    ],
    ids=["logarithms", "waves", "floats", "ints", "rows", "halves", "frequencies", "lengths",
         "tensors"],
)  # fmt: skip
def test_numbers_of_sizes(function):
    model = Function(function)
    shapes = ({0: ROWS, 1: COLUMNS},)
    compiled = weft.compile(model, (torch.rand(4, 6),), dynamic_shapes=shapes, cache=False)
    for shape in ((4, 6), (7, 11), (5, 512)):
        x = torch.rand(shape)
        torch.testing.assert_close(compiled(x), model(x))


def test_fixed_sizes_take_the_functions_themselves():
    model = Function(lambda x, n, m: x * math.log(n) + torch.linspace(0, 1, m))
    x = torch.rand(4, 6)
    torch.testing.assert_close(weft.compile(model, (x,), cache=False)(x), model(x))


def test_what_is_exchanged_is_put_back():
    functions = math.sqrt, math.log, torch.linspace, torch.as_tensor, functional.one_hot
    weft.compile(Function(lambda x, n, m: x * math.sqrt(n)), (torch.rand(2, 3),), cache=False)
    now = math.sqrt, math.log, torch.linspace, torch.as_tensor, functional.one_hot
    assert all(before is after for before, after in zip(functions, now, strict=True))
    assert "new_tensor" not in vars(torch.Tensor)
