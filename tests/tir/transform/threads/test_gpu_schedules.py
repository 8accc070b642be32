"""Schedules for GPUs, made with the primitives, run here: by threads, as loops, lowered, native."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir
from weft.tir.interp import run


def product(rows=32, columns=16):
    left = te.placeholder((rows, 24), name="A")
    right = te.placeholder((24, columns), name="B")
    axis = te.reduce_axis((0, 24), name="k")
    result = te.compute(
        (rows, columns), lambda i, j: te.sum(left[i, axis] * right[axis, j], axis=axis), name="C"
    )
    return te.create_prim_func([left, right, result]).with_attr("global_symbol", "main")


def bind(sch, **loops):
    for tag, loop in loops.items():
        sch.bind(loop, tag.replace("_", "."))


def tiled(func):
    """Register tiles of 4x2, a block of 4x4 threads, the reduction in steps of 8."""
    sch = tir.Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    by, ty, yi = sch.split(i, [None, 4, 4])
    bx, tx, xi = sch.split(j, [None, 4, 2])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(by, bx, ty, tx, k0, k1, yi, xi)
    bind(sch, blockIdx_y=by, blockIdx_x=bx, threadIdx_y=ty, threadIdx_x=tx)
    return sch, block, tx, k0


def tails(func):
    return tiled(func)[0]


def staged(func):
    """Operands through shared memory, loaded by all threads; the result in registers."""
    sch, block, tx, k0 = tiled(func)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), tx)
    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, k0)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, ty, tx = sch.split(fused, [None, 4, 4])
        bind(sch, threadIdx_y=ty, threadIdx_x=tx)
    sch.decompose_reduction(block, k0)
    return sch


def virtual(func):
    sch = tir.Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    by, vy, ty = sch.split(i, [None, 2, 4])
    bx, tx = sch.split(j, [None, 4])
    sch.reorder(by, bx, vy, ty, tx, k)
    bind(sch, blockIdx_y=by, blockIdx_x=bx, vthread_y=vy, threadIdx_y=ty, threadIdx_x=tx)
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, bx)
    _, ty, tx = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 4, 4])
    bind(sch, threadIdx_y=ty, threadIdx_x=tx)
    return sch


def reduced(func):
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    _, k1 = sch.split(k, [None, 16])
    bind(sch, blockIdx_y=i, blockIdx_x=j, threadIdx_x=k1)
    return sch


def factored(func):
    sch = tir.Schedule(func)
    block = sch.get_block("C")
    _, k1 = sch.split(sch.get_loops(block)[2], [None, 8])
    parts = sch.rfactor(k1, 0)
    i, j, q = sch.get_loops(block)
    bind(sch, blockIdx_x=sch.fuse(i, j), threadIdx_x=q)
    sch.compute_at(parts, sch.get_loops(block)[0])
    bind(sch, threadIdx_x=sch.get_loops(parts)[1])
    return sch


def ways(func):
    lowered = weft.lower(func)["main"]
    yield lambda *args: run(func, *args)
    yield lambda *args: run(func, *args, threads=False)
    yield lambda *args: run(lowered, *args)
    built = weft.build(func)

    def native(*args):
        arrays = [weft.nd.array(array) for array in args]
        built["main"](*arrays)
        args[-1][...] = arrays[-1].numpy()

    yield native


@pytest.mark.parametrize(
    ("schedule", "columns"), [(tails, 20), (staged, 16), (virtual, 16), (reduced, 3), (factored, 3)]
)
def test_every_way_to_run_gives_the_product(schedule, columns):
    rows = 32 if columns > 3 else 4
    func = product(rows, columns)
    random = np.random.default_rng(0)
    a = random.integers(0, 5, (rows, 24)).astype("float32")
    b = random.integers(0, 5, (24, columns)).astype("float32")
    for way in ways(schedule(func).mod["main"]):
        result = np.full((rows, columns), 7, "float32")
        way(a, b, result)
        np.testing.assert_array_equal(result, a @ b)
