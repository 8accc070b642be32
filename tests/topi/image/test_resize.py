import pytest

from weft import te, topi

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
