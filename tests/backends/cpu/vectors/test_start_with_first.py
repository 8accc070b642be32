"""StartWithFirst: before and after; what is read in between stays."""

from __future__ import annotations

import pytest

from weft.script import tir as T
from weft.tir.transform import StartWithFirst


def test_extremes_start_with_what_comes_first(becomes):
    @T.prim_func
    def before(x: T.Buffer((8,), "float32"), y: T.Buffer((2, 4), "float32")):
        s = T.decl_buffer((2, 4), "float32", scope="local")
        s[0, 0:4] = T.Broadcast(T.float32("-inf"), 4)
        s[1, 0] = T.float32("inf")
        s[0, 0:4] = T.max(s[0, 0:4], x[0:4])
        s[1, 0] = T.min(x[1], s[1, 0])
        s[0, 0:4] = T.max(s[0, 0:4], x[4:8])
        y[0, 0:4] = s[0, 0:4]
        y[1, 0] = s[1, 0]

    @T.prim_func
    def expected(x: T.Buffer((8,), "float32"), y: T.Buffer((2, 4), "float32")):
        s = T.decl_buffer((2, 4), "float32", scope="local")
        s[0, 0:4] = x[0:4]
        s[1, 0] = x[1]
        s[0, 0:4] = T.max(s[0, 0:4], x[4:8])
        y[0, 0:4] = s[0, 0:4]
        y[1, 0] = s[1, 0]

    becomes(StartWithFirst(), before, expected)


@T.prim_func
def of_the_other_infinity(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
    s = T.decl_buffer((2,), "float32", scope="local")
    s[0] = T.float32("inf")
    s[0] = T.max(s[0], x[0])
    y[0] = s[0]


@T.prim_func
def read_before(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
    s = T.decl_buffer((2,), "float32", scope="local")
    s[0] = T.float32("-inf")
    x[1] = s[0]
    s[0] = T.max(s[0], x[0])
    y[0] = s[0]


@T.prim_func
def read_somewhere(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
    s = T.decl_buffer((2,), "float32", scope="local")
    s[1] = x[1]
    for i in range(2):
        s[0] = T.float32("-inf")
        x[1] = s[i]
        s[0] = T.max(s[0], x[0])
    y[0] = s[0]


@T.prim_func
def of_itself(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
    s = T.decl_buffer((2,), "float32", scope="local")
    s[0] = T.float32("-inf")
    s[0] = T.max(s[0], s[0] + x[0])
    y[0] = s[0]


@T.prim_func
def of_an_argument(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
    y[0] = T.float32("-inf")
    y[0] = T.max(y[0], x[0])


@T.prim_func
def in_a_loop(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
    s = T.decl_buffer((2,), "float32", scope="local")
    s[0] = T.float32("-inf")
    for i in range(2):
        s[0] = T.max(s[0], x[i])
    y[0] = s[0]


@pytest.mark.parametrize(
    "func",
    [of_the_other_infinity, read_before, read_somewhere, of_itself, of_an_argument, in_a_loop],
    ids=["other infinity", "read before", "read somewhere", "itself", "argument", "in a loop"],
)  # fmt: skip
def test_others_stay(becomes, func):
    becomes(StartWithFirst(), func, func)
