"""Arrays index as numpy's do: views, copies, numbers, stores and errors; vectors stay whole."""

from __future__ import annotations

import copy
import pickle
import random

import numpy as np
import pytest

from weft import nd
from weft.runtime.ndarray import NDArray, empty
from weft.support.errors import IRIndexError, IRTypeError, IRValueError

DATA = np.arange(24, dtype="int32").reshape(2, 3, 4)


def random_index(rng, shape):
    """An index of integers, slices, None, an ellipsis, a mask or a list of places."""
    if rng.random() < 0.1:
        return np.random.default_rng(rng.randrange(99)).random(shape) < 0.5
    parts, places = [], rng.randint(1, 3)
    for extent in shape[: rng.randint(0, len(shape))]:
        kind = rng.random()
        if kind < 0.35:
            parts.append(rng.randrange(-extent, extent))
        elif kind < 0.85:
            ends = [rng.choice([None, *range(-extent - 1, extent + 2)]) for _ in range(2)]
            parts.append(slice(*ends, rng.choice([None, 1, 2, -1])))
        else:
            parts.append([rng.randrange(extent) for _ in range(places)])
    if rng.random() < 0.3:
        parts.insert(rng.randint(0, len(parts)), None)
    if rng.random() < 0.2 and len(parts) < len(shape):
        parts.insert(0, ...)
    return tuple(parts)


def test_reads_are_those_of_numpy():
    for seed in range(200):
        index = random_index(random.Random(seed), DATA.shape)
        found, wanted = nd.array(DATA)[index], DATA[index]
        if isinstance(wanted, np.ndarray):
            assert isinstance(found, NDArray)
            assert found.shape == wanted.shape
            assert found.dtype == "int32"
            np.testing.assert_array_equal(found.numpy(), wanted, err_msg=f"{seed}: {index}")
        else:
            assert found == wanted


def test_stores_are_those_of_numpy():
    for seed in range(200):
        index = random_index(random.Random(seed), DATA.shape)
        mine, its = nd.array(DATA), DATA.copy()
        value = -np.arange(its[index].size, dtype="int32").reshape(np.shape(its[index])) - 1
        mine[index] = value if seed % 3 else nd.array(value)
        its[index] = value
        np.testing.assert_array_equal(mine.numpy(), its, err_msg=f"{seed}: {index}")


def test_a_slice_is_a_view_and_a_list_of_places_is_a_copy():
    array = nd.array(DATA)
    view, places = array[0, 1:], array[[0], [1]]
    view[0, 0] = 100
    assert array[0, 1, 0] == 100
    places[0, 0] = 7
    assert array[0, 1, 0] == 100
    assert not array[:, ::2].is_contiguous()
    assert array[1].is_contiguous()


@pytest.mark.parametrize(
    "index", [2, (0, 3), (0, 0, 0, 0), "x", 1.5, (slice(None), "a"), [5]], ids=str
)
def test_indices_beyond_the_array_and_of_other_kinds(index):
    array = nd.array(DATA)
    with pytest.raises(IRIndexError, match=r"array of shape \(2, 3, 4\): "):
        array[index]
    with pytest.raises(IRIndexError, match=r"array of shape \(2, 3, 4\): "):
        array[index] = 1


@pytest.mark.parametrize("value", [[1, 2, 3], np.zeros((2, 2, 2))], ids=["list", "array"])
def test_values_of_another_shape(value):
    with pytest.raises(IRValueError, match="could not broadcast"):
        nd.array(DATA)[:] = value


@pytest.mark.parametrize("value", ["x", None, 1j, object, [1, [2, 3]]], ids=str)
def test_values_that_are_no_numbers(value):
    array = nd.array(DATA)
    for store in (lambda: array.__setitem__(0, value), lambda: array.copyfrom(value)):
        with pytest.raises(IRTypeError, match="expected numbers, nested lists of one shape"):
            store()


def test_a_loop_gives_the_parts_of_the_first_axis():
    parts = list(nd.array(DATA))
    assert [part.shape for part in parts] == [(3, 4), (3, 4)]
    assert [int(number) for number in nd.array([3, 1])] == [3, 1]
    with pytest.raises(IRTypeError, match=r"an array of shape \(\) has no length"):
        list(nd.array(3))


VECTORS = np.arange(24, dtype="float32").reshape(2, 3, 4)


def vectors():
    """An array of shape (2, 3) whose elements are vectors of four lanes."""
    array = empty((2, 3), "float32x4")
    array.copyfrom(VECTORS)
    return array


@pytest.mark.parametrize(
    ("index", "shape"),
    [(0, (3,)), ((0, 1), ()), ((..., 0), (2,)), ((slice(None), 1), (2,)), (([1, 0], 2), (2,)),
     ((slice(None), slice(0, 2)), (2, 2)), ((None, 0), (1, 3)), (..., (2, 3))],
    ids=str,
)  # fmt: skip
def test_elements_that_are_vectors_stay_whole(index, shape):
    part = vectors()[index]
    assert (part.shape, part.dtype) == (shape, "float32x4")
    whole = index if isinstance(index, tuple) else (index,)
    np.testing.assert_array_equal(part.numpy(), VECTORS[(*whole, slice(None))])


def test_a_lane_is_no_element():
    with pytest.raises(IRIndexError, match=r"array of shape \(2, 3\): too many indices"):
        vectors()[0, 0, 0]


def test_vectors_are_stored_whole():
    array = vectors()
    array[..., 0] = [9, 8, 7, 6]
    assert array.numpy()[:, 0].tolist() == [[9, 8, 7, 6]] * 2
    np.testing.assert_array_equal(array.numpy()[:, 1:], VECTORS[:, 1:])


def test_a_transposed_array_of_vectors_keeps_its_lanes():
    turned = vectors().T
    assert (turned.shape, turned.dtype) == ((3, 2), "float32x4")
    np.testing.assert_array_equal(turned.numpy(), VECTORS.transpose(1, 0, 2))
    assert nd.array(DATA).T.shape == (4, 3, 2)


@pytest.mark.parametrize(
    "repeated", [copy.copy, copy.deepcopy, lambda array: pickle.loads(pickle.dumps(array))]
)
def test_copies_of_vectors_are_vectors(repeated):
    array = vectors()
    other = repeated(array)
    assert (other.shape, other.dtype) == ((2, 3), "float32x4")
    np.testing.assert_array_equal(other.numpy(), VECTORS)
    other[0, 0] = 0
    np.testing.assert_array_equal(array.numpy(), VECTORS)


def test_a_view_of_another_shape_has_no_negative_extent():
    array = nd.array(np.arange(6, dtype="float32"))
    with pytest.raises(IRValueError, match=r"expected extents of 0 or more, got \(-1,\)"):
        array._create_view((-1,))
    with pytest.raises(IRValueError, match=r"expected compact data of at least \(7,\) elements"):
        array._create_view((7,))
    assert array._create_view((2, 2)).numpy().tolist() == [[0, 1], [2, 3]]
    assert array._create_view((), "int32").shape == ()
