"""The runtime's cache of keys and values, through the functions that programs call."""

import numpy as np
import pytest

import weft
from weft.runtime.vm import library as vm_library  # noqa: F401 - registers the functions


def builtin(name):
    return weft.get_global_func(f"vm.builtin.attention_kv_cache_{name}")


def created(rows=0, size=2):
    start = weft.nd.array(np.arange(6, dtype="float32").reshape(3, 2))
    return builtin("create")(start, weft.runtime.ShapeTuple([size, 2]), rows)


def read(cache, rows):
    return builtin("view")(cache, weft.runtime.ShapeTuple([rows, 2])).numpy()


def test_rows_are_appended_and_read():
    cache = created()
    for start in (0, 10, 20):
        same = builtin("append")(cache, weft.nd.array(np.full((2, 2), start, "float32")))
        assert same is cache
    np.testing.assert_array_equal(read(cache, 6)[:, 0], [0, 0, 10, 10, 20, 20])
    assert read(cache, 0).shape == (0, 2)


def test_a_cache_starts_with_rows():
    np.testing.assert_array_equal(read(created(rows=2), 2), [[0, 1], [2, 3]])


def test_a_view_keeps_its_rows_while_the_cache_grows():
    cache = created(rows=2)
    view = builtin("view")(cache, weft.runtime.ShapeTuple([2, 2]))
    builtin("append")(cache, weft.nd.array(np.ones((5, 2), "float32")))
    np.testing.assert_array_equal(view.numpy(), [[0, 1], [2, 3]])
    np.testing.assert_array_equal(read(cache, 7)[2:], np.ones((5, 2)))


def test_memory_doubles():
    cache, row = created(size=1), weft.nd.array(np.ones((1, 2), "float32"))
    sizes = set()
    for _ in range(100):
        builtin("append")(cache, row)
        sizes.add(cache.data.shape[0])
    assert sorted(sizes) == [1, 2, 4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize("rows", [np.ones((1, 3), "float32"), np.ones((1, 2))])
def test_rows_that_do_not_fit(rows):
    with pytest.raises(ValueError, match=r"append: expected rows of \[2\] float32, got a tensor"):
        builtin("append")(created(), weft.nd.array(rows))


def test_views_that_do_not_fit():
    for shape in ([3, 2], [1, 3], [-1, 2], []):
        with pytest.raises(ValueError, match=r"view: expected at most 2 rows of \[2\], got the sh"):
            builtin("view")(created(rows=2), weft.runtime.ShapeTuple(shape))


def test_what_is_no_cache():
    with pytest.raises(TypeError, match="attention_kv_cache: expected a cache, got NDArray"):
        builtin("append")(weft.nd.array([1.0]), weft.nd.array([1.0]))


def test_text():
    assert repr(created(rows=1)) == "AttentionKVCache(1 rows of [2])"


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_window_keeps_its_newest_rows(kept):
    limit, cache, rows = 8, created(size=1), []
    for number in (3, 4, 1, 5, 2, 5):
        new = [[10 * len(rows) + i] * 2 for i in range(number)]
        rows += new
        array = weft.nd.array(np.array(new, "float32"))
        cache = builtin("window_override_with_sinks")(cache, array, limit, kept)
        held = builtin("view")(cache).numpy()
        ordinary = rows[kept:][-(limit - kept) :]
        expected = rows[:limit] if len(rows) <= limit else rows[:kept] + ordinary
        assert sorted(held[:, 0].tolist()) == sorted(float(row[0]) for row in expected)
        assert held[:kept].tolist() == rows[: min(kept, len(rows))]


def test_the_window_without_rows_that_stay():
    cache = builtin("window_override")(created(), weft.nd.array(np.ones((2, 2), "float32")), 4)
    assert builtin("view")(cache).shape == (2, 2)
    with pytest.raises(ValueError, match="at most 4 rows .a window of 4, of which 0 stay., got 5"):
        builtin("window_override")(cache, weft.nd.array(np.ones((5, 2), "float32")), 4)


def test_rows_are_replaced_and_forgotten():
    first, second = created(3), created(3)
    builtin("update")(first, weft.nd.array(np.full((3, 2), 7, "float32")))
    assert builtin("view")(first).numpy().tolist() == [[7, 7]] * 3
    with pytest.raises(ValueError, match="attention_kv_cache_update: expected 3 rows, got 2"):
        builtin("update")(first, weft.nd.array(np.ones((2, 2), "float32")))
    builtin("array_popn")([first, second], 2)
    assert [builtin("view")(cache).shape[0] for cache in (first, second)] == [1, 1]
    with pytest.raises(ValueError, match="expected at most 1 rows, got 2"):
        builtin("array_popn")([first], 2)
    builtin("array_clear")([first, second])
    assert builtin("view")(second).shape == (0, 2)


def test_a_cache_may_start_with_all_rows():
    given = weft.nd.array(np.arange(6, dtype="float32").reshape(3, 2))
    cache = builtin("create")(given, (4, 2), -1)
    assert builtin("view")(cache).numpy().tolist() == given.numpy().tolist()
