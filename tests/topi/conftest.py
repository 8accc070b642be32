"""``check``: an operator's PrimFunc, run by the reference interpreter, against expected arrays."""

import numpy as np
import pytest

from weft import te
from weft.tir.interp import run


def evaluate(function, arrays, *args, index_dtype=None, **kwargs):
    """The operator's outputs on ``arrays``, and its PrimFunc."""
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"A{i}") for i, a in enumerate(arrays)]
    made = function(*tensors, *args, **kwargs)
    outputs = list(made) if isinstance(made, list | tuple) else [made]
    func = te.create_prim_func([*tensors, *outputs], index_dtype)
    results = [np.zeros([int(e) for e in o.shape], str(o.dtype)) for o in outputs]
    run(func, *[np.array(a, order="C") for a in arrays], *results)
    return results


@pytest.fixture
def check():
    def compare(function, arrays, expected, *args, tol=1e-5, **kwargs):
        wanted = expected if isinstance(expected, list | tuple) else [expected]
        for index_dtype in (None, "int64"):
            results = evaluate(function, arrays, *args, index_dtype=index_dtype, **kwargs)
            assert len(results) == len(wanted)
            for result, reference in zip(results, wanted, strict=True):
                reference = np.asarray(reference)
                assert result.shape == reference.shape
                np.testing.assert_allclose(
                    result.astype("float64"), reference.astype("float64"), rtol=tol, atol=tol
                )

    return compare


@pytest.fixture
def floats():
    generator = np.random.default_rng(7)

    def make(*shape):
        return (generator.random(shape) * 2 - 1).astype("float32")

    return make


@pytest.fixture
def ints():
    generator = np.random.default_rng(8)

    def make(*shape, low=0, high=5):
        return generator.integers(low, high, shape).astype("int32")

    return make


@pytest.fixture
def check_symbolic():
    """As ``check``, with the first dimension of every array the same symbol n."""

    def compare(function, arrays, expected, *args, tol=1e-5, **kwargs):
        n = te.var("n", "int64")
        tensors = [
            te.placeholder((n, *a.shape[1:]), str(a.dtype), name=f"A{i}")
            for i, a in enumerate(arrays)
        ]
        made = function(*tensors, *args, **kwargs)
        found = np.zeros(expected.shape, str(made.dtype))
        run(te.create_prim_func([*tensors, made]), *[np.array(a, order="C") for a in arrays], found)
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)

    return compare
