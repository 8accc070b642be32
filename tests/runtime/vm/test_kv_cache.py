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
