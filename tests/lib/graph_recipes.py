"""Recipes of random graphs: one row an operator, which writes a call on values of the pool.

A recipe returns the text of a call over ``op`` (weft.relax.op), ``const``, ``np``, ``dims(x)`` and
the names of values; or None if nothing in the pool fits. What the operator refuses is tried again
with something else, so that recipes need not know every rule. ``SMOOTH`` operators have results
that move little when their arguments do; all others take exact arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tests.lib import graph_index_recipes, graph_layer_recipes, graph_special_recipes
from tests.lib.graph_pool import Pool, Recipe, Value

FLOATS: Final = ("float32", "float32", "float32", "float64", "float16")
INTS: Final = ("int32", "int64", "int8", "uint8", "int32", "int64")
DTYPES: Final = (*FLOATS, *INTS, "bool")


def _unary(name: str, accept: Callable[[Value], bool]) -> Recipe:
    def make(p: Pool) -> str | None:
        x = p.pick(accept)
        return None if x is None else f"op.{name}({x.name})"

    return make


def _small(value: Value) -> bool:
    return value.is_float and bool(np.all(np.abs(value.array.astype("float64")) <= 4))


def _positive(value: Value) -> bool:
    return value.is_float and bool(np.all(value.array.astype("float64") >= 0.25))


def _inside(value: Value) -> bool:
    return value.is_float and bool(np.all(np.abs(value.array.astype("float64")) <= 0.9))


def _broadcastable(x: Value, y: Value) -> bool:
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return int(np.prod(shape)) <= 64


def _pair(
    p: Pool, accept: Callable[[Value], bool], right: Callable[[Value], bool] | None = None
) -> tuple[str, str] | None:
    """Two operands of one dtype that broadcast; sometimes the second is a constant."""
    x = p.pick(accept)
    if x is None:
        return None
    fits = right or accept
    y = p.pick(lambda v: v.dtype == x.dtype and fits(v) and _broadcastable(x, v))
    if y is None or p.r.random() < 0.2:
        number = np.array(p.r.choice((1, 2, 3)), x.array.dtype)
        return x.name, p.constant(number)
    return (x.name, y.name)


def _binary(
    name: str, accept: Callable[[Value], bool], right: Callable[[Value], bool] | None = None
) -> Recipe:
    def make(p: Pool) -> str | None:
        pair = _pair(p, accept, right)
        return None if pair is None else f"op.{name}({pair[0]}, {pair[1]})"

    return make


def _number(value: Value) -> bool:
    return not value.is_bool


def _nonzero(value: Value) -> bool:
    return bool(np.all(np.abs(value.array.astype("float64")) >= 0.5))


def _signed(value: Value) -> bool:
    return not value.is_bool and not value.dtype.startswith("uint")


def _shift(value: Value) -> bool:
    return value.is_int and bool(np.all((value.array >= 0) & (value.array < 7)))


def _exact(accept: Callable[[Value], bool]) -> Callable[[Value], bool]:
    return lambda value: value.exact and accept(value)


def _reduction(name: str, accept: Callable[[Value], bool]) -> Recipe:
    def make(p: Pool) -> str | None:
        x = p.pick(accept)
        if x is None:
            return None
        axis = None if p.r.random() < 0.25 else p.axes(x)
        return f"op.{name}({x.name}, axis={axis}, keepdims={p.r.random() < 0.5})"

    return make


def _one_axis(text: str, accept: Callable[[Value], bool]) -> Recipe:
    """``text`` with places ``{x}``, ``{axis}`` and ``{flag}``."""

    def make(p: Pool) -> str | None:
        x = p.pick(lambda v: v.ndim >= 1 and accept(v))
        if x is None:
            return None
        return text.format(x=x.name, axis=p.axis(x), flag=p.r.random() < 0.5)

    return make


def _matmul(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim >= 1 and not v.is_bool)
    if x is None:
        return None
    inner = x.shape[-1]
    y = p.pick(
        lambda v: v.dtype == x.dtype and v.ndim >= 1 and v.shape[-2 if v.ndim > 1 else 0] == inner
    )
    if y is None or p.r.random() < 0.3:
        return f"op.matmul({x.name}, {p.weights((inner, p.r.randint(1, 3)), x.dtype)})"
    return f"op.matmul({x.name}, {y.name})"


def _linear(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 1)
    if x is None:
        return None
    outputs = p.r.randint(1, 3)
    weight, bias = p.weights((outputs, x.shape[-1]), x.dtype), p.weights((outputs,), x.dtype)
    return f"op.linear({x.name}, {weight}, {bias})"


EINSUMS: Final = (
    ("ij,jk->ik", (2, 2)), ("ij->ji", (2,)), ("bij,bjk->bik", (3, 3)), ("ij,ij->i", (2, 2)),
    ("i,j->ij", (1, 1)), ("ii->i", (2,)),
)  # fmt: skip


def _einsum(p: Pool) -> str | None:
    text, ndims = p.r.choice(EINSUMS)
    x = p.float(ndims[0])
    if x is None:
        return None
    operands = [x]
    for ndim in ndims[1:]:
        other = p.pick(partial(_has, x.dtype, ndim))
        if other is None:
            return None
        operands.append(other)
    if not _letters_agree(text, [operand.shape for operand in operands]):
        return None
    return f"op.einsum(({', '.join([operand.name for operand in operands])},), {text!r})"


def _letters_agree(text: str, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether each letter has one size: of symbolic extents that differ, none may turn out 1."""
    sizes: dict[str, int] = {}
    letters = text.split("->")[0].split(",")
    return all(
        sizes.setdefault(letter, size) == size
        for term, shape in zip(letters, shapes, strict=True)
        for letter, size in zip(term, shape, strict=True)
    )


def _has(dtype: str, ndim: int, value: Value) -> bool:
    return value.dtype == dtype and value.ndim == ndim


def _outer(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim == 1)
    y = x and p.pick(lambda v: v.dtype == x.dtype and v.ndim == 1)
    return f"op.outer({x.name}, {y.name})" if x and y else None


def _reshape(p: Pool) -> str | None:
    x = p.any()
    if x is None:
        return None
    forms = ["[-1]", "[1, *dims(X)]", "[*dims(X), 1]"]
    if x.ndim >= 2:
        forms += ["[dims(X)[0] * dims(X)[1], *dims(X)[2:]]", "dims(X)[::-1]"]
    count = int(np.prod(x.shape))
    forms += [f"[{n}, {count // n}]" for n in (1, 2, 3, 4) if count and count % n == 0]
    return f"op.reshape({x.name}, {p.r.choice(forms).replace('X', x.name)})"


def _permute(p: Pool) -> str | None:
    x = p.any()
    if x is None:
        return None
    axes = p.r.choice((None, p.r.sample(range(x.ndim), x.ndim)))
    return f"op.permute_dims({x.name}, {axes})"


def _concat(p: Pool) -> str | None:
    x = p.any(1)
    if x is None:
        return None
    axis = p.axis(x)
    at = axis % x.ndim
    rest = x.shape[:at] + x.shape[at + 1 :]
    parts = [x] + [
        y
        for _ in range(p.r.randint(1, 2))
        if (
            y := p.pick(
                lambda v: (
                    v.dtype == x.dtype
                    and v.ndim == x.ndim
                    and v.shape[:at] + v.shape[at + 1 :] == rest
                )
            )
        )
    ]
    return f"op.concat(({', '.join([part.name for part in parts])},), axis={axis})"


def _stack(p: Pool) -> str | None:
    x = p.any()
    y = x and p.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape)
    if not x or not y:
        return None
    return f"op.stack(({x.name}, {y.name}), axis={p.r.randint(-x.ndim - 1, x.ndim)})"


def _split(p: Pool) -> str | None:
    x = p.any(1)
    if x is None:
        return None
    axis = p.axis(x)
    extent = x.shape[axis]
    parts: Any = p.r.choice((1, 2, 3)) if p.r.random() < 0.5 else sorted(
        {p.r.randint(0, extent + 1) for _ in range(p.r.randint(1, 2))}
    )  # fmt: skip
    return f"op.split({x.name}, {parts}, axis={axis})[0]"


def _strided_slice(p: Pool) -> str | None:
    x = p.any(1)
    if x is None:
        return None
    axes = p.axes(x, 1)
    begin = [p.r.randint(-x.shape[a] - 1, x.shape[a] + 1) for a in axes]
    end = [p.r.randint(-x.shape[a] - 1, x.shape[a] + 1) for a in axes]
    strides = [p.r.choice((1, 1, 2, -1)) for _ in axes]
    return f"op.strided_slice({x.name}, {axes}, {begin}, {end}, {strides})"


def _take(p: Pool) -> str | None:
    x = p.any(1)
    if x is None:
        return None
    axis = p.axis(x)
    if x.shape[axis] == 0:
        return None
    shape = p.r.choice(((), (1,), (3,), (2, 2)))
    items = [p.r.randrange(x.shape[axis]) for _ in range(int(np.prod(shape)))]
    indices = p.constant(np.array(items, p.r.choice(("int32", "int64"))).reshape(shape))
    return f"op.take({x.name}, {indices}, axis={axis})"


def _gather_elements(p: Pool) -> str | None:
    x = p.any(1)
    if x is None:
        return None
    axis = p.axis(x)
    if x.shape[axis] == 0:
        return None
    items = [p.r.randrange(x.shape[axis]) for _ in range(int(np.prod(x.shape)))]
    indices = p.constant(np.array(items, "int64").reshape(x.shape))
    return f"op.gather_elements({x.name}, {indices}, axis={axis})"


def _scatter_elements(p: Pool) -> str | None:
    x = p.any(1)
    y = x and p.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape)
    if not x or not y or x.is_bool:
        return None
    axis = p.axis(x)
    width = x.shape[axis]
    order = p.r.sample(range(width), width)  # each element once: no order of updates
    along = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    indices = p.constant(np.broadcast_to(np.array(order, "int64").reshape(along), x.shape))
    how = p.r.choice(("update", "add", "min", "max"))
    return f"op.scatter_elements({x.name}, {indices}, {y.name}, axis={axis}, reduction={how!r})"


def _pad(p: Pool) -> str | None:
    x = p.float()
    if x is None or x.ndim == 0:
        return None
    width = [p.r.randint(0, 2) for _ in range(2 * x.ndim)]
    mode = p.r.choice(("constant", "constant", "edge", "reflect", "circular"))
    return f"op.nn.pad({x.name}, {width}, {mode!r}, {p.r.choice((0.0, 1.5))})"


def _where(p: Pool) -> str | None:
    pair = _pair(p, lambda v: True)
    c = p.pick(lambda v: v.is_bool and v.array.size <= 8)
    return f"op.where({c.name}, {pair[0]}, {pair[1]})" if c and pair else None


def _astype(p: Pool) -> str | None:
    x = p.any(exact=True)
    return None if x is None else f"op.astype({x.name}, {p.r.choice(DTYPES)!r})"


def _shapes(text: str, accept: Callable[[Value], bool] = lambda v: True) -> Recipe:
    """A text with the places ``{x}``, ``{k}`` (a small number) and ``{dtype}``."""

    def make(p: Pool) -> str | None:
        x = p.pick(accept)
        if x is None:
            return None
        return text.format(x=x.name, k=p.r.randint(-2, 2), dtype=p.r.choice(DTYPES))

    return make


def _broadcast_to(p: Pool) -> str | None:
    x = p.pick(lambda v: v.array.size <= 16)
    if x is None:
        return None
    return f"op.broadcast_to({x.name}, [{p.r.randint(1, 3)}, *dims({x.name})])"


def _squeeze(p: Pool) -> str | None:
    x = p.pick(lambda v: 1 in v.shape)
    if x is None:
        return None
    return f"op.squeeze({x.name}, {p.r.choice([a for a, n in enumerate(x.shape) if n == 1])})"


def _expand(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim <= 4)
    return None if x is None else f"op.expand_dims({x.name}, {p.r.randint(-x.ndim - 1, x.ndim)})"


def _tile(p: Pool) -> str | None:
    x = p.pick(lambda v: v.array.size <= 16)
    if x is None:
        return None
    return f"op.tile({x.name}, {[p.r.randint(1, 2) for _ in range(p.r.randint(1, x.ndim + 1))]})"


def _repeat(p: Pool) -> str | None:
    x = p.pick(lambda v: 1 <= v.ndim and v.array.size <= 32)
    return None if x is None else f"op.repeat({x.name}, {p.r.randint(1, 2)}, {p.axis(x)})"


def _topk(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim >= 1 and v.exact and not v.is_bool)
    if x is None:
        return None
    axis = p.axis(x)
    if x.shape[axis] == 0:
        return None
    k = p.r.randint(1, x.shape[axis])
    return f"op.topk({x.name}, {k}, {axis}, 'values', {p.r.random() < 0.5})"


SMOOTH: Final[dict[str, Recipe]] = {
    **{n: _unary(n, _signed) for n in ("abs", "negative")},
    **{n: _unary(n, lambda v: v.is_float) for n in
       ("sigmoid", "tanh", "erf", "sin", "cos", "atan", "asinh", "nn.relu", "nn.relu6", "nn.gelu",
        "nn.gelu_tanh", "nn.silu", "nn.selu", "nn.elu", "nn.celu", "nn.leakyrelu", "nn.softplus",
        "nn.hardswish", "nn.hardsigmoid", "nn.hardtanh", "nn.mish", "nn.log_sigmoid", "nn.softsign",
        "nn.tanhshrink", "nn.softshrink", "square")},
    **{n: _unary(n, _small) for n in ("exp", "sinh", "cosh")},
    **{n: _unary(n, _positive) for n in ("log", "sqrt", "rsqrt")},
    **{n: _unary(n, _inside) for n in ("asin", "acos", "atanh", "tan")},
    "acosh": _unary("acosh", lambda v: v.is_float and bool(np.all(v.array.astype(float) >= 1.25))),
    **{n: _binary(n, _number) for n in ("add", "subtract", "multiply", "maximum", "minimum")},
    "log_add_exp": _binary("log_add_exp", lambda v: v.is_float),
    "divide": _binary("divide", lambda v: v.is_float, _nonzero),
    "power": _binary("power", _positive, _small),
    "ewise_fma": _shapes("op.ewise_fma({x}, {x}, {x})", lambda v: v.is_float),
    "clip": _shapes("op.clip({x}, -2, 3)", _signed),
    **{n: _reduction(n, _number) for n in ("sum", "max", "min")},
    **{n: _reduction(n, lambda v: v.is_float) for n in ("mean", "std", "variance")},
    "prod": _reduction("prod", _small),
    "cumsum": _one_axis("op.cumsum({x}, {axis}, exclusive={flag})", _number),
    "cumprod": _one_axis("op.cumprod({x}, {axis}, exclusive={flag})", _small),
    "nn.softmax": _one_axis("op.nn.softmax({x}, {axis})", lambda v: v.is_float),
    "nn.log_softmax": _one_axis("op.nn.log_softmax({x}, {axis})", lambda v: v.is_float),
    "matmul": _matmul,
    "linear": _linear,
    "einsum": _einsum,
    "outer": _outer,
    "reshape": _reshape,
    "permute_dims": _permute,
    "concat": _concat,
    "stack": _stack,
    "split": _split,
    "strided_slice": _strided_slice,
    "take": _take,
    "gather_elements": _gather_elements,
    "scatter_elements": _scatter_elements,
    "nn.pad": _pad,
    "where": _where,
    "broadcast_to": _broadcast_to,
    "squeeze": _squeeze,
    "expand_dims": _expand,
    "tile": _tile,
    "repeat": _repeat,
    "flip": _one_axis("op.flip({x}, {axis})", lambda v: True),
    "flatten": _shapes("op.flatten({x})"),
    "tril": _shapes("op.tril({x}, {k})", lambda v: v.ndim >= 2),
    "triu": _shapes("op.triu({x}, {k})", lambda v: v.ndim >= 2),
    "zeros_like": _shapes("op.zeros_like({x}, {dtype!r})"),
    "ones_like": _shapes("op.ones_like({x}, {dtype!r})"),
    "full_like": _shapes("op.full_like({x}, const(2.0, 'float32'))"),
    "zeros": _shapes("op.zeros(dims({x}), {dtype!r})"),
    "ones": _shapes("op.ones(dims({x}), {dtype!r})"),
    **graph_index_recipes.SMOOTH,
    **graph_layer_recipes.SMOOTH,
    **graph_special_recipes.SMOOTH,
}  # fmt: skip
"""Operators whose results move little with their arguments."""

JUMPS: Final[dict[str, Recipe]] = {
    **{n: _unary(n, _exact(lambda v: v.is_float)) for n in
       ("floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "nn.hardshrink")},
    "sign": _unary("sign", _exact(_signed)),
    "logical_not": _unary("logical_not", lambda v: v.is_bool),
    "bitwise_not": _unary("bitwise_not", lambda v: not v.is_float),
    **{n: _binary(n, _exact(_number)) for n in
       ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{n: _binary(n, _exact(_number), _exact(_nonzero)) for n in
       ("floor_divide", "floor_mod", "mod")},
    **{n: _binary(n, lambda v: v.is_bool) for n in ("logical_and", "logical_or", "logical_xor")},
    **{n: _binary(n, lambda v: v.is_int) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: _binary(n, lambda v: v.is_int, _shift) for n in ("left_shift", "right_shift")},
    **{n: _one_axis(f"op.{n}({{x}}, {{axis}}, {{flag}})", _exact(_number)) for n in
       ("argmax", "argmin", "sort")},
    "argsort": _one_axis("op.argsort({x}, {axis}, {flag}, 'int64')", _exact(_number)),
    "median": _reduction("median", _exact(lambda v: v.is_float)),
    "topk": _topk,
    "astype": _astype,
    "one_hot": _shapes("op.one_hot({x}, const(1.0, 'float32'), const(0.0, 'float32'), 4)",
                       lambda v: v.is_int and v.array.size <= 8),
    **graph_index_recipes.JUMPS,
    **graph_special_recipes.JUMPS,
}  # fmt: skip
"""Operators that jump: on exact values only."""

RECIPES: Final[dict[str, Recipe]] = {**SMOOTH, **JUMPS}
