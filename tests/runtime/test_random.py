"""Random numbers: their ranges, types, means, and what is refused; equal seeds give equal ones."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.runtime import random
from weft.runtime.ndarray import array, empty
from weft.support.errors import IRTypeError, IRValueError

REAL = ("float16", "bfloat16", "float32", "float64")


def drawn(function, *args, shape=(4000,), dtype="float32", seed=11):
    """What a distribution fills an array with, as float64."""
    weft.random.seed(seed)
    out = empty(shape, dtype)
    function(0, *args, out)
    return out.numpy().astype("float64")


@pytest.mark.parametrize("dtype", REAL)
def test_uniform_numbers_stay_below_the_upper_end(dtype):
    """Rounding to a short type may give the end itself: 0.99996 is 1.0 in bfloat16."""
    values = drawn(random.uniform, 0.0, 1.0, shape=(50_000,), dtype=dtype)
    assert 0 <= values.min() < 0.01
    assert 0.99 < values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01
    assert set(drawn(random.uniform, 3.0, 3.0, dtype=dtype)) == {3.0}
    negative = drawn(random.uniform, -2.0, -1.0, dtype=dtype)
    assert -2 <= negative.min() < negative.max() < -1


@pytest.mark.parametrize("dtype", REAL)
def test_normal_numbers_have_their_mean_and_deviation(dtype):
    values = drawn(random.normal, 3.0, 2.0, dtype=dtype)
    assert abs(values.mean() - 3) < 0.1
    assert abs(values.std() - 2) < 0.1
    assert set(drawn(random.normal, 5.0, 0.0, dtype=dtype)) == {5.0}


def test_numbers_beyond_a_short_type_are_infinite():
    values = drawn(random.normal, 0.0, 1e6, dtype="float16")
    assert np.isinf(values).any()
    assert not np.isnan(values).any()


def test_normal_numbers_of_each_element():
    mean = array(np.array([0, 100, -100], "float32"))
    still = array(np.zeros(3, "float32"))
    assert drawn(random.normal_of, mean, still, shape=(3,)).tolist() == [0, 100, -100]
    wide = array(np.full(3, 10, "float32"))
    values = drawn(random.normal_of, mean, wide, shape=(3,))
    assert (np.abs(values - [0, 100, -100]) < 60).all()
    assert len(set(values - [0, 100, -100])) == 3


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "float32"])
def test_integers_take_every_value_below_the_end(dtype):
    values = drawn(random.integers, 2, 7, dtype=dtype)
    assert sorted(set(values)) == [2, 3, 4, 5, 6]
    counts = np.bincount(values.astype(int))[2:]
    assert counts.min() > 700


def test_a_permutation_has_every_number_once():
    values = drawn(random.permutation, shape=(50,), dtype="int64")
    assert sorted(values) == list(range(50))
    assert values.tolist() != list(range(50))
    assert drawn(random.permutation, shape=(0,), dtype="int64").tolist() == []


def test_truths_have_the_probability_of_their_element():
    chances = np.repeat([0.0, 0.25, 1.0], 2000).astype("float32")
    values = drawn(random.bernoulli, array(chances), shape=(6000,), dtype="bool")
    never, sometimes, always = values.reshape(3, 2000).mean(1)
    assert (never, always) == (0, 1)
    assert abs(sometimes - 0.25) < 0.05


def test_exponential_and_geometric_numbers():
    values = drawn(random.exponential, 4.0)
    assert values.min() >= 0
    assert abs(values.mean() - 0.25) < 0.03
    trials = drawn(random.geometric, 0.25, dtype="int64")
    assert trials.min() == 1
    assert abs(trials.mean() - 4) < 0.3


def test_places_by_weight():
    weights = array(np.array([[0, 1, 3], [5, 0, 0]], "float32"))
    places = drawn(random.multinomial, weights, 1, shape=(2, 4000), dtype="int64").astype(int)
    assert set(places[1]) == {0}
    shares = np.bincount(places[0], minlength=3) / 4000
    assert shares[0] == 0
    assert abs(shares[1] - 0.25) < 0.05


def test_places_without_putting_back_are_different():
    weights = array(np.array([1, 0, 2, 3], "float32"))
    for seed in range(10):
        places = drawn(random.multinomial, weights, 0, shape=(3,), dtype="int64", seed=seed)
        assert sorted(places) == [0, 2, 3]


@pytest.mark.parametrize(
    ("function", "args"),
    [(random.uniform, (0.0, 1.0)), (random.normal, (0.0, 1.0)), (random.integers, (0, 99)),
     (random.permutation, ()), (random.exponential, (1.0,)), (random.geometric, (0.5,))],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_equal_seeds_give_equal_numbers(function, args):
    dtype = "int64" if function in (random.integers, random.permutation) else "float32"
    first, again, other = (
        drawn(function, *args, shape=(40,), dtype=dtype, seed=seed) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_calls_one_after_the_other_differ():
    weft.random.seed(3)
    out = empty((20,), "float32")
    random.uniform(0, 0.0, 1.0, out)
    first = out.numpy()
    random.uniform(0, 0.0, 1.0, out)
    assert (out.numpy() != first).any()


ONES, THREE = np.ones(4, "float32"), np.ones(3, "float32")


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (random.normal, (0.0, -1.0), "random numbers: scale < 0"),
        (random.integers, (4, 4), "random numbers: low >= high"),
        (random.exponential, (0.0,), "expected a rate above 0, got 0.0"),
        (random.exponential, (-1.0,), "expected a rate above 0, got -1.0"),
        (random.geometric, (0.0,), "random numbers: p <= 0, p > 1"),
        (random.geometric, (2.0,), "random numbers: p <= 0, p > 1"),
        (random.bernoulli, (array(THREE),), r"\(4,\) of probabilities of shape \(3,\)"),
        (random.multinomial, (array(-ONES), 1), "expected weights of 0 or more, with a sum above"),
        (random.multinomial, (array(0 * ONES), 1), "expected weights of 0 or more, with a sum"),
        (random.multinomial, (array(np.nan * ONES), 1), "expected weights of 0 or more"),
        (random.multinomial, (array(THREE), 0), "4 places without replacement of a row that has"),
    ],
    ids=range(11),
)
def test_what_is_no_distribution(function, args, message):
    with pytest.raises(IRValueError, match=message):
        drawn(function, *args, shape=(4,))


def test_a_permutation_is_a_list():
    for shape in ((), (2, 3)):
        with pytest.raises(IRValueError, match="expected a list to permute, got shape"):
            drawn(random.permutation, shape=shape, dtype="int64")


def test_seeds():
    weft.random.seed(2**100)
    weft.random.seed(None)
    for wrong in (1.5, "7", True):
        with pytest.raises(IRTypeError, match="seed: expected an int or None, got"):
            weft.random.seed(wrong)
    with pytest.raises(IRValueError, match="seed: expected a number of 0 or more, got -1"):
        weft.random.seed(-1)
