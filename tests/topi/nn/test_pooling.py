import pytest

from weft import te, topi

pytestmark = pytest.mark.sampled(3)

torch = pytest.importorskip("torch")
F = torch.nn.functional
tensor = torch.from_numpy


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "ceil"),
    [(1, 0, 1, False), (2, 1, 1, False), (2, 1, 1, True), (1, 1, 2, False)],
)
def test_max_pool2d(check, floats, stride, padding, dilation, ceil):
    x = floats(1, 2, 7, 7)
    expected = F.max_pool2d(tensor(x), 3, stride, padding, dilation, ceil).numpy()
    check(topi.nn.pool2d, [x], expected, 3, stride, dilation, padding, "max", ceil)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(
    ("stride", "padding", "ceil"), [(1, 0, False), (2, 1, False), (2, 1, True), (3, 1, True)]
)
def test_avg_pool2d(check, floats, stride, padding, ceil, include):
    x = floats(1, 2, 7, 7)
    expected = F.avg_pool2d(tensor(x), 3, stride, padding, ceil, include).numpy()
    check(
        topi.nn.pool2d, [x], expected, 3, stride, 1, padding, "avg", ceil, "NCHW", include, tol=1e-4
    )


def test_pool_when_layout_or_rank_differs(check, floats):
    x = floats(1, 2, 6, 6)
    expected = F.max_pool2d(tensor(x), 2).permute(0, 2, 3, 1).numpy()
    check(topi.nn.pool2d, [x.transpose(0, 2, 3, 1)], expected, 2, 2, 1, 0, "max", False, "NHWC")
    y = floats(2, 3, 8)
    check(topi.nn.pool1d, [y], F.avg_pool1d(tensor(y), 2, 2).numpy(), 2, 2, 1, 0, "avg")
    z = floats(1, 2, 4, 4, 4)
    check(topi.nn.pool3d, [z], F.max_pool3d(tensor(z), 2).numpy(), 2, 2, 1, 0, "max")


@pytest.mark.parametrize("size", [1, 7, (3, 2), 5, 14])
def test_adaptive_pool(check, floats, size):
    x = floats(1, 2, 7, 7)
    average = F.adaptive_avg_pool2d(tensor(x), size).numpy()
    largest = F.adaptive_max_pool2d(tensor(x), size).numpy()
    check(topi.nn.adaptive_pool, [x], average, size, "avg", tol=1e-4)
    check(topi.nn.adaptive_pool, [x], largest, size, "max")


def test_adaptive_pool1d_and_global_pool(check, floats):
    x = floats(2, 3, 9)
    expected = F.adaptive_avg_pool1d(tensor(x), 4).numpy()
    check(topi.nn.adaptive_pool1d, [x], expected, 4, "avg", tol=1e-4)
    y = floats(1, 2, 3, 5)
    check(topi.nn.global_pool, [y], y.mean((2, 3), keepdims=True), "avg", tol=1e-4)
    check(topi.nn.global_pool, [y], y.max((2, 3), keepdims=True), "max")


def test_pools_of_channels_in_blocks(check, floats):
    x = floats(2, 3, 9, 10, 4)
    plain = tensor(x).permute(0, 1, 4, 2, 3).reshape(2, 12, 9, 10)

    def blocked(y):
        return y.reshape(2, 3, 4, *y.shape[2:]).permute(0, 1, 3, 4, 2).contiguous().numpy()

    mean, largest = F.adaptive_avg_pool2d(plain, (3, 4)), F.max_pool2d(plain, 3, 2, 1)
    check(topi.nn.adaptive_pool, [x], blocked(mean), (3, 4), "avg", "NCHW4c", tol=1e-4)
    check(topi.nn.pool2d, [x], blocked(largest), 3, 2, 1, 1, "max", False, "NCHW4c")
    with pytest.raises(ValueError, match="a layout of 5 letters with HW, got 'NCHW4w'"):
        topi.nn.global_pool(te.placeholder((1, 8, 8, 2, 4)), "avg", "NCHW4w")


def test_pool_when_arguments_are_wrong():
    x = te.placeholder((1, 2, 3, 3))
    with pytest.raises(ValueError, match="axis 2: the window of 5 exceeds the padded extent 3"):
        topi.nn.pool2d(x, 5, 1, 1, 0, "max")
    with pytest.raises(ValueError, match="expected the type 'max' or 'avg', got 'min'"):
        topi.nn.pool2d(x, 2, 1, 1, 0, "min")
    with pytest.raises(ValueError, match="expected a layout of 4 letters"):
        topi.nn.pool2d(x, 2, 1, 1, 0, "max", layout="NCW")


@pytest.mark.parametrize("size", [1, 2, (3, 1, 2), (5, 6, 7), 9])
@pytest.mark.parametrize("shape", [(1, 2, 5, 6, 7), (2, 1, 1, 1, 1), (0, 2, 3, 3, 3)])
def test_adaptive_pool3d(check, floats, shape, size):
    x = floats(*shape)
    average = F.adaptive_avg_pool3d(tensor(x), size).numpy()
    check(topi.nn.adaptive_pool3d, [x], average, size, "avg", tol=1e-4)
    if shape[0]:
        largest = F.adaptive_max_pool3d(tensor(x), size).numpy()
        check(topi.nn.adaptive_pool3d, [x], largest, size, "max")


def test_adaptive_pool3d_when_the_layout_or_the_batch_differs(check, check_symbolic, floats):
    x = floats(1, 4, 5, 6, 2)
    expected = F.adaptive_avg_pool3d(tensor(x).permute(0, 4, 1, 2, 3), (2, 3, 4))
    expected = expected.permute(0, 2, 3, 4, 1).numpy()
    check(topi.nn.adaptive_pool3d, [x], expected, (2, 3, 4), "avg", "NDHWC", tol=1e-4)
    for batch in (0, 1, 2):
        y = floats(batch, 1, 3, 4, 2)
        expected = F.adaptive_avg_pool3d(tensor(y), 2).numpy()
        check_symbolic(topi.nn.adaptive_pool3d, [y], expected, 2, "avg", tol=1e-4)


def test_adaptive_pool3d_when_arguments_are_wrong():
    with pytest.raises(ValueError, match="expected the type 'max' or 'avg', got 'sum'"):
        topi.nn.adaptive_pool3d(te.placeholder((1, 1, 2, 2, 2)), 2, "sum")
    with pytest.raises(ValueError, match="adaptive_pool: expected 1 or 3 values, got 2"):
        topi.nn.adaptive_pool3d(te.placeholder((1, 1, 2, 2, 2)), (2, 2), "avg")
