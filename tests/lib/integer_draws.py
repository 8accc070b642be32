"""Draws random graphs of integer layers; ``random_integer_graphs`` compiles and checks them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tests.lib.integer_layers import Convolution, Layer, Product, Tail
from tests.lib.integer_moves import Combine, Join, Largest, Limit, Mean, Move
from tests.lib.integer_numbers import BYTES, FILLS, Coding, Weights, Window, limits_of
from tests.lib.random_integer_graphs import Graph, Input, Run, Shape, Step

CHANNELS: Final = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 20, 24, 32, 33, 40)
ROWS: Final = (1, 1, 2, 3, 5, 16, 17, 31, 33)
LONG: Final = (1, 3, 4, 7, 16, 18, 33, 64, 100, 130)
"""Lengths of the sums of products of matrices."""
PIXELS: Final = (1, 3, 4, 5, 7, 8, 9, 12)
LENGTHS: Final = (1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 5)
"""How many layers a graph has."""
ACTIVATIONS: Final = ("uint8", "uint8", "uint8", "int8", "int8", "int16")
LARGEST: Final = 20_000
"""Tensors have at most that many elements, at a size of 4."""
Value = tuple[str, Shape, Coding]
"""The name of a tensor of integers, its shape and coding."""
Drawn = tuple[Layer, Shape, Coding | None]
"""A layer, the shape and the coding of its result."""


def random_integer_graph(seed: int) -> Graph:
    """A graph of one to five layers."""
    return _Draw(random.Random(seed)).graph()


class _Draw:
    """What has been drawn of a graph so far."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.is_power = r.random() < 0.5
        self.is_symbolic = r.random() < 0.5
        self.inputs: list[Input] = []
        self.steps: list[Step] = []
        self.values: list[Value] = []

    def graph(self) -> Graph:
        """The whole graph."""
        r = self.r
        self.input(self.first_shape())
        count = r.choice(LENGTHS)
        for _ in range(30):
            if len(self.steps) == count:
                break
            is_last = len(self.steps) == count - 1
            source = self.values[-1] if r.random() < 0.8 else r.choice(self.values)
            drawn = self.layer(source, is_last)
            if drawn is not None:
                self.add(*drawn)
        sizes = [0, 1, 2, 3, r.randint(4, 9)] if self.is_symbolic else [1, 1]
        runs = [Run(n, r.choice(FILLS), r.randrange(1 << 30)) for n in sizes]
        return Graph(
            tuple(self.inputs), tuple(self.steps), tuple(runs), self.is_power, r.random() < 0.3
        )

    def first_shape(self) -> Shape:
        """The shape of the first input: images, matrices, a vector."""
        r = self.r
        batch: int | str = "n" if self.is_symbolic else r.choice((1, 1, 1, 2, 3))
        rows: int | str = "n" if self.is_symbolic else r.choice(ROWS)
        kind = r.choice(("image",) * 10 + ("line", "matrix", "matrix", "matrix", "batch", "vector"))
        shapes: dict[str, Shape] = {
            "image": (batch, r.choice(CHANNELS), r.choice(PIXELS), r.choice(PIXELS)),
            "line": (batch, r.choice(CHANNELS), r.choice(PIXELS)),
            "matrix": (rows, r.choice(LONG)),
            "batch": (batch, r.choice(ROWS), r.choice(LONG)),
            "vector": (r.choice(LONG),),
        }
        if kind == "vector":
            self.is_symbolic = False
        return shapes[kind]

    def input(self, shape: Shape, coding: Coding | None = None) -> Value:
        """A new input, of a coding that is drawn unless it is given."""
        name = f"x{len(self.inputs)}"
        chosen = coding or self.coding(self.scale(2, 7))
        is_given = chosen.dtype in BYTES and self.r.random() < 0.2
        self.inputs.append(Input(name, shape, chosen, is_given))
        self.values.append((name, shape, chosen))
        return self.values[-1]

    def add(self, layer: Layer, shape: Shape, coding: Coding | None) -> None:
        """Append a layer."""
        name = f"v{len(self.steps)}"
        self.steps.append(Step(name, layer, shape, coding))
        if coding is not None:
            self.values.append((name, shape, coding))

    # Codings

    def scale(self, low: int, high: int) -> float:
        """A scale between ``2**-high`` and ``2**-low``."""
        if self.is_power:
            return 2.0 ** -self.r.randint(low, high)
        return float(np.float32(2.0 ** -self.r.uniform(low, high)))

    def coding(self, scale: float, dtypes: tuple[str, ...] = ACTIVATIONS) -> Coding:
        """A coding about a scale: any zero point, 0 and the ends often."""
        dtype = self.r.choice(dtypes)
        if dtype == "int16":
            scale /= 64 if self.is_power else 53
        return Coding(dtype, float(np.float32(scale)), self.zero(dtype))

    def zero(self, dtype: str) -> int:
        """A zero point."""
        r, (low, high) = self.r, limits_of(dtype)
        if dtype == "int16" and r.random() < 0.5:
            return 0
        small = r.randint(max(low, -20), min(high, 20))
        return r.choice((0, 0, low, high, r.randint(low, high), small, small))

    def weights(self, shape: tuple[int, ...], axis: int) -> Weights:
        """Weights, per tensor or per channel of an axis."""
        r, dtype = self.r, self.r.choice(("int8", "int8", "int8", "uint8"))
        count = shape[axis] if len(shape) > 1 else 1
        zeros: tuple[int, ...] = (0,)
        if dtype == "uint8" or r.random() < 0.25:
            zeros = tuple(self.zero(dtype) for _ in range(count if r.random() < 0.4 else 1))
        scales = tuple(self.scale(4, 7) for _ in range(count if r.random() < 0.5 else 1))
        return Weights(shape, dtype, r.randrange(1 << 30), r.choice(FILLS), axis, zeros, scales)

    def result(self, form: str, typical: float, is_last: bool) -> Coding | None:
        """The coding of sums whose typical size is given; None for the sums themselves."""
        if is_last and self.r.random() < 0.4:
            return None
        scale = typical / 64 * 2 ** self.r.choice((-1, 0, 0, 1, 2))
        if self.is_power:
            scale = 2.0 ** round(math.log2(scale))
        bytes_only = tuple(dtype for dtype in ACTIVATIONS if dtype != "int16")
        return self.coding(scale, ACTIVATIONS if form == "integer" else bytes_only)

    def tail(self) -> Tail:
        """A bias and limits, or none."""
        r = self.r
        bias = r.randrange(1 << 30) if r.random() < 0.4 else None
        wide = (-r.choice((0, 100, 20_000)), r.choice((1000, 90_000)))
        limits = r.choice((None, None, (0, 2**31 - 1), wide))
        return Tail(bias, limits)

    # Layers

    def layer(self, source: Value, is_last: bool) -> Drawn | None:
        """A layer that reads a value, the shape and the coding of its result, if it fits."""
        rank, r = len(source[1]), self.r
        makers: Sequence[Callable[[Value, bool], Drawn | None]]
        if rank == 4:
            makers = [self.convolution] * 6 + [self.pool, self.mean, self.flatten]
        elif rank == 3:
            makers = [self.convolution, self.product, self.product, self.pairs, self.swap]
        elif rank == 2:
            makers = [self.product] * 4 + [self.pairs]
        else:
            makers = [self.product]
        drawn = r.choice([*makers, self.limit, self.combine, self.join])(source, is_last)
        if drawn is None:
            return None
        extents = [4 if extent == "n" else int(extent) for extent in drawn[1]]
        return drawn if math.prod(extents) <= LARGEST else None

    def convolution(self, source: Value, is_last: bool) -> Drawn | None:
        """A convolution in one or two dimensions."""
        r, (name, (batch, channels, *space), coding) = self.r, source
        depth = int(channels)
        groups = r.choice((1, 1, 1, 1, depth, math.gcd(depth, r.choice((2, 3, 4)))))
        filters = groups * max(r.choice(CHANNELS) // groups, 1)
        window = self.window(len(space), r.choice((1, 3, 3, None)))
        counts = window.counts([int(extent) for extent in space])
        if min(counts) < 1:
            return None
        weights = self.weights((filters, depth // groups, *window.kernel), 0)
        form = r.choice(("qdq", "integer"))
        result = self.result(form, self.typical(coding, weights, weights.shape[1:]), is_last)
        layer = Convolution((name,), form, result, weights, False, self.tail(), window, groups)
        return layer, (batch, filters, *counts), result

    def typical(self, coding: Coding, weights: Weights, extents: tuple[int, ...]) -> float:
        """A typical sum of products, in reals."""
        size = 0.33 * coding.reach * weights.reach * math.sqrt(math.prod(extents))
        return size * coding.scale * weights.scales[0]

    def window(self, rank: int, side: int | None) -> Window:
        """A window of a side, or (None) of any sides, with strides, padding and dilation."""
        r = self.r
        kernel = tuple(side or r.choice((1, 2, 3, 4, 5)) for _ in range(rank))
        is_plain = r.random() < 0.4
        strides = tuple(1 if is_plain else r.choice((1, 2, 2, 3)) for _ in range(rank))
        dilation = tuple(r.choice((1, 1, 1, 2)) if r.random() < 0.4 else 1 for _ in range(rank))
        if r.random() < 0.5:
            pads = tuple(side // 2 for side in kernel) * 2
        else:
            pads = tuple(r.randint(0, min(side, 3) - 1) for side in kernel * 2)
        return Window(kernel, strides, pads, dilation)

    def product(self, source: Value, is_last: bool) -> Drawn | None:
        """A product with weights, which may be a vector or a batch, and transposed."""
        r, (name, (*rows, length), coding) = self.r, source
        if length == "n":
            return None
        columns, form = r.choice(CHANNELS), r.choice(("qdq", "integer"))
        shape: tuple[int, ...] = (int(length), columns)
        if r.random() < 0.1 and rows:
            shape = (int(length),)
        elif len(rows) == 2 and rows[0] != "n" and r.random() < 0.3:
            shape = (int(rows[0]), *shape)
        is_transposed = len(shape) > 1 and r.random() < 0.5
        if is_transposed:
            shape = (*shape[:-2], shape[-1], shape[-2])
        weights = self.weights(shape, max(len(shape) - (2 if is_transposed else 1), 0))
        result = self.result(form, self.typical(coding, weights, (int(length),)), is_last)
        layer = Product((name,), form, result, weights, is_transposed, self.tail())
        after: Shape = tuple(rows) if len(shape) == 1 else (*rows, columns)
        return layer, after, result if len(shape) > 1 else None

    def pairs(self, source: Value, is_last: bool) -> Drawn | None:
        """A product of two activations: with a new input, or with itself."""
        r, (name, (*rows, length), coding) = self.r, source
        if length == "n":
            return None
        columns, is_transposed = r.choice(CHANNELS), r.random() < 0.5
        other = source
        if is_transposed and rows[-1] != "n" and r.random() < 0.3:
            columns = int(rows[-1])
        else:
            last: Shape = (columns, length) if is_transposed else (length, columns)
            other = self.input((*rows[:-1], *last))
        form = r.choice(("qdq", "integer"))
        typical = 0.33 * coding.reach * other[2].reach * math.sqrt(int(length))
        result = self.result(form, typical * coding.scale * other[2].scale, is_last)
        layer = Product((name, other[0]), form, result, None, is_transposed, Tail())
        return layer, (*rows, columns), result

    def pool(self, source: Value, is_last: bool) -> Drawn | None:
        """A max pool."""
        name, (batch, channels, *space), coding = source
        window = self.window(2, None)
        counts = window.counts([int(extent) for extent in space])
        if min(counts) < 1:
            return None
        form = self.r.choice(("qdq", "integer"))
        result = coding if form == "integer" else self.nearby(coding)
        return Largest((name,), form, result, window), (batch, channels, *counts), result

    def mean(self, source: Value, is_last: bool) -> Drawn | None:
        """An average pool, or the mean of each channel."""
        r, (name, (batch, channels, *space), coding) = self.r, source
        window = None if r.random() < 0.4 else self.window(2, r.choice((2, 3)))
        counts = [1, 1]
        if window is not None:
            window = Window(window.kernel, window.strides, window.pads, (1, 1))
            counts = window.counts([int(extent) for extent in space])
        if min(counts) < 1:
            return None
        result = self.nearby(coding, ("uint8", "int8"))
        layer = Mean((name,), "qdq", result, window, r.random() < 0.5)
        return layer, (batch, channels, *counts), result

    def nearby(self, coding: Coding, dtypes: tuple[str, ...] = ACTIVATIONS) -> Coding:
        """A coding with another scale of the same size."""
        is_wide = coding.dtype == "int16"
        size = coding.scale * (64 if is_wide else 1)
        factor = self.r.choice((0.5, 1, 1, 2)) if self.is_power else self.r.uniform(0.5, 2)
        return self.coding(size * factor, dtypes)

    def limit(self, source: Value, is_last: bool) -> Drawn | None:
        """A relu or a clip."""
        r, (name, shape, coding) = self.r, source
        form = r.choice(("qdq", "integer"))
        low, high = r.choice(((0, None), (0, 60), (-30, 90), (-200, 20)))
        result = coding if form == "integer" else self.nearby(coding)
        return Limit((name,), form, result, low, high), shape, result

    def combine(self, source: Value, is_last: bool) -> Drawn | None:
        """Two tensors with different scales, one of which may be broadcast."""
        r, (name, shape, coding) = self.r, source
        others = [value for value in self.values if value[1] == shape]
        if r.random() < 0.4:
            other = r.choice(others)
        else:
            other = self.input(r.choice((shape, shape, (1,) * (len(shape) - 1) + shape[-1:])))
        operator = r.choice(("add", "add", "add", "subtract", "multiply", "maximum", "minimum"))
        result = self.nearby(coding)
        names = (name, other[0])
        return Combine(names, "qdq", result, operator), shape, result

    def join(self, source: Value, is_last: bool) -> Drawn | None:
        """Two tensors beside each other."""
        r, (name, shape, coding) = self.r, source
        axes = [axis for axis, extent in enumerate(shape) if extent != "n"]
        if not axes:
            return None
        axis, form = r.choice(axes), r.choice(("qdq", "integer"))
        more = r.choice(CHANNELS[:6])
        other = self.input(
            (*shape[:axis], more, *shape[axis + 1 :]), coding if form == "integer" else None
        )
        result = coding if form == "integer" else self.nearby(coding)
        after = (*shape[:axis], int(shape[axis]) + more, *shape[axis + 1 :])
        return Join((name, other[0]), form, result, axis), after, result

    def flatten(self, source: Value, is_last: bool) -> Drawn | None:
        """All axes but the first in one."""
        name, (first, *others), coding = source
        length = math.prod(int(extent) for extent in others)
        return Move((name,), "integer", coding, "flatten"), (first, length), coding

    def swap(self, source: Value, is_last: bool) -> Drawn | None:
        """The last two axes in the other order."""
        name, shape, coding = source
        after = (*shape[:-2], shape[-1], shape[-2])
        return Move((name,), "integer", coding, "swap"), after, coding
