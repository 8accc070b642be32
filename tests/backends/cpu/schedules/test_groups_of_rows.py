"""Mixtures of experts: a panel of a matrix meets all rows of its group at once."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir
from weft.backends.cpu.schedules import default
from weft.target.machine import machine_of
from weft.tir.interp import run
from weft.topi.grouped import grouped_matmul

TARGET = weft.target.Target("llvm -vector-width=128 -num-cores=2 -l1d-cache-bytes=32768")


def products(rows, groups, depth, columns):
    data = te.placeholder((rows, depth), name="data")
    weight = te.placeholder((groups, depth, columns), name="weight")
    ends = te.placeholder((groups,), dtype="int32", name="ends")
    return te.create_prim_func([data, weight, ends, grouped_matmul(data, weight, ends)])


def scheduled(function):
    return default.schedule(tir.Schedule(function), machine_of(TARGET), ()).mod["main"]


def test_tiles_of_rows_are_inside_the_panels_of_columns():
    schedule = tir.Schedule(scheduled(products(128, 8, 64, 96)))
    loops = schedule.get_loops(schedule.get_block("grouped_matmul_local"))
    extents = [int(schedule.get(loop).extent) for loop in loops]
    tiles = (128 + 8 * 7) // 8
    assert tiles in extents
    assert extents.index(tiles) > 0, "a panel of columns comes again for each tile"


@pytest.mark.parametrize(
    ("ends", "depth", "columns"),
    [
        ([11, 11, 40], 9, 13), ([0, 0, 40], 5, 6), ([40, 40, 40], 3, 17), ([1, 2, 3], 4, 5),
        ([8, 16, 40], 7, 4),
    ],
    ids=str,
)  # fmt: skip
def test_groups_of_any_sizes(ends, depth, columns):
    """Empty ones first, in between and last, whole and filled up tiles, rows of no group."""
    function = products(40, 3, depth, columns)
    random = np.random.default_rng(3)
    data = random.standard_normal((40, depth)).astype("float32")
    weight = random.standard_normal((3, depth, columns)).astype("float32")
    stops = np.array(ends, "int32")
    expected = np.zeros((40, columns), "float32")
    for start, stop, matrix in zip([0, *ends], ends, weight, strict=False):
        expected[start:stop] = data[start:stop] @ matrix
    for version in (function, scheduled(function)):
        result = np.full((40, columns), 7, "float32")
        run(version, data, weight, stops, result)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
