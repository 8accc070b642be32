"""The loaders of FashionMNIST: shapes, the idx format both ways, and errors."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from weft.data import fashion_mnist
from weft.support.errors import IRValueError


def write_set(folder, images, labels, *, zipped):
    for stem, array in (("t10k-images-idx3-ubyte", images), ("t10k-labels-idx1-ubyte", labels)):
        data = fashion_mnist.idx_bytes(array)
        if zipped:
            (folder / f"{stem}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / stem).write_bytes(data)


def test_subset_has_a_thousand_images_of_ten_classes():
    data = fashion_mnist.load_subset()
    assert data.images.shape == (1000, 28, 28)
    assert data.images.dtype == data.labels.dtype == np.uint8
    assert min(np.bincount(data.labels, minlength=10)) > 80
    assert len(fashion_mnist.CLASS_NAMES) == 10


def test_as_float_scales_to_one():
    images = fashion_mnist.load_subset().first(3).as_float()
    assert images.shape == (3, 1, 28, 28)
    assert images.dtype == np.float32
    assert images.min() == 0.0
    assert images.max() == 1.0


def test_parameters_classify_the_subset():
    data = fashion_mnist.load_subset()
    p = fashion_mnist.load_mlp_parameters()
    assert {name: value.shape for name, value in p.items()} == {
        "w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,),
    }  # fmt: skip
    hidden = np.maximum(data.as_float().reshape(-1, 784) @ p["w0"].T + p["b0"], 0)
    accuracy = ((hidden @ p["w1"].T + p["b1"]).argmax(1) == data.labels).mean()
    assert accuracy > 0.85


def test_cnn_parameters_have_the_assignments_names_and_shapes():
    shapes = {name: p.shape for name, p in fashion_mnist.load_cnn_parameters().items()}
    assert shapes == {
        "conv2d_weight": (32, 1, 3, 3), "conv2d_bias": (32,), "linear0_weight": (100, 5408),
        "linear0_bias": (100,), "linear1_weight": (10, 100), "linear1_bias": (10,),
    }  # fmt: skip


@pytest.mark.parametrize("zipped", [False, True])
def test_load_full_reads_what_idx_bytes_wrote(tmp_path, zipped):
    subset = fashion_mnist.load_subset().first(7)
    write_set(tmp_path, subset.images, subset.labels, zipped=zipped)
    read = fashion_mnist.load_full(tmp_path)
    assert np.array_equal(read.images, subset.images)
    assert np.array_equal(read.labels, subset.labels)


def test_load_full_without_files_says_where_it_looked(tmp_path):
    with pytest.raises(IRValueError, match=f"under {tmp_path}, found none; install Debian's"):
        fashion_mnist.load_full(tmp_path)


def test_load_full_with_too_few_images(tmp_path):
    subset = fashion_mnist.load_subset()
    write_set(tmp_path, subset.images[:5], subset.labels[:7], zipped=False)
    with pytest.raises(
        IRValueError, match=r"shape \(7, 28, 28\) for 7 labels, found \(5, 28, 28\)"
    ):
        fashion_mnist.load_full(tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\x08", b"PK\3\4", b"\0\0\x08\3\0\0", b"\0\0\x08\1\0\0\0\5ab"]
)
def test_read_idx_refuses_what_is_not_idx(tmp_path, data):
    path = tmp_path / "broken"
    path.write_bytes(data)
    with pytest.raises(IRValueError, match=r"broken: (expected an idx file|header says)"):
        fashion_mnist.read_idx(path)
