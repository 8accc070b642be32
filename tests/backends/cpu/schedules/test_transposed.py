"""Transposes and changes of layout: tiles that go through registers keep the result."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft import dlight, te, tir, topi
from weft.backends.cpu.schedules import default
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir import IndexMap
from weft.tir.interp import run
from weft.tir.stmt import For
from weft.topi.rearrangement import layout_transform

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2")
"""Vectors of four floats, so that small shapes have whole tiles and tails."""


def to_blocks(size):
    return lambda x: layout_transform(
        x, IndexMap.from_func(lambda n, c, h, w: (n, c // size, h, w, c % size)), None
    )


def from_blocks(size):
    return lambda x: layout_transform(
        x, IndexMap.from_func(lambda n, c, h, w, k: (n, c * size + k, h, w)), None
    )


def permuted(*axes):
    return lambda x: topi.transpose(x, axes)


def transposed_and_added(x):
    return topi.nn.relu(topi.add(topi.transpose(x), x))


CASES = {
    # what, shape, whether a tile is transposed
    "a matrix": ((13, 27), permuted(1, 0), True),
    "a matrix of whole tiles": ((8, 16), permuted(1, 0), True),
    "one row": ((1, 9), permuted(1, 0), False),
    "no rows": ((0, 9), permuted(1, 0), False),
    "few columns": ((9, 3), permuted(1, 0), False),
    "channels last": ((2, 6, 3, 5), permuted(0, 2, 3, 1), True),
    "colours first": ((2, 5, 7, 3), permuted(0, 3, 1, 2), False),
    "pairs apart": ((35, 2), permuted(1, 0), False),
    "channels first": ((2, 3, 5, 6), permuted(0, 3, 1, 2), True),
    "back to front": ((4, 5, 6), permuted(2, 1, 0), True),
    "heads": ((1, 5, 3, 8), permuted(0, 2, 1, 3), False),
    "to blocks": ((2, 8, 3, 5), to_blocks(4), True),
    "to blocks of eight": ((1, 24, 7, 7), to_blocks(8), True),
    "to blocks with a rest": ((1, 6, 3, 5), to_blocks(4), False),
    "from blocks": ((2, 2, 3, 5, 4), from_blocks(4), True),
    "from blocks of eight": ((1, 3, 5, 5, 8), from_blocks(8), True),
    "patches to rows": (
        (1, 12, 5, 3), lambda x: topi.transpose(topi.reshape(x, (1, 12, 15)), (0, 2, 1)), True
    ),
    "and what is computed of it": ((9, 9), transposed_and_added, True),
}  # fmt: skip


def outcomes(func, shape, size, dtype="float32"):
    """The schedule; results as written, lowered and interpreted, native."""
    made = default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]
    data = (3 * np.random.default_rng(3).normal(size=shape)).astype(dtype)
    expected, lowered, native = [np.full(size, 7, dtype) for _ in range(3)]
    run(func, data, expected)
    run(lower_tir()(weft.IRModule({"main": made}))["main"], data, lowered)
    given = weft.nd.array(native)
    weft.build(made, SMALL)["main"](weft.nd.array(data), given)
    return made, expected, lowered, given.numpy()


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name):
    shape, compute, is_tile = CASES[name]
    x = te.placeholder(shape, name="x")
    result = compute(x)
    size = [int(extent) for extent in result.shape]
    made, expected, lowered, native = outcomes(te.create_prim_func([x, result]), shape, size)
    np.testing.assert_array_equal(lowered, expected)
    np.testing.assert_array_equal(native, expected)
    marked = [loop for loop in collect(made.body, For) if TRANSPOSE in loop.annotations]
    assert bool(marked) == is_tile


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "int64", "float64"])
@pytest.mark.parametrize("shape", [(10, 20), (64, 129), (4, 4)])
def test_elements_of_every_width_are_transposed(dtype, shape):
    x = te.placeholder(shape, dtype, name="x")
    func = te.create_prim_func([x, topi.transpose(x)])
    made, expected, lowered, native = outcomes(func, shape, shape[::-1], dtype)
    np.testing.assert_array_equal(lowered, expected)
    np.testing.assert_array_equal(native, expected)
    assert [loop for loop in collect(made.body, For) if TRANSPOSE in loop.annotations]


@pytest.mark.parametrize(
    ("shape", "axes", "nbytes"),
    [
        ((32, 1024), (1, 0), 64), ((1024, 32), (1, 0), 64), ((32, 1000), (1, 0), 1),
        ((1, 32, 32, 64), (0, 3, 1, 2), 64), ((1, 28, 28, 64), (0, 3, 1, 2), 1),
    ],
)  # fmt: skip
def test_rows_that_share_places_in_the_cache_are_read_by_the_line(shape, axes, nbytes):
    x = te.placeholder(shape, name="x")
    machine = machine_of("llvm -mcpu=skylake-avx512 -l1d-cache-bytes=32768")
    sch = tir.Schedule(te.create_prim_func([x, topi.transpose(x, axes)]))
    made = default.schedule(sch, machine, ()).mod["main"]
    marked = [loop for loop in collect(made.body, For) if TRANSPOSE in loop.annotations]
    assert [int(loop.annotations[TRANSPOSE]) for loop in marked] == [nbytes]


def test_a_symbolic_size_is_left_to_others():
    n = tir.Var("n", "int64")
    x = te.placeholder((n, 9), name="x")
    func = te.create_prim_func([x, topi.transpose(x)])
    _, expected, lowered, native = outcomes(func, (5, 9), (9, 5))
    np.testing.assert_array_equal(lowered, expected)
    np.testing.assert_array_equal(native, expected)


@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize(
    ("place", "order", "is_tile"),
    [
        (0, (0, 2, 1), True), (0, (2, 0, 1), True), (1, (2, 1, 0), True),
        (0, (2, 1, 0), False), (2, (2, 1, 0), False),
    ],
)  # fmt: skip
def test_axes_beside_a_symbolic_one_are_transposed_in_tiles(place, order, is_tile, size):
    """A batch, or sentences of any number: unless that axis is the last one on a side."""
    shape = [6, 9]
    shape.insert(place, tir.Var("n", "int64"))
    extents = [
        extent if extent is shape[place] else tir.IntImm("int64", extent) for extent in shape
    ]
    x = te.placeholder(extents, name="x")
    func = te.create_prim_func([x, topi.transpose(x, order)])
    given = [size if extent is shape[place] else extent for extent in shape]
    made, expected, lowered, native = outcomes(func, given, [given[axis] for axis in order])
    np.testing.assert_array_equal(lowered, expected)
    np.testing.assert_array_equal(native, expected)
    marked = [loop for loop in collect(made.body, For) if TRANSPOSE in loop.annotations]
    assert bool(marked) == is_tile


@pytest.mark.parametrize(
    ("dtype", "cpu", "instruction"),
    [
        ("float32", "skylake-avx512", "vunpcklps\t%zmm"),
        ("float32", "haswell", "vunpcklps\t%ymm"), ("int8", "haswell", "vpunpcklbw\t%ymm"),
        ("float64", "haswell", "vunpcklpd\t%ymm"),
    ],
)  # fmt: skip
def test_a_tile_is_transposed_by_instructions_for_that(dtype, cpu, instruction):
    x = te.placeholder((64, 64), dtype, name="x")
    func = te.create_prim_func([x, topi.transpose(x)])
    target = f"llvm -mcpu={cpu} -num-cores=1"
    made = dlight.cpu.Default().apply(func, weft.target.Target(target), False)
    text = weft.build(made.mod, target).get_source("asm")
    assert instruction in text
    assert dtype == "int8" or not re.search(r"[xyz]mm\d+, -?\d*\(%rsp\)", text)  # no spills
