"""Folders of weights as ``tvm.contrib.tvmjs`` writes and reads them."""

import json

import numpy as np
import pytest

from weft import nd
from weft.runtime.param_folder import dump_ndarray_cache, load_ndarray_cache
from weft.support.errors import ArtifactError, IRValueError

RNG = np.random.default_rng(0)
WEIGHTS = {
    "a": RNG.standard_normal((10, 20)).astype("float32"),
    "b": np.arange(3, dtype="int32"),
    "c": nd.array(RNG.standard_normal(4).astype("float16")),
    "none": np.zeros((0, 3), "float32"),
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, 1 + 2**-8, 1 + 3 * 2**-8, 2.0**-133]


def numbers(value):
    return value if isinstance(value, np.ndarray) else value.numpy()


def test_raw_weights_come_back(tmp_path):
    dump_ndarray_cache(WEIGHTS, tmp_path / "new", "raw", {"layers": 2})
    loaded, meta = load_ndarray_cache(str(tmp_path / "new"))
    assert (list(loaded), meta) == (list(WEIGHTS), {"layers": 2})
    for name, value in WEIGHTS.items():
        assert loaded[name].dtype == value.dtype
        np.testing.assert_array_equal(loaded[name].numpy(), numbers(value))
    assert not (tmp_path / "new" / "ndarray-cache-b16.json").exists()


def test_halves_are_rounded_as_bfloat16(tmp_path):
    torch = pytest.importorskip("torch")
    value = np.array([*SPECIAL, *RNG.standard_normal(100)], "float32")
    dump_ndarray_cache(iter([("w", value)]), tmp_path, meta_data=lambda: {"made": "now"})
    expected = torch.from_numpy(value).bfloat16().float().numpy()
    np.testing.assert_array_equal(load_ndarray_cache(tmp_path)[0]["w"].numpy(), expected)
    weights, meta = load_ndarray_cache(tmp_path / "ndarray-cache-b16.json")
    assert (weights["w"].dtype, meta) == ("bfloat16", {"made": "now"})
    np.testing.assert_array_equal(weights["w"].numpy().astype("float32"), expected)


def test_files_have_a_largest_size(tmp_path):
    arrays = {f"w{i}": RNG.standard_normal(200_000).astype("float32") for i in range(5)}
    dump_ndarray_cache(arrays, tmp_path, "raw", shard_cap_mb=2)
    assert sorted(path.name for path in tmp_path.glob("*.bin")) == [
        f"params_shard_{i}.bin" for i in range(3)
    ]
    loaded, _ = load_ndarray_cache(tmp_path)
    for name, value in arrays.items():
        np.testing.assert_array_equal(loaded[name].numpy(), value)


def test_an_update_keeps_what_is_there(tmp_path):
    dump_ndarray_cache(WEIGHTS, tmp_path, "raw", {"layers": 2})
    dump_ndarray_cache({"b": np.zeros(5, "int8")}, tmp_path, "raw", update_if_exists=True)
    loaded, meta = load_ndarray_cache(tmp_path)
    assert (list(loaded), meta) == (list(WEIGHTS), {"layers": 2})
    assert loaded["b"].dtype == "int8"
    np.testing.assert_array_equal(loaded["a"].numpy(), WEIGHTS["a"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["records"][0].update(dataPath="../x"), "expected a file of the folder, got"),
        (lambda c: c["records"][0].update(nbytes=3), "expected 3 bytes of a raw-shard, got"),
        (lambda c: c["records"][0]["records"][0].update(shape=[10, 21]), "expected 840 bytes of"),
        (lambda c: c["records"][0]["records"][0].update(byteOffset=-4), "got 800 from -4 of"),
        (lambda c: c["records"][0]["records"][0].update(dtype="x"), "is no list of weights"),
        (lambda c: c.pop("metadata"), "is no list of weights: KeyError"),
    ],
)
def test_lists_that_do_not_agree_with_files(tmp_path, change, message):
    dump_ndarray_cache(WEIGHTS, tmp_path, "raw")
    content = json.loads((tmp_path / "ndarray-cache.json").read_text())
    change(content)
    (tmp_path / "ndarray-cache.json").write_text(json.dumps(content))
    with pytest.raises(ArtifactError, match=message):
        load_ndarray_cache(tmp_path)


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(IRValueError, match="expected 'raw' or 'f32-to-bf16', got 'int4'"):
        dump_ndarray_cache({}, tmp_path, "int4")
