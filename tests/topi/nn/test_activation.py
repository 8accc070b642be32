import numpy as np
import pytest

from weft import te, topi

torch = pytest.importorskip("torch")
F = torch.nn.functional
tensor = torch.from_numpy


@pytest.mark.parametrize(
    "name",
    ["relu", "relu6", "gelu", "silu", "selu", "elu", "softplus", "hardsigmoid", "hardswish",
     "hardtanh", "mish", "softsign"],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(2, 5), (), (0, 2)])
def test_activation_when_torch_has_it(check, floats, name, shape):
    x = floats(*shape) * 4
    expected = getattr(F, name)(torch.tensor(x)).numpy()
    check(getattr(topi.nn, name), [x], expected)


def test_gelu_tanh(check, floats):
    x = floats(9) * 3
    check(topi.nn.gelu_tanh, [x], F.gelu(tensor(x), approximate="tanh").numpy())


def test_leaky_relu_and_prelu(check, floats):
    x, slope = floats(2, 3, 4), floats(3)
    check(topi.nn.leaky_relu, [x], F.leaky_relu(tensor(x), 0.1).numpy(), 0.1)
    check(topi.nn.prelu, [x, slope], F.prelu(tensor(x), tensor(slope)).numpy())


def test_bias_add(check, floats):
    x, b = floats(2, 3, 4), floats(3)
    check(topi.nn.bias_add, [x, b], x + b[:, None])
    with pytest.raises(ValueError, match=r"expected a bias of shape \(4,\), got \(3,?\)"):
        topi.nn.bias_add(te.placeholder((2, 3, 4)), te.placeholder((3,)), -1)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(check, floats, axis):
    x = floats(2, 3, 4) * 5
    check(topi.nn.softmax, [x], torch.softmax(tensor(x), axis).numpy(), axis)
    check(topi.nn.log_softmax, [x], torch.log_softmax(tensor(x), axis).numpy(), axis)


def test_softmax_when_size_is_one_or_zero(check, floats):
    x = floats(3, 1)
    check(topi.nn.softmax, [x], torch.softmax(tensor(x), -1).numpy())
    y = floats(0, 4)
    check(topi.nn.softmax, [y], y)


def test_softmax_when_axis_is_wrong():
    with pytest.raises(IndexError, match="softmax: axis 2 is out of range"):
        topi.nn.softmax(te.placeholder((2, 3)), 2)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 1, 1, 1), (0, 3, 2, 2), (1, 0, 2, 2)])
def test_scale_shift(check, floats, shape):
    channels = shape[1]
    x, scale, shift = floats(*shape), floats(channels), floats(channels)
    expected = x * scale[:, None, None] + shift[:, None, None]
    check(topi.nn.scale_shift_nchw, [x, scale, shift], expected)
    moved = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    check(topi.nn.scale_shift_nhwc, [moved, scale, shift], expected.transpose(0, 2, 3, 1))


def test_scale_shift_when_blocked(check, floats):
    x, scale, shift = floats(2, 3, 4, 5, 2), floats(3, 2), floats(3, 2)
    expected = x * scale[:, None, None] + shift[:, None, None]
    check(topi.nn.scale_shift_nchwc, [x, scale, shift], expected)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (2, 3, 4), (0, 4), (2, 0)])
@pytest.mark.parametrize("axis", [-1, 0])
def test_fast_softmax(check, floats, shape, axis):
    if not shape:
        with pytest.raises(IndexError, match="softmax: axis"):
            topi.nn.fast_softmax(te.placeholder(()), axis)
        return
    x = floats(*shape) * 6
    check(topi.nn.fast_softmax, [x], torch.softmax(tensor(x), axis).numpy(), axis)


def test_fast_softmax_when_far_apart_or_symbolic(check, check_symbolic, floats):
    x = np.array([[1e4, -1e4, 0], [-np.inf, 1, 2]], "float32")
    check(topi.nn.fast_softmax, [x], torch.softmax(tensor(x), -1).numpy())
    for rows in (0, 1, 3):
        y = floats(rows, 4)
        check_symbolic(topi.nn.fast_softmax, [y], torch.softmax(tensor(y), -1).numpy())
