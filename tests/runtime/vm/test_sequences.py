"""Sequences whose number of items the run tells: they share a list, and never change each other."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.ndarray import array
from weft.runtime.vm import sequences
from weft.support.errors import IRIndexError, IRTypeError, IRValueError


def vector(*numbers):
    return array(np.array(numbers, "float32"))


def items(sequence):
    return [item.numpy().tolist() for item in sequences.sequence_items(sequence)]


def sequence_of(*numbers):
    return sequences.sequence_of(*[vector(number) for number in numbers])


def test_items_of_two_that_go_on_from_one():
    both = sequence_of(1, 2)
    left = sequences.sequence_insert(both, vector(3))
    right = sequences.sequence_insert(both, vector(4, 5))
    assert items(both) == [[1], [2]]
    assert items(left) == [[1], [2], [3]]
    assert items(right) == [[1], [2], [4, 5]]
    assert left.items is both.items


@pytest.mark.parametrize(("position", "order"), [(0, [9, 1, 2]), (-1, [1, 9, 2]), (2, [1, 2, 9])])
def test_positions(position, order):
    place = array(np.array(position))
    longer = sequences.sequence_insert(sequence_of(1, 2), vector(9), place)
    assert items(longer) == [[number] for number in order]
    assert items(sequences.sequence_erase(longer, array(np.array(order.index(9))))) == [[1], [2]]
    assert sequences.sequence_at(longer, place).numpy() == order[position]
    assert sequences.sequence_length(longer).numpy() == 3


def test_items_are_copied():
    x = vector(1)
    sequence = sequences.sequence_of(x)
    x.copyfrom(np.array([2], "float32"))
    sequences.sequence_at(sequence, array(np.array(0))).copyfrom(np.array([3], "float32"))
    assert items(sequence) == [[1]]


def test_joined():
    sequence = sequence_of(1, 2)
    assert sequences.sequence_concat(sequence, 0).numpy().tolist() == [1, 2]
    assert sequences.sequence_stack(sequence, 1).numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        (None, [1, 1, 1, 1, 1]),
        (2, [2, 2, 1]),
        (5, [5]),
        (7, [5]),
        ([1, 4], [1, 4]),
        ([0, 5], [0, 5]),
    ],
)
def test_splitting(sizes, parts):
    x = array(np.arange(10).reshape(2, 5))
    given = [] if sizes is None else [array(np.array(sizes))]
    sequence = sequences.sequence_split(x, 1, 1, *given)
    assert [item.shape for item in sequences.sequence_items(sequence)] == [(2, n) for n in parts]
    assert sequences.sequence_concat(sequence, 1).numpy().tolist() == x.numpy().tolist()


def test_what_does_not_fit():
    two = sequences.sequence_insert(sequence_of(1), vector(2, 3))
    with pytest.raises(IRValueError, match=r"got the shapes \(1,\), \(2,\); expected .* are equal"):
        sequences.sequence_stack(two, 0)
    with pytest.raises(IRValueError, match="it has none; expected at least one"):
        sequences.sequence_concat(sequences.sequence_of(), 0)
    with pytest.raises(IRIndexError, match="position 2 is outside of a sequence of 2 items"):
        sequences.sequence_at(two, array(np.array(2)))
    with pytest.raises(IRTypeError, match="expected a sequence of tensors, got int"):
        sequences.sequence_length(3)
    with pytest.raises(IRValueError, match=r"add up to the extent 3 of axis 0, got \[1, 1\]"):
        sequences.sequence_split(vector(1, 2, 3), 0, 1, array(np.array([1, 1])))
    with pytest.raises(IRValueError, match="add up to the extent 3 of axis 0, got 0"):
        sequences.sequence_split(vector(1, 2, 3), 0, 1, array(np.array(0)))
