"""Resize and Upsample against ONNX's reference."""

import numpy as np
import pytest

from tests.lib.onnx_models import check, info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import ConstantNeededError, OnnxNodeError

pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]

POSITIONS = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
             "asymmetric"]  # fmt: skip
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def resizes(choices, dims, constants):
    """One model with a node for each choice of attributes."""
    nodes = [
        node("Resize", f"x - {inputs}", f"y{number}", **attributes)
        for number, (inputs, attributes) in enumerate(choices)
    ]
    names = [f"y{number}" for number in range(len(choices))]
    return model(nodes, [info("x", shape=dims)], names, constants=constants)


CONSTANTS = {
    "up": np.array([1, 1, 1.5, 2.25], "float32"), "down": np.array([1, 1, 0.6, 0.75], "float32"),
    "twice": np.array([1, 1, 2, 3], "float32"), "sizes": np.array([1, 2, 7, 3]),
}  # fmt: skip
WAYS = {
    "nearest": [
        ("up", {"coordinate_transformation_mode": mode, "nearest_mode": rounding})
        for mode in POSITIONS for rounding in ROUNDINGS
    ],
    "linear": [
        *[(name, {"mode": "linear", "coordinate_transformation_mode": mode})
          for mode in POSITIONS for name in ("up", "down")],
        ("- sizes", {"mode": "linear", "exclude_outside": 1}),
    ],
    "cubic": [
        *[("up", {"mode": "cubic", "coordinate_transformation_mode": mode, "cubic_coeff_a": -0.5})
          for mode in POSITIONS],
        ("- sizes", {"mode": "cubic", "exclude_outside": 1}),
    ],
    "antialias": [
        (name, {"mode": mode, "antialias": 1}) for mode in ("linear", "cubic")
        for name in ("up", "down", "- sizes")
    ],
}  # fmt: skip


@pytest.mark.parametrize("way", list(WAYS))
def test_modes(way):
    check(resizes(WAYS[way], [1, 2, 5, 4], CONSTANTS), uniform(1, 2, 5, 4))


def test_symbolic_extents():
    choices = [
        (name, {"mode": mode, "coordinate_transformation_mode": position})
        for mode, position in (
            ("nearest", "asymmetric"),
            ("linear", "align_corners"),
            ("cubic", "pytorch_half_pixel"),
        )
        for name in ("down", "- sizes")
    ]
    proto = resizes(choices, ["n", 2, "h", "w"], CONSTANTS)
    check(proto, uniform(1, 2, 5, 4))


def test_parts_of_the_image():
    roi = np.array([0, 0, 0.4, -0.2, 1, 1, 0.6, 1.1], "float32")
    nodes = [
        node("Resize", "x roi - sizes", name, mode=mode, extrapolation_value=10.0,
             coordinate_transformation_mode="tf_crop_and_resize")
        for name, mode in (("a", "linear"), ("b", "cubic"))
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=[1, 2, 5, 4])], ["a", "b"],
                  constants={"roi": roi, "sizes": np.array([1, 2, 3, 6])})  # fmt: skip
    check(proto, uniform(1, 2, 5, 4))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("dims", [[1, 2, 5, 4], [1, 2, "h", "w"]])
def test_parts_of_the_image_that_the_run_tells(mode, dims):
    """The edges of the first two axes are numbers, as TensorFlow's crop_and_resize is exported."""
    concat = node("Concat", "zeros low ones high", "roi", axis=0)
    crop = node("Resize", "x roi - sizes", "y", mode=mode, extrapolation_value=10.0,
                coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
    constants = {"zeros": np.zeros(2, "float32"), "ones": np.ones(2, "float32"),
                 "sizes": np.array([1, 2, 3, 6])}  # fmt: skip
    inputs = [info("x", shape=dims), info("low", shape=[2]), info("high", shape=[2])]
    proto = model([concat, crop], inputs, ["y"], constants=constants)
    for low, high in (([0.4, -0.2], [0.6, 1.1]), ([0, 0], [1, 1]), ([0.9, 0.3], [0.1, 0.3])):
        check(proto, uniform(1, 2, 5, 4), np.array(low, "float32"), np.array(high, "float32"))


def test_a_part_that_the_run_tells_is_refused_with_antialias():
    crop = node("Resize", "x roi - sizes", "y", mode="linear", antialias=1,
                coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
    inputs = [info("x", shape=[1, 2, 5, 4]), info("roi", shape=[8])]
    proto = model([crop], inputs, ["y"], constants={"sizes": np.array([1, 2, 3, 6])})
    with pytest.raises(ConstantNeededError, match="its input roi must be known at import"):
        from_onnx(proto)


def test_extents_are_products_in_float32():
    """6 * 7/6 is 6.9999998; rounded to float32 it is 7, as in ONNX Runtime."""
    scales = np.array([1, 1, 11 / 8, 7 / 6], "float32")
    for dims in ([1, 1, 8, 6], [1, 1, "h", "w"]):
        proto = model([node("Resize", "x - scales", "y")], [info("x", shape=dims)], ["y"],
                      constants={"scales": scales})  # fmt: skip
        assert run(from_onnx(proto), uniform(1, 1, 8, 6)).shape == (1, 1, 11, 7)


def test_sizes_that_keep_the_ratio_of_some_axes():
    nodes = [
        node("Resize", "x - - sizes", name, axes=[3, 2], keep_aspect_ratio_policy=policy)
        for name, policy in (("a", "not_larger"), ("b", "not_smaller"))
    ]
    proto = model(nodes, [info("x", shape=[1, 2, 5, 4])], ["a", "b"],
                  constants={"sizes": np.array([7, 8])})  # fmt: skip
    check(proto, uniform(1, 2, 5, 4))


@pytest.mark.parametrize(("name", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_early_forms_take_left_edges(name, opset):
    proto = model([node(name, "x s", "y", mode="nearest")], [info("x", shape=[1, 1, 2, "w"])],
                  ["y"], opset, {"s": np.array([1, 1, 2, 1.5], "float32")})  # fmt: skip
    x = uniform(1, 1, 2, 2)
    assert np.array_equal(run(from_onnx(proto), x), x[:, :, [0, 0, 1, 1]][..., [0, 0, 1]])


def test_an_unknown_mode():
    proto = resizes([("up", {"coordinate_transformation_mode": "corners"})], [1, 2, 5, 4],
                    CONSTANTS)  # fmt: skip
    with pytest.raises(OnnxNodeError, match="coordinate_transformation_mode: expected one of"):
        from_onnx(proto)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_sums_of_integers_are_cut_towards_zero(dtype):
    x = np.array([[[0, 10, 100, 100, 100, -100 if dtype != "uint8" else 200]]], dtype)
    scales = np.array([1, 1, 2.3], "float32")
    proto = model(
        [node("Resize", "x - scales", "y", mode="linear")], [info("x", dtype, [1, 1, 6])], ["y"],
        constants={"scales": scales},
    )  # fmt: skip
    wide = model(
        [node("Resize", "x - scales", "y", mode="linear")], [info("x", "float64", [1, 1, 6])],
        ["y"], constants={"scales": scales},
    )  # fmt: skip
    got, exact = run(from_onnx(proto), x), run(from_onnx(wide), x.astype("float64"))
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, np.trunc(exact + 1e-6 * np.sign(exact)))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [0, 1])
def test_a_constant_image_of_integers_stays_one(dtype, mode, antialias):
    for value in (7, np.iinfo(dtype).max):
        x = np.full((1, 1, 5, 3), value, dtype)
        proto = model(
            [node("Resize", "x - scales", "y", mode=mode, antialias=antialias)],
            [info("x", dtype, x.shape)], ["y"],
            constants={"scales": np.array([1, 1, 0.7, 1.9], "float32")},
        )  # fmt: skip
        assert (run(from_onnx(proto), x) == value).all()


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_bytes_with_antialias_are_rounded_half_up(dtype):
    """Quarters: 0.5 and 1.5 are ties, and so are -0.5 and -1.5."""
    start = np.array([[[0, 2, 4, 0]]], dtype)
    x = start if dtype == "uint8" else start - 4
    proto = model([node("Resize", "x - scales", "y", mode="linear", antialias=1)],
                  [info("x", dtype, x.shape)], ["y"],
                  constants={"scales": np.array([1, 1, 2], "float32")})  # fmt: skip
    wanted = np.array([[[0, 1, 2, 3, 4, 3, 1, 0]]]) - (0 if dtype == "uint8" else 4)
    assert run(from_onnx(proto), x).tolist() == wanted.tolist()


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", [(0.37, 0.61), (1.7, 0.5), (2.0, 2.3)])
def test_signed_bytes_with_antialias_are_unsigned_ones_moved(mode, scales):
    x = np.random.default_rng(0).integers(0, 256, (1, 2, 9, 12))
    given = [x.astype("uint8"), (x - 128).astype("int8")]
    factors = {"scales": np.array([1, 1, *scales], "float32")}
    unsigned, signed = [
        run(from_onnx(model(
            [node("Resize", "x - scales", "y", mode=mode, antialias=1)],
            [info("x", str(value.dtype), value.shape)], ["y"], constants=factors,
        )), value)
        for value in given
    ]  # fmt: skip
    assert signed.dtype == np.int8
    np.testing.assert_array_equal(unsigned.astype(int) - 128, signed)


def test_bytes_with_antialias_and_a_coefficient_of_large_sums():
    """Weights of 400 and more times a byte leave int32."""
    x = np.array([[[255, 0, 255, 255, 0, 255]]], "uint8")
    nodes = [node("Resize", "x - scales", "y", mode="cubic", antialias=1, cubic_coeff_a=-40.0)]
    constants = {"scales": np.array([1, 1, 2], "float32")}
    proto = model(nodes, [info("x", "uint8", x.shape)], ["y"], constants=constants)
    wide = model(nodes, [info("x", "float64", x.shape)], ["y"], constants=constants)
    exact = run(from_onnx(wide), x.astype("float64"))
    wanted = np.clip(np.floor(exact + 0.5), 0, 255)
    assert np.abs(run(from_onnx(proto), x).astype(float) - wanted).max() <= 1
