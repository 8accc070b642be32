"""Models that read and assign ``parameter.data`` in ``forward``."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import weft
from weft.relax.frontend.torch.capture import CaptureError


class BoundedLinear(nn.Linear):
    """A layer that bounds the norms of its weights, and changes the bias that it reads."""

    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.5)
        self.bias.data.mul_(0.5)
        return super().forward(x)


class SpectralNorm(nn.Module):
    """Miyato et al., "Spectral Normalization for Generative Adversarial Networks" (2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 6))
        self.left = nn.Parameter(nn.functional.normalize(torch.randn(4), dim=0))

    def forward(self, x):
        right = nn.functional.normalize(torch.mv(self.weight.data.t(), self.left.data), dim=0)
        self.left.data = nn.functional.normalize(torch.mv(self.weight.data, right), dim=0)
        return x @ (self.weight / self.left.dot(self.weight.mv(right))).t()


class KeepsOld(nn.Module):
    """What was read before an assignment stays, what is read after it is the value."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.ones(6))

    def forward(self, x):
        old = self.state.data
        self.state.data = x[0] * 2
        doubled = self.state * 2
        self.state.data = doubled.detach() + self.state.data
        return old + doubled - self.state, self.state


@pytest.mark.parametrize("make", [lambda: BoundedLinear(6, 4), SpectralNorm, KeepsOld])
def test_calls_give_what_pytorch_gives_each_time(make):
    torch.manual_seed(0)
    model = make().eval()
    mine = copy.deepcopy(model)
    before = copy.deepcopy(mine.state_dict())
    compiled = weft.compile(mine, (torch.randn(2, 6),), cache=False)
    assert all(torch.equal(value, before[name]) for name, value in mine.state_dict().items())
    for _ in range(3):
        x = torch.randn(2, 6)
        with torch.no_grad():
            expected = model(x)
        torch.testing.assert_close(compiled(x), expected, rtol=1e-5, atol=1e-6)


class OfAnotherShape(nn.Linear):
    """The parameter becomes another one, of which the compiled model could keep no state."""

    def forward(self, x):
        self.weight.data = self.weight.data[:2]
        return x @ self.weight.t()


class OfResult(nn.Module):
    """What is assigned to is no state of the model."""

    def forward(self, x):
        y = x + 1
        y.data = y.data * 2
        return y


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OfAnotherShape(6, 4), r"of \(4, 6\), torch.float32 is assigned \(2, 6\), torch.float32"),
        (OfResult(), "for parameters and buffers only"),
    ],
)
def test_these_assignments_are_refused(model, message):
    with pytest.raises(CaptureError, match=message):
        weft.compile(model, (torch.randn(2, 6),), cache=False)
