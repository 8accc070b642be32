"""Recipes of random graphs for neural layers, images and detection: by the rules of graph_recipes.

Weights are constants of small magnitude; sizes of windows and outputs are small, so that what comes
out still fits into a random graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tests.lib.graph_pool import Pool, Recipe, Value


def _rows(value: Value) -> bool:
    return value.is_float and value.ndim >= 1 and value.shape[-1] > 0


def _spaces(value: Value) -> bool:
    return value.is_float and value.ndim >= 3 and bool(value.array.size)


def _batches(value: Value) -> bool:
    return value.dtype == "float32" and value.ndim >= 2


def _norm(text: str, accept: Callable[[Value], bool], weights: int) -> Recipe:
    """``text`` with places ``{x}``, ``{w}``, ``{axes}`` (from 2 on) and ``{groups}``.

    The weights are one for each channel, which is axis 1, or the last one where ``{axes}`` is not
    in the text.
    """
    channels = 1 if "{axes}" in text or "axis=1" in text else -1

    def make(p: Pool) -> str | None:
        x = p.pick(accept)
        if x is None:
            return None
        count = x.shape[channels]
        if count == 0:
            return None
        made = ", ".join([p.weights((count,), x.dtype) for _ in range(weights)])
        options = {"axes": list(range(2, x.ndim)), "groups": p.r.choice((1, count))}
        ones = p.constant(np.ones((count,), x.array.dtype))
        return text.format(x=x.name, w=made, ones=ones, **options)

    return make


def _conv(dimensions: int, transpose: bool) -> Recipe:
    layout = "DHW"[3 - dimensions :]

    def make(p: Pool) -> str | None:
        x = p.pick(lambda v: v.is_float and v.ndim == dimensions + 2 and 0 < v.shape[1] <= 4)
        if x is None:
            return None
        channels, groups = x.shape[1], p.r.choice((1, 1, x.shape[1]))
        kernel = tuple([p.r.randint(1, 3) for _ in range(dimensions)])
        outputs = p.r.choice((1, 2)) * groups
        options = f"strides={p.r.randint(1, 2)}, padding={p.r.randint(0, 2)}, groups={groups}"
        if transpose:
            weight = p.weights((channels, outputs // groups, *kernel), x.dtype)
            return f"op.nn.conv{dimensions}d_transpose({x.name}, {weight}, {options})"
        weight = p.weights((outputs, channels // groups, *kernel), x.dtype)
        options += f", dilation={p.r.randint(1, 2)}, data_layout='NC{layout}'"
        return f"op.nn.conv{dimensions}d({x.name}, {weight}, {options})"

    return make


def _pool(name: str, dimensions: int) -> Recipe:
    def make(p: Pool) -> str | None:
        x = p.float(dimensions + 2)
        if x is None:
            return None
        size = [p.r.randint(1, 3) for _ in range(dimensions)]
        options = f"output_size={size}"
        if "adaptive" not in name:
            flags = f"ceil_mode={p.r.random() < 0.5}, count_include_pad={p.r.random() < 0.5}"
            padding = 0 if min(size) == 1 else p.r.randint(0, 1)
            options = f"pool_size={size}, strides={p.r.randint(1, 2)}, padding={padding}, {flags}"
        return f"op.nn.{name}_pool{dimensions}d({x.name}, {options})"

    return make


def _prelu(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 2)
    return None if x is None else f"op.nn.prelu({x.name}, {p.weights(x.shape[1:2], x.dtype)}, 1)"


def _dense(p: Pool) -> str | None:
    x = p.float(2)
    return None if x is None else f"op.nn.dense({x.name}, {p.weights((2, x.shape[1]), x.dtype)})"


def _attention(name: str) -> Recipe:
    def make(p: Pool) -> str | None:
        q = p.float(4)
        k = q and p.pick(
            lambda v: v.dtype == q.dtype and v.ndim == 4 and v.shape[0] == q.shape[0]
            and v.shape[2:] == q.shape[2:] and v.shape[1] > 0
        )  # fmt: skip
        if not q or not k:
            return None
        bias = ""
        if name == "attention_bias":
            shape = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
            bias = f", {p.weights(shape, q.dtype)}"
        causal = p.r.choice((None, "TopLeft", "BottomRight"))
        return f"op.nn.{name}({q.name}, {k.name}, {k.name}{bias}, causal_mask={causal!r})"

    return make


def _attention_var_len(p: Pool) -> str | None:
    q = p.pick(lambda v: v.is_float and v.ndim == 4 and v.shape[0] == 1 and v.shape[1] > 0)
    if q is None:
        return None
    starts = p.constant(np.array([0, p.r.randint(0, q.shape[1]), q.shape[1]], "int32"))
    longest = f"const({q.shape[1]}, 'int32')"
    return f"op.nn.attention_var_len({q.name}, {q.name}, {q.name}, {starts}, {longest})"


GATES: Final = {"rnn": 1, "gru": 3, "lstm": 4}


def _recurrent(name: str) -> Recipe:
    def make(p: Pool) -> str | None:
        x = p.float(3)
        if x is None:
            return None
        hidden = p.r.randint(1, 2)
        rows = GATES[name] * hidden
        shapes: Sequence[tuple[int, ...]] = [(rows, x.shape[2]), (rows, hidden)]
        if p.r.random() < 0.5:
            shapes = [*shapes, (rows,), (rows,)]
        weights = ", ".join([p.weights(shape, x.dtype) for shape in shapes])
        field = p.r.randint(0, 2 if name == "lstm" else 1)
        return f"op.nn.{name}({x.name}, {weights}, reverse={p.r.random() < 0.5})[{field}]"

    return make


def _recurrent_layer(p: Pool) -> str | None:
    x = p.float(3)
    if x is None:
        return None
    kind, hidden = p.r.choice(list(GATES)), p.r.randint(1, 2)
    rows = GATES[kind] * hidden
    shapes = [(rows, x.shape[2]), (rows, hidden), (rows,), (rows,)]
    weights = ", ".join([p.weights(shape, x.dtype) for shape in shapes])
    states: Sequence[tuple[int, ...]] = [(x.shape[1], hidden)]
    if kind == "lstm":
        states = [*states, (x.shape[1], hidden), (3 * hidden,)]
    first = ", ".join([p.weights(shape, x.dtype) for shape in states])
    ends = p.constant(np.array([p.r.randint(0, x.shape[0]) for _ in range(x.shape[1])], "int64"))
    options = f"{kind!r}, reverse={p.r.random() < 0.5}, clip={p.r.choice((0.0, 0.5))}"
    call = f"op.nn.recurrent_layer({x.name}, {weights}, ({first},), {ends}, {options})"
    return f"{call}[{p.r.randint(0, 1)}]"


def _cross_entropy(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim in (1, 2) and v.array.size > 0)
    if x is None:
        return None
    return f"op.nn.cross_entropy_with_logits({x.name}, {p.weights(x.shape, x.dtype)})"


def _nll_loss(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim >= 2 and v.array.size > 0)
    if x is None:
        return None
    shape = (x.shape[0], *x.shape[2:])
    classes = [p.r.randrange(x.shape[1]) for _ in range(int(np.prod(shape)))]
    targets = p.constant(np.array(classes, "int64").reshape(shape))
    reduction = p.r.choice(("mean", "sum", "none"))
    return f"op.nn.nll_loss({x.name}, {targets}, reduction={reduction!r})"


def _pixel_shuffle(p: Pool) -> str | None:
    x = p.pick(lambda v: v.ndim >= 3 and v.shape[-3] == 4)
    return None if x is None else f"op.nn.pixel_shuffle({x.name}, 2)"


def _resize(dimensions: int) -> Recipe:
    layout = f"NC{'DHW'[3 - dimensions :]}"

    def make(p: Pool) -> str | None:
        x = p.pick(lambda v: v.dtype == "float32" and v.ndim == 2 + dimensions and v.array.size > 0)
        if x is None:
            return None
        size: Any = tuple([p.r.randint(1, 4) for _ in range(dimensions)])
        rule = p.r.choice(("half_pixel", "asymmetric"))
        return (
            f"op.image.resize{dimensions}d({x.name}, {size}, layout={layout!r}, method='linear', "
            f"coordinate_transformation_mode={rule!r})"
        )

    return make


def _affine_grid(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype == "float32" and v.ndim == 3 and v.shape[1:] == (2, 3))
    if x is None:
        batch = p.r.randint(1, 2)
        name = p.weights((batch, 2, 3), "float32")
    else:
        name = x.name
    return f"op.image.affine_grid({name}, ({p.r.randint(2, 3)}, {p.r.randint(2, 3)}))"


def _grid_sample(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype == "float32" and v.ndim == 4 and v.array.size > 0)
    if x is None:
        return None
    shape = (x.shape[0], 2, 1, p.r.randint(1, 3))
    places = [p.r.choice((-0.75, -0.3, 0.2, 0.6)) for _ in range(int(np.prod(shape)))]
    grid = p.constant(np.array(places, "float32").reshape(shape))
    border = p.r.choice(("zeros", "border"))
    return f"op.image.grid_sample({x.name}, {grid}, padding_mode={border!r})"


def _roi_align(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype == "float32" and v.ndim == 4 and v.array.size > 0)
    if x is None:
        return None
    count = p.r.randint(0, 2)
    rois = [[p.r.randrange(x.shape[0]), 0.0, 0.5, 2.0, 1.5] for _ in range(count)]
    boxes = p.constant(np.array(rois, "float32").reshape(count, 5))
    return f"op.vision.roi_align({x.name}, {boxes}, (1, 2), 1.0, 1)"


def _roi_pool(p: Pool) -> str | None:
    x = p.pick(lambda v: v.dtype == "float32" and v.ndim == 4 and v.array.size > 0)
    if x is None:
        return None
    rois = [[p.r.randrange(x.shape[0]), 0, 0, p.r.randint(0, 3), 2] for _ in range(2)]
    return f"op.vision.roi_pool({x.name}, {p.constant(np.array(rois, 'float32'))}, (2, 1))"


def _deform_im2col(p: Pool) -> str | None:
    x = p.pick(lambda v: v.is_float and v.ndim == 4 and v.array.size and min(v.shape[2:]) >= 2)
    if x is None:
        return None
    offset = p.weights((x.shape[0], 4, x.shape[2] - 1, x.shape[3]), x.dtype)
    return f"op.nn.deform_im2col({x.name}, {offset}, (2, 1))"


def _suppression(p: Pool) -> str:
    count = p.r.randint(1, 3)
    corners = [[0.0, 0.25 * i, 1.0, 1.0 + 0.5 * i] for i in range(count)]
    boxes = p.constant(np.array([corners], "float32"))
    scores = p.constant(np.array([[p.r.sample([0.1, 0.4, 0.7, 0.9], count)]], "float32"))
    limits = "const(2, 'int64'), const(0.3, 'float32'), const(0.2, 'float32')"
    call = f"op.vision.all_class_non_max_suppression({boxes}, {scores}, {limits})"
    return f"{call}[{p.r.randint(0, 1)}]"


SMOOTH: Final[dict[str, Recipe]] = {
    "nn.layer_norm": _norm("op.nn.layer_norm({x}, {w}, axes=[-1])", _rows, 2),
    "nn.rms_norm": _norm("op.nn.rms_norm({x}, {w}, axes=[-1])", _rows, 1),
    "nn.group_norm": _norm("op.nn.group_norm({x}, {w}, {groups}, 1, {axes})", _spaces, 2),
    "nn.instance_norm": _norm("op.nn.instance_norm({x}, {w}, 1, {axes})", _spaces, 2),
    "nn.batch_norm": _norm(
        "op.nn.batch_norm({x}, {w}, {ones}, axis=1, training=False)[0]", _batches, 3
    ),
    **{f"nn.conv{n}d": _conv(n, False) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": _conv(n, True) for n in (1, 2, 3)},
    **{f"nn.{k}_pool{n}d": _pool(k, n) for n in (1, 2, 3)
       for k in ("max", "avg", "adaptive_max", "adaptive_avg")},
    **{f"nn.{name}": _attention(name) for name in ("attention", "attention_bias")},
    "nn.attention_var_len": _attention_var_len,
    **{f"nn.{name}": _recurrent(name) for name in GATES},
    "nn.recurrent_layer": _recurrent_layer,
    "nn.prelu": _prelu, "nn.dense": _dense, "nn.pixel_shuffle": _pixel_shuffle,
    "nn.cross_entropy_with_logits": _cross_entropy, "nn.nll_loss": _nll_loss,
    **{f"image.resize{n}d": _resize(n) for n in (1, 2, 3)},
    "image.affine_grid": _affine_grid, "image.grid_sample": _grid_sample,
    "vision.roi_align": _roi_align, "vision.roi_pool": _roi_pool,
    "nn.deform_im2col": _deform_im2col,
    "vision.all_class_non_max_suppression": _suppression,
}  # fmt: skip
"""Operators whose results move little with their arguments."""
