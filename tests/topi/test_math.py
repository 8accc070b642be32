import numpy as np
import pytest

from weft import te, topi

SHAPES = [(2, 3), (), (1,), (0, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "name", ["exp", "tanh", "sin", "cos", "floor", "ceil", "abs", "trunc", "sign", "negative"]
)
def test_unary_when_float(check, floats, name, shape):
    x = floats(*shape) * 3
    check(getattr(topi, name), [x], getattr(np, name)(x))


@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10"])
def test_unary_when_positive(check, floats, name):
    x = np.abs(floats(5)) + 0.1
    check(getattr(topi, name), [x], getattr(np, name)(x))


def test_sigmoid_rsqrt_square(check, floats):
    x = np.abs(floats(4)) + 0.5
    check(topi.sigmoid, [x], 1 / (1 + np.exp(-x)))
    check(topi.rsqrt, [x], 1 / np.sqrt(x))
    check(topi.square, [x], x * x)


def test_round_when_half_goes_to_even(check):
    x = np.array([0.5, 1.5, -0.5, 2.4], "float32")
    check(topi.round, [x], np.round(x))


def test_isnan_when_special(check):
    x = np.array([np.nan, np.inf, -np.inf, 1.0], "float32")
    check(topi.isnan, [x], np.isnan(x))
    check(topi.isinf, [x], np.isinf(x))
    check(topi.isfinite, [x], np.isfinite(x))


def test_clip_when_a_side_is_open(check, floats):
    x = floats(6)
    check(topi.clip, [x], np.clip(x, -0.5, 0.5), -0.5, 0.5)
    check(topi.clip, [x], np.clip(x, None, 0.1), None, 0.1)


def test_cast_when_float_becomes_int(check, floats):
    x = floats(7) * 9
    check(topi.cast, [x], x.astype("int32"), "int32")
    check(lambda a: a.astype("float64"), [x], x)


def test_elementwise_block_when_printed():
    x = te.placeholder((2, te.var("n")), name="x")
    func = te.create_prim_func([x, topi.exp(x)])
    assert "with T.block(\"compute\")" in func.script()
    assert "v_i0, v_i1" in func.script()
