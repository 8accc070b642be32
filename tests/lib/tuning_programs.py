"""Programs that tests of tuning schedule, and schedules of them."""

from __future__ import annotations

import weft
from weft import te, tir


def matmul_relu(n: int = 16) -> weft.IRModule:
    """A product of two n × n matrices of float32, and relu of it: blocks ``matmul``, ``relu``."""
    a, b = (te.placeholder((n, n), name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    product = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    relu = te.compute((n, n), lambda i, j: te.max(product[i, j], 0.0), name="relu")
    return weft.IRModule({"main": te.create_prim_func([a, b, relu])})


def matmul(n: int = 16) -> weft.IRModule:
    """A product of two n × n matrices of float32: block ``matmul``."""
    a, b = (te.placeholder((n, n), name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    product = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    return weft.IRModule({"main": te.create_prim_func([a, b, product])})


def tiled(mod: weft.IRModule, inner: int = 4) -> tir.Schedule:
    """A schedule that samples a split of the rows of ``matmul``."""
    sch = tir.Schedule(mod)
    block = sch.get_block("matmul")
    rows, columns, k = sch.get_loops(block)
    sizes = sch.sample_perfect_tile(rows, n=2, decision=[mod_extent(mod) // inner, inner])
    outer, within = sch.split(rows, factors=[*sizes])
    sch.reorder(outer, columns, k, within)
    return sch


def mod_extent(mod: weft.IRModule) -> int:
    """The number of rows of the first argument."""
    function = mod["main"]
    return int(function.buffer_map[function.params[0]].shape[0].value)
