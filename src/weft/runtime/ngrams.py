"""Counting n-grams, in numpy: where a row's length, or a large pool, leaves no kernel for it.

Programs call ``weft.ngrams.count`` by name; importing the module registers it, as the virtual
machine does.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func

COUNT: Final = "weft.ngrams.count"


class Pool:
    """N-grams of one size, ``grams`` (count, size), and the column in which each is counted.

    A prefix of the n-grams has a number. That of a longer prefix is found by the number of the
    shorter one and the next element, in a sorted list of such pairs.
    """

    def __init__(self, grams: Sequence[Sequence[int]], columns: Sequence[int]) -> None:
        table = np.array(grams, "int64")
        self.columns = np.array(columns, "int64")
        self.elements = np.unique(table)
        ids = np.searchsorted(self.elements, table)
        self.numbers = ids[:, 0]
        self.levels: list[np.ndarray] = []
        for place in range(1, table.shape[1]):
            pairs = self.numbers * len(self.elements) + ids[:, place]
            level, self.numbers = np.unique(pairs, return_inverse=True)
            self.levels.append(level)
        self.count = int(self.numbers.max()) + 1

    def add(self, totals: np.ndarray, values: np.ndarray, step: int) -> None:
        """Add to ``totals`` how often each n-gram stands in each row, ``step`` between elements."""
        rows, extent = values.shape
        starts = extent - len(self.levels) * step
        if starts <= 0 or not rows:
            return
        ids, is_known = _found(self.elements, values)
        numbers, matches = ids[:, :starts], is_known[:, :starts]
        for place, level in enumerate(self.levels, 1):
            window = slice(place * step, place * step + starts)
            pairs = numbers * len(self.elements) + ids[:, window]
            numbers, is_prefix = _found(level, pairs)
            matches = matches & is_known[:, window] & is_prefix
        row, start = np.nonzero(matches)
        places = row * self.count + numbers[row, start]
        counted = np.bincount(places, minlength=rows * self.count).reshape(rows, self.count)
        np.add.at(totals.T, self.columns, counted[:, self.numbers].T)


def _found(ordered: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each value in a sorted array, and whether it is there."""
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return places, ordered[places] == values


@functools.lru_cache(maxsize=16)
def _pools(description: str) -> tuple[int, int, tuple[Pool, ...]]:
    how = json.loads(description)
    pools = [Pool(grams, columns) for grams, columns in how["pools"]]
    return how["width"], how["skips"], tuple(pools)


@register_func(COUNT, override=True)
def count(values: NDArray, description: object) -> NDArray:
    """How often n-grams stand in each row of integers: (rows, width), float32.

    The description is JSON: ``pools`` of n-grams of one size with the column of each, the ``width``
    of the result, and how many elements at most may be skipped between those of an n-gram.
    """
    width, skips, pools = _pools(str(description))
    rows = np.asarray(values).astype("int64")
    totals = np.zeros((len(rows), width), "float32")
    for pool in pools:
        for skip in range(skips + 1 if pool.levels else 1):
            pool.add(totals, rows, skip + 1)
    return NDArray(totals)
