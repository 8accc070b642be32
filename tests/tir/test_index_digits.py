"""Index maps of digits: moved by numpy, they give what a table of all places gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft import nd
from weft.tir import index_map as index_map_module
from weft.tir.index_map import IndexMap

MOVED = {
    "blocks of columns": ((4, 32), lambda i, j: [j // 16, i, j % 16]),
    "a transpose": ((3, 5), lambda i, j: [j, i]),
    "three digits": ((24, 2), lambda i, j: [i // 2 % 3, j, i % 2, i // 6]),
    "digits of digits": ((24,), lambda i: [i // 2 // 3, i // 2 % 6 % 3, i % 2]),
    "axes of one element": ((1, 6, 1), lambda i, j, k: [j // 3, k, j % 3]),
    "the same array": ((2, 3), lambda i, j: [i, j]),
    "no elements": ((0, 4), lambda i, j: [j, i]),
}
LEFT = {
    "padding": ((5,), lambda i: [i // 2, i % 2]),
    "a sum": ((2, 3), lambda i, j: [i * 3 + j]),
    "a digit twice": ((4,), lambda i: [i, i]),
    "a constant": ((4,), lambda i: [i, 0]),
    "a digit that does not fit": ((12,), lambda i: [i // 8, i % 8]),
}


@pytest.mark.parametrize("case", [*MOVED, *LEFT])
def test_a_table_of_places_agrees(case, monkeypatch):
    shape, function = (MOVED | LEFT)[case]
    index_map = IndexMap.from_func(function, index_dtype="int64")
    array = nd.array(np.arange(np.prod(shape), dtype="float32").reshape(shape))
    digits = index_map_module.digits_of(index_map.final_indices, index_map.initial_indices, shape)
    assert (digits is not None) == (case in MOVED)
    moved = index_map.map_ndarray(array).numpy()
    monkeypatch.setattr(index_map_module, "digits_of", lambda *_: None)
    by_table = index_map.map_ndarray(array).numpy()
    assert moved.shape == by_table.shape
    assert moved.flags.c_contiguous
    assert moved.tolist() == by_table.tolist()


def test_the_result_is_another_array():
    array = nd.array(np.zeros((2, 3), "float32"))
    moved = IndexMap.from_func(lambda i, j: [i, j]).map_ndarray(array)
    moved.numpy()[...] = 1
    for place in itertools.product(range(2), range(3)):
        assert array.numpy()[place] == 0
