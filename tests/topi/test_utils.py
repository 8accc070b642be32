"""The small conversions of topi.utils, and the tags of fusion."""

import pytest

import weft
from weft import tir
from weft.topi import tag, utils

N = tir.Var("n", "int32")
THREE = tir.IntImm("int32", 3)


def test_constants_as_python_numbers():
    assert utils.get_const_int(THREE + 1) == 4
    assert utils.get_const_float(tir.FloatImm("float32", 2.5)) == 2.5
    assert utils.simplify(THREE + 1) == 4
    assert utils.simplify(N + 0) is N
    with pytest.raises(weft.TVMError, match="get_const_int: expected a constant"):
        utils.get_const_int(N)


def test_a_shape_keeps_its_symbols():
    assert utils.get_const_tuple((THREE, N, 4)) == (3, N, 4)
    assert utils.is_symbolic(N)
    assert not utils.is_symbolic(THREE)


@pytest.mark.parametrize(
    ("expr", "value", "expected"),
    [(THREE, 3, True), (THREE, 4, False), (3, 3, True), (N, 3, False), (N - N, 0, True)],
)
def test_comparison_with_a_constant(expr, value, expected):
    assert utils.equal_const_int(expr, value) is expected


def test_products():
    assert utils.prod(()) == 1
    assert utils.prod([2, 3]) == 6
    assert utils.prod([1, N]) is N


def test_tags():
    assert tag.is_broadcast(tag.ELEMWISE)
    assert tag.is_broadcast(tag.BROADCAST)
    assert not tag.is_broadcast(tag.COMM_REDUCE)
