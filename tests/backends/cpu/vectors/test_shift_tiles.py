"""ShiftTiles: whole tiles along symbolic axes, the last one shifted; where it is not allowed."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import tir
from weft.backends.cpu.vectors.shift_tiles import tile_sizes, tiles_of_extent
from weft.ir.functor import Mutator
from weft.script import from_source
from weft.script import tir as T
from weft.tir import interp
from weft.tir.buffer import BufferLoad
from weft.tir.transform import ShiftTiles

SUMS = """
@T.prim_func
def main(p_x: T.handle, w: T.Buffer((3,), "float32"), p_y: T.handle):
    T.func_attr({"tir.noalias": True})
    n = T.int64()
    x = T.match_buffer(p_x, (n, 3))
    y = T.match_buffer(p_y, (n,))
    for o in LOOP((n + 7) // 8):
        s = T.decl_buffer((8,), scope="local")
        for v in T.unroll(T.int64(8)):
            if o * 8 + v < n:
                s[v] = T.float32(0)
        for k in range(3):
            for v in T.unroll(T.int64(8)):
                if o * 8 + v < n:
                    s[v] = s[v] + x[o * 8 + v, k] * w[k]
        for v in T.unroll(T.int64(8)):
            if o * 8 + v < n:
                y[o * 8 + v] = s[v] + OTHER
"""


def sums(loop="range", other="T.float32(0)", kind="T.unroll"):
    text = SUMS.replace("LOOP", loop).replace("OTHER", other)
    return from_source(text.replace("T.unroll", kind))


def test_the_last_tile_ends_with_the_axis(becomes):
    @T.prim_func
    def before(p_x: T.handle, p_y: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        x = T.match_buffer(p_x, (n,))
        y = T.match_buffer(p_y, (n,))
        for o in range((n + 3) // 4):
            for v in range(T.int64(4)):
                if o * 4 + v < n:
                    y[o * 4 + v] = x[o * 4 + v]

    @T.prim_func
    def expected(p_x: T.handle, p_y: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        x = T.match_buffer(p_x, (n,))
        y = T.match_buffer(p_y, (n,))
        if n >= 4:
            for o in range((n + 2) // 4):
                begin: T.int64 = T.min(o * 4, n - 4)
                for v in range(T.int64(4)):
                    y[begin + v] = x[begin + v]
        done: T.int64 = T.Select(n >= 4, T.min((n + 2) // 4 * 4, n), T.int64(0))
        for o in range(n - done):
            begin_1: T.int64 = done + o
            for v in range(T.int64(1)):
                y[begin_1 + v] = x[begin_1 + v]

    becomes(ShiftTiles(), before, expected)


def test_tiles_do_not_overlap_where_the_result_replaces_an_argument(becomes):
    @T.prim_func
    def before(p_x: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        x = T.match_buffer(p_x, (n,))
        for o in range((n + 3) // 4):
            for v in range(T.int64(4)):
                if o * 4 + v < n:
                    x[o * 4 + v] = x[o * 4 + v] * T.float32(2)

    @T.prim_func
    def expected(p_x: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        x = T.match_buffer(p_x, (n,))
        for o in range(n // 4):
            begin: T.int64 = o * 4
            for v in range(T.int64(4)):
                x[begin + v] = x[begin + v] * T.float32(2)
        for o in range(n % 4):
            begin_1: T.int64 = n // 4 * 4 + o
            for v in range(T.int64(1)):
                x[begin_1 + v] = x[begin_1 + v] * T.float32(2)

    becomes(ShiftTiles(), before, expected)


MARKS = """
@T.prim_func
def main(p_x: T.handle, p_count: T.handle):
    T.func_attr({"tir.noalias": True})
    n = T.int64()
    x = T.match_buffer(p_x, (n,))
    count = T.match_buffer(p_count, (n,))
    for o in range((n + LAST) // SIZE):
        for v in T.unroll(T.int64(SIZE)):
            if o * SIZE + v < n:
                x[o * SIZE + v] = VALUE
"""


def marks(size, value):
    return from_source(
        MARKS.replace("VALUE", value).replace("LAST", str(size - 1)).replace("SIZE", str(size))
    )


def test_large_tiles_of_many_statements_go_without_the_second_size():
    """Five statements in tiles of 29, 15, 8, 4, 2 and 1 elements would be 150 more stores."""
    statement = "x[o * 29 + v] = x[o * 29 + v] + T.float32(1)"
    text = MARKS.replace("LAST", "28").replace("SIZE", "29")
    text = text.replace("x[o * 29 + v] = VALUE", "\n                ".join([statement] * 5))
    shifted = ShiftTiles()(weft.IRModule({"main": from_source(text)}))["main"]
    written = [each for each in range(1, 30) if f"T.unroll(T.int64({each}))" in shifted.script()]
    assert written == [1, 2, 4, 8, 29]
    for n in (0, 1, 13, 28, 29, 48, 60):
        result = np.arange(n, dtype="float32")
        interp.run(shifted, result, np.zeros(n, "float32"))
        np.testing.assert_array_equal(result, np.arange(n, dtype="float32") + 5)


@pytest.mark.parametrize("size", [6, 9, 14])
def test_an_axis_gets_the_tiles_that_take_the_least_time(size):
    shifted = ShiftTiles()(weft.IRModule({"main": marks(size, "count[o * SIZE + v]")}))["main"]
    native = weft.build(shifted, target="llvm")["main"]
    text = shifted.script()
    for each in tile_sizes(size):
        assert f"T.unroll(T.int64({each}))" in text
    for n in range(2 * size + 2):
        wanted = np.random.default_rng(n).standard_normal(n).astype("float32")
        out = [np.zeros(n, "float32"), weft.nd.array(np.zeros(n, "float32"))]
        interp.run(shifted, out[0], wanted)
        native(out[1], weft.nd.array(wanted))
        np.testing.assert_array_equal(out[0], wanted)
        np.testing.assert_array_equal(out[1].numpy(), wanted)


@pytest.mark.parametrize("size", [6, 9, 14])
def test_tiles_of_all_sizes_that_do_not_overlap(size):
    """Each element is added to once."""
    before = marks(size, "x[o * SIZE + v] + T.float32(1)")
    shifted = ShiftTiles()(weft.IRModule({"main": before}))["main"]
    for n in range(2 * size + 2):
        out = np.zeros(n, "float32")
        interp.run(shifted, out, np.zeros(n, "float32"))
        np.testing.assert_array_equal(out, 1)


def test_few_elements_are_computed_twice():
    for size in (6, 8, 9, 14, 28):
        assert tiles_of_extent(size, 0) == []
        for extent in range(1, 10 * size):
            parts = tiles_of_extent(size, extent)
            computed = sum(each * count for each, count in parts)
            assert extent <= computed < extent + size
            assert {each for each, _ in parts} <= set(tile_sizes(size))
    assert [tiles_of_extent(14, extent) for extent in (7, 17, 28, 55)] == [
        [(7, 1)], [(14, 1), (4, 1)], [(14, 2)], [(14, 4)],
    ]  # fmt: skip


class _Counted(Mutator):
    """Adds 1 to each element that is stored."""

    def visit_BufferStore(self, store):
        return store.with_(value=BufferLoad(store.buffer, store.indices) + tir.const(1, "float32"))


@pytest.mark.parametrize("size", [6, 9, 14])
def test_lowering_cuts_an_axis_as_it_is_priced(size):
    """Each element is stored as often as the tiles that ``tiles_of_extent`` gives have it."""
    shifted = ShiftTiles()(weft.IRModule({"main": marks(size, "count[o * SIZE + v]")}))["main"]
    counted = shifted.with_(body=_Counted().visit(shifted.body))
    for n in range(1, 3 * size):
        stores = np.zeros(n, "float32")
        interp.run(counted, stores, np.zeros(n, "float32"))
        assert stores.sum() == sum(each * count for each, count in tiles_of_extent(size, n))
        assert stores.min() == 1


@pytest.mark.parametrize("kind", ["T.unroll", "T.vectorized"])
def test_no_guard_is_left_and_every_extent_is_computed(kind):
    for loop in ("range", "T.parallel"):
        for other in ("T.float32(0)", "y[o * 8 + v]"):
            func = sums(loop, other, kind)
            shifted = ShiftTiles()(weft.IRModule({"main": func}))["main"]
            assert "+ v <" not in shifted.script()
            native = weft.build(func, target="llvm")
            for n in (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 21):
                x = np.random.default_rng(n).standard_normal((n, 3)).astype("float32")
                weights = np.array([1, -2, 3], "float32")
                expected = x @ weights + (1 if "y" in other else 0)
                for run in (native["main"], lambda *arrays, f=shifted: interp.run(f, *arrays)):
                    y = np.ones(n, "float32")
                    run(x, weights, y)
                    np.testing.assert_allclose(y, expected, rtol=1e-5)


GUARDS = {
    "at most": ("o * 8 + v < n", "o * 8 + v <= n - 1", "(n + 7) // 8", lambda n: n),
    "a number on the left": (
        "o * 8 + v < n", "o * 8 + v + 2 < n", "(n + 5) // 8", lambda n: max(n - 2, 0)
    ),
    "an extent that is computed": (
        "v < n",
        "v < (n + 1) // 2",
        "((n + 1) // 2 + 7) // 8",
        lambda n: (n + 1) // 2,
    ),
    "two limits": (
        "v < n",
        "v < n - 1 and o * 8 + v < n // 2 + 2",
        "(n + 7) // 8",
        lambda n: min(n - 1, n // 2 + 2),
    ),
    "more tiles": ("v < n", "v < n", "(n + 80) // 8", lambda n: n),
    "fewer tiles": ("v < n", "v < n", "n // 8", lambda n: n // 8 * 8),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["T.unroll", "T.vectorized"])
@pytest.mark.parametrize("case", GUARDS)
def test_other_guards_and_numbers_of_tiles(case, kind):
    old, new, tiles, count = GUARDS[case]
    text = SUMS.replace("LOOP", "range").replace("OTHER", "T.float32(0)").replace(old, new)
    func = from_source(text.replace("T.unroll", kind).replace("(n + 7) // 8", tiles))
    shifted = ShiftTiles()(weft.IRModule({"main": func}))["main"]
    assert "+ v <" not in shifted.script()
    native = weft.build(func, target="llvm")
    for n in (0, 1, 2, 5, 7, 8, 9, 16, 23):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype("float32")
        weights = np.array([1, -2, 3], "float32")
        expected = x @ weights
        expected[max(count(n), 0) :] = 5
        for run in (native["main"], lambda *arrays: interp.run(shifted, *arrays)):
            y = np.full(n, 5, "float32")
            run(x, weights, y)
            np.testing.assert_allclose(y, expected, rtol=1e-5)


GUARD = "            if o * 8 + v < n:\n                y"
LEFT_ALONE = {
    "its variable stands alone": sums(other="T.Cast('float32', o)"),
    "arguments may share memory": from_source(
        SUMS.replace("LOOP", "range").replace("OTHER", "0").replace('"tir.noalias": True', "")
    ),
    "memory from outside is written without guard": from_source(
        SUMS.replace("LOOP", "range")
        .replace("OTHER", "0")
        .replace(GUARD, "            if v < n:\n                y")
    ),
    "a function is called": sums(other='T.call_extern("float32", "sinf", x.data)'),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_what_is_left_alone(why):
    mod = weft.IRModule({"main": LEFT_ALONE[why]})
    weft.ir.assert_structural_equal(ShiftTiles()(mod), mod)


def fused(loop="T.unroll", place="(o * 8 + v) % 2", other="T.float32(0)", size=8):
    """Two axes of ``n`` and 2 elements as one; Simplify has made ``v % 2`` of a remainder."""
    return from_source(f"""
@T.prim_func
def main(p_x: T.handle, w: T.Buffer(({size},), "float32"), p_y: T.handle):
    T.func_attr({{"tir.noalias": True}})
    n = T.int64()
    x = T.match_buffer(p_x, (n,))
    y = T.match_buffer(p_y, (n,))
    for o in range((n + 7) // 8):
        for v in {loop}(T.int64(8)):
            if o * 8 + v < n:
                y[o * 8 + v] = x[o * 8 + v] + w[{place}] + {other}
""")


@pytest.mark.parametrize("loop", ["T.unroll", "T.vectorized"])
@pytest.mark.parametrize("other", ["T.float32(0)", "y[o * 8 + v]"])
@pytest.mark.parametrize("place", ["v % 2", "v", "v // 3", "7 - v", "v % 2 + (o * 8 + v) % 2"])
def test_an_element_alone_is_its_place_in_the_old_tile(loop, other, place):
    """Tiles that begin elsewhere, and shorter ones, must read what the element read before."""
    func = fused(loop, place, other)
    shifted = ShiftTiles()(weft.IRModule({"main": func}))["main"]
    assert not weft.ir.structural_equal(shifted, func)
    native = weft.build(func, "llvm")["main"]
    for n in (0, 1, 3, 7, 8, 9, 15, 16, 21, 40):
        x, w = np.arange(n, dtype="float32"), 100 * np.arange(8, dtype="float32")
        results = [np.ones(n, "float32") for _ in range(3)]
        interp.run(func, x, w, results[0])
        interp.run(shifted, x, w, results[1])
        native(x, w, results[2])
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.parametrize("place", ["o * 8 % 5 + v % 2", "(o * 8 + 3) % 5", "o * 16 % 3 + v"])
def test_a_tiles_number_alone_keeps_the_loop(place):
    """A tile that begins elsewhere has elements of two tiles, which no number of a tile names."""
    func = fused(place=place, size=12)
    assert weft.ir.structural_equal(ShiftTiles()(weft.IRModule({"main": func}))["main"], func)
    x, w = np.arange(21, dtype="float32"), 100 * np.arange(12, dtype="float32")
    expected, native = np.zeros(21, "float32"), np.zeros(21, "float32")
    interp.run(func, x, w, expected)
    weft.build(func, "llvm")["main"](x, w, native)
    np.testing.assert_array_equal(native, expected)
