"""PartitionGuardedLoops: a tile that begins where a let says gets a branch."""

from __future__ import annotations

import random

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import GE, GT, LE, LT, Call, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, For, ForKind, IfThenElse, LetStmt
from weft.tir.transform import PartitionGuardedLoops


def partitioned(func):
    return PartitionGuardedLoops()(weft.IRModule({"main": func}))["main"]


def test_a_tile_with_all_that_it_reads_inside_of_an_image_has_no_tests():
    hint = {"pragma_loop_partition_hint": 0}

    @T.prim_func
    def before(px: T.handle, py: T.handle):
        h, w = T.int32(), T.int32()
        x = T.match_buffer(px, (h * 4, w))
        y = T.match_buffer(py, (h, w))
        for r in T.serial(h, annotations=hint):
            for o in range((w + 7) // 8):
                b: T.int32 = T.min(o * 8, w - 8)
                for k in range(3):
                    for v in range(8):
                        y[r, b + v] = T.if_then_else(
                            1 <= r * 4 + k and 1 <= b + v and b + v < w - 1,
                            x[r * 4 + k - 1, b + v - 1] * x[r * 4 + k - 1, b + v + 1],
                            T.float32(0),
                        )  # fmt: skip

    after = partitioned(before)
    [let] = collect(after.body, LetStmt)
    assert str(let.body.condition) == "1 <= b and b + 9 <= w and 1 <= r"
    assert not [call for call in collect(let.body.then_case, Call) if is_call(call, "if_then_else")]
    for shape in ((1, 8), (3, 9), (2, 24), (4, 27)):
        given = np.random.default_rng(0).normal(size=(shape[0] * 4, shape[1])).astype("float32")
        results = [np.zeros(shape, "float32") for _ in range(2)]
        run(before, given, results[0])
        run(after, given, results[1])
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("begin", ["T.min(done + o * 4, w - 4)", "o * 4 + done", "T.max(o * 4, 0)"])
def test_tiles_at_the_end_of_an_axis_get_none(begin):
    """They are few, and next to the border."""
    func = weft.script.from_source(f"""
@T.prim_func
def main(px: T.handle, py: T.handle, done: T.int32):
    w = T.int32()
    x = T.match_buffer(px, (w,))
    y = T.match_buffer(py, (w,))
    for o in range((w - done) // 4):
        b: T.int32 = {begin}
        for v in range(4):
            y[b + v] = T.if_then_else(b + v < w - 1, x[b + v + 1], T.float32(0))
""")
    after = partitioned(func)
    assert not [branch for branch in collect(after.body, IfThenElse) if branch.else_case]


def tile_program(seed):
    """A loop over tiles of four elements with one or two branches on random comparisons."""
    pick = random.Random(seed)
    i, j, n, b = [Var(name, "int32") for name in "ijnb"]
    target = decl_buffer((40,), "int32", "A")
    body = []
    for _ in range(pick.randint(1, 3)):
        left = b * pick.randint(-2, 2) + j * pick.randint(-2, 2) + i * pick.randint(-1, 1)
        right = n * pick.randint(-1, 2) + pick.randint(-9, 9)
        condition = pick.choice((LT, LE, GT, GE))(left, right)
        value = BufferLoad(target, [b + j]) * 3 + pick.randint(1, 5)
        other = BufferStore(target, value + 7, [b + j]) if pick.random() < 0.4 else None
        body.append(IfThenElse(condition, BufferStore(target, value, [b + j]), other))
    inner = For(j, 0, 4, ForKind.SERIAL, weft.tir.stmt.seq(*body))
    tile = LetStmt(b, op.min(i * 4, n - 4), inner)
    return PrimFunc([target, n], For(i, 0, op.floordiv(n + 3, 4), ForKind.SERIAL, tile))


@pytest.mark.parametrize("seed", range(60))
def test_random_tiles_keep_their_meaning(seed):
    before = tile_program(seed)
    after = partitioned(before)
    for size in (4, 5, 8, 11, 23, 40):
        results = [np.arange(40, dtype="int32") for _ in range(2)]
        run(before, results[0], size)
        run(after, results[1], size)
        np.testing.assert_array_equal(*results)


def test_most_random_tiles_have_a_branch():
    branches = [collect(partitioned(tile_program(seed)).body, LetStmt) for seed in range(60)]
    assert sum(isinstance(let.body, IfThenElse) for lets in branches for let in lets) > 20
