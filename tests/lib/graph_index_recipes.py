"""Recipes of random graphs for creation, indices, quantisation and neural layers with parameters.

The rest of tests.lib.graph_recipes, by the same rules: text of a call, or None if nothing fits.
Indices are constants inside of the range, since what is outside has no meaning.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tests.lib.graph_pool import Pool, Recipe, Value


def _indices(p: Pool, extent: int, shape: tuple[int, ...]) -> str:
    items = [p.r.randrange(extent) for _ in range(int(np.prod(shape)))]
    return p.constant(np.array(items, p.r.choice(("int32", "int64"))).reshape(shape))


def _filled(value: Value, least: int = 1) -> bool:
    return value.ndim >= least and value.array.size > 0


def _full(p: Pool) -> str | None:
    x = p.any()
    if x is None:
        return None
    return f"op.full(dims({x.name}), const({p.r.randint(0, 3)}, {x.dtype!r}))"


def _arange(p: Pool) -> str:
    start, step = p.r.randint(-3, 3), p.r.choice((1, 2, -1))
    stop = start + step * p.r.randint(0, 5)
    return f"op.arange({start}, {stop}, {step}, {p.r.choice(('int32', 'int64', 'float32'))!r})"


def _eye(p: Pool) -> str:
    return f"op.eye({p.r.randint(1, 4)}, {p.r.randint(1, 4)}, {p.r.randint(-2, 2)}, 'float32')"


def _gather_nd(p: Pool) -> str | None:
    x = p.pick(_filled)
    if x is None:
        return None
    depth = p.r.randint(1, x.ndim)
    return f"op.gather_nd({x.name}, {_indices(p, min(x.shape[:depth]), (2, depth))})"


def _index_tensor(p: Pool) -> str | None:
    x = p.pick(_filled)
    if x is None:
        return None
    items = ", ".join([_indices(p, n, (3,)) for n in x.shape[: p.r.randint(1, x.ndim)]])
    return f"op.index_tensor({x.name}, ({items},))"


def _bucketize(p: Pool) -> str | None:
    x = p.pick(lambda v: v.exact and v.dtype == "float32")
    bounds = p.constant(np.array([-2, 0, 0.5, 3], "float32"))
    return None if x is None else f"op.bucketize({x.name}, {bounds}, False, {p.r.random() < 0.5})"


def _meshgrid(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim == 1 and v.array.size <= 8)
    return None if x is None else f"op.meshgrid(({x.name}, {x.name}), 'ij')[{p.r.randint(0, 1)}]"


def _collapse(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 1)
    if x is None:
        return None
    return f"op.collapse_sum_to({x.name}, dims({x.name})[{p.r.randint(0, x.ndim)}:])"


def _slice_scatter(p: Pool) -> str | None:
    x = p.pick(_filled)
    if x is None:
        return None
    axis = p.r.randrange(x.ndim)
    shape = tuple([1 if at == axis else n for at, n in enumerate(x.shape)])
    part = p.constant(np.ones(shape, x.array.dtype))
    return f"op.slice_scatter({x.name}, {part}, 0, 1, 1, {axis})"


def _masked_scatter(p: Pool) -> str | None:
    x = p.pick(_filled)
    if x is None:
        return None
    mask = p.constant(np.arange(x.array.size).reshape(x.shape) % 3 == 1)
    return f"op.masked_scatter({x.name}, {mask}, {x.name})"


def _collapse_like(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 1)
    if x is None:
        return None
    y = p.pick(
        lambda v: v.is_float and v.ndim <= x.ndim
        and all(a in (1, b) for a, b in zip(v.shape[::-1], x.shape[::-1], strict=False))
    )  # fmt: skip
    return None if y is None else f"op.collapse_sum_like({x.name}, {y.name})"


def _dequantize(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype in ("int8", "uint8") and v.ndim >= 1)
    return None if x is None else f"op.dequantize({x.name}, {_SCALE}, {_zero(p)}, -1, 'float32')"


def _quantize(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype == "float32" and v.ndim >= 1 and v.exact)
    if x is None:
        return None
    return f"op.quantize({x.name}, {_SCALE}, {_zero(p)}, -1, {p.r.choice(('int8', 'uint8'))!r})"


_SCALE: Final = "const(0.5, 'float32')"


def _zero(p: Pool) -> str:
    return p.constant(np.array(p.r.randint(0, 2), "int8"))


def _dynamic_slice(p: Pool) -> str | None:
    x = p.any(1)
    if x is None:
        return None
    begin = [p.r.randint(0, extent) for extent in x.shape]
    end = [p.r.randint(low, extent) for low, extent in zip(begin, x.shape, strict=True)]
    steps = [p.r.randint(1, 2) for _ in x.shape]
    given = ", ".join([p.constant(np.array(items, "int64")) for items in (begin, end, steps)])
    return f"op.dynamic_strided_slice({x.name}, {given})"


def _eye_like(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim == 2)
    return None if x is None else f"op.eye_like({x.name}, {p.r.randint(-2, 2)}, 'float32')"


def _hamming(p: Pool) -> str:
    return f"op.hamming_window({p.r.randint(1, 6)}, {p.r.randint(0, 1)}, 0.5, 0.25, 'float32')"


def _index_put(p: Pool) -> str | None:
    x = p.pick(lambda v: _filled(v) and not v.is_bool)
    if x is None:
        return None
    axis = p.r.randrange(x.ndim)  # along one axis each index once: no order of writes
    count = p.r.randint(1, x.shape[axis])
    chosen = {
        at: p.r.sample(range(extent), count) if at == axis else [p.r.randrange(extent)] * count
        for at, extent in enumerate(x.shape)
    }
    items = ", ".join([p.constant(np.array(chosen[at], "int64")) for at in range(x.ndim)])
    values = p.weights((count,), x.dtype)
    return f"op.index_put({x.name}, ({items},), {values}, {p.r.random() < 0.5})"


def _scatter_nd(p: Pool) -> str | None:
    x = p.pick(lambda v: _filled(v) and not v.is_bool)
    if x is None:
        return None
    rows = p.r.sample(range(x.shape[0]), p.r.randint(1, x.shape[0]))
    indices = p.constant(np.array(rows, "int64").reshape(-1, 1))
    updates = p.weights((len(rows), *x.shape[1:]), x.dtype)
    how = p.r.choice(("update", "add", "min", "max"))
    return f"op.scatter_nd({x.name}, {indices}, {updates}, {how!r})"


MAPS: Final = ("lambda i, j: (j, i)", "lambda i, j: (i, j // 2, j % 2)")


def _layout_transform(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim == 2 and v.array.size > 0)
    if x is None:
        return None
    return f"op.layout_transform({x.name}, {p.r.choice(MAPS)}, 0)"


def _nonzero(p: Pool) -> str | None:
    x = p.pick(lambda v: v.exact and v.array.size <= 16)
    return None if x is None else f"op.nonzero({x.name})"


def _unique(p: Pool) -> str | None:
    x = p.pick(lambda v: v.exact and not v.is_bool and v.ndim >= 1)
    if x is None:
        return None
    which, axis = p.r.randint(0, 3), p.r.choice((None, p.axis(x)))
    flags = [at == which for at in (1, 2, 3)]
    field = "[1]" if which else ""
    return f"op.unique({x.name}, True, *{flags}, axis={axis}){field}"


SMOOTH: Final[dict[str, Recipe]] = {
    "full": _full, "arange": _arange, "eye": _eye, "eye_like": _eye_like,
    "hamming_window": _hamming, "gather_nd": _gather_nd, "scatter_nd": _scatter_nd,
    "index_tensor": _index_tensor, "index_put": _index_put, "meshgrid": _meshgrid,
    "dequantize": _dequantize, "collapse_sum_to": _collapse, "collapse_sum_like": _collapse_like,
    "slice_scatter": _slice_scatter, "masked_scatter": _masked_scatter,
    "dynamic_strided_slice": _dynamic_slice,
    "layout_transform": _layout_transform,
}  # fmt: skip
"""Operators whose results move little with their arguments."""

JUMPS: Final[dict[str, Recipe]] = {
    "bucketize": _bucketize, "nonzero": _nonzero, "unique": _unique, "quantize": _quantize,
}  # fmt: skip
"""Operators that jump: on exact values only."""
