"""Random operators: shape, data type and distribution; the seed makes them repeat."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import weft
from tests.lib.aten_samples import Call, run_calls
from weft import relax
from weft.relax.frontend.torch import from_exported_program
from weft.relax.frontend.torch.capture import capture
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch
ops = torch.ops.aten
MANY = 40_000
ROWS = torch.tensor([[0.1, 0.5, 0.9]]).expand(MANY, 3)


def draw(overload, *args, **kwargs):
    weft.random.seed(1)
    return run_calls([Call(overload, args, kwargs)])[0]


MOMENTS = [
    (ops.rand.default, ([MANY],), "float32", 0.5, 1 / 12),
    (ops.rand_like.default, (torch.zeros(MANY, dtype=torch.float64),), "float64", 0.5, 1 / 12),
    (ops.randn.default, ([MANY],), "float32", 0.0, 1.0),
    (ops.randn_like.default, (torch.zeros(MANY).half(),), "float16", 0.0, 1.0),
    (ops.randint.default, (10, [MANY]), "int64", 4.5, 8.25),
    (ops.randint.low, (-2, 3, [MANY]), "int64", 0.0, 2.0),
    (ops.randint_like.default, (torch.zeros(MANY, dtype=torch.int32), 10), "int32", 4.5, 8.25),
    (ops.bernoulli.p, (torch.zeros(MANY), 0.3), "float32", 0.3, 0.21),
    (ops.uniform.default, (torch.zeros(MANY), 2.0, 6.0), "float32", 4.0, 16 / 12),
    (ops.normal_functional.default, (torch.zeros(MANY), 2.0, 3.0), "float32", 2.0, 9.0),
    (ops.normal.float_float, (2.0, 3.0, [MANY]), "float32", 2.0, 9.0),
    (ops.exponential.default, (torch.zeros(MANY), 2.0), "float32", 0.5, 0.25),
    (ops.geometric.default, (torch.zeros(MANY), 0.4), "float32", 2.5, 3.75),
]


@pytest.mark.parametrize(("overload", "args", "dtype", "mean", "variance"), MOMENTS, ids=str)
def test_mean_and_variance(overload, args, dtype, mean, variance):
    (found,) = draw(overload, *args)
    assert (found.shape, found.dtype) == ((MANY,), dtype)
    error = np.sqrt(variance / MANY)
    assert abs(found.mean(dtype="float64") - mean) < 5 * error
    assert abs(found.var(dtype="float64") / variance - 1) < 0.1


def test_uniform_numbers_stay_below_one_in_float16():
    (found,) = draw(ops.rand.default, [MANY], dtype=torch.float16)
    assert found.min() >= 0
    assert found.max() < 1


def test_a_permutation_has_every_number_once():
    (found,) = draw(ops.randperm.default, 1000)
    assert found.dtype == "int64"
    assert sorted(found.tolist()) == list(range(1000))
    assert found.tolist() != list(range(1000))


def test_probabilities_of_each_element():
    (found,) = draw(ops.bernoulli.default, ROWS)
    np.testing.assert_allclose(found.mean(axis=0), [0.1, 0.5, 0.9], atol=0.02)
    (found,) = draw(ops.normal.Tensor_Tensor, torch.zeros(MANY, 1), torch.tensor([1.0, 2.0]))
    np.testing.assert_allclose(found.std(axis=0), [1, 2], atol=0.05)


def test_places_by_weight():
    (found,) = draw(ops.multinomial.default, torch.tensor([1.0, 2.0, 0.0, 5.0]), MANY, True)
    np.testing.assert_allclose(np.bincount(found) / MANY, [0.125, 0.25, 0, 0.625], atol=0.02)
    (found,) = draw(ops.multinomial.default, torch.tensor([[1.0, 2, 3, 4], [0, 0, 1, 1]]), 2)
    assert found.shape == (2, 2)
    assert len(set(found[0].tolist())) == 2
    assert sorted(found[1].tolist()) == [2, 3]


def test_more_places_than_weights_are_an_error():
    with pytest.raises(weft.TVMError, match="multinomial: 3 places without replacement of a row"):
        draw(ops.multinomial.default, torch.tensor([0.0, 1.0, 1.0, 0.0]), 3)


def test_dropout_in_training():
    found, kept = draw(ops.native_dropout.default, torch.ones(MANY), 0.25, True)
    assert kept.dtype == "bool"
    assert abs(kept.mean() - 0.75) < 0.02
    np.testing.assert_allclose(found, np.where(kept, 1 / 0.75, 0), rtol=1e-6)


def test_dropout_outside_of_training_is_nothing():
    found, kept = draw(ops.native_dropout.default, torch.ones(5), 0.25, False)
    assert found.tolist() == [1.0] * 5
    assert kept.all()


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(x.shape[0]), torch.rand_like(x), torch.randn(3)


def test_calls_differ_runs_differ_and_the_seed_repeats_them():
    program = capture(Noise(), (torch.zeros(8),), None, ({0: torch.export.Dim("n", min=2)},))
    machine = relax.VirtualMachine(relax.build(from_exported_program(program)), weft.cpu())
    x = np.zeros(5, "float32")
    weft.random.seed(3)
    first = [item.numpy() for item in machine["main"](x)]
    second = [item.numpy() for item in machine["main"](x)]
    weft.random.seed(3)
    again = [item.numpy() for item in machine["main"](x)]
    assert first[0].shape == (5,)
    assert (first[0] != first[1]).any()
    assert (first[0] != second[0]).any()
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("value", [-1, 1.5, True, "a"])
def test_a_seed_is_a_number_of_zero_or_more(value):
    with pytest.raises(weft.TVMError, match="seed: expected"):
        weft.random.seed(value)


class Nested(torch.nn.Module):
    """rand in a graph of its own that has the places of the outer one, and is run twice."""

    def forward(self, x):
        outer = torch.rand_like(x)
        with torch.no_grad():
            inner = torch.rand_like(x)
        with torch.no_grad():
            other = torch.rand_like(x)
        return outer, inner, other


def test_draws_of_nested_graphs_differ():
    weft.random.seed(3)
    x = torch.zeros(64)
    made = [np.asarray(item) for item in weft.compile(Nested(), (x,), cache=False)(x)]
    assert (made[0] != made[1]).any()
    assert (made[0] != made[2]).any()
    assert (made[1] != made[2]).any()


class Twice(torch.nn.Module):
    """Calls that are equal but for their number, which keeps passes from computing them once."""

    def forward(self, x):
        return torch.rand(64), torch.rand(64), torch.rand_like(x), torch.rand_like(x)


def test_equal_calls_give_different_numbers():
    x = torch.zeros(64)
    drawn = [np.asarray(item) for item in weft.compile(Twice(), (x,), cache=False)(x)]
    assert len({item.tobytes() for item in drawn}) == 4


class Drawing(torch.nn.Module):
    """Draws with a generator of its own."""

    def forward(self, x):
        generator = torch.Generator().manual_seed(3)
        return x + torch.randn(4, generator=generator)


def test_a_generator_of_the_model_is_refused_with_what_to_do():
    with pytest.raises(UnsupportedError, match="torch.Generator .* draw without generator="):
        weft.compile(Drawing(), (torch.ones(4),), cache=False)
