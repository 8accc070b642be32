"""MergeBranches: which neighbours become one branch."""

import pytest

from weft.script import tir as T
from weft.tir.transform import MergeBranches


def test_neighbours_under_one_condition_become_one_branch(becomes):
    @T.prim_func
    def before(x: T.Buffer((8,), "float32"), s: T.Buffer((8, 3), "float32")):
        for i in range(8):
            if 2 <= i:
                s[i, 0] = x[i]
            if 2 <= i:
                s[i, 1] = x[i] + s[i, 0]
            if i < 5:
                s[i, 2] = x[i]
            s[i, 0] = s[i, 0] + T.float32(1)
            if i < 5:
                s[i, 2] = s[i, 2] * s[i, 0]

    @T.prim_func
    def expected(x: T.Buffer((8,), "float32"), s: T.Buffer((8, 3), "float32")):
        for i in range(8):
            if 2 <= i:
                s[i, 0] = x[i]
                s[i, 1] = x[i] + s[i, 0]
            if i < 5:
                s[i, 2] = x[i]
            s[i, 0] = s[i, 0] + T.float32(1)
            if i < 5:
                s[i, 2] = s[i, 2] * s[i, 0]

    becomes(MergeBranches(), before, expected)


@pytest.mark.parametrize("kind", ["reads what changes", "has another branch"])
def test_others_stay_apart(kind, becomes):
    @T.prim_func
    def reads(x: T.Buffer((8,), "float32"), s: T.Buffer((8,), "float32")):
        for i in range(8):
            if s[i] < x[i]:
                s[i] = x[i] + T.float32(1)
            if s[i] < x[i]:
                s[i] = T.float32(0)

    @T.prim_func
    def other(x: T.Buffer((8,), "float32"), s: T.Buffer((8,), "float32")):
        for i in range(8):
            if 2 <= i:
                s[i] = x[i]
            else:
                s[i] = T.float32(1)
            if 2 <= i:
                s[i] = s[i] + x[i]

    func = reads if kind == "reads what changes" else other
    becomes(MergeBranches(), func, func)
