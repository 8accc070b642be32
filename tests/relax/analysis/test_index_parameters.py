"""Which parameters of a PrimFunc choose elements of others."""

from __future__ import annotations

import pytest

from weft import te
from weft.relax.analysis.index_parameters import index_parameters


def positions(result, *inputs):
    return index_parameters(te.create_prim_func([*inputs, result]))


@pytest.fixture
def vectors():
    return [te.placeholder((8,), dtype="int64", name=name) for name in "abc"]


def test_a_table_of_indices(vectors):
    a, b, _ = vectors
    assert positions(te.compute((8,), lambda i: a[b[i]]), a, b) == {1}


def test_an_index_of_an_index(vectors):
    a, b, c = vectors
    assert positions(te.compute((8,), lambda i: a[b[c[i]]]), a, b, c) == {1, 2}


def test_an_index_that_the_function_computes_first(vectors):
    a, b, c = vectors
    wrapped = te.compute((8,), lambda i: te.if_then_else(b[i] < 0, b[i] + 8, b[i]))
    assert positions(te.compute((8,), lambda i: a[wrapped[i]] + c[i]), a, b, c) == {1}


def test_values_choose_nothing(vectors):
    a, b, _ = vectors
    assert positions(te.compute((8,), lambda i: a[i] + b[7 - i]), a, b) == frozenset()
