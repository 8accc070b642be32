import numpy as np
import pytest

from weft import te, topi

torch = pytest.importorskip("torch")
F = torch.nn.functional
tensor = torch.from_numpy

OPTIONS = [(1, 0, 1), (2, 1, 1), ((1, 2), (1, 2), 1), (1, 2, 2)]


@pytest.mark.parametrize(("stride", "padding", "dilation"), OPTIONS)
def test_conv2d_when_nchw(check, floats, stride, padding, dilation):
    x, w = floats(1, 2, 6, 7), floats(3, 2, 3, 3)
    expected = F.conv2d(tensor(x), tensor(w), None, stride, padding, dilation).numpy()
    check(topi.nn.conv2d, [x, w], expected, stride, padding, dilation, tol=1e-4)


def test_conv2d_when_padding_has_four_sides(check, floats):
    x, w = floats(1, 2, 5, 5), floats(3, 2, 3, 3)
    expected = F.conv2d(F.pad(tensor(x), (2, 0, 1, 3)), tensor(w)).numpy()
    check(topi.nn.conv2d, [x, w], expected, 1, (1, 2, 3, 0), 1, tol=1e-4)


def test_conv2d_when_nhwc(check, floats):
    x, w = floats(1, 2, 5, 5), floats(3, 2, 3, 3)
    expected = F.conv2d(tensor(x), tensor(w), padding=1).permute(0, 2, 3, 1).numpy()
    arrays = [x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)]
    check(topi.nn.conv2d, arrays, expected, 1, 1, 1, "NHWC", tol=1e-4)
    check(topi.nn.conv2d_nhwc, arrays, expected, 1, "SAME", 1, tol=1e-4)


@pytest.mark.parametrize("groups", [2, 4])
def test_conv2d_when_grouped(check, floats, groups):
    x, w = floats(1, 4, 5, 5), floats(8, 4 // groups, 3, 3)
    expected = F.conv2d(tensor(x), tensor(w), None, 1, 1, 1, groups).numpy()
    check(topi.nn.group_conv2d_nchw, [x, w], expected, 1, 1, 1, groups, tol=1e-4)


def test_depthwise_conv2d(check, floats):
    x, w = floats(1, 3, 5, 5), floats(3, 2, 3, 3)
    expected = F.conv2d(tensor(x), tensor(w.reshape(6, 1, 3, 3)), None, 2, 1, 1, 3).numpy()
    check(topi.nn.depthwise_conv2d_nchw, [x, w], expected, 2, 1, 1, tol=1e-4)


def test_conv_of_one_and_three_axes(check, floats):
    x, w = floats(2, 3, 8), floats(4, 3, 3)
    expected = F.conv1d(tensor(x), tensor(w), None, 2, 1).numpy()
    check(topi.nn.conv1d, [x, w], expected, 2, 1, tol=1e-4)
    x, w = floats(1, 2, 3, 4, 3), floats(2, 2, 2, 2, 2)
    check(topi.nn.conv3d, [x, w], F.conv3d(tensor(x), tensor(w)).numpy(), 1, 0, 1, tol=1e-4)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv2d_transpose(check, floats, groups):
    x, w = floats(1, 4, 4, 5), floats(4, 3, 3, 3)
    expected = F.conv_transpose2d(tensor(x), tensor(w), None, 2, 1, 1, groups).numpy()
    check(
        topi.nn.group_conv2d_transpose_nchw, [x, w], expected, 2, 1, "float32", 1, groups, tol=1e-4
    )


def test_conv1d_transpose(check, floats):
    x, w = floats(1, 2, 5), floats(2, 3, 4)
    expected = F.conv_transpose1d(tensor(x), tensor(w), None, 3).numpy()
    check(topi.nn.conv1d_transpose_ncw, [x, w], expected, 3, 0, "float32", 0, tol=1e-4)


def test_conv2d_when_printed():
    x, w = te.placeholder((1, 1, 28, 28), name="x"), te.placeholder((32, 1, 3, 3), name="w")
    text = te.create_prim_func([x, w, topi.nn.conv2d(x, w, 1, 0, 1)]).script()
    assert "for nn, ff, yy, xx, rc, ry, rx in T.grid(1, 32, 26, 26, 1, 3, 3)" in text
    assert 'T.block("conv2d_nchw")' in text
    assert "pad_temp" in text


def test_conv2d_when_shapes_do_not_fit():
    x = te.placeholder((1, 3, 5, 5))
    with pytest.raises(ValueError, match="has 3 channels"):
        topi.nn.conv2d(x, te.placeholder((4, 2, 3, 3)), 1, 0, 1)
    with pytest.raises(ValueError, match="window of 7 exceeds the padded extent 5"):
        topi.nn.conv2d(x, te.placeholder((4, 3, 7, 7)), 1, 0, 1)
    x4, w3 = te.placeholder((1, 4, 5, 5)), te.placeholder((3, 2, 3, 3))
    with pytest.raises(ValueError, match="3 filters do not divide into 2 groups"):
        topi.nn.group_conv2d_nchw(x4, w3, 1, 0, 1, 2)
    with pytest.raises(ValueError, match="expected a layout of the letters NCHW"):
        topi.nn.conv2d(x, te.placeholder((4, 3, 3, 3)), 1, 0, 1, "NCXY", "OIHW")


def spread(x, strides, value=0.0):
    """What ``dilate`` makes, by numpy."""
    shape = [max((n - 1) * s + 1, 0) for n, s in zip(x.shape, strides, strict=True)]
    made = np.full(shape, value, x.dtype)
    made[tuple([slice(None, None, s) for s in strides])] = x
    return made


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((), ()),
        ((1,), (3,)),
        ((4,), (2,)),
        ((0, 3), (2, 2)),
        ((2, 0), (1, 3)),
        ((2, 3, 4), (1, 3, 2)),
    ],
)
@pytest.mark.parametrize("value", [0.0, -1.5])
def test_dilate(check, floats, shape, strides, value):
    x = floats(*shape)
    check(topi.nn.dilate, [x], spread(x, strides, value), list(strides), value)


def test_dilate_when_symbolic(check_symbolic, floats):
    for rows in (0, 1, 3):
        x = floats(rows, 3)
        check_symbolic(topi.nn.dilate, [x], spread(x, (1, 2)), [1, 2])
    x = floats(3, 2)
    check_symbolic(topi.nn.dilate, [x], spread(x, (2, 2)), [2, 2])


def test_dilate_when_strides_are_wrong():
    x = te.placeholder((2, 3))
    with pytest.raises(ValueError, match=r"dilate: strides: expected 1 or more, got \(1, 0\)"):
        topi.nn.dilate(x, [1, 0])
    with pytest.raises(ValueError, match="dilate: strides: expected 1 or 2 values, got 3"):
        topi.nn.dilate(x, [1, 1, 1])
