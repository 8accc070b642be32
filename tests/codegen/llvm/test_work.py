"""Which parallel loops are worth a fork."""

from __future__ import annotations

import pytest

import weft
from weft.codegen.llvm.work import cycles_of, smallest_work
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def product(rows, depth, columns):
    @T.prim_func
    def func(
        a: T.Buffer((rows, depth), "float32"),
        b: T.Buffer((columns // 64, depth, 64), "float32"),
        c: T.Buffer((rows, columns), "float32"),
    ):
        for j in T.parallel(columns // 64):
            for i in range(rows):
                for k in range(depth):
                    c[i, j * 64 : j * 64 + 64] = (
                        c[i, j * 64 : j * 64 + 64] + T.Broadcast(a[i, k], 64) * b[j, k, 0:64]
                    )

    return func


WIDE = "llvm -mcpu=skylake-avx512 -vector-width=512"


def forks(func, target=WIDE):
    return "weft.parallel." in weft.build(func, target=target).get_source("ll")


def test_a_perceptron_of_one_row_is_a_brief_loop():
    assert not forks(product(1, 784, 64))
    assert not forks(product(1, 100, 128))
    brief, long = product(1, 784, 128), product(64, 784, 128)
    assert forks(brief)
    assert forks(long)
    assert "weft_parallel_brief(" in weft.build(brief, target=WIDE).get_source("ll")
    assert "weft_parallel_brief(" not in weft.build(long, target=WIDE).get_source("ll")


def test_what_writes_more_must_take_longer():
    def copy(number):
        @T.prim_func
        def func(a: T.Buffer((number,), "float32"), b: T.Buffer((number,), "float32")):
            local = T.alloc_buffer((1 << 20,), "float32", scope="local")
            for i in range(number):
                local[i] = a[i]
                b[i] = local[i]

        return func.body

    assert [smallest_work(copy(number)) for number in (0, 100, 1000, 5000)] == [
        8_000, 8_400, 12_000, 14_000,
    ]  # fmt: skip


def test_narrower_vectors_make_more_work():
    @T.prim_func
    def func(a: T.Buffer((64,), "float32")):
        a[0:64] = T.exp(a[0:64])

    narrow, wide = [cycles_of(func.body, bits) for bits in (128, 512)]
    assert narrow > 3 * wide


@pytest.mark.parametrize(("number", "expected"), [(1 << 12, False), (1 << 18, True)])
def test_copies_count_by_their_bytes(number, expected):
    @T.prim_func
    def copy(a: T.Buffer((number,), "float32"), b: T.Buffer((number,), "float32")):
        for i in T.parallel(number // 16):
            b[i * 16 : i * 16 + 16] = a[i * 16 : i * 16 + 16]

    assert forks(copy) is expected


def test_tensors_beyond_the_second_cache_take_longer():
    @T.prim_func
    def read(a: T.Buffer((1 << 24,), "float32"), b: T.Buffer((16,), "float32")):
        for i in range(100):
            b[0:16] = a[i * 16 : i * 16 + 16]

    @T.prim_func
    def read_near(a: T.Buffer((1600,), "float32"), b: T.Buffer((16,), "float32")):
        for i in range(100):
            b[0:16] = a[i * 16 : i * 16 + 16]

    assert cycles_of(read.body, 512) == 100 * (8 + 2)
    assert cycles_of(read_near.body, 512) == 100 * (2 + 2)


def test_rows_of_a_tile_load_their_panel_once():
    def tile(rows):
        @T.prim_func
        def func(a: T.Buffer((rows, 64), "float32"), b: T.Buffer((64, 16), "float32")):
            c = T.alloc_buffer((rows, 16), "float32", scope="local")
            for k in range(64):
                for i in T.unroll(rows):
                    c[i, 0:16] = c[i, 0:16] + T.Broadcast(a[i, k], 16) * b[k, 0:16]

        return cycles_of(weft.lower(func)["func"].body, 512)

    panel, row = 64 / 32, 0.5 + 0.5  # a vector of the panel; a number, a product with its sum
    assert [tile(rows) for rows in (1, 4, 8)] == [64 * (panel + rows * row) for rows in (1, 4, 8)]


def test_names_and_shuffles_count_like_what_they_are_bound_to():
    @T.prim_func
    def stored(a: T.Buffer((32,), "float32"), b: T.Buffer((32,), "float32"), n: T.int32):
        b[0:16] = T.exp(a[0:16])

    @T.prim_func
    def named(a: T.Buffer((32,), "float32"), b: T.Buffer((32,), "float32"), n: T.int32):
        with T.LetStmt(n + 1):
            with T.LetStmt(T.exp(a[0:16])) as value:
                b[0:16] = value

    @T.prim_func
    def shuffled(a: T.Buffer((32,), "float32"), b: T.Buffer((32,), "float32"), n: T.int32):
        b[0:16] = T.Shuffle([T.exp(a[0:16]), a[16:32], a[16:32]], [1] * 16)

    plain, other, more = [cycles_of(func.body, 512) for func in (stored, named, shuffled)]
    assert plain == other
    assert more == plain + 2 + 2 * 0.5  # one load, two registers put to the first


@pytest.mark.parametrize(("heads", "expected"), [(1, False), (12, True)])
def test_transposes_in_registers_fork(heads, expected):
    @I.ir_module
    class Transposed:
        @R.function
        def main(x: R.Tensor((heads, 128, 64), "float32")) -> R.Tensor((heads, 64, 128), "float32"):
            return R.permute_dims(x, axes=[0, 2, 1])

    found = weft.compile(Transposed, target=WIDE + " -num-cores=2", cache=False)
    assert ("weft.parallel." in found.get_source("ll")) is expected


def test_functions_of_mathematics_count_more():
    @T.prim_func
    def plain(a: T.Buffer((1000,), "float32")):
        for i in range(1000):
            a[i] = a[i] + T.float32(1)

    @T.prim_func
    def exponential(a: T.Buffer((1000,), "float32")):
        for i in range(1000):
            a[i] = T.exp(a[i])

    assert cycles_of(exponential.body, 256) > 5 * cycles_of(plain.body, 256)
    assert cycles_of(plain.body, 256) < smallest_work(plain.body)


def test_symbolic_extents_and_branches():
    @T.prim_func
    def func(x: T.handle, n: T.int64):
        a = T.match_buffer(x, (n,), "float32")
        for i in range(n):
            if i < 3:
                a[i] = T.exp(a[i])
            else:
                a[i] = T.float32(0)

    @T.prim_func
    def always(x: T.handle, n: T.int64):
        a = T.match_buffer(x, (n,), "float32")
        for i in range(n):
            a[i] = T.exp(a[i])

    assert cycles_of(func.body, 256) == cycles_of(always.body, 256) > 64 * 10
