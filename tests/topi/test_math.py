import math

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
    assert 'with T.block("compute")' in func.script()
    assert "v_i0, v_i1" in func.script()


@pytest.mark.parametrize("shape", [*SHAPES, (1, 1), (2, 0, 3)])
@pytest.mark.parametrize("name", ["fast_exp", "fast_tanh"])
def test_fast_forms_against_numpy(check, floats, name, shape):
    x = floats(*shape) * 5
    check(getattr(topi, name), [x], getattr(np, name.removeprefix("fast_"))(x))


@pytest.mark.parametrize("shape", SHAPES)
def test_fast_erf(check, floats, shape):
    x = floats(*shape) * 4
    check(topi.fast_erf, [x], np.vectorize(math.erf, otypes=["float64"])(x))


@pytest.mark.parametrize("name", ["fast_exp", "fast_tanh", "fast_erf"])
def test_fast_forms_when_special_or_symbolic(check, check_symbolic, floats, name):
    with np.errstate(over="ignore"):
        reference = {
            "fast_exp": np.exp,
            "fast_tanh": np.tanh,
            "fast_erf": np.vectorize(math.erf, otypes=["float64"]),
        }[name]
        special = np.array([np.inf, -np.inf, 0.0, -0.0, np.nan, 100.0, -100.0], "float32")
        check(getattr(topi, name), [special], reference(special))
        for rows in (0, 1, 3):
            x = floats(rows, 2)
            check_symbolic(getattr(topi, name), [x], reference(x))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_ceil_log2(check, dtype):
    top = np.iinfo(dtype).max
    near = [2**k + d for k in range(64) for d in (-1, 0, 1)]
    values = sorted({value for value in [*near, 3, 100, top] if 1 <= value <= top})
    expected = [(value - 1).bit_length() for value in values]
    check(topi.ceil_log2, [np.array(values, dtype)], np.array(expected))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0)])
def test_ceil_log2_when_the_shape_is_small(check, shape):
    check(topi.ceil_log2, [np.full(shape, 5, "int32")], np.full(shape, 3))


def test_ceil_log2_of_a_scalar_or_a_float():
    assert topi.ceil_log2(te.var("n")).dtype == "int32"
    with pytest.raises(TypeError, match="ceil_log2: expected an integer, got float32"):
        topi.ceil_log2(te.placeholder((2,)))
