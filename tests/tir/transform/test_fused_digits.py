"""Fused loops taken apart into digits, and what moves into a loop because of it."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.script import from_source
from weft.tir.analysis.software_pipeline import buffer_versions
from weft.tir.interp import run
from weft.tir.stmt import Block, For
from weft.tir.transform import PlanAndUpdateBufferAllocationLocation
from weft.tir.transform.fused_digits import unfused

TILES = """
@T.prim_func
def main(a: T.Buffer((6, 16), "int32"), c: T.Buffer((6, 16), "int32")):
    t = T.alloc_buffer((6, 16), "int32")
    for tile in range(4):
        for f in range(24):
            with T.block("copy"):
                vi = T.axis.spatial(6, ROW)
                vj = T.axis.spatial(16, tile * 4 + COLUMN)
                t[vi, vj] = a[vi, vj]
        for i, j in T.grid(6, 4):
            with T.block("c"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.spatial(16, tile * 4 + j)
                c[vi, vj] = t[vi, vj] * 2
"""


def program(text, row, column):
    source = "# from tvm.script import tir as T\n" + text
    return from_source(source.replace("ROW", row).replace("COLUMN", column))


@pytest.mark.parametrize(
    ("row", "column"),
    [("f // 4", "f % 4"), ("f % 6", "f // 6"), ("f // 8 * 2 + f % 2", "f % 8 // 2")],
    ids=["rows first", "columns first", "two digits of a row"],
)
def test_a_fused_copy_moves_into_the_loop_that_uses_it(row, column):
    before = program(TILES, row, column)
    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": before}))["main"]
    [owner] = [block.name_hint for block in collect(after.body, Block) if block.alloc_buffers]
    assert owner == ""
    x = np.arange(96, dtype="int32").reshape(6, 16)
    for func in (before, after):
        out = np.zeros((6, 16), "int32")
        run(func, x, out)
        np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize(
    ("row", "column"),
    [("f // 8", "f % 4"), ("f // 4", "f % 2"), ("f % 6", "f % 4"), ("f // 4", "f // 4 % 4")],
    ids=["a digit is missing", "half of a digit", "no digits", "a diagonal"],
)
def test_a_copy_that_leaves_gaps_stays(row, column):
    """What an iteration does not copy, it reads as earlier ones left it."""
    before = program(TILES, row, column)
    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": before}))["main"]
    [owner] = [block.name_hint for block in collect(after.body, Block) if block.alloc_buffers]
    assert owner == "root"


def copy_of(row, column):
    """The indices of the copy over its loops, and these loops."""
    func = program(TILES, row, column)
    [loop] = [loop for loop in collect(func.body, For) if loop.loop_var.name == "f"]
    block = loop.body.block
    values = list(loop.body.iter_values)
    assert block.name_hint == "copy"
    return values, {id(loop.loop_var): loop}


def test_digits_are_loops_of_their_own():
    indices, loops = unfused(*copy_of("f // 4", "f % 4"))
    assert sorted([loop.extent.value for loop in loops.values()]) == [4, 6]
    assert "f" not in {loop.loop_var.name for loop in loops.values()}
    assert indices[0] in [loop.loop_var for loop in loops.values()]


def test_a_loop_that_is_no_product_of_digits_stays():
    given, loops = copy_of("f // 8", "f % 4")
    indices, same = unfused(given, loops)
    assert same == loops
    assert all(mine is theirs for mine, theirs in zip(indices, given, strict=True))


# Software pipelines, whose buffers are of the loop

PIPELINE = """
@T.prim_func
def main(a: T.Buffer((8, 4), "float32"), c: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": STAGES}):
        with T.block(""):
            t = T.alloc_buffer((4,), "float32")
            for j in range(4):
                t[j] = a[i, j]
            c[i] = t[0] + t[3]
"""


@pytest.mark.parametrize(("stages", "count"), [("[0, 0]", None), ("[0, 1]", 2), ("[0, 3]", 4)])
def test_a_pipeline_keeps_a_buffer_for_several_iterations(stages, count):
    func = from_source("# from tvm.script import tir as T\n" + PIPELINE.replace("STAGES", stages))
    [loop] = [item for item in collect(func.body, For) if item.annotations]
    assert list(buffer_versions(loop).values()) == ([] if count is None else [count])
