"""topi.testing: the numpy functions compute what weft's operators do."""

import numpy as np
import pytest

from weft import relax
from weft.relax import op
from weft.relax.reference import run
from weft.support.errors import IRValueError
from weft.topi import testing

RNG = np.random.default_rng(0)


def data(*shape):
    return RNG.standard_normal(shape).astype("float32")


def evaluate(function, *arrays):
    params = [relax.Var("x", relax.TensorStructInfo(a.shape, "float32")) for a in arrays]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(function(*params))
    return run(bb.get(), "main", *arrays)


def test_softmax():
    x = data(2, 3, 4)
    for axis in (0, 1, -1):
        close(testing.softmax_python(x, axis), evaluate(lambda v, a=axis: op.nn.softmax(v, a), x))
        log = evaluate(lambda v, a=axis: op.nn.log_softmax(v, a), x)
        close(testing.log_softmax_python(x, axis), log)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_batch_matmul():
    x, y = data(2, 3, 4), data(1, 5, 4)
    close(testing.batch_matmul(x, y), np.einsum("bmk,ank->bmn", x, y))
    swapped = testing.batch_matmul(x.swapaxes(1, 2), y.swapaxes(1, 2), None, True, False)
    close(swapped, testing.batch_matmul(x, y))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([1, 0], [3, 4], [1, 2]), np.s_[1:3, 0:4:2]),
        (([1], [3], None), np.s_[1:3]),
        (([-1], [0], -1), np.s_[-1:0:-1]),
        (([1, 2], [2, -1], None, "size"), np.s_[1:3, 2:]),
        (([2], [4], None, "end", [1]), np.s_[:, 2:4]),
    ],
)
def test_strided_slice(arguments, expected):
    x = data(5, 6)
    np.testing.assert_array_equal(testing.strided_slice_python(x, *arguments), x[expected])
    with pytest.raises(IRValueError, match="expected end or size, got 'begin'"):
        testing.strided_slice_python(x, [0], [1], None, "begin")


@pytest.mark.parametrize("causal", ["none", "TopLeft", "BottomRight"])
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_attention(causal, heads):
    q, k, v, bias = data(2, 5, 4, 3), data(2, 7, heads, 3), data(2, 7, heads, 2), data(2, 4, 5, 7)
    mask = None if causal == "none" else causal
    wanted = evaluate(
        lambda *args: op.nn.attention(*args, scale=0.25, causal_mask=mask), q, k, v, bias
    )
    close(testing.attention_python(q, k, v, bias, 0.25, causal), wanted)
    default = evaluate(lambda *args: op.nn.attention(*args, causal_mask=mask), q, k, v)
    close(testing.attention_python(q, k, v, None, "none", causal), default)


def test_attention_with_a_window_and_another_layout():
    q, k, v = data(2, 6, 2, 3), data(2, 6, 2, 3), data(2, 6, 2, 3)
    wanted = evaluate(
        lambda *args: op.nn.attention(*args, causal_mask="TopLeft", window_size=2), q, k, v
    )
    found = testing.attention_python(
        *[x.transpose(1, 0, 2, 3) for x in (q, k, v)], None, "none", "TopLeft", 2, "SBNH"
    )
    close(found.transpose(1, 0, 2, 3), wanted)


def test_attention_errors():
    x = data(1, 1, 1, 1)
    with pytest.raises(IRValueError, match="expected a layout of BSNH, got 'BSN'"):
        testing.attention_python(x, x, x, None, 1.0, layout="BSN")
    with pytest.raises(IRValueError, match="expected none, TopLeft or BottomRight, got 'left'"):
        testing.attention_python(x, x, x, None, 1.0, "left")
