"""x * y + z rounded once: against C's fma and against fractions."""

from __future__ import annotations

import ctypes
import ctypes.util
from fractions import Fraction

import numpy as np
import pytest

from weft.tir.interp.fused import fused

KINDS = [np.float32, np.float64]


def c_fma(kind):
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function, number = (
        (library.fmaf, ctypes.c_float) if kind is np.float32 else (library.fma, ctypes.c_double)
    )
    function.restype, function.argtypes = number, [number] * 3
    return function


def bits_of(x):
    return np.where(np.isnan(x), 0, np.asarray(x).view(f"u{x.dtype.itemsize}"))


def agrees(kind, x, y, z):
    function = c_fma(kind)
    expected = np.array([function(*map(float, row)) for row in zip(x, y, z, strict=True)], kind)
    got = fused(x, y, z)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(bits_of(got), bits_of(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_random_bits(kind):
    size = np.dtype(kind).itemsize
    bits = np.random.default_rng(0).integers(0, 1 << 8 * size, (3, 4096), dtype=f"u{size}")
    agrees(kind, *bits.view(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_that_cancel(kind):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 4096)).astype(kind)
    near = kind(1) + rng.integers(-3, 4, 4096).astype(kind) * np.finfo(kind).eps
    agrees(kind, x, y, -(x * y) * near)


@pytest.mark.parametrize("kind", KINDS)
def test_ends_and_numbers_that_are_none(kind):
    info = np.finfo(kind)
    values = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, info.tiny, info.tiny / 4, info.max,
              -info.max, 1 + info.eps]  # fmt: skip
    agrees(kind, *[grid.ravel() for grid in np.meshgrid(*[np.array(values, kind)] * 3)])


def test_float16_is_rounded_once():
    x = np.random.default_rng(2).integers(0, 1 << 16, (3, 4096), dtype=np.uint16).view(np.float16)
    x = x[:, np.isfinite(x).all(axis=0)]
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in x.T]
    got = fused(*x)
    is_finite = np.isfinite(got)
    limits = np.spacing(np.abs(got[is_finite])).astype(np.float64) / 2
    exact = [value for value, keep in zip(exact, is_finite, strict=True) if keep]
    pairs = zip(got[is_finite].astype(np.float64), exact, limits, strict=True)
    assert all(abs(Fraction(number) - value) <= limit for number, value, limit in pairs)


def test_a_scalar_is_a_scalar():
    assert isinstance(fused(np.float32(2), np.float32(3), np.float32(4)), np.float32)
    assert isinstance(fused(*[np.float64(2)] * 3), np.float64)
