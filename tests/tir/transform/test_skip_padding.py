"""SkipPadding: before and after; what is no product with a padding's zero stays."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.transform import SkipPadding


def test_terms_of_padding_are_left_out(becomes):
    @T.prim_func
    def before(
        x: T.Buffer((4,), "float32"), w: T.Buffer((3,), "float32"),
        s: T.Buffer((4,), "float32"),
    ):  # fmt: skip
        for i, k in T.grid(4, 3):
            with T.attr("", "pragma_skip_padding", 1):
                s[i] = s[i] + (
                    T.if_then_else(1 <= i + k and i + k < 5, x[i + k - 1], T.float32(0)) * w[k]
                )

    @T.prim_func
    def expected(
        x: T.Buffer((4,), "float32"), w: T.Buffer((3,), "float32"),
        s: T.Buffer((4,), "float32"),
    ):  # fmt: skip
        for i, k in T.grid(4, 3):
            if 1 <= i + k and i + k < 5:
                s[i] = s[i] + x[i + k - 1] * w[k]

    becomes(SkipPadding(), before, expected)


def test_the_padding_may_be_the_second_factor(becomes):
    @T.prim_func
    def before(
        x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"),
        s: T.Buffer((4,), "float32"),
    ):  # fmt: skip
        for i in range(4):
            with T.attr("", "pragma_skip_padding", 1):
                s[i] = s[i] + w[i] * T.if_then_else(1 <= i, x[i - 1], T.float32(0))

    @T.prim_func
    def expected(
        x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"),
        s: T.Buffer((4,), "float32"),
    ):  # fmt: skip
        for i in range(4):
            if 1 <= i:
                s[i] = s[i] + w[i] * x[i - 1]

    becomes(SkipPadding(), before, expected)


@T.prim_func
def not_asked_for(
    x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"),
    s: T.Buffer((4,), "float32"),
):  # fmt: skip
    for i in range(4):
        s[i] = s[i] + T.if_then_else(1 <= i, x[i - 1], T.float32(0)) * w[i]


def test_nobody_asked_for_it(becomes):
    becomes(SkipPadding(), not_asked_for, not_asked_for)


@pytest.mark.parametrize("outside", [1.0, -1e-3])
def test_other_numbers_outside_count(becomes, outside):
    @T.prim_func
    def before(
        x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"),
        s: T.Buffer((4,), "float32"),
    ):  # fmt: skip
        for i in range(4):
            with T.attr("", "pragma_skip_padding", 1):
                s[i] = s[i] + T.if_then_else(1 <= i, x[i - 1], T.float32(outside)) * w[i]

    @T.prim_func
    def expected(
        x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"),
        s: T.Buffer((4,), "float32"),
    ):  # fmt: skip
        for i in range(4):
            s[i] = s[i] + T.if_then_else(1 <= i, x[i - 1], T.float32(outside)) * w[i]

    becomes(SkipPadding(), before, expected)


@T.prim_func
def asked_for(
    x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"),
    s: T.Buffer((4,), "float32"),
):  # fmt: skip
    for i in range(4):
        with T.attr("", "pragma_skip_padding", 1):
            s[i] = s[i] + T.if_then_else(1 <= i, x[i - 1], T.float32(0)) * w[i]


def test_what_it_changes_are_weights_that_are_no_numbers():
    """Zero times infinity is no number; a term that is left out is nothing."""
    x, w = np.ones(4, np.float32), np.array([np.inf, 1, 2, 3], np.float32)
    found = []
    module = weft.IRModule({"main": asked_for})
    for func in (asked_for, SkipPadding()(module)["main"]):
        s = np.zeros(4, np.float32)
        run(func, x, w, s)
        found.append(s)
    np.testing.assert_array_equal(found[0], [np.nan, 1, 2, 3])
    np.testing.assert_array_equal(found[1], [0, 1, 2, 3])
