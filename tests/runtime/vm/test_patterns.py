"""Patterns: what a value must be, which symbols it binds, and what the error says of both sides."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.containers import ShapeTuple
from weft.runtime.faults import DivisionFault
from weft.runtime.ndarray import NDArray, array
from weft.runtime.vm.patterns import as_ndarray, bind, match, match_extents
from weft.support.errors import IRTypeError, IRValueError

torch = pytest.importorskip("torch")


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


# Value, pattern, symbols known before; the symbols after.
BOUND = [
    (zeros(3), ("tensor", "float32", ("n",), 1), {}, {"n": 3}),
    (zeros(3, 4), ("tensor", "", ("n", "m"), 2), {}, {"n": 3, "m": 4}),
    (zeros(3, 3), ("tensor", "", ("n", "n"), 2), {}, {"n": 3}),
    (zeros(3, 6), ("tensor", "", ("n", "n * 2"), 2), {}, {"n": 3}),
    (zeros(6, 3), ("tensor", "", ("n * 2", "n"), 2), {}, {"n": 3}),
    (zeros(3, 4), ("tensor", "", (3, "m"), 2), {}, {"m": 4}),
    (zeros(3), ("tensor", "", None, -1), {}, {}), (zeros(3), ("tensor", "", None, 1), {}, {}),
    (zeros(), ("tensor", "float32", (), 0), {}, {}),
    (zeros(3), ("tensor", "", ("n",), 1), {"n": 3}, {"n": 3}),
    ((3, 4), ("shape", ("n", "m"), 2), {}, {"n": 3, "m": 4}), ([3, 4], ("shape", None, 2), {}, {}),
    ((), ("shape", (), 0), {}, {}), (5, ("prim", "int64", "n"), {}, {"n": 5}),
    (5, ("prim", "int64", "n + 2"), {"n": 3}, {"n": 3}), (5, ("prim", "int64", None), {}, {}),
    ((zeros(3), 3), ("tuple", (("tensor", "", ("n",), 1), ("prim", "int64", "n"))), {}, {"n": 3}),
    ((zeros(4), zeros(3)), ("tuple", (("tensor", "", ("n + 1",), 1), ("tensor", "", ("n",), 1))),
     {}, {"n": 3}),
    (object, ("object",), {}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "pattern", "known", "expected"), BOUND)
def test_symbols_are_bound(value, pattern, known, expected):
    symbols = dict(known)
    bind(value, pattern, symbols)
    match(value, pattern, symbols, "it")
    assert symbols == expected


# Value, pattern, symbols known before; the error and its text.
REFUSED = [
    (zeros(3), ("tensor", "int32", ("n",), 1), {}, IRTypeError, "dtype int32, got float32"),
    (zeros(3), ("tensor", "", ("n", "m"), 2), {}, IRValueError, r"shape \(n, m\), got \(3,\)"),
    (zeros(3), ("tensor", "", (4,), 1), {}, IRValueError, r"expected shape \(4,\), got \(3,\)"),
    (zeros(3), ("tensor", "", ("n",), 1), {"n": 4}, IRValueError, r"\(n,\), n=4, got \(3,\)"),
    (zeros(3, 4), ("tensor", "", ("n", "n"), 2), {}, IRValueError, r"\(n, n\), n=3, got \(3, 4\)"),
    (zeros(3, 5), ("tensor", "", ("n", "n * 2"), 2), {}, IRValueError, r"n=3, got \(3, 5\)"),
    (zeros(3), ("tensor", "", None, 2), {}, IRValueError, r"2 dimensions, got shape \(3,\)"),
    (3, ("tensor", "", None, -1), {}, IRTypeError, "expected a tensor, got the number 3"),
    (np.float32(3), ("tensor", "", None, -1), {}, IRTypeError, "expected a tensor, got the number"),
    ("x", ("tensor", "", None, -1), {}, IRTypeError, "numpy array or torch tensor.*got str"),
    (zeros(3), ("shape", None, 1), {}, IRTypeError, "expected a shape, got ndarray"),
    ((3,), ("shape", None, 2), {}, IRValueError, r"a shape of 2 dimensions, got \(3,\)"),
    ((3, 4), ("shape", ("n", "n"), 2), {}, IRValueError, r"n=3, got \(3, 4\)"),
    (2.5, ("prim", "int64", None), {}, IRTypeError, "expected a number of type int64, got 2.5"),
    ("3", ("prim", "int64", None), {}, IRTypeError, "expected a number of type int64, got '3'"),
    (6, ("prim", "int64", "n + 2"), {"n": 3}, IRValueError, r"expected 5 \(n \+ 2\), got 6"),
    (3, ("tuple", ()), {}, IRTypeError, "expected a tuple, got int"),
    ((1, 2), ("tuple", (("object",),)), {}, IRValueError, "expected a tuple of 1, got one of 2"),
    ((1, "x"), ("tuple", (("object",), ("prim", "int64", None))), {}, IRTypeError,
     r"it\[1\]: expected a number of type int64"),
    (zeros(3), ("tensor", "", ("m // n",), 1), {"m": 3, "n": 0}, DivisionFault,
     "it: the extent m // n divides by 0, with m=3, n=0"),
    (zeros(3), ("tensor", "", ("m + 1",), 1), {}, IRValueError, "uses a symbol without a value"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "pattern", "known", "kind", "text"), REFUSED)
def test_what_does_not_fit(value, pattern, known, kind, text):
    with pytest.raises(kind, match=text):
        match(value, pattern, dict(known), "it")


NUMBERS = [
    (5, "int64", 5, int), (True, "bool", True, bool), (0, "bool", False, bool),
    (5, "float32", 5.0, float), (2.5, "float64", 2.5, float), (np.int8(5), "int64", 5, int),
    (np.float32(2.5), "float32", 2.5, float), (5, "bfloat16", 5.0, float), (True, "int64", 1, int),
]  # fmt: skip


@pytest.mark.parametrize(("value", "dtype", "expected", "kind"), NUMBERS)
def test_numbers_become_those_of_their_type(value, dtype, expected, kind):
    result = match(value, ("prim", dtype, None), {}, "it")
    assert (result, type(result)) == (expected, kind)


def test_a_tensor_without_dimensions_is_a_number_where_that_is_expected():
    assert match(array(7), ("prim", "int64", "n"), {}, "it") == 7
    with pytest.raises(IRTypeError, match="expected a number of type int64"):
        match(array([7]), ("prim", "int64", None), {}, "it")


def test_shapes_are_shapes_and_tuples_are_tuples():
    shape = match([3, 4], ("shape", None, -1), {}, "it")
    assert isinstance(shape, ShapeTuple)
    result = match([zeros(2), 3], ("tuple", (("tensor", "", None, -1), ("object",))), {}, "it")
    assert type(result) is tuple
    assert isinstance(result[0], NDArray)


def test_arrays_keep_their_memory():
    given = zeros(3)
    as_ndarray(given, "it")[0] = 1
    assert given[0] == 1
    tensor = torch.zeros(3)
    as_ndarray(tensor, "it")[1] = 2
    assert tensor[1] == 2
    made = array([1.0])
    assert as_ndarray(made, "it") is made


def test_read_only_arrays_are_copied():
    given = zeros(3)
    given.flags.writeable = False
    as_ndarray(given, "it")[0] = 1
    assert given[0] == 0


def test_a_tensor_that_needs_a_gradient_is_taken_without_it():
    leaf = torch.ones(2, requires_grad=True)
    assert as_ndarray(leaf, "it").tolist() == [1, 1]


def test_binding_leaves_what_does_not_fit_for_the_check():
    symbols = {}
    bind(3, ("tensor", "", ("n",), 1), symbols)
    bind(zeros(3), ("tensor", "", ("n", "m"), 2), symbols)
    bind((1, 2), ("tuple", (("prim", "int64", "n"),)), symbols)
    bind("3", ("prim", "int64", "n"), symbols)
    bind(zeros(3), ("tensor", "", ("n + 1",), 1), symbols)
    assert symbols == {}


def test_extents_say_only_the_symbols_they_use():
    with pytest.raises(IRValueError, match=r"it: expected shape \(n \+ 1,\), n=2, got \(4,\)$"):
        match_extents((4,), ("n + 1",), {"n": 2, "other": 9}, "it")


def test_of_long_extents_the_first_that_differs_is_named():
    long = "min(" * 20 + "n" + ", 2)" * 20
    message = r"it: expected 2 along axis 1, that is min\(.*\), n=3, got shape \(3, 4, 5\)$"
    with pytest.raises(IRValueError, match=message):
        match_extents((3, 4, 5), ("n", long, long), {"n": 3, "m": 4}, "it")
    with pytest.raises(IRValueError, match=r"it: expected shape \(n, min.*, n=3, got \(3, 4\)$"):
        match_extents((3, 4), ("n", long, long), {"n": 3}, "it")
