"""PrefetchNextIteration: before and after, and what is left as it is."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.arith.analyzer import Analyzer
from weft.ir.functor import collect, substitute
from weft.script import tir as T
from weft.tir.expr import Call, is_call
from weft.tir.interp import run
from weft.tir.stmt import For
from weft.tir.transform import PrefetchNextIteration, Simplify


def panels(rows, width):
    """A product of panels with the annotation."""
    notes = {"tir.prefetch_next": True}

    @T.prim_func
    def func(
        a: T.Buffer((rows, 5), "float32"),
        b: T.Buffer((3, 5, width), "float32"),
        c: T.Buffer((rows, 3, width), "float32"),
    ):
        for j in T.serial(3, annotations=notes):
            for r in range(rows):
                for x in T.vectorized(width):
                    c[r, j, x] = T.float32(0)
                for k in range(5):
                    for x in T.vectorized(width):
                        c[r, j, x] = c[r, j, x] + a[r, k] * b[j, k, x]

    return func


def lowered(func):
    return PrefetchNextIteration()(weft.IRModule({"func": func}))["func"]


def simplified(mod):
    return Simplify()(PrefetchNextIteration()(mod))


def prefetches(func):
    return [line.strip() for line in func.script().splitlines() if 'tir.prefetch"' in line]


def test_each_row_asks_for_one_line(becomes):
    @T.prim_func
    def before(
        a: T.Buffer((4, 5), "float32"), b: T.Buffer((3, 5, 32), "float32"),
        c: T.Buffer((4, 3, 32), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(4):
                for k in range(5):
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + a[r, k] * b[j, k, x]

    @T.prim_func
    def expected(
        a: T.Buffer((4, 5), "float32"), b: T.Buffer((3, 5, 32), "float32"),
        c: T.Buffer((4, 3, 32), "float32"),
    ):  # fmt: skip
        for j in range(3):
            for r in range(4):
                for k in range(5):
                    T.Call(
                        "int32", "tir.prefetch",
                        [b[T.min(j + 1, 2), (T.min(r, 1) * 5 + k) // 2,
                           (T.min(r, 1) * 5 + k) % 2 * 16], 0, 2, 1],
                    )  # fmt: skip
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + a[r, k] * b[j, k, x]

    becomes(simplified, before, expected)


def test_rows_of_unknown_number_count_as_a_few(becomes):
    """Twelve tiles of rows fetch the next panel, of 48 lines: one in each step."""

    @T.prim_func
    def before(pa: T.handle, b: T.Buffer((3, 48, 16), "float32"), pc: T.handle):
        m, n = T.int32(), T.int32()
        a = T.match_buffer(pa, (m, n, 48))
        c = T.match_buffer(pc, (m, n, 3, 16))
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for i, r in T.grid(m, n):
                for k in range(48):
                    for x in T.vectorized(16):
                        c[i, r, j, x] = c[i, r, j, x] + a[i, r, k] * b[j, k, x]

    @T.prim_func
    def expected(pa: T.handle, b: T.Buffer((3, 48, 16), "float32"), pc: T.handle):
        m, n = T.int32(), T.int32()
        a = T.match_buffer(pa, (m, n, 48))
        c = T.match_buffer(pc, (m, n, 3, 16))
        for j in range(3):
            for i, r in T.grid(m, n):
                for k in range(48):
                    T.Call(
                        "int32", "tir.prefetch",
                        [b[T.min(j + 1, 2), k, 0], 0, 2, 1],
                    )  # fmt: skip
                    for x in T.vectorized(16):
                        c[i, r, j, x] = c[i, r, j, x] + a[i, r, k] * b[j, k, x]

    becomes(simplified, before, expected)


def rows_of_any_number(depth):
    """Tiles of eight rows and 48 columns, of which only the run tells how many there are."""

    @T.prim_func
    def func(pa: T.handle, b: T.Buffer((3, depth, 4, 48), "float32"), pc: T.handle):
        n = T.int32()
        a = T.match_buffer(pa, (n, 8, depth, 4))
        c = T.match_buffer(pc, (n, 8, 3, 48))
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(n):
                for k in range(depth):
                    for u in T.unroll(4):
                        for v in T.unroll(8):
                            for x in T.vectorized(48):
                                c[r, v, j, x] = c[r, v, j, x] + a[r, v, k, u] * b[j, k, u, x]

    return func


@pytest.mark.parametrize(
    ("depth", "rows", "missing"),
    [(48, 1, 288), (48, 2, 0), (48, 3, 0), (48, 4, 0), (48, 9, 0), (49, 2, 0), (50, 3, 0)],
)
def test_few_rows_of_unknown_number_fetch_a_whole_panel_too(depth, rows, missing):
    func = lowered(rows_of_any_number(depth))
    calls = [call for call in collect(func.body, Call) if is_call(call, "prefetch")]
    assert len(calls) == 6  # while a step of 96 products is computed
    loops = {loop.loop_var.name: loop.loop_var for loop in collect(func.body, For)}
    (n,) = func.buffer_map[func.params[0]].shape[:1]
    places = set()
    for step in np.ndindex(1, rows, depth):
        values = {n: rows, **{loops[name]: at for name, at in zip("jrk", step, strict=True)}}
        for call in calls:
            indices = [substitute(index, values) for index in call.args[0].indices]
            places.add(tuple([int(Analyzer().simplify(index)) for index in indices]))
    lines = {(1, k, u, x) for k in range(depth) for u in range(4) for x in (0, 16, 32)}
    assert len(lines - places) == missing
    assert places <= lines


def test_of_a_panel_that_is_converted_the_narrow_one_is_asked_for(becomes):
    @T.prim_func
    def before(
        a: T.Buffer((4, 5), "float32"), b: T.Buffer((3, 5, 32), "bfloat16"),
        c: T.Buffer((4, 3, 32), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            wide = T.decl_buffer((1, 5, 32), "float32")
            for k in range(5):
                for x in T.vectorized(32):
                    wide[0, k, x] = T.Cast("float32", b[j, k, x])
            for r in range(4):
                for k in range(5):
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + a[r, k] * wide[0, k, x]

    @T.prim_func
    def expected(
        a: T.Buffer((4, 5), "float32"), b: T.Buffer((3, 5, 32), "bfloat16"),
        c: T.Buffer((4, 3, 32), "float32"),
    ):  # fmt: skip
        for j in range(3):
            wide = T.decl_buffer((1, 5, 32), "float32")
            for k in range(5):
                for x in T.vectorized(32):
                    wide[0, k, x] = T.Cast("float32", b[j, k, x])
            for r in range(4):
                for k in range(5):
                    T.Call(
                        "int32", "tir.prefetch",
                        [b[T.min(j + 1, 2), k, 0], 0, 2, 1],
                    )  # fmt: skip
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + a[r, k] * wide[0, k, x]

    becomes(simplified, before, expected)


def test_of_a_panel_that_is_copied_the_origin_is_asked_for():
    @T.prim_func
    def func(
        a: T.Buffer((4, 5), "float32"), b: T.Buffer((5, 96), "float32"),
        c: T.Buffer((4, 96), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            panel = T.decl_buffer((5, 32), "float32")
            for k in range(5):
                for x in T.vectorized(32):
                    panel[k, x] = b[k, j * 32 + x]
            for r in range(4):
                for k in range(5):
                    for x in T.vectorized(32):
                        c[r, j * 32 + x] = c[r, j * 32 + x] + a[r, k] * panel[k, x]

    after = lowered(func)
    [prefetch] = prefetches(after)
    assert "b[" in prefetch
    arrays = [np.random.default_rng(0).standard_normal(s, np.float32) for s in ((4, 5), (5, 96))]
    result = np.zeros((4, 96), np.float32)
    run(after, *arrays, result)
    np.testing.assert_allclose(result, arrays[0] @ arrays[1], rtol=1e-5, atol=1e-5)


def test_a_copy_in_another_order_is_not_followed():
    """The place of an element in what was copied would need the loops of the copy."""

    @T.prim_func
    def func(
        a: T.Buffer((4, 6), "float32"), b: T.Buffer((3, 6, 32), "bfloat16"),
        c: T.Buffer((4, 3, 32), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            wide = T.decl_buffer((6, 32), "float32")
            for k, half in T.grid(3, 2):
                for x in T.vectorized(32):
                    wide[k * 2 + half, x] = T.Cast("float32", b[j, k * 2 + half, x])
            for r in range(4):
                for k in range(6):
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + a[r, k] * wide[k, x]

    assert not prefetches(lowered(func))


@pytest.mark.parametrize(
    ("rows", "width", "number"), [(2, 64, 2), (3, 64, 2), (4, 64, 1), (9, 16, 1)]
)
def test_few_rows_ask_for_several_lines(rows, width, number):
    assert len(prefetches(lowered(panels(rows, width)))) == number


@pytest.mark.parametrize(
    ("rows", "number", "is_inside"), [(4, 1, True), (33, 2, False), (60, 1, False)]
)
def test_only_a_few_lines_are_asked_for_at_once(rows, number, is_inside):
    """Few rows in the inner loop, for a line that they share: outside it would be ten at once."""

    @T.prim_func
    def func(
        a: T.Buffer((rows, 8, 40), "float32"), b: T.Buffer((3, 8, 40, 16), "float32"),
        c: T.Buffer((rows, 3, 16), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(rows):
                for k in range(8):
                    for i in range(40):
                        for x in T.vectorized(16):
                            c[r, j, x] = c[r, j, x] + a[r, k, i] * b[j, k, i, x]

    made = lowered(func)
    assert len(prefetches(made)) == number
    assert ("k, i in T.grid" in made.script()) == is_inside  # nothing between the two


def places_asked_for(func, rows):
    """The rows and columns of the next panel that each prefetch of ``panels`` asks for, in time."""
    calls = [call for call in collect(func.body, Call) if is_call(call, "prefetch")]
    loops = {loop.loop_var.name: loop.loop_var for loop in collect(func.body, For)}
    return [
        tuple(
            int(
                Analyzer().simplify(
                    substitute(index, {loops["j"]: 0, loops["r"]: r, loops["k"]: k})
                )
            )
            for index in call.args[0].indices
        )
        for r in range(rows)
        for k in range(5)
        for call in calls
    ]


@pytest.mark.parametrize(
    ("rows", "width"), [(2, 64), (3, 64), (3, 48), (4, 64), (9, 16), (7, 33), (2, 16), (64, 32)]
)
def test_all_lines_are_asked_for_one_after_the_other(rows, width):
    places = places_asked_for(lowered(panels(rows, width)), rows)
    lines = [(1, *divmod(place, width)) for place in range(0, 5 * width, 16)]
    assert list(dict.fromkeys(places)) == lines


def test_a_panel_with_gaps_is_asked_for_row_by_row(becomes):
    """The loop over columns leaves eight of 40 out, so a share of each row is asked for."""

    @T.prim_func
    def before(
        a: T.Buffer((2, 5), "float32"), b: T.Buffer((3, 5, 40), "float32"),
        c: T.Buffer((2, 3, 32), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(2):
                for k in range(5):
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + a[r, k] * b[j, k, x]

    @T.prim_func
    def expected(
        a: T.Buffer((2, 5), "float32"), b: T.Buffer((3, 5, 40), "float32"),
        c: T.Buffer((2, 3, 32), "float32"),
    ):  # fmt: skip
        for j in range(3):
            for r in range(2):
                for k in range(5):
                    T.Call(
                        "int32", "tir.prefetch", [b[T.min(j + 1, 2), k, r * 16], 0, 2, 1]
                    )  # fmt: skip
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + a[r, k] * b[j, k, x]

    becomes(simplified, before, expected)


def test_several_blocks_of_columns_are_shared_out(becomes):
    @T.prim_func
    def before(
        a: T.Buffer((2, 5), "float32"), b: T.Buffer((6, 5, 16), "float32"),
        c: T.Buffer((2, 6, 16), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(2):
                for k in range(5):
                    for w in T.unroll(2):
                        for x in T.vectorized(16):
                            c[r, j * 2 + w, x] = c[r, j * 2 + w, x] + a[r, k] * b[j * 2 + w, k, x]

    @T.prim_func
    def expected(
        a: T.Buffer((2, 5), "float32"), b: T.Buffer((6, 5, 16), "float32"),
        c: T.Buffer((2, 6, 16), "float32"),
    ):  # fmt: skip
        for j in range(3):
            for r in range(2):
                for k in range(5):
                    T.Call(
                        "int32", "tir.prefetch", [b[T.min(j + 1, 2) * 2 + r, k, 0], 0, 2, 1]
                    )  # fmt: skip
                    for w in T.unroll(2):
                        for x in T.vectorized(16):
                            c[r, j * 2 + w, x] = c[r, j * 2 + w, x] + a[r, k] * b[j * 2 + w, k, x]

    becomes(simplified, before, expected)


def test_one_row_needs_none_and_the_annotation_goes():
    made = lowered(panels(1, 64))
    assert not prefetches(made)
    assert "prefetch_next" not in made.script()


@pytest.mark.parametrize(("rows", "width"), [(2, 64), (3, 20), (7, 33)])
def test_results_stay(rows, width):
    func = panels(rows, width)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in ((rows, 5), (3, 5, width))]
    expected = np.einsum("rk,jkx->rjx", *arrays)
    kernel = weft.build(func)
    assert "llvm.prefetch" in kernel.get_source("ll")
    inputs = [weft.nd.array(array) for array in arrays]
    found = weft.nd.array(np.zeros((rows, 3, width), np.float32))
    kernel["func"](*inputs, found)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
    interpreted = np.zeros((rows, 3, width), np.float32)
    run(lowered(func), *arrays, interpreted)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-5, atol=1e-5)


def test_a_panel_that_the_rows_change_is_not_asked_for():
    @T.prim_func
    def func(b: T.Buffer((3, 4, 5, 32), "float32"), c: T.Buffer((4, 3, 32), "float32")):
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(4):
                for k in range(5):
                    for x in T.vectorized(32):
                        c[r, j, x] = c[r, j, x] + b[j, r, k, x]

    assert not prefetches(lowered(func))


def test_symbolic_rows_and_depth():
    @T.prim_func
    def func(x: T.handle, y: T.handle, z: T.handle, n: T.int64, m: T.int64):
        a = T.match_buffer(x, (n, m), "float32")
        b = T.match_buffer(y, (3, m, 32), "float32")
        c = T.match_buffer(z, (n, 3, 32), "float32")
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(n):
                for k in range(m):
                    for v in T.vectorized(32):
                        c[r, j, v] = c[r, j, v] + a[r, k] * b[j, k, v]

    assert not prefetches(lowered(func))  # how many rows share the lines is not known


def test_errors_of_the_intrinsic():
    @T.prim_func
    def func(a: T.Buffer((4,), "float32"), i: T.int32):
        T.evaluate(T.Call("int32", "tir.prefetch", [a[0], i, 2, 1]))

    with pytest.raises(weft.TVMError, match="prefetch: expected an element of a buffer and three"):
        weft.build(func)


def test_steps_that_have_fewer_lines_than_there_are_rows_are_taken_together():
    """Two lines in each of four steps are eight for eight rows: one prefetch for four steps."""

    @T.prim_func
    def func(
        a: T.Buffer((8, 3, 4), "float32"), b: T.Buffer((3, 3, 4, 32), "float32"),
        c: T.Buffer((8, 3, 32), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(8):
                for k in range(3):
                    for s in T.unroll(4):
                        for x in T.vectorized(32):
                            c[r, j, x] = c[r, j, x] + a[r, k, s] * b[j, k, s, x]

    text = lowered(func).script()
    assert len(prefetches(lowered(func))) == 1
    assert text.index('tir.prefetch"') < text.index("T.unroll(4)")
