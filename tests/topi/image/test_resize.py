import numpy as np
import pytest

from tests.topi.conftest import evaluate
from weft import te, tir, topi
from weft.tir.interp import run

torch = pytest.importorskip("torch")
interpolate = torch.nn.functional.interpolate
tensor = torch.from_numpy


@pytest.mark.parametrize("size", [(3, 4), (7, 9), (1, 1)])
def test_resize2d_when_linear(check, floats, size):
    x = floats(1, 2, 5, 6)
    expected = interpolate(tensor(x), size, mode="bilinear", align_corners=False).numpy()
    check(topi.image.resize2d, [x], expected, None, size, tol=1e-4)
    aligned = interpolate(tensor(x), size, mode="bilinear", align_corners=True).numpy()
    check(
        topi.image.resize2d, [x], aligned, None, size, method="linear",
        coordinate_transformation_mode="align_corners", tol=1e-4,
    )  # fmt: skip


def test_resize2d_when_nearest(check, floats):
    x = floats(1, 2, 4, 6)
    expected = interpolate(tensor(x), (8, 3), mode="nearest").numpy()
    options = {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric"}
    check(topi.image.resize2d, [x], expected, None, (8, 3), **options)
    nhwc = [x.transpose(0, 2, 3, 1)]
    check(
        topi.image.resize2d, nhwc, expected.transpose(0, 2, 3, 1), None, (8, 3), "NHWC", **options
    )


def test_resize2d_when_cubic(check, floats):
    x = floats(1, 1, 5, 5)
    expected = interpolate(tensor(x), (7, 8), mode="bicubic", align_corners=False).numpy()
    check(
        topi.image.resize2d, [x], expected, None, (7, 8), method="cubic", bicubic_alpha=-0.75,
        tol=1e-4,
    )  # fmt: skip


def test_resize_of_one_and_three_axes(check, floats):
    x = floats(1, 2, 5)
    expected = interpolate(tensor(x), 8, mode="linear", align_corners=False).numpy()
    check(topi.image.resize1d, [x], expected, None, 8, tol=1e-4)
    y = floats(1, 1, 2, 3, 2)
    expected = interpolate(tensor(y), (3, 4, 2), mode="trilinear", align_corners=False).numpy()
    check(topi.image.resize3d, [y], expected, None, (3, 4, 2), tol=1e-4)


def test_resize_when_arguments_are_wrong():
    x = te.placeholder((1, 2, 5, 5))
    with pytest.raises(ValueError, match="expected nearest_neighbor, linear or cubic"):
        topi.image.resize2d(x, None, (3, 3), method="area")
    with pytest.raises(ValueError, match="letters NCHW"):
        topi.image.resize2d(x, None, (3, 3), "NCW")


LINEAR_AND_CUBIC = [{"method": "linear"}, {"method": "cubic", "bicubic_alpha": -0.75}]


@pytest.mark.parametrize("options", LINEAR_AND_CUBIC, ids=["linear", "cubic"])
@pytest.mark.parametrize("mode", ["half_pixel", "align_corners"])
def test_float64_is_computed_in_float64(check, options, mode):
    x = np.random.default_rng(0).normal(size=(1, 1, 5, 7))
    name = {"linear": "bilinear", "cubic": "bicubic"}[options["method"]]
    expected = interpolate(
        tensor(x), (8, 11), mode=name, align_corners=mode == "align_corners"
    ).numpy()
    options = {**options, "coordinate_transformation_mode": mode}
    check(topi.image.resize2d, [x], expected, None, (8, 11), **options, tol=1e-14)
    (big,) = evaluate(topi.image.resize2d, [x * 1e300], None, (8, 11), **options)
    np.testing.assert_allclose(big, expected * 1e300, rtol=1e-12)


@pytest.mark.parametrize("options", LINEAR_AND_CUBIC, ids=["linear", "cubic"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_a_constant_image_of_integers_stays_one(options, dtype):
    limits = np.iinfo(dtype)
    for value in (limits.min, limits.max, limits.max // 2 + 1, 7, min(2**24 + 1, limits.max)):
        x = np.full((1, 1, 3, 5), value, dtype)
        (made,) = evaluate(topi.image.resize2d, [x], None, (7, 9), **options)
        assert (made == value).all()


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_integers_are_rounded_to_the_nearest_within_their_range(method):
    x = np.random.default_rng(0).choice(np.array([0, 1, 254, 255], "uint8"), (1, 1, 6, 5))
    wide = x.astype("float64")
    (made,) = evaluate(topi.image.resize2d, [x], None, (9, 13), method=method)
    (exact,) = evaluate(topi.image.resize2d, [wide], None, (9, 13), method=method)
    assert made.dtype == np.uint8
    assert np.abs(made - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-4


def test_nearest_copies_every_bit(check):
    x = np.array([[[2**63 - 1, -(2**63), 2**53 + 1]]])
    options = {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric"}
    (made,) = evaluate(topi.image.resize1d, [x], None, 6, **options)
    np.testing.assert_array_equal(made, np.repeat(x, 2, -1))


def test_cubic_weights_add_up_to_one():
    """Terms that cancel made 1 + 1.4e-6 of float32 ones."""
    x = np.full((1, 1, 3, 4), 0.9408299, "float32")
    (found,) = evaluate(
        topi.image.resize2d, [x], None, (110, 61), method="cubic", bicubic_alpha=-0.75
    )
    np.testing.assert_allclose(found, 0.9408299, rtol=6e-7)


@pytest.mark.parametrize("rounding", ["round", "round_prefer_floor", "round_prefer_ceil", "floor",
                                      "ceil"])  # fmt: skip
@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric", "pytorch_half_pixel",
                                  "tf_half_pixel_for_nn", "align_corners"])  # fmt: skip
def test_an_axis_of_any_extent_is_enlarged_as_one_of_this_extent(mode, rounding):
    """Where the factor is whole, elements are copied; the fixed program computes positions."""

    def function(rows, columns, factors):
        x = te.placeholder((1, 1, rows, columns), name="x")
        size = [extent * factor for extent, factor in zip((rows, columns), factors, strict=True)]
        y = topi.image.resize2d(
            x, None, size, method="nearest_neighbor", coordinate_transformation_mode=mode,
            rounding_method=rounding,
        )  # fmt: skip
        return te.create_prim_func([x, y])

    rows, columns = te.var("h", "int64"), te.var("w", "int64")
    for factors in ((2, 3), (5, 1)):
        anyone = function(rows, columns, factors)
        for shape in ((1, 1), (3, 4), (7, 2)):
            x = np.arange(np.prod(shape), dtype="float32").reshape(1, 1, *shape)
            size = [extent * factor for extent, factor in zip(shape, factors, strict=True)]
            given, wanted = (np.full((1, 1, *size), -1, "float32") for _ in range(2))
            run(anyone, x, given)
            run(function(*shape, factors), x, wanted)
            np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize(
    "mode", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
)
@pytest.mark.parametrize("factors", [(2, 3), (4, 1), (1, 5)])
def test_several_times_as_many_elements_of_any_image(floats, method, mode, factors):
    """Positions by integers, for unknown extents, are those by floats for known ones."""
    h, w = tir.SizeVar("h", "int64"), tir.SizeVar("w", "int64")
    options = {"method": method, "coordinate_transformation_mode": mode, "bicubic_alpha": -0.75}

    def func(height, width):
        x = te.placeholder((2, height, width), name="x")
        grown = [height * factors[0], width * factors[1]]
        data = topi.expand_dims(x, 1)
        return te.create_prim_func([x, topi.image.resize2d(data, None, grown, **options)])

    of_any = func(h, w)
    assert ("floor" in of_any.script()) == (mode == "align_corners")
    for height, width in ((1, 1), (3, 5), (0, 2)):
        x = floats(2, height, width)
        shape = (2, 1, height * factors[0], width * factors[1])
        results = [np.zeros(shape, "float32") for _ in range(2)]
        run(of_any, x, results[0])
        run(func(height, width), x, results[1])
        np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)
