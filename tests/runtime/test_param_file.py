"""Weights by name as bytes: TVM's format, and what damaged bytes give."""

import contextlib
import struct

import numpy as np
import pytest

from weft import nd, runtime
from weft.support.errors import ArtifactError, IRTypeError

RNG = np.random.default_rng(0)
ARRAYS = {
    "matrix": RNG.random((2, 3)).astype("float32"),
    "flags": np.array([True, False, True]),
    "half": RNG.random(4).astype("float16"),
    "scalar": np.array(-5, "int64"),
    "bytes ü": np.arange(5, dtype="uint8"),
    "none": np.zeros((0, 2), "float64"),
}


def test_arrays_come_back(tmp_path):
    runtime.save_param_dict_to_file({k: nd.array(v) for k, v in ARRAYS.items()}, tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == runtime.save_param_dict(ARRAYS)
    loaded = runtime.load_param_dict_from_file(str(tmp_path / "w"))
    assert list(loaded) == list(ARRAYS)
    for name, value in ARRAYS.items():
        assert (loaded[name].dtype, loaded[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(loaded[name].numpy(), value)


def test_short_floats_come_back():
    array = nd.empty((2,), "bfloat16").copyfrom(np.array([1.0, -2.5], "float32"))
    again = runtime.load_param_dict(runtime.save_param_dict({"b": array}))["b"]
    assert again.dtype == "bfloat16"
    np.testing.assert_array_equal(again.numpy(), array.numpy())


def test_the_bytes_are_those_of_tvm():
    expected = b"".join([
        struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, 1), struct.pack("<Q2s", 2, b"w0"),
        struct.pack("<QQQ", 1, 0xDD5E40F096B4A13F, 0), struct.pack("<iii", 1, 0, 2),
        struct.pack("<BBH", 2, 32, 1), struct.pack("<qq", 1, 2), struct.pack("<Q", 8),
        struct.pack("<ff", 0.5, -1),
    ])  # fmt: skip
    data = runtime.save_param_dict({"w0": np.array([[0.5, -1]], "float32")})
    assert bytes(data) == expected


def test_damaged_bytes_are_an_error_or_arrays():
    whole = bytes(runtime.save_param_dict(ARRAYS))
    for size in range(len(whole)):
        with pytest.raises(ArtifactError):
            runtime.load_param_dict(whole[:size])
    for _ in range(2000):
        damaged = bytearray(whole)
        for place in RNG.integers(0, len(whole), 3):
            damaged[place] = RNG.integers(0, 256)
        with contextlib.suppress(ArtifactError):
            assert isinstance(runtime.load_param_dict(damaged), dict)


def test_other_values_are_refused():
    with pytest.raises(IRTypeError, match="expected a dict, got list"):
        runtime.save_param_dict([1])
    with pytest.raises(ArtifactError, match="expected a dict of arrays, which begins with 0xf7e5"):
        runtime.load_param_dict(bytes(64))
