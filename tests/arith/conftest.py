"""Spaces of loops, evaluated at all their points: the brute force behind the property tests."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft.arith.iter_map import IterMapLevel, normalize_iter_map_to_expr
from weft.ir.expr import IntImm, Range
from weft.tir import expr as nodes
from weft.tir import op

NUMPY = {
    nodes.Add: np.add, nodes.Sub: np.subtract, nodes.Mul: np.multiply,
    nodes.FloorDiv: np.floor_divide, nodes.FloorMod: np.mod, nodes.Min: np.minimum,
    nodes.Max: np.maximum, nodes.LT: np.less, nodes.LE: np.less_equal, nodes.GT: np.greater,
    nodes.GE: np.greater_equal, nodes.EQ: np.equal, nodes.NE: np.not_equal,
    nodes.And: np.logical_and, nodes.Or: np.logical_or,
}  # fmt: skip


def evaluate(expr, values):
    """An expression at all points, in numpy's type of its own: narrow arithmetic wraps."""
    if isinstance(expr, IntImm):
        return np.full(1, expr.value, str(expr.dtype))
    if isinstance(expr, nodes.Var):
        return values[expr]
    if isinstance(expr, nodes.Cast):
        return evaluate(expr.value, values).astype(str(expr.dtype))
    return NUMPY[type(expr)](evaluate(expr.a, values), evaluate(expr.b, values))


class Space:
    """Loops of a random nest, and all its points."""

    def __init__(
        self, random, sizes=(1, 2, 3, 4, 4, 5, 6, 8), starts=(0, 0, 0, 0, 0, -2, 3), dtype="int32"
    ):
        self.random, self.dtype = random, dtype
        self.loops = [nodes.Var(name, dtype) for name in "ijk"[: random.randint(1, 3)]]
        self.extents = [random.choice(sizes) for _ in self.loops]
        starts = [random.choice(starts) for _ in self.loops]
        self.domain = {
            loop: Range.from_min_extent(IntImm(dtype, start), IntImm(dtype, extent))
            for loop, start, extent in zip(self.loops, starts, self.extents, strict=True)
        }
        points = itertools.product(
            *[range(s, s + e) for s, e in zip(starts, self.extents, strict=True)]
        )
        self.points = np.array(list(points))
        self.predicate = op.const(True)

    def where(self, predicate):
        """Keep the points where the predicate holds; False if there is none."""
        self.predicate = predicate
        self.points = self.points[self.values(predicate).astype(bool)]
        return len(self.points) > 0

    def values(self, expr):
        """An expression at all points."""
        at = {
            loop: self.points[:, number].astype(self.dtype)
            for number, loop in enumerate(self.loops)
        }
        return np.broadcast_to(evaluate(expr, at), (len(self.points),))

    def assert_map(self, indices, found, level):
        """What ``detect_iter_map`` found holds at all points.

        Values are kept; surjective indices reach every combination, bijective ones once.
        """
        columns, axes = [], []
        for index, total in zip(indices, found.indices, strict=True):
            columns.append(self.values(index))
            assert (columns[-1] == self.values(normalize_iter_map_to_expr(total))).all()
            base, scale, extent = self.values(total.base)[0], 1, 1
            for split in total.args:
                scale, extent = self.values(split.scale)[0], self.values(split.extent)[0]
            axes.append([int(base) + int(scale) * step for step in range(extent)])
        reached = set(zip(*[column.tolist() for column in columns], strict=True))
        if level is IterMapLevel.NoCheck:
            assert reached <= set(itertools.product(*axes))
        else:
            assert reached == set(itertools.product(*axes))
        if level is IterMapLevel.Bijective:
            assert len(reached) == len(self.points)

    def expression(self, depth=3):
        """A random index."""
        random = self.random
        if depth == 0 or random.random() < 0.15:
            return random.choice(self.loops)
        a, kind = self.expression(depth - 1), random.random()
        if kind < 0.3:
            return a + self.expression(depth - 1)
        if kind < 0.36:
            return a - self.expression(depth - 1)
        if kind < 0.42:
            return a + random.randint(-3, 5)
        number = random.choice([1, 2, 3, 4, 5, 6, 8, 12])
        return a * number if kind < 0.66 else op.floordiv(a, number) if kind < 0.83 else a % number

    def fused(self):
        """Some loops as one, most often without a gap; its number of values."""
        order = list(zip(self.loops, self.extents, strict=True))
        self.random.shuffle(order)
        total, stride = 0, 1
        for loop, extent in order[: self.random.randint(1, len(order))]:
            total = loop * stride + total
            stride *= extent if self.random.random() < 0.85 else max(1, extent - 1)
        return (
            total + self.random.randint(-4, 9) if self.random.random() < 0.25 else total
        ), stride

    def digits(self):
        """Digits of fused loops: independent unless one of the loops does not divide."""
        total, _ = self.fused()
        found = [f(total, self.random.choice([2, 3, 4, 6])) for f in (op.floordiv, op.floormod)]
        if self.random.random() < 0.6:
            number = self.random.choice([2, 3, 4, 6, 8])
            found = [op.floordiv(total, number), op.floormod(total, number)]
        if self.random.random() < 0.4:
            number, last = self.random.choice([2, 3, 4]), found.pop()
            found += [op.floordiv(last, number), op.floormod(last, number)]
        if self.random.random() < 0.3:
            found = [found[0] * self.random.choice([2, 3, 4, 6]) + found[1], *found[2:]]
        return found

    def indices(self):
        """Random indices of any of these kinds."""
        kind = self.random.random()
        if kind < 0.35:
            return [self.expression() for _ in range(self.random.randint(1, 2))]
        return [self.fused()[0]] if kind < 0.55 else self.digits()

    def bound(self):
        """A random bound on a sum of loops, or on a digit."""
        total, size = self.fused() if self.random.random() < 0.8 else (self.indices()[0], 8)
        limit = op.const(self.random.randint(0, max(1, size)))
        kinds = [op.less, op.less_equal, op.greater_equal, op.greater]
        return self.random.choice(kinds)(total, limit)


@pytest.fixture(scope="session")
def space_of():
    """Space, for tests that draw their own random numbers."""
    return Space
