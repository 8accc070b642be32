"""8-bit floats inside of a model, beside torch: weights, casts, scaled products."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import weft
from tests.lib.aten import Model, check_model
from weft.relax.frontend.missing import UnsupportedOperatorsError
from weft.relax.frontend.torch.float8_tensors import FLOAT8_TYPES
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch
KINDS = sorted(FLOAT8_TYPES, key=str)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


class Scaled(torch.nn.Module):
    """A weight of 8 bits with a scale for each row."""

    def __init__(self, kind):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 8).to(kind), requires_grad=False)
        self.register_buffer("scale", torch.rand(4, 1))

    def forward(self, x):
        return x @ (self.weight.to(x.dtype) * self.scale).t()


@each_kind
def test_a_weight_of_8_bits(kind):
    check_model(Scaled(kind).eval(), torch.randn(3, 8))


def values_and_midpoints(kind):
    """All values of a format, what lies between neighbours, and what lies beyond them."""
    values = torch.arange(256, dtype=torch.uint8).view(kind).float()
    finite = values[values.isfinite()].sort().values
    middles = (finite[1:] + finite[:-1]) / 2
    beyond = finite[-1] * torch.tensor([1.01, 1.03125, 1.0625, 1.07, 2, math.inf, math.nan])
    nearly = torch.cat([middles, finite[-1:] * 1.0625])
    above, below = (torch.nextafter(nearly, torch.tensor(end)) for end in (math.inf, -math.inf))
    return torch.cat([finite, middles, above, below, beyond, -beyond])


@each_kind
def test_casts_round_as_torch_does(kind):
    def codes(x):
        code = x.to(kind).view(torch.uint8)  # a NaN has a sign or none
        return torch.where(x.isnan(), 0, code), x.half().to(kind).float()

    x = values_and_midpoints(kind)
    compiled = weft.compile(Model(codes), (x,), cache=False)
    for mine, wanted in zip(compiled(x), codes(x), strict=True):
        np.testing.assert_array_equal(mine.numpy(), wanted.numpy())


def test_what_moves_elements_moves_bits():
    def moved(x, places):
        low = x.to(torch.float8_e4m3fn)
        parts = torch.cat([low.t().contiguous(), low[:, 1:].reshape(4, 2).repeat(1, 2)])
        row = parts[places].unsqueeze(0).expand(2, -1, -1).to(torch.float8_e5m2)
        return row.float(), torch.stack([low[0], low[1]]).to(torch.bfloat16).float()

    check_model(Model(moved), torch.randn(4, 3)[:, :3].abs().view(4, 3), torch.tensor([0, 2, 5]))


@pytest.mark.parametrize("scales", [((), ()), ((16, 1), (1, 16))])
def test_scaled_products(scales):
    kind = torch.float8_e4m3fn

    def product(x, weight, first, second, bias):
        columns = weight.to(kind).t()
        return torch._scaled_mm(
            x.to(kind), columns, first, second, bias.bfloat16(), out_dtype=torch.bfloat16
        ).float()

    first, second = (torch.rand(shape) + 0.5 for shape in scales)
    args = (torch.randn(16, 16), torch.randn(16, 16), first, second, torch.randn(16))
    try:
        product(*args)
    except (RuntimeError, ValueError):
        pytest.skip("this torch has no such product on CPUs")
    compiled = weft.compile(Model(product), args, cache=False)
    torch.testing.assert_close(compiled(*args), product(*args), rtol=2e-2, atol=2e-2)


def refusal(forward, *args):
    with pytest.raises(UnsupportedError) as caught:
        weft.compile(Model(forward), args, cache=False)
    return str(caught.value)


def test_inputs_and_results_of_8_bits_are_given_as_bits():
    low = torch.ones(3).to(torch.float8_e5m2)
    assert "x.view(torch.uint8)" in refusal(lambda x: x.float(), low)
    assert "y.view(torch.uint8)" in refusal(lambda x: x.to(torch.float8_e5m2), torch.ones(3))
    check_model(Model(lambda x: x.view(torch.float8_e5m2).float()), low.view(torch.uint8))


def test_arithmetic_of_8_bits_is_a_missing_operator():
    def larger(x):
        return torch.nn.functional.relu(x.to(torch.float8_e4m3fn)).float()

    with pytest.raises(UnsupportedOperatorsError, match=r"aten.relu.default \(float8\)"):
        weft.compile(Model(larger), (torch.ones(3),), cache=False)
