"""Checks of data in a model: a compiled model goes on as if they passed.

The asserts are those of models, so PYTEST_DONT_REWRITE them.
"""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch

import weft
from weft.relax.frontend.torch.capture import CaptureError

pytestmark = pytest.mark.torch


class Model(torch.nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def asserts(x):
    assert (x < 100).all(), "too large"
    assert not torch.isnan(x).any()
    return x + 1


def raises(x):
    if x.max() > 100:
        message = "too large"
        raise ValueError(message)
    if not torch.isfinite(x).all():
        raise ValueError
    return x + 1


def raises_behind(x):
    if (x < 100).all():
        y = x + 1
    else:
        raise ValueError
    return y


def raises_between(x):
    if x.ndim == 3:
        x = x + 1
    elif x.sum().item() > 1000:
        raise ValueError
    return x + 1


def joined(x):
    assert x.sum() < 1000 or (x < 50).all()
    if not ((x > -50).all() and x.min().item() > -60):
        raise ValueError
    if x.ndim == 7 or (bool((x > 50).any()) and not (x < 50).all()):
        raise ValueError
    return x + 1


def warns(x):
    if (x > 100).any():
        warnings.warn("large", stacklevel=2)
    return x + 1


def over_lines(x):
    assert (
        x.abs().max()
        < 100
    )  # fmt: skip
    return x + 1


CHECKS = [asserts, raises, raises_behind, raises_between, joined, warns, over_lines]


@pytest.mark.parametrize("function", CHECKS, ids=lambda function: function.__name__)
def test_checks_pass(function):
    x = torch.randn(3, 4)
    batch = torch.export.Dim("batch")
    compiled = weft.compile(Model(function), (x,), dynamic_shapes=(({0: batch},),), cache=False)
    for example in (x, torch.randn(5, 4)):
        torch.testing.assert_close(compiled(example), example + 1)


def normal(mean, spread, x):
    return torch.distributions.Normal(mean, spread.exp()).log_prob(x)


def categorical(mean, spread, x):
    chosen = torch.distributions.Categorical(logits=mean)
    return chosen.entropy() + chosen.log_prob(chosen.probs.argmax(-1)) + spread.sum(-1)


def nearness(mean, spread, x):
    normal = torch.distributions.Independent(torch.distributions.Normal(mean, spread.exp()), 1)
    other = torch.distributions.Independent(torch.distributions.Normal(x, 1.0), 1)
    return torch.distributions.kl_divergence(normal, other)


@pytest.mark.parametrize("function", [normal, categorical, nearness])
def test_distributions_check_their_parameters(function):
    args = [torch.randn(3, 4) for _ in range(3)]
    compiled = weft.compile(Model(function), tuple(args), cache=False)
    torch.testing.assert_close(compiled(*args), function(*args))
    assert "tensor_to_shape" not in compiled.script()  # it reads no number


def branches(x):
    if (x > 0).all():
        return x + 1
    return x - 1


def chooses(x):
    assert x.ndim if (x > 0).all() else x.ndim + 1
    return x


@pytest.mark.parametrize("function", [branches, chooses])
def test_a_branch_that_computes_is_still_refused(function):
    with pytest.raises(CaptureError, match=r"torch\.cond"):
        weft.compile(Model(function), (torch.randn(3, 4),), cache=False)


def steps_through_time(x):
    times = torch.linspace(0, 1, 5)
    for begin, end in itertools.pairwise(times):
        if begin > end:
            return x
        x = x + (end - begin) * torch.sin(x * begin)
    return x


def shifts(x):
    for place in torch.arange(3):
        x = x + int(place) * x.roll(int(place), 1)
    return x


@pytest.mark.parametrize("function", [steps_through_time, shifts])
def test_rows_that_a_model_makes_of_numbers_are_known(function):
    x = torch.randn(3, 4)
    compiled = weft.compile(Model(function), (x,), cache=False)
    torch.testing.assert_close(compiled(x), function(x))
