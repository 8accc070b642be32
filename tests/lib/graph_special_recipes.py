"""Recipes of random graphs for special functions and for operators that importers brought.

By the rules of tests.lib.graph_recipes. A special function gets arguments where it is not steep, so
that a last bit that differs stays a last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tests.lib.graph_pool import Pool, Recipe, Value

Accept = Callable[[Value], bool]


def _between(low: float, high: float) -> Accept:
    """Floats of which all lie in an interval."""

    def accept(value: Value) -> bool:
        numbers = value.array.astype("float64")
        return value.is_float and bool(np.all((numbers >= low) & (numbers <= high)))

    return accept


_FLOAT: Final[Accept] = _between(-np.inf, np.inf)
_SMALL, _POSITIVE, _FROM_ONE = _between(-4, 4), _between(0.25, np.inf), _between(1, np.inf)


def _exact(value: Value) -> bool:
    return value.exact and value.is_float


def _far_from_zero(value: Value) -> bool:
    return value.is_float and bool(np.all(np.abs(value.array.astype("float64")) >= 0.5))


def _unary(name: str, accept: Accept) -> Recipe:
    def make(p: Pool) -> str | None:
        x = p.pick(accept)
        return None if x is None else f"op.{name}({x.name})"

    return make


def _binary(name: str, left: Accept, right: Accept) -> Recipe:
    """Two operands of one type; the second is of the first one's shape, or a number."""

    def make(p: Pool) -> str | None:
        x = p.pick(left)
        if x is None:
            return None
        y = p.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape and right(v))
        number = p.constant(np.array(p.r.choice((1, 2, 3)), x.array.dtype))
        return f"op.{name}({x.name}, {number if y is None else y.name})"

    return make


def _as_strided(p: Pool) -> str | None:
    x = p.pick(lambda v: v.array.size >= 4)
    return None if x is None else f"op.as_strided({x.name}, (2, 2), {p.r.choice(((1, 1), (2, 1)))})"


def _bitcast(p: Pool) -> str | None:
    """Of integers: the bits of floats tell zeros apart."""
    x = p.pick(lambda v: v.dtype in ("int8", "uint8"))
    return None if x is None else f"op.bitcast({x.name}, {p.r.choice(('int8', 'uint8'))!r})"


def _running(name: str) -> Recipe:
    def make(p: Pool) -> str | None:
        x = p.pick(lambda v: v.ndim >= 1 and v.exact and not v.is_bool)
        return None if x is None else f"op.{name}({x.name}, {p.axis(x)})[{p.r.randint(0, 1)}]"

    return make


def _logcumsumexp(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 1)
    return None if x is None else f"op.logcumsumexp({x.name}, {p.axis(x)})"


def _diagonal(p: Pool) -> str | None:
    x = p.any(2)
    if x is None:
        return None
    first, second = p.r.sample(range(x.ndim), 2)
    return f"op.diagonal({x.name}, {p.r.randint(-1, 1)}, {first}, {second})"


def _diagonal_scatter(p: Pool) -> str | None:
    x = p.any(2)
    if x is None:
        return None
    at = f"{p.r.randint(-1, 1)}, {x.ndim - 1}, 0"
    return f"op.diagonal_scatter({x.name}, op.flip(op.diagonal({x.name}, {at}), -1), {at})"


def _histogram(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim == 1 and v.exact and v.dtype == "float32")
    return None if x is None else f"op.histogram({x.name}, const(-4.0), const(4.0), 4)"


def _weighted_taps(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 1 and v.array.size > 0)
    if x is None:
        return None
    axis = p.axis(x)
    places = [[p.r.randrange(x.shape[axis]) for _ in range(2)] for _ in range(p.r.randint(1, 3))]
    table = p.constant(np.array(places, "int64"))
    weights = p.weights((len(places), 2), x.dtype)
    return f"op.image.weighted_taps({x.name}, {table}, {weights}, {axis}, {p.r.random() < 0.5})"


def _linspace(p: Pool) -> str:
    dtype = p.r.choice(("float32", "float64"))
    return f"op.linspace({p.r.randint(-2, 2)}.0, 3.0, {p.r.randint(1, 5)}, {dtype!r})"


def _image(value: Value) -> bool:
    return value.ndim == 4 and value.array.size > 0 and min(value.shape[2:]) >= 2


def _im2col(p: Pool) -> str | None:
    x = p.pick(lambda v: _image(v) and v.array.size <= 32)
    if x is None:
        return None
    kernel = (p.r.randint(1, 2), p.r.randint(1, 2))
    return f"op.nn.im2col({x.name}, {kernel}, {p.r.randint(1, 2)}, {p.r.randint(0, 1)})"


def _col2im(p: Pool) -> str | None:
    """Of one axis of space: kernel and windows are the last two."""
    x = p.pick(lambda v: v.is_float and v.ndim == 4 and v.array.size > 0)
    return None if x is None else f"op.nn.col2im({x.name}, ({sum(x.shape[2:]) - 1},))"


def _lrn(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 2)
    return None if x is None else f"op.nn.lrn({x.name}, {p.r.choice((1, 3))}, {p.axis(x)}, 0.25)"


def _pool_indices(text: str) -> Recipe:
    def make(p: Pool) -> str:
        x = p.pick(lambda v: _image(v) and _exact(v))
        image = p.weights((1, 2, 2, 3), "float32") if x is None else x.name
        return text.format(x=image, k=p.r.randint(1, 2))

    return make


def _reverse_sequence(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim >= 2 and v.array.size > 0)
    if x is None:
        return None
    along, batch = p.r.sample(range(x.ndim), 2)
    lengths = [p.r.randint(0, x.shape[along]) for _ in range(x.shape[batch])]
    return f"op.reverse_sequence({x.name}, {p.constant(np.array(lengths))}, {along}, {batch})"


def _searchsorted(p: Pool) -> str | None:
    x = p.pick(lambda v: v.exact and v.dtype == "float32")
    bounds = p.constant(np.array([-2, 0, 0.5, 3], "float32"))
    return None if x is None else f"op.searchsorted({bounds}, {x.name}, right={p.r.random() < 0.5})"


def _grouped_matmul(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim == 2 and v.shape[1] <= 16)
    if x is None:
        return None
    groups, columns = p.r.randint(1, 3), p.r.choice((1, 3, 8))
    weight = p.weights((groups, x.shape[1], columns), x.dtype)
    ends = sorted(p.r.randint(0, x.shape[0]) for _ in range(groups))
    return f"op.grouped_matmul({x.name}, {weight}, {p.constant(np.array(ends))})"


def _block_scaled_matmul(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 1 and 1 <= v.shape[-1] <= 16)
    if x is None:
        return None
    blocks = p.r.choice([count for count in (1, 2, 4) if x.shape[-1] % count == 0])
    columns = p.r.choice((1, 3, 8))
    shape = (blocks, x.shape[-1] // blocks, columns)
    numbers = [p.r.randint(-8, 7) for _ in range(int(np.prod(shape)))]
    weight = p.constant(np.array(numbers, "int8").reshape(shape))
    return f"op.block_scaled_matmul({x.name}, {weight}, {p.weights((blocks, columns), x.dtype)})"


def _unfold(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim >= 1 and min(v.shape) >= 2 and v.array.size <= 32)
    return None if x is None else f"op.unfold({x.name}, {p.axis(x)}, 2, {p.r.randint(1, 2)})"


SMOOTH: Final[dict[str, Recipe]] = {
    **{n: _unary(n, _FLOAT) for n in ("erfc", "i0e", "i1e", "ndtr", "sinc")},
    **{n: _unary(n, _SMALL) for n in
       ("deg2rad", "rad2deg", "exp2", "expm1", "i0", "i1", "log_ndtr")},
    **{n: _unary(n, _POSITIVE) for n in ("entr", "erfcx", "log10", "log1p", "log2")},
    **{n: _unary(n, _FROM_ONE) for n in ("digamma", "lgamma", "trigamma")},
    "erfinv": _unary("erfinv", _between(-0.9, 0.9)),
    "ndtri": _unary("ndtri", _between(0.1, 0.9)),
    "reciprocal": _unary("reciprocal", _far_from_zero),
    **{n: _binary(n, _FLOAT, _FLOAT) for n in ("fmax", "fmin", "hypot", "log_add_exp2")},
    "atan2": _binary("atan2", _FLOAT, _POSITIVE),
    "copysign": _binary("copysign", _FLOAT, _far_from_zero),
    **{n: _binary(n, _SMALL, _POSITIVE) for n in ("xlogy", "xlog1py")},
    "zeta": _binary("zeta", _between(2, 8), _FROM_ONE),
    "as_strided": _as_strided, "diagonal": _diagonal, "diagonal_scatter": _diagonal_scatter,
    "logcumsumexp": _logcumsumexp, "image.weighted_taps": _weighted_taps, "linspace": _linspace,
    "nn.im2col": _im2col, "nn.col2im": _col2im, "nn.lrn": _lrn,
    "reverse_sequence": _reverse_sequence, "unfold": _unfold, "grouped_matmul": _grouped_matmul,
    "block_scaled_matmul": _block_scaled_matmul,
}  # fmt: skip
"""Operators whose results move little with their arguments."""

JUMPS: Final[dict[str, Recipe]] = {
    "frac": _unary("frac", _exact),
    "gcd": _binary("gcd", lambda v: v.is_int, lambda v: v.is_int),
    "heaviside": _binary("heaviside", _exact, _exact),
    "exact_floor_divide": _binary(
        "exact_floor_divide", _exact, lambda v: _exact(v) and _far_from_zero(v)
    ),
    "nextafter": _binary("nextafter", _exact, _exact),
    "bitcast": _bitcast, "histogram": _histogram, "searchsorted": _searchsorted,
    **{n: _running(n) for n in ("cummax", "cummin")},
    "nn.max_pool_indices": _pool_indices("op.nn.max_pool_indices({x}, (2, {k}))"),
    "nn.adaptive_max_pool_indices": _pool_indices("op.nn.adaptive_max_pool_indices({x}, (2, {k}))"),
}  # fmt: skip
"""Operators that jump: on exact values only."""
