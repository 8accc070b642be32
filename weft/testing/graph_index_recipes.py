"""Recipes of random graphs for creation, indices, quantisation and neural layers with parameters.

The rest of weft.testing.graph_recipes, by the same rules: text of a call, or None if nothing fits.
Indices are constants inside of the range, since what is outside has no meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from weft.testing.graph_pool import Pool, Value

Recipe = Callable[[Pool], str | None]


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


def _prelu(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 2)
    return None if x is None else f"op.nn.prelu({x.name}, {p.weights(x.shape[1:2], x.dtype)}, 1)"


def _dequantize(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype in ("int8", "uint8") and v.ndim >= 1)
    if x is None:
        return None
    zero = p.constant(np.array(1, "int8"))
    return f"op.dequantize({x.name}, const(0.5, 'float32'), {zero}, -1, 'float32')"


def _group_norm(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 3 and v.array.size > 0)
    if x is None:
        return None
    channels = x.shape[1:2]
    weights = f"{p.weights(channels, x.dtype)}, {p.weights(channels, x.dtype)}"
    axes = list(range(2, x.ndim))
    return f"op.nn.group_norm({x.name}, {weights}, {p.r.choice((1, *channels))}, 1, {axes})"


def _dense(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim == 2)
    return None if x is None else f"op.nn.dense({x.name}, {p.weights((2, x.shape[1]), x.dtype)})"


def _pixel_shuffle(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim >= 3 and v.shape[-3] == 4)
    return None if x is None else f"op.nn.pixel_shuffle({x.name}, 2)"


def _resize2d(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype == "float32" and v.ndim == 4 and v.array.size > 0)
    size = (p.r.randint(1, 4), p.r.randint(1, 4))
    if x is None:
        return None
    return f"op.image.resize2d({x.name}, {size}, layout='NCHW', method='linear')"


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


SMOOTH: Final[dict[str, Recipe]] = {
    "full": _full, "arange": _arange, "eye": _eye, "gather_nd": _gather_nd,
    "index_tensor": _index_tensor, "meshgrid": _meshgrid, "nn.prelu": _prelu,
    "dequantize": _dequantize, "nn.group_norm": _group_norm, "nn.dense": _dense,
    "nn.pixel_shuffle": _pixel_shuffle, "image.resize2d": _resize2d, "collapse_sum_to": _collapse,
    "slice_scatter": _slice_scatter,
}  # fmt: skip
"""Operators whose results move little with their arguments."""

JUMPS: Final[dict[str, Recipe]] = {"bucketize": _bucketize}
"""Operators that jump: on exact values only."""
