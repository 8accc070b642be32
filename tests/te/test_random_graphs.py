"""Random graphs of computations: the function made of each does what numpy does step by step."""

from __future__ import annotations

import random

import numpy as np
import pytest

from weft import te
from weft.ir.structural import structural_equal
from weft.script import from_source
from weft.tir.interp import run

LIMIT = 20_000_000
"""Values stay below this, so that no sum of int32 wraps."""


class Graph:
    """Tensors of int64 beside the arrays that they must hold."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.inputs, self.arrays = [], []
        self.nodes = [self.input() for _ in range(2)]

    def input(self):
        shape = tuple(self.rng.randint(1, 4) for _ in range(self.rng.randint(0, 3)))
        array = self.numbers.integers(-9, 9, shape).astype("int64")
        tensor = te.placeholder(shape, "int64", name=f"in{len(self.inputs)}")
        self.inputs.append(tensor)
        self.arrays.append(array)
        return tensor, array

    def grow(self):
        """Add a tensor computed from one or two of those that are there."""
        steps = [self.pointwise, self.pair, self.transposed, self.part, self.reduced, self.joined]
        node = self.rng.choice(steps)(*self.rng.choice(self.nodes))
        if node is not None:
            self.nodes.append((node[0], self.clipped(node[1])))

    def clipped(self, array):
        assert np.abs(array).max(initial=0) < LIMIT
        return array

    def pointwise(self, tensor, array):
        by = self.rng.choice([2, 3, 5])
        element, value = self.rng.choice([
            (lambda x: x + by, array + by), (lambda x: by - x, by - array),
            (lambda x: te.floormod(x, by), array % by),
            (lambda x: te.floordiv(x, by), array // by),
            (lambda x: te.max(x, 0), np.maximum(array, 0)),
            (lambda x: te.if_then_else(x < by, x, -by), np.where(array < by, array, -by)),
        ])  # fmt: skip
        return te.compute(tensor.shape, lambda *i: element(tensor(*i))), value

    def pair(self, tensor, array):
        others = [node for node in self.nodes if node[1].shape == array.shape]
        other, its = self.rng.choice(others)
        element, value = self.rng.choice([
            (lambda x, y: x - y, array - its), (lambda x, y: x + y, array + its),
            (lambda x, y: te.min(x, y), np.minimum(array, its)),
            (lambda x, y: te.floormod(x * y, 7), array * its % 7),
        ])  # fmt: skip
        return te.compute(tensor.shape, lambda *i: element(tensor(*i), other(*i))), value

    def transposed(self, tensor, array):
        order = list(range(array.ndim))
        self.rng.shuffle(order)
        place = [order.index(dim) for dim in range(array.ndim)]
        value = array.transpose(order)
        return te.compute(value.shape, lambda *i: tensor(*[i[at] for at in place])), value

    def part(self, tensor, array):
        """A part that begins somewhere, perhaps backwards."""
        if not array.ndim:
            return None
        cuts = [sorted(self.rng.choices(range(size + 1), k=2)) for size in array.shape]
        back = [self.rng.random() < 0.4 for _ in cuts]
        value = array[tuple(slice(low, high) for low, high in cuts)]
        value = np.flip(value, [dim for dim, flipped in enumerate(back) if flipped])

        def element(*point):
            index = [
                high - 1 - at if flipped else at + low
                for at, (low, high), flipped in zip(point, cuts, back, strict=True)
            ]
            return tensor(*index)

        return te.compute(value.shape, element), value

    def reduced(self, tensor, array):
        if not array.ndim:
            return None
        dim = self.rng.randrange(array.ndim)
        if array.shape[dim] == 0:
            return None
        name = self.rng.choice(["sum", "max", "min"])
        k = te.reduce_axis((0, array.shape[dim]), "k")

        def element(*point):
            return getattr(te, name)(tensor(*point[:dim], k, *point[dim:]), axis=k)

        value = getattr(array, name)(axis=dim)
        return te.compute(value.shape, element), value

    def joined(self, tensor, array):
        """Twice the tensor, one after the other, along its first dimension."""
        if not array.ndim:
            return None
        size = array.shape[0]

        def element(first, *rest):
            again = -tensor(first - size, *rest)
            return te.if_then_else(first < size, tensor(first, *rest), again)

        value = np.concatenate([array, -array])
        return te.compute(value.shape, element), value


@pytest.mark.parametrize("override", [None, "int32", "int64"])
def test_functions_do_what_numpy_does(override):
    for seed in range(25):
        graph = Graph(seed)
        for _ in range(graph.rng.randint(1, 8)):
            graph.grow()
        made = [node for node in graph.nodes if node[0].op.input_tensors]
        outputs = graph.rng.sample(made, min(len(made), graph.rng.randint(1, 2)))
        func = te.create_prim_func([*graph.inputs, *[tensor for tensor, _ in outputs]], override)
        assert structural_equal(from_source(func.script()), func), f"seed {seed}"
        results = [np.full(array.shape, 99, "int64") for _, array in outputs]
        run(func, *graph.arrays, *results)
        for found, (_, wanted) in zip(results, outputs, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}")
