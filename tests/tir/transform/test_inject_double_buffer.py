"""InjectDoubleBuffer: before and after, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.transform import PassContext, Sequential
from weft.script import tir as T
from weft.support.errors import IRValueError, PassError
from weft.tir.interp import run
from weft.tir.transform import InjectDoubleBuffer, RemoveNoOp, Simplify


@T.prim_func
def copying(A: T.Buffer((7, 8), "int32"), B: T.Buffer((7, 8), "int32")):
    for i in range(7):
        S = T.decl_buffer((8,), "int32", scope="shared")
        with T.attr(S.data, "double_buffer_scope", 1):
            for j in range(8):
                S[j] = A[i, j]
        for j in range(8):
            B[i, j] = S[7 - j]


def buffered(split):
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split}}):
        steps = Sequential([InjectDoubleBuffer(), Simplify(), RemoveNoOp()])
        return steps(weft.IRModule({"main": copying}))["main"]


def test_the_next_iteration_is_filled_while_this_one_is_used(becomes):
    @T.prim_func
    def expected(A: T.Buffer((7, 8), "int32"), B: T.Buffer((7, 8), "int32")):
        S = T.decl_buffer((16,), "int32", scope="shared")
        for j in range(8):
            S[j] = A[0, j]
        for i_outer in range(6):
            with T.attr(S.data, "double_buffer_write", 1):
                for j in range(8):
                    S[(i_outer + 1) % 2 * 8 + j] = A[i_outer + 1, j]
            for j in range(8):
                B[i_outer, j] = S[i_outer % 2 * 8 + 7 - j]
        for j in range(8):
            B[6, j] = S[7 - j]

    steps = Sequential([InjectDoubleBuffer(), Simplify(), RemoveNoOp()])
    becomes(steps, copying, expected)


@pytest.mark.parametrize("split", [1, 2, 3, 4])
def test_the_result_is_the_same(split):
    after = buffered(split)
    given, result = np.arange(56, dtype="int32").reshape(7, 8), np.zeros((7, 8), "int32")
    run(after, given, result)
    np.testing.assert_array_equal(result, given[:, ::-1])
    output = weft.nd.array(np.zeros((7, 8), "int32"))
    weft.build(after, name="main")["main"](weft.nd.array(given), output)
    np.testing.assert_array_equal(output.numpy(), given[:, ::-1])


def test_memory_must_be_inside_a_loop():
    @T.prim_func
    def main(A: T.Buffer((8,), "int32")):
        S = T.decl_buffer((8,), "int32")
        with T.attr(S.data, "double_buffer_scope", 1):
            for j in range(8):
                S[j] = A[j]

    with pytest.raises(IRValueError, match="is allocated outside of every loop"):
        InjectDoubleBuffer()(weft.IRModule({"main": main}))
    with pytest.raises(PassError, match="split_loop: expected 1 or more, got 0"):
        buffered(0)
