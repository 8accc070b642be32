"""Random programs of the shapes that schedules are for, from tensor expressions.

Element-wise chains, broadcasts, reductions, matrix products, convolutions, paddings, softmax-like
pairs of reductions; extents that tiles divide and that they do not, 1, and symbolic ones. Mostly
integers, so that any order of a reduction gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft import te
from weft.support.dtype import DataType
from weft.tir import expr, op
from weft.tir.function import PrimFunc

EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)


@dataclass(frozen=True)
class Workload:
    """A program and, by name, what its symbolic extents are when it runs."""

    func: PrimFunc
    sizes: dict[str, int]
    kind: str


class _Draw:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sizes: dict[str, int] = {}
        self.dtype = self.random.choice(("int32", "int32", "int64", "int8", "float32"))
        self.symbolic = self.random.random() < 0.2

    def extent(self) -> Any:
        """A constant, or now and then a symbol with a size."""
        if self.symbolic and len(self.sizes) < 2 and self.random.random() < 0.6:
            name = f"n{len(self.sizes)}"
            self.sizes[name] = self.random.choice((1, 2, 5, 8, 11))
            return te.var(name)
        return self.random.choice(EXTENTS)

    def input(self, name: str, *shape: Any) -> Any:
        return te.placeholder(shape, self.dtype, name)

    def number(self) -> Any:
        return op.const(self.random.randint(-3, 3), self.dtype)

    def element(self, value: Any) -> Any:
        """A cheap function of one element."""
        choice = self.random.randrange(4)
        if choice == 0:
            return value + self.number()
        if choice == 1:
            return value * self.number()
        return te.max(value, self.number()) if choice == 2 else self.number() - value


def _element_wise(d: _Draw, source: Any, name: str) -> Any:
    return te.compute(source.shape, lambda *indices: d.element(source(*indices)), name=name)


def _chain(d: _Draw) -> list[Any]:
    shape = [d.extent() for _ in range(d.random.randint(1, 3))]
    a = current = d.input("A", *shape)
    for position in range(d.random.randint(1, 3)):
        current = _element_wise(d, current, "BCD"[position])
    return [a, current]


def _broadcast(d: _Draw) -> list[Any]:
    n, m = d.extent(), d.extent()
    a, b = d.input("A", n, m), d.input("B", m)
    c = te.compute((n, m), lambda i, j: a[i, j] + b[j], name="C")
    e = te.compute((m, n), lambda i, j: d.element(c[j, i]), name="D")
    return [a, b, e]


def _reduction(d: _Draw) -> list[Any]:
    n, m = d.extent(), d.extent()
    a = d.input("A", n, m)
    pre = te.compute((n, m), lambda i, j: d.element(a[i, j]), name="P")
    k = te.reduce_axis((0, m), "k")
    reducer = d.random.choice((te.sum, te.max, te.min))
    b = te.compute((n,), lambda i: reducer(pre[i, k], axis=k), name="B")
    return [a, te.compute((n, m), lambda i, j: pre[i, j] - b[i], name="C")]


def _matmul(d: _Draw) -> list[Any]:
    n, m, depth = d.extent(), d.extent(), d.extent()
    a, b = d.input("A", n, depth), d.input("B", depth, m)
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    if d.random.random() < 0.5:
        return [a, b, c]
    return [a, b, te.compute((n, m), lambda i, j: d.element(c[i, j]), name="D")]


def _convolution(d: _Draw) -> list[Any]:
    channels, size, taps = d.random.choice((1, 2, 4)), d.random.choice((4, 5, 8)), 3
    pad, stride = d.random.choice((0, 1)), d.random.choice((1, 2))
    a, w = d.input("A", channels, size, size), d.input("W", channels, taps, taps)
    padded = te.compute(
        (channels, size + 2 * pad, size + 2 * pad),
        lambda c, y, x: op.if_then_else(
            op.all(y >= pad, y < size + pad, x >= pad, x < size + pad),
            a[c, y - pad, x - pad], op.const(0, d.dtype),
        ),
        name="pad",
    )  # fmt: skip
    out = (size + 2 * pad - taps) // stride + 1
    r, s, t = (te.reduce_axis((0, n), v) for n, v in ((channels, "r"), (taps, "s"), (taps, "t")))
    conv = te.compute(
        (2, out, out),
        lambda f, y, x: te.sum(
            padded[r, y * stride + s, x * stride + t]
            * (w[r, s, t] + expr.Cast(DataType(d.dtype), f)),
            axis=[r, s, t],
        ),
        name="conv",
    )
    return [a, w, te.compute((2, out, out), lambda f, y, x: d.element(conv[f, y, x]), name="relu")]


def _window(d: _Draw) -> list[Any]:
    n, taps = d.random.choice((6, 8, 9)), d.random.choice((2, 3))
    a = d.input("A", n + taps - 1, 4)
    b = te.compute((n + taps - 1, 4), lambda i, j: d.element(a[i, j]), name="B")
    k = te.reduce_axis((0, taps), "k")
    return [a, te.compute((n, 4), lambda i, j: te.max(b[i + k, j], axis=k), name="C")]


def _padding(d: _Draw) -> list[Any]:
    n, before, after = d.random.choice((4, 7, 12)), d.random.randint(0, 2), d.random.randint(0, 2)
    a = d.input("A", n)

    def padded(i: Any) -> Any:
        inside = op.all(i >= before, i < n + before)
        return op.if_then_else(inside, a[i - before], op.const(0, d.dtype))

    b = te.compute((n + before + after,), padded, name="B")
    return [a, te.compute((n + before + after,), lambda i: d.element(b[i]), name="C")]


def _reshape(d: _Draw) -> list[Any]:
    n, m = d.random.choice((2, 4, 6)), d.random.choice((3, 4, 8))
    a = d.input("A", n, m)
    b = te.compute((n * m,), lambda i: a[i // m, i % m], name="B")
    return [a, te.compute((m, n), lambda i, j: d.element(b[j * m + i]), name="C")]


KINDS: dict[str, Callable[[_Draw], list[Any]]] = {
    "chain": _chain, "broadcast": _broadcast, "reduction": _reduction, "matmul": _matmul,
    "convolution": _convolution, "window": _window, "padding": _padding, "reshape": _reshape,
}  # fmt: skip


def random_workload(seed: int) -> Workload:
    """The workload of a seed; the same one every time."""
    draw = _Draw(seed)
    kind = draw.random.choice(list(KINDS))
    func = te.create_prim_func(KINDS[kind](draw))
    return Workload(func, draw.sizes, kind)
