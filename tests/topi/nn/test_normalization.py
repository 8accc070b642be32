import numpy as np
import pytest

import weft
from weft import te, topi

torch = pytest.importorskip("torch")
F = torch.nn.functional
tensor = torch.from_numpy


@pytest.mark.parametrize(("axis", "shape"), [(-1, (4,)), ((1, 2), (3, 4))])
def test_layer_norm(check, floats, axis, shape):
    x, g, b = floats(2, 3, 4), floats(*shape), floats(*shape)
    expected = F.layer_norm(tensor(x), shape, tensor(g), tensor(b)).numpy()
    check(topi.nn.layer_norm, [x, g, b], expected, axis, tol=1e-4)


def test_rms_norm(check, floats):
    x, g = floats(2, 3, 4), floats(4)
    expected = F.rms_norm(tensor(x), (4,), tensor(g), 1e-5).numpy()
    check(topi.nn.rms_norm, [x, g], expected, -1, tol=1e-4)


def test_group_and_instance_norm(check, floats):
    x, g, b = floats(2, 4, 3, 3), floats(4), floats(4)
    group = F.group_norm(tensor(x), 2, tensor(g), tensor(b)).numpy()
    check(topi.nn.group_norm, [x, g, b], group, 2, 1, [2, 3], tol=1e-4)
    instance = F.instance_norm(tensor(x), weight=tensor(g), bias=tensor(b)).numpy()
    check(topi.nn.instance_norm, [x, g, b], instance, 1, [2, 3], tol=1e-4)


def test_batch_norm_when_inferring(check, floats):
    x, g, b, m, v = floats(2, 4, 3, 3), floats(4), floats(4), floats(4), np.abs(floats(4)) + 0.1
    out = F.batch_norm(tensor(x), tensor(m), tensor(v), tensor(g), tensor(b)).numpy()
    check(topi.nn.batch_norm, [x, g, b, m, v], [out, m, v], tol=1e-4)


def test_batch_norm_when_training(check, floats):
    x, g, b, m, v = floats(2, 4, 3, 3), floats(4), floats(4), floats(4), np.abs(floats(4)) + 0.1
    out = F.batch_norm(tensor(x), None, None, tensor(g), tensor(b), training=True).numpy()
    moved = [0.9 * m + 0.1 * x.mean((0, 2, 3)), 0.9 * v + 0.1 * x.var((0, 2, 3))]
    check(topi.nn.batch_norm, [x, g, b, m, v], [out, *moved], training=True, tol=1e-4)


def test_lrn(check, floats):
    x = floats(1, 6, 2, 2)
    expected = F.local_response_norm(tensor(x), 3, 1e-2, 0.75, 2.0).numpy()
    check(topi.nn.lrn, [x], expected, 3, 1, 1e-2, 0.75, 2.0)


def test_lrn_of_an_even_size_reads_one_more_behind(check, floats):
    x = floats(1, 6, 2, 2)
    squares = np.pad(x**2, [(0, 0), (1, 2), (0, 0), (0, 0)])
    total = sum(squares[:, i : i + 6] for i in range(4))
    check(topi.nn.lrn, [x], x / (2 + 0.1 / 4 * total) ** 0.75, 4, 1, 0.1, 0.75, 2.0)
    with pytest.raises(weft.TVMError, match="lrn: expected a positive size, got 0"):
        topi.nn.lrn(te.placeholder((1, 6, 2, 2)), 0)


def test_layer_norm_when_half_sums_in_float32():
    x = te.placeholder((2, 8), "float16", name="x")
    out = topi.nn.layer_norm(x, None, None, -1)
    assert out.dtype == "float16"
    assert 'T.Cast("float32"' in te.create_prim_func([x, out]).script()


def test_errors_name_the_numbers():
    x = te.placeholder((2, 4, 3))
    with pytest.raises(ValueError, match=r"gamma: expected the shape \(3,?\), got \(4,?\)"):
        topi.nn.layer_norm(x, te.placeholder((4,)), None, -1)
    with pytest.raises(ValueError, match="4 channels do not divide into 3 groups"):
        topi.nn.group_norm(x, None, None, 3, 1, [2])
