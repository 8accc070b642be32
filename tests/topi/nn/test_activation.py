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
