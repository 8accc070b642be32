"""Convolutions of as many groups as a batch has samples, beside torch's."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import weft
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch
BATCH = torch.export.Dim("batch", max=9)


class Modulated(nn.Module):
    """Each sample has a kernel of its own, as in StyleGAN2 and dynamic convolutions."""

    def __init__(self, **options):
        super().__init__()
        self.weight, self.options = nn.Parameter(torch.randn(4, 3, 3, 2)), options

    def forward(self, x, style):
        batch, channels, *extents = x.shape
        weight = self.weight * style[:, None, :, None, None]
        x = x.reshape(1, batch * channels, *extents)
        weight = weight.reshape(batch * 4, channels, 3, 2)
        x = functional.conv2d(x, weight, groups=batch, **self.options)
        return x.reshape(batch, 4, *x.shape[2:])


class Differences(nn.Module):
    """One kernel for each row, as the differences of features of speech have it."""

    def forward(self, x):
        kernel = torch.tensor([-1.0, 0.0, 1.0]).repeat(x.shape[0], 1, 1)
        return functional.conv1d(x[None], kernel, groups=x.shape[0], padding=1)[0]


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": (1, 2), "dilation": (2, 1)}])
def test_a_kernel_for_each_sample(options):
    model, example = Modulated(**options), (torch.randn(2, 3, 9, 8), torch.rand(2, 3))
    shapes = ({0: BATCH}, {0: BATCH})
    compiled = weft.compile(model, example, dynamic_shapes=shapes, cache=False)
    for inputs in (example, (torch.randn(5, 3, 9, 8), torch.rand(5, 3))):
        torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)


def test_a_kernel_for_each_row():
    shapes = ({0: BATCH, 1: torch.export.Dim("steps", min=4)},)
    compiled = weft.compile(Differences(), (torch.randn(3, 8),), dynamic_shapes=shapes, cache=False)
    for x in (torch.randn(3, 8), torch.randn(6, 21)):
        torch.testing.assert_close(compiled(x), Differences()(x))


def test_transposed_groups_are_refused():
    class Transposed(nn.Module):
        def forward(self, x):
            kernel = torch.ones(x.shape[0], 1, 3)
            return functional.conv_transpose1d(x[None], kernel, groups=x.shape[0])

    shapes = ({0: BATCH},)
    with pytest.raises(UnsupportedError, match="expected a known number of groups"):
        weft.compile(Transposed(), (torch.randn(3, 8),), dynamic_shapes=shapes, cache=False)
