"""Pixels around an image: loads from a table of the constant, without a jump."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import from_source
from weft.script import tir as T
from weft.tir import interp

SOURCE = """
@T.prim_func
def f(x: T.Buffer((3, {width}, 8), "{dtype}"), y: T.Buffer((5, {width}, 8), "{dtype}")):
    for i, j in T.grid(5, {width}):
        y[i, j, 0:8] = T.if_then_else(
            {condition}, x[i - 1, {column}, 0:8], T.Broadcast(T.{dtype}({constant}), 8)
        )
"""

CASES = {
    "zeros above and below": ("float32", "0 < i and i < 4", "j", "0", 6),
    "the least number": ("float32", "0 < i and i < 4", "j", "'-inf'", 6),
    "a pixel to the left": ("float64", "0 < i and i < 4 and 0 < j", "j - 1", "2.5", 6),
    "a pixel to the right": ("int32", "0 < i and i < 4 and j < 5", "j + 1", "-7", 6),
    "bytes": ("uint8", "0 < i and i < 4 and j < 5", "j + 1", "200", 6),
    "16 bits": ("float16", "0 < i and i < 4 and j < 5", "j + 1", "0.5", 6),
    "farther than the table": ("float32", "0 < i and i < 4 and j < 9", "j + 191", "1", 200),
    "farther before": ("float32", "0 < i and i < 4 and 190 < j", "j - 191", "1", 200),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    dtype, condition, column, constant, width = CASES[name]
    func = from_source(SOURCE.format(
        dtype=dtype, condition=condition, column=column, constant=constant, width=width,
    ))  # fmt: skip
    built = weft.build(func)
    assert "then" not in built.get_source()
    x = np.random.default_rng(0).integers(1, 100, (3, width, 8)).astype(dtype)
    expected, found = np.zeros((5, width, 8), dtype), np.ones((5, width, 8), dtype)
    interp.run(func, x, expected)
    built["f"](x, found)
    np.testing.assert_array_equal(found, expected)


def test_what_may_not_be_computed_is_not():
    """Where the condition does not hold, the place itself would be read out of bounds."""
    func = from_source("""
@T.prim_func
def f(p: T.Buffer((4,), "int32"), x: T.Buffer((3, 8), "float32"), y: T.Buffer((9, 8), "float32")):
    for i in range(9):
        y[i, 0:8] = T.if_then_else(i < 4, x[p[i], 0:8], T.Broadcast(T.float32(1), 8))
""")
    x, found = np.arange(24, dtype="float32").reshape(3, 8), np.zeros((9, 8), "float32")
    places = np.array([2, 0, 1, 2], "int32")
    weft.build(func)["f"](places, x, found)
    np.testing.assert_array_equal(found, [*x[places], *np.ones((5, 8), "float32")])


def test_one_number_is_no_run():
    @T.prim_func
    def f(x: T.Buffer((), "float32"), n: T.int32, y: T.Buffer((1,), "float32")):
        y[0] = T.if_then_else(n > 0, x[()], T.float32(3))

    for n, expected in ((0, 3), (1, 5)):
        result = np.zeros(1, "float32")
        weft.build(f)(np.full((), 5, "float32"), n, result)
        assert result[0] == expected
