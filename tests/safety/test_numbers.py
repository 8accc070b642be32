"""design.md 3.14 on the interpreter and in native code: wrap, shifts, saturation, NaN, rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import BufferStore

NAN, INF = float("nan"), float("inf")


def kind(dtype):
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)


def compute(make, result, dtypes, *values):
    """The value of make(loads of the values), from both executors."""
    inputs = [decl_buffer((1,), dtype, f"a{k}") for k, dtype in enumerate(dtypes)]
    out = decl_buffer((1,), result, "out")
    value = make(*[BufferLoad(buffer, [0]) for buffer in inputs])
    func = PrimFunc([*inputs, out], BufferStore(out, value, [0]), attrs={"global_symbol": "main"})
    given = [np.array([v]).astype(kind(d)) for v, d in zip(values, dtypes, strict=True)]
    expected = np.zeros(1, kind(result))
    run(func, *given, expected)
    got = weft.nd.array(np.zeros(1, kind(result)))
    weft.build(func, "llvm -fast-math-contract=0")(*[weft.nd.array(a) for a in given], got)
    return expected[0], got.numpy()[0]


@pytest.mark.parametrize(
    ("make", "dtype", "values", "expected"),
    [
        (op.add, "int8", (127, 1), -128),
        (op.add, "uint8", (255, 2), 1),
        (op.multiply, "int32", (2**31 - 1, 2), -2),
        (op.subtract, "uint64", (0, 1), 2**64 - 1),
        (op.add, "int64", (2**63 - 1, 1), -(2**63)),
        (op.floordiv, "int32", (-7, 2), -4),
        (op.floormod, "int32", (-7, 2), 1),
        (op.floormod, "int32", (7, -2), -1),
        (op.truncdiv, "int32", (-7, 2), -3),
        (op.truncmod, "int32", (-7, 2), -1),
        (op.floordiv, "int32", (-(2**31), -1), -(2**31)),
        (op.floormod, "int64", (-(2**63), -1), 0),
        (op.truncdiv, "int8", (-128, -1), -128),
        (op.shift_left, "int32", (1, 32), 0),
        (op.shift_left, "int32", (1, -1), 0),
        (op.shift_right, "int32", (-5, 40), -1),
        (op.shift_right, "uint32", (2**32 - 1, 32), 0),
        (op.shift_right, "int32", (5, 99), 0),
    ],
)
def test_integers(make, dtype, values, expected):
    for got in compute(make, dtype, (dtype, dtype), *values):
        assert int(got) == expected


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        ("float32", "int8", 300.7, 127),
        ("float32", "int8", -300.7, -128),
        ("float32", "uint8", -1.5, 0),
        ("float32", "int32", NAN, 0),
        ("float64", "int64", INF, 2**63 - 1),
        ("float64", "uint64", 1e30, 2**64 - 1),
        ("float32", "int32", -2.9, -2),
        ("float16", "int16", 60000.0, 32767),
        ("int32", "uint8", -1, 255),
        ("int64", "int32", 2**32 + 5, 5),
    ],
)
def test_casts(source, target, value, expected):
    for got in compute(lambda x: op.cast(target, x), target, (source,), value):
        assert int(got) == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("make", [op.minimum, op.maximum])
@pytest.mark.parametrize("values", [(NAN, 1.0), (1.0, NAN)])
def test_min_and_max_propagate_nan(dtype, make, values):
    for got in compute(make, dtype, (dtype, dtype), *values):
        assert got != got


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bit_floats_round_each_operation(dtype):
    big, one = (2048.0, 1.0) if dtype == "float16" else (256.0, 1.0)
    for got in compute(lambda a, b: a + b + b, dtype, (dtype, dtype), big, one):
        assert float(got) == big


def test_comparisons_with_nan_are_false_but_for_unequal():
    for make, expected in ((op.less, False), (op.equal, False), (op.not_equal, True)):
        for got in compute(make, "bool", ("float32", "float32"), NAN, NAN):
            assert bool(got) is expected


def test_a_let_of_data_wraps_too():
    @T.prim_func
    def main(a: T.Buffer((1,), "int32"), c: T.Buffer((3,), "int32")):
        t: T.int32 = a[0]
        s: T.int32 = t + 1
        c[0] = T.Select(t < t + 1, 1, 0)
        c[1] = (t * 2) // 2
        c[2] = T.max(s, s - 1)

    expected = np.zeros(3, "int32")
    run(main, np.array([2**31 - 1], "int32"), expected)
    got = weft.nd.array(np.zeros(3, "int32"))
    weft.build(main)(weft.nd.array(np.array([2**31 - 1], "int32")), got)
    assert expected.tolist() == got.numpy().tolist() == [0, -1, 2**31 - 1]
