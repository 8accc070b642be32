"""Grids, regions, boxes and signals against ONNX's reference and numpy."""

import numpy as np
import pytest

import weft
from tests.lib.onnx_models import check, check_node, info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError

pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]


@pytest.mark.slow
def test_grids():
    ways = [("nearest", "zeros", 0), ("linear", "reflection", 1), ("cubic", "border", 0)]
    choices = [dict(zip(("mode", "padding_mode", "align_corners"), way, strict=True))
               for way in ways]  # fmt: skip
    names = [f"y{number}" for number in range(len(choices))]
    nodes = [node("GridSample", "x g", name, **how)
             for name, how in zip(names, choices, strict=True)]  # fmt: skip
    inputs = [info("x", shape=["n", 2, 4, 5]), info("g", shape=["n", "h", "w", 2])]
    proto = model(nodes, inputs, names, opset=20)
    check(proto, uniform(1, 2, 4, 5), uniform(1, 3, 2, 2, seed=1, low=-1.3, high=1.3), atol=1e-4)


@pytest.mark.parametrize("corners", [0, 1])
def test_affine_grids(corners):
    proto = model([node("AffineGrid", "t s", "y", align_corners=corners)],
                  [info("t", shape=["n", 2, 3])], ["y"],
                  constants={"s": np.array([2, 1, 3, 4])})  # fmt: skip
    check(proto, uniform(2, 2, 3))


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions(mode):
    rois = np.array([[0.5, 0.5, 3.2, 4.1], [1, 0, 4, 2.5], [-2, -2, -1, -1]], "float32")
    nodes = [
        node("RoiAlign", "x r b", name, mode=mode, output_height=2, output_width=3,
             sampling_ratio=ratio, spatial_scale=0.8, coordinate_transformation_mode=position)
        for name, ratio, position in (("a", 2, "half_pixel"), ("b2", 0, "output_half_pixel"))
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=[2, 2, 5, 6]), info("r", shape=["k", 4]),
                          info("b", "int64", ["k"])], ["a", "b2"])  # fmt: skip
    check(proto, uniform(2, 2, 5, 6), rois, np.array([1, 0, 1]), rtol=1e-4)


def test_largest_elements_of_bins():
    x = uniform(1, 2, 6, 6)
    rois = np.array([[0, 1, 2, 8, 8], [0, 0, 0, 2, 2]], "float32")
    proto = model([node("MaxRoiPool", "x r", "y", pooled_shape=[2, 2], spatial_scale=0.5)],
                  [info("x", shape=[1, 2, 6, 6]), info("r", shape=["k", 5])], ["y"])  # fmt: skip
    made = run(from_onnx(proto), x, rois)
    # the first region is x 0 .. 4 (0.5 rounds to even), y 1 .. 4: bins [0, 3) [2, 5), [1, 3) [3, 5)
    wanted = [[x[0, :, a:b, c:d].max((1, 2)) for c, d in ((0, 3), (2, 5))]
              for a, b in ((1, 3), (3, 5))]  # fmt: skip
    np.testing.assert_array_equal(made[0], np.moveaxis(np.array(wanted), 2, 0))
    assert np.array_equal(made[1][:, 1, 1], x[0, :, 1, 1])


@pytest.mark.parametrize("center", [0, 1])
def test_boxes_that_overlap_no_better_one(center):
    low, size = uniform(1, 8, 2, low=0, high=4), uniform(1, 8, 2, seed=1, low=1, high=3)
    boxes = np.concatenate([low, size if center else low + size], 2)
    scores = uniform(1, 2, 8, seed=2, low=0)
    constants = {"m": np.array([3]), "i": np.array([0.3], "float32"),
                 "s": np.array([0.2], "float32")}  # fmt: skip
    check_node("NonMaxSuppression", [boxes, scores], constants=constants, center_point_box=center,
               symbolic=True)  # fmt: skip


def test_boxes_without_limits_leave_none():
    proto = model([node("NonMaxSuppression", "b s", "y")], [info("b", shape=[1, 3, 4]),
                  info("s", shape=[1, 1, 3])], ["y"])  # fmt: skip
    made = run(from_onnx(proto), uniform(1, 3, 4), uniform(1, 1, 3))
    assert made.shape == (0, 3)


@pytest.mark.parametrize("length", [4, 9])
def test_transforms(length):
    x = uniform(2, 6, 3, 2)
    real = x[..., :1]
    constants = {"n": np.array(length), "a": np.array(1)}
    nodes = [
        node("DFT", "x n a", "both"), node("DFT", "x n a", "back", inverse=1),
        node("DFT", "r n a", "half", onesided=1), node("DFT", "half n a", "again", inverse=1,
                                                       onesided=1),
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=["b", 6, 3, 2]), info("r", shape=["b", 6, 3, 1])],
                  ["both", "back", "half", "again"], constants=constants)  # fmt: skip
    both, back, half, again = run(from_onnx(proto), x, real)
    numbers, size = x[..., 0] + 1j * x[..., 1], int(constants["n"])
    for made, want in ((both, np.fft.fft(numbers, size, 1)), (back, np.fft.ifft(numbers, size, 1)),
                       (half, np.fft.rfft(real[..., 0], size, 1))):  # fmt: skip
        np.testing.assert_allclose(made[..., 0] + 1j * made[..., 1], want, rtol=1e-4, atol=1e-5)
    wanted = np.fft.irfft(np.fft.rfft(real[..., 0], size, 1), size, 1)
    np.testing.assert_allclose(again[..., 0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("extent", [1, 2, 6, 9])
@pytest.mark.parametrize("size", [None, 1, 4, 6])
def test_transforms_of_an_unknown_length(extent, size):
    x = uniform(2, extent, 3, 2)
    real = x[..., :1]
    length = "-" if size is None else "n"
    constants = {"a": np.array(1)} | ({} if size is None else {"n": np.array(size)})
    nodes = [
        node("DFT", f"x {length} a", "both"), node("DFT", f"x {length} a", "back", inverse=1),
        node("DFT", f"r {length} a", "half", onesided=1),
        node("DFT", f"half {length} a", "again", inverse=1, onesided=1),
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=["b", "t", 3, 2]), info("r", shape=["b", "t", 3, 1])],
                  ["both", "back", "half", "again"], constants=constants)  # fmt: skip
    both, back, half, again = run(from_onnx(proto), x, real)
    numbers = x[..., 0] + 1j * x[..., 1]
    spectrum = np.fft.rfft(real[..., 0], size, 1)
    for result, want in ((both, np.fft.fft(numbers, size, 1)),
                         (back, np.fft.ifft(numbers, size, 1)), (half, spectrum)):  # fmt: skip
        assert result.shape == (*want.shape, 2)
        np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], want, rtol=1e-4, atol=1e-5)
    if size is not None or extent > 1:  # numpy has no inverse whose length is 2 * (1 - 1)
        wanted = np.fft.irfft(spectrum, size, 1)
        np.testing.assert_allclose(again[..., 0], wanted, rtol=1e-4, atol=1e-5)


def test_transform_whose_length_is_an_input():
    proto = model([node("DFT", "x n a", "y")], [info("x", shape=[2, "t", 2]),
                  info("n", "int64", [])], ["y"], constants={"a": np.array(1)})  # fmt: skip
    module = from_onnx(proto)
    x = uniform(2, 5, 2)
    for length in (1, 3, 8):
        result = run(module, x, np.array(length))
        want = np.fft.fft(x[..., 0] + 1j * x[..., 1], length, 1)
        np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("extent", [20, "t"])
def test_transforms_of_windows(extent):
    constants = {"step": np.array(3), "w": np.hanning(8).astype("float32")}
    proto = model([node("STFT", "x step w", "y")], [info("x", shape=["b", extent, 1])], ["y"],
                  constants=constants)  # fmt: skip
    for length in (20,) if extent == 20 else (8, 10, 11, 20):
        check(proto, uniform(2, length, 1), rtol=1e-4, atol=1e-5)


def test_a_signal_shorter_than_its_window():
    constants = {"step": np.array(3), "w": np.hanning(8).astype("float32")}
    proto = model([node("STFT", "x step w", "y")], [info("x", shape=["b", "t", 1])], ["y"],
                  constants=constants)  # fmt: skip
    with pytest.raises(weft.TVMError, match="expected .*8"):
        run(from_onnx(proto), uniform(2, 7, 1))


def test_mel_filters():
    names = {"n": 8, "d": 16, "r": 8192, "l": 10.0, "u": 3000.0}
    constants = {
        key: np.array(value, "float32" if isinstance(value, float) else "int64")
        for key, value in names.items()
    }
    nodes = [node("MelWeightMatrix", "n d r l u", "m"), node("MatMul", "x m", "y")]
    check(model(nodes, [info("x", shape=[2, 9])], ["y"], constants=constants), uniform(2, 9))


def test_an_unknown_mode_of_regions():
    proto = model([node("RoiAlign", "x r b", "y", mode="sum")], [info("x", shape=[1, 1, 4, 4]),
                  info("r", shape=[1, 4]), info("b", "int64", [1])], ["y"])  # fmt: skip
    with pytest.raises(OnnxNodeError, match="mode: expected avg or max, got 'sum'"):
        from_onnx(proto)
