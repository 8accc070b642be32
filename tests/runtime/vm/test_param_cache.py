"""Weights that programs find by name."""

import numpy as np
import pytest

import weft
from weft.runtime.param_folder import dump_ndarray_cache


def builtin(name):
    return weft.get_global_func(f"vm.builtin.{name}")


@pytest.fixture
def weights(tmp_path):
    """The table of the process with three weights, for the time of a test."""
    arrays = {"w_0": np.arange(3), "w_1": np.ones((2, 2), "float32"), "bias": np.zeros(1)}
    dump_ndarray_cache(arrays, tmp_path, "raw")
    builtin("ndarray_cache.load")(str(tmp_path), 1, 0)
    yield arrays
    builtin("ndarray_cache.clear")()


def assert_arrays(actual, expected):
    assert len(actual) == len(expected)
    for mine, its in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(mine.numpy(), its)


def test_weights_of_a_folder(weights):
    both = [weights["w_0"], weights["w_1"]]
    assert_arrays(builtin("param_array_from_cache")("w", -1), both)
    assert_arrays(builtin("param_array_from_cache")("w", 1), both[:1])
    assert_arrays(builtin("param_array_from_cache_by_name")(["w_1", "w_0"]), both[::-1])
    assert_arrays(builtin("param_array_from_cache_by_name_unpacked")("w_1"), both[1:])
    with pytest.raises(KeyError, match="there is no w_2"):
        builtin("param_array_from_cache")("w", 3)
    with pytest.raises(KeyError, match="there is no scale"):
        builtin("param_array_from_cache_by_name")(["bias", "scale"])


def test_single_weights(weights):
    new = weft.nd.array(np.full(2, 5.0))
    with pytest.raises(ValueError, match="there is a 'bias' already"):
        builtin("ndarray_cache.update")("bias", new, False)
    builtin("ndarray_cache.update")("bias", new, True)
    assert builtin("ndarray_cache.get")("bias").numpy().tolist() == [5, 5]
    builtin("ndarray_cache.remove")("bias")
    assert builtin("ndarray_cache.get")("bias") is None
