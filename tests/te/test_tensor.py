"""Tensors: indices, equality, arithmetic of whole tensors."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import weft.topi  # noqa: F401 - it defines the arithmetic of whole tensors
from weft import te
from weft.tir.interp import run

M = te.placeholder((3, 4), "int32", name="M")
V = te.placeholder((4,), "float32", name="V")
S = te.placeholder((), "float32", name="S")


def test_elements():
    i, j = te.var("i"), te.var("j", "int64")
    for load in (M[i, j], M(i, j), M[i][j], M((i, j)), M([i, j]), M[(i, j)]):
        element = load.as_prim_expr() if hasattr(load, "as_prim_expr") else load
        assert (str(element), element.dtype) == ("M[i, j]", "int32")
    assert str(V[i + 1].as_prim_expr()) == "V[i + 1]"
    assert str(S()) == "S[()]"


def test_a_slice_shows_what_it_has():
    part = M[2]
    assert (repr(part), part.dtype, part.indices) == ("M[2]", "int32", (2,))
    assert repr(part[te.var("k")]) == "M[2, k]"
    with pytest.raises(IndexError, match="tensor M has 2 dimensions, got 1 indices"):
        part.as_prim_expr()
    with pytest.raises(IndexError, match="tensor M has 2 dimensions, got 1 indices"):
        part + 1


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ((0, 1, 2), IndexError, "tensor M has 2 dimensions, got 3 indices"),
        ((0, 1.5), TypeError, "tensor M: an index must be an integer, got float32"),
        (("a", 0), TypeError, "tensor M: an index must be an integer, got handle"),
        ((slice(0, 2), 0), TypeError, "an index must be an expression or an int, got slice"),
        ((..., 0), TypeError, "an index must be an expression or an int, got Ellipsis"),
        ((None, 0), TypeError, "an index must be an expression or an int, got None; use topi"),
    ],
    ids=str,
)
def test_what_is_no_index(index, error, message):
    with pytest.raises(error, match=message):
        M[index]
    with pytest.raises(error, match=message):
        M(*index)


def test_a_tensor_is_its_output_of_its_operation():
    first, second = te.compute((4,), lambda i: (V[i], V[i] + 1.0), name="pair")
    again = first.op.output(0)
    assert first == again
    assert first.same_as(again)
    assert hash(first) == hash(again)
    assert first != second
    assert not first.same_as(second)
    assert not first.same_as(3)
    assert V != te.placeholder((4,), "float32", name="V")
    assert {first: 1, second: 2}[again] == 1
    assert first != "V"


def test_comparison_of_scalars_is_an_expression():
    other = te.placeholder((), "float32", name="other")
    assert str(S == other) == "S[()] == other[()]"


def test_texts():
    assert repr(M) == "Tensor(shape=[3, 4], op.name=M)"
    assert repr(M.op) == "PlaceholderOp(name=M)"
    assert repr(te.compute((4,), lambda i: V[i], name="c").op) == "ComputeOp(name=c)"


def evaluated(tensor, **arrays):
    """A tensor computed from the arrays of the tensors of those names."""
    known = {"M": M, "V": V, "S": S}
    inputs = [known[name] for name in arrays]
    result = np.zeros([extent.value for extent in tensor.shape], str(tensor.dtype))
    run(te.create_prim_func([*inputs, tensor]), *arrays.values(), result)
    return result


VECTOR = np.array([-1.5, 0.5, 2, 3], "float32")
MATRIX = np.arange(-6, 6, dtype="int32").reshape(3, 4)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow"])
def test_arithmetic_with_numbers_and_scalars(name):
    function = getattr(operator, name)
    with np.errstate(invalid="ignore"):
        wanted = function(VECTOR, np.float32(2))
    np.testing.assert_allclose(evaluated(function(V, 2.0), V=VECTOR), wanted, rtol=1e-6)
    if name != "pow":
        wanted = function(np.float32(2), VECTOR)
        np.testing.assert_allclose(evaluated(function(2.0, V), V=VECTOR), wanted, rtol=1e-6)
        found = evaluated(function(V, S), V=VECTOR, S=np.array(4, "float32"))
        np.testing.assert_allclose(found, function(VECTOR, np.float32(4)), rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod"])
def test_arithmetic_of_integers_broadcasts(name):
    function = getattr(operator, name)
    row = te.compute((4,), lambda i: i + 1, name="row")
    numbers = np.arange(1, 5, dtype="int32")
    np.testing.assert_array_equal(evaluated(function(M, row), M=MATRIX), function(MATRIX, numbers))
    np.testing.assert_array_equal(evaluated(function(M, 3), M=MATRIX), function(MATRIX, 3))
    np.testing.assert_array_equal(evaluated(function(7, row)), function(7, numbers))


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
def test_order_gives_a_tensor_of_truths(name):
    function = getattr(operator, name)
    found = evaluated(function(M, 0), M=MATRIX)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, function(MATRIX, 0))


def test_negation_and_conversion():
    np.testing.assert_array_equal(evaluated(-M, M=MATRIX), -MATRIX)
    np.testing.assert_array_equal(evaluated(V.astype("int32"), V=VECTOR), VECTOR.astype("int32"))
