"""IndexMap: construction, application, inverses by brute force, text and JSON."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import nd
from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, Range
from weft.ir.functor import substitute
from weft.ir.json_text import load_json, save_json
from weft.ir.structural import structural_equal, structural_hash
from weft.script import tir as T
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.index_map import IndexMap


def values(exprs):
    return tuple(expr.value for expr in exprs)


def point(index_map, at):
    """The mapped point, by plain substitution."""
    mapping = {
        var: op.const(value, var.dtype)
        for var, value in zip(index_map.initial_indices, at, strict=True)
    }
    return tuple(
        Analyzer().simplify(substitute(index, mapping)).value for index in index_map.final_indices
    )


def test_from_func():
    index_map = IndexMap.from_func(lambda i, j: [j, i // 4, i % 4])
    assert [var.name for var in index_map.initial_indices] == ["i", "j"]
    assert index_map.initial_indices[0].dtype == "int64"
    assert IndexMap.from_func(lambda i: i).final_indices[0].name == "i"
    assert IndexMap.from_func(lambda i: (0, i), index_dtype="int32").final_indices[0].dtype == (
        "int32"
    )


def test_from_func_of_star_and_keyword_arguments():
    index_map = IndexMap.from_func(lambda i, *rest, k: [k, *rest, i], ndim=4)
    assert [var.name for var in index_map.initial_indices] == ["i", "rest_0", "rest_1", "k"]
    assert point(index_map, (1, 2, 3, 4)) == (4, 2, 3, 1)


def test_separators():
    index_map, separators = IndexMap.from_func_with_separators(
        lambda i, j: [i, IndexMap.AXIS_SEPARATOR, j // 4, j % 4]
    )
    assert separators == [1]
    assert len(index_map.final_indices) == 3


def double_star(i, **rest):
    return [i]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IndexMap.from_func(lambda i: [i, IndexMap.AXIS_SEPARATOR]), "AXIS_SEPARATOR"),
        (lambda: IndexMap.from_func(lambda *i: list(i)), r"takes \*i; give ndim"),
        (lambda: IndexMap.from_func(lambda i: [i], ndim=2), "takes 1 indices, but ndim is 2"),
        (lambda: IndexMap.from_func(double_star), r"may not take \*\*rest"),
        (
            lambda: IndexMap.from_func(lambda i: [i]).map_indices([1, 2]),
            "expected 1 indices, got 2",
        ),
        (lambda: IndexMap.from_func(lambda i: [i]).map_shape([1, 2]), "expected 1 dimensions"),
        (lambda: IndexMap.from_func(lambda i: [i]).inverse([1, 2]), "expected 1 ranges, got 2"),
        (lambda: IndexMap.from_func(lambda i: [i + 1]).map_shape([4]), "starts at 1, not at 0"),
        (lambda: IndexMap.from_func(lambda i: [T.abs(i)]).map_shape([4]), "bounds of index 0"),
        (lambda: IndexMap.from_func(lambda i: [i // 4, i % 4]).inverse([14]), "not bijective"),
        (lambda: IndexMap.from_func(lambda i, j: [i]).inverse([4, 4]), "loop j is not used"),
        (lambda: IndexMap.from_func(lambda i, j: [i]).non_surjective_inverse([4, 4]), "loses j"),
    ],
)
def test_errors_of_value(make, message):
    with pytest.raises(IRValueError, match=message):
        make()


def test_errors_of_type():
    with pytest.raises(IRTypeError, match="expected the function to return expressions"):
        IndexMap.from_func(lambda i: ["x"])
    with pytest.raises(IRTypeError, match="initial_indices must be Vars"):
        IndexMap([op.const(1)], [])
    with pytest.raises(IRTypeError, match="as inverse_index_map, got int"):
        IndexMap([], [], 3)
    chosen = IndexMap.from_func(lambda i: [T.Select(i < 2, i, T.int64(0))])
    with pytest.raises(IRTypeError, match="is no sum, product"):
        chosen.map_ndarray(nd.array(np.zeros(3, "int8")))


def test_map_indices_takes_the_type_of_the_given_ones():
    index_map = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    assert [(e.value, str(e.dtype)) for e in index_map.map_indices([42])] == [
        (10, "int32"), (2, "int32")
    ]  # fmt: skip
    wide = index_map.map_indices([IntImm("int64", 42)])
    assert [(e.value, str(e.dtype)) for e in wide] == [(10, "int64"), (2, "int64")]
    x = Var("x", "int32")
    assert structural_equal(index_map.map_indices([x * 4 + 1])[0], x, map_free_vars=False)


@pytest.mark.parametrize(
    ("shape", "mapped"), [([4], (1, 4)), ([16], (4, 4)), ([14], (4, 4)), ([3], (1, 4))]
)
def test_map_shape_pads(shape, mapped):
    index_map = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    assert values(index_map.map_shape(shape)) == mapped


def test_map_shape_of_a_symbolic_dimension():
    n = Var("n", "int64")
    rows, columns = IndexMap.from_func(lambda i: [i // 4, i % 4]).map_shape([n])
    for size in range(1, 9):
        at = {n: op.const(size, "int64")}
        assert Analyzer().simplify(substitute(rows, at)).value == -(-size // 4)
    assert columns.value == 4


def test_map_ranges():
    index_map = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    low, _ = index_map.map_ranges([Range(8, 24)])
    assert (low.min.value, low.extent.value) == (2, 4)


PERMUTATIONS = {
    "split": (lambda i: [i // 4, i % 4], [16]),
    "transpose": (lambda i, j, k: [k, i, j], [2, 3, 4]),
    "tile": (lambda i, j: [i // 2, j // 3, i % 2, j % 3], [4, 6]),
    "fuse": (lambda i, j: [i * 6 + j], [4, 6]),
    "fuse and split": (lambda i, j: [(i * 6 + j) // 8, (i * 6 + j) % 8], [4, 6]),
    "one": (lambda i, j: [j, i], [1, 5]),
    "three digits": (lambda i: [i % 2, i // 6, i // 2 % 3], [24]),
}


@pytest.mark.parametrize("name", PERMUTATIONS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_inverse_of_a_bijection(name, dtype):
    function, shape = PERMUTATIONS[name]
    index_map = IndexMap.from_func(function, index_dtype=dtype)
    inverse = index_map.inverse(shape)
    extents = values(index_map.map_shape(shape))
    seen = set()
    for at in itertools.product(*[range(extent) for extent in shape]):
        mapped = point(index_map, at)
        assert all(0 <= value < extent for value, extent in zip(mapped, extents, strict=True))
        assert point(inverse, mapped) == at
        seen.add(mapped)
    assert len(seen) == np.prod(extents)
    assert inverse.inverse(extents).is_equivalent_to(index_map)


PADDED = {
    "right": (lambda i: [i // 4, i % 4], [15]),
    "left": (lambda i: [(i + 1) // 4, (i + 1) % 4], [15]),
    "both": (lambda i: [(i + 1) // 4, (i + 1) % 4], [14]),
    "two": (lambda i, j: [(i + 1) // 4, (j + 5) // 8, (i + 1) % 4, (j + 5) % 8], [14, 31]),
    "three digits": (lambda i: [(i // 4) % 8, i // 32, i % 4], [116]),
    "three digits, left": (lambda i: [(i + 5) // 32, (i + 5) // 4 % 8, (i + 5) % 4], [123]),
    "less than one": (lambda i: [i // 4, i % 4], [3]),
    "none": (lambda i: [i // 4, i % 4], [16]),
}


@pytest.mark.parametrize("name", PADDED)
def test_non_surjective_inverse(name):
    function, shape = PADDED[name]
    index_map = IndexMap.from_func(function, index_dtype="int32")
    inverse, padding = index_map.non_surjective_inverse(shape)
    extents = values(index_map.map_shape(shape))
    image = {}
    for at in itertools.product(*[range(extent) for extent in shape]):
        image[point(index_map, at)] = at
    for mapped in itertools.product(*[range(extent) for extent in extents]):
        at = {
            var: op.const(value, "int32")
            for var, value in zip(inverse.initial_indices, mapped, strict=True)
        }
        is_padding = bool(Analyzer().simplify(substitute(padding, at)).value)
        assert is_padding == (mapped not in image)
        if not is_padding:
            assert point(inverse, mapped) == image[mapped]


def test_inverse_of_an_iterator_that_does_not_start_at_0():
    index_map = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    inverse = index_map.inverse([Range(8, 24)])
    for value in range(8, 24):
        assert point(inverse, point(index_map, (value,))) == (value,)


def test_given_inverse_is_returned():
    index_map = IndexMap.from_func(
        lambda i: [i // 4, i % 4], inverse_index_map=lambda a, b: a * 4 + b
    )
    assert index_map.inverse([14]) is index_map.inverse_index_map
    inverse, padding = index_map.non_surjective_inverse([14])
    assert inverse is index_map.inverse_index_map
    assert not padding.value


def test_is_equivalent_to():
    one = IndexMap.from_func(lambda i, j: [i * 4 + j])
    assert one.is_equivalent_to(IndexMap.from_func(lambda a, b: [b + 4 * a], index_dtype="int32"))
    assert not one.is_equivalent_to(IndexMap.from_func(lambda a, b: [b * 4 + a]))
    assert not one.is_equivalent_to(IndexMap.from_func(lambda a: [a]))
    assert not one.is_equivalent_to(IndexMap.from_func(lambda a, b: [a, b]))


def test_structural_equality_ignores_names():
    one = IndexMap.from_func(lambda i: [i // 4, i % 4])
    two = IndexMap.from_func(lambda j: [j // 4, j % 4])
    assert structural_equal(one, two)
    assert structural_hash(one) == structural_hash(two)
    assert not structural_equal(one, IndexMap.from_func(lambda i: [i // 8, i % 8]))


def test_map_ndarray():
    array = np.arange(24, dtype="int8").reshape(4, 6)
    tiled = IndexMap.from_func(lambda i, j: [i // 2, j // 3, i % 2, j % 3])
    expected = array.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(tiled.map_ndarray(nd.array(array)).numpy(), expected)
    padded = IndexMap.from_func(lambda i: [i // 4, i % 4]).map_ndarray(nd.array(array[0]))
    np.testing.assert_array_equal(padded.numpy(), [[0, 1, 2, 3], [4, 5, 0, 0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: IndexMap.from_func(lambda i: [i // 4, i % 4]),
        lambda: IndexMap.from_func(lambda i, j: [j, i], index_dtype="int32"),
        lambda: IndexMap.from_func(lambda: ()),
        lambda: IndexMap.from_func(lambda i: i, inverse_index_map=lambda a: a),
        lambda: IndexMap.from_func(
            lambda i: i, inverse_index_map=IndexMap.from_func(lambda a: a, index_dtype="int32")
        ),
    ],
)
def test_text_and_json_come_back(make):
    index_map = make()
    evaluated = eval(index_map.script(), {"T": T})  # noqa: S307
    for again in (evaluated, load_json(save_json(index_map))):
        assert structural_equal(again, index_map)
        assert (again.inverse_index_map is None) == (index_map.inverse_index_map is None)
        if again.inverse_index_map is not None:
            assert structural_equal(again.inverse_index_map, index_map.inverse_index_map)


def test_text():
    index_map = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    assert str(index_map) == 'T.index_map(lambda i: (i // 4, i % 4), index_dtype="int32")'
    assert index_map.to_python_string() == "lambda i: (i // 4, i % 4,)"
    assert index_map.to_python_string(lambda var: "ax") == "lambda ax: (ax // 4, ax % 4,)"
    given = IndexMap.from_func(lambda i: i, inverse_index_map=lambda j: j)
    assert given.to_python_string() == (
        "tvm.tir.IndexMap.from_func(lambda i: (i,), inverse_index_map=lambda j: (j,))"
    )
    x, y = Var("x", "int32"), Var("x", "int32")
    assert IndexMap([x, y], [y, x]).to_python_string() == "lambda x, x_1: (x_1, x,)"


@st.composite
def layouts(draw):
    """A shape, and a map that splits its dimensions and permutes the digits."""
    splits = draw(
        st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3)
    )
    count = sum(len(factors) for factors in splits)
    order = draw(st.permutations(range(count)))

    def function(*indices):
        digits = []
        for index, factors in zip(indices, splits, strict=True):
            below = 1
            for factor in reversed(factors[1:]):
                digits.append(index // below % factor)
                below *= factor
            digits.append(index // below)
        return [digits[position] for position in order]

    return [int(np.prod(factors)) for factors in splits], function


@settings(max_examples=40, deadline=None)
@given(layouts())
def test_random_layouts_come_back(layout):
    shape, function = layout
    index_map = IndexMap.from_func(function, ndim=len(shape), index_dtype="int32")
    array = np.arange(np.prod(shape), dtype="int32").reshape(shape)
    moved = index_map.map_ndarray(nd.array(array))
    assert sorted(moved.numpy().ravel()) == sorted(array.ravel())
    back = index_map.inverse(shape).map_ndarray(moved)
    np.testing.assert_array_equal(back.numpy(), array)
