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
        x: T.Buffer((4,), "float32"), w: T.Buffer((3,), "float32"), s: T.Buffer((4,), "float32")
    ):
        for i, k in T.grid(4, 3):
            with T.attr("", "pragma_skip_padding", 1):
                s[i] = s[i] + (
                    T.if_then_else(1 <= i + k and i + k < 5, x[i + k - 1], T.float32(0)) * w[k]
                )

    @T.prim_func
    def expected(
        x: T.Buffer((4,), "float32"), w: T.Buffer((3,), "float32"), s: T.Buffer((4,), "float32")
    ):
        for i, k in T.grid(4, 3):
            if 1 <= i + k and i + k < 5:
                s[i] = s[i] + x[i + k - 1] * w[k]

    becomes(SkipPadding(), before, expected)


def test_what_does_not_depend_on_a_loop_is_tested_outside(becomes):
    @T.prim_func
    def before(
        x: T.Buffer((4, 4), "float32"), w: T.Buffer((3, 3), "float32"), s: T.Buffer((4,), "float32")
    ):
        for j, i, k in T.grid(4, 3, 3):
            with T.attr("", "pragma_skip_padding", 1):
                s[j] = s[j] + (
                    T.if_then_else(
                        1 <= i + j and i + j < 5 and 1 <= k, x[i + j - 1, k - 1], T.float32(0)
                    )
                    * w[i, k]
                )

    @T.prim_func
    def expected(
        x: T.Buffer((4, 4), "float32"), w: T.Buffer((3, 3), "float32"), s: T.Buffer((4,), "float32")
    ):
        for j, i in T.grid(4, 3):
            if 1 <= i + j and i + j < 5:
                for k in range(3):
                    if 1 <= k:
                        s[j] = s[j] + x[i + j - 1, k - 1] * w[i, k]

    becomes(SkipPadding(), before, expected)


def sums(outside=0.0, is_second=False):
    """Sums of products with an image that has ``outside`` around it, asked to leave those out."""

    @T.prim_func
    def asked(
        x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"), s: T.Buffer((4,), "float32")
    ):
        for i in range(4):
            with T.attr("", "pragma_skip_padding", 1):
                s[i] = s[i] + T.if_then_else(1 <= i, x[i - 1], T.float32(outside)) * w[i]

    @T.prim_func
    def asked_of_the_second(
        x: T.Buffer((4,), "float32"), w: T.Buffer((4,), "float32"), s: T.Buffer((4,), "float32")
    ):
        for i in range(4):
            with T.attr("", "pragma_skip_padding", 1):
                s[i] = s[i] + w[i] * T.if_then_else(1 <= i, x[i - 1], T.float32(outside))

    return asked_of_the_second if is_second else asked


def without_mark(func):
    """The function of ``sums`` as nobody has asked for anything."""
    return func.with_body(func.body.with_(body=func.body.body.body))


def result_of(func):
    """What the sums are where the padding meets a weight that is infinite."""
    s = np.zeros(4, np.float32)
    run(func, np.ones(4, np.float32), np.array([np.inf, 1, 2, 3], np.float32), s)
    return s


@pytest.mark.parametrize("is_second", [False, True])
def test_what_it_changes_are_weights_that_are_no_numbers(is_second):
    """Zero times infinity is no number; a term that is left out is nothing."""
    before = sums(is_second=is_second)
    after = SkipPadding()(weft.IRModule({"main": before}))["main"]
    np.testing.assert_array_equal(result_of(before), [np.nan, 1, 2, 3])
    np.testing.assert_array_equal(result_of(after), [0, 1, 2, 3])


def test_nobody_asked_for_it(becomes):
    becomes(SkipPadding(), without_mark(sums()), without_mark(sums()))


@pytest.mark.parametrize("outside", [1.0, -1e-3])
def test_other_numbers_outside_count(becomes, outside):
    becomes(SkipPadding(), sums(outside), without_mark(sums(outside)))
