"""The reference interpreter: statements, memory, faults."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import tir
from weft.script import tir as T
from weft.support.errors import IRValueError, RuntimeFault
from weft.tir import op
from weft.tir.interp import run


def test_a_while_loop_ends_where_its_condition_fails():
    @T.prim_func
    def main(y: T.Buffer((1,), "int32")):
        while y[0] < 40:
            y[0] = y[0] * 3

    y = np.ones(1, "int32")
    run(main, y)
    assert y[0] == 81


def test_init_runs_once_for_each_element():
    @T.prim_func
    def main(x: T.Buffer((2, 3), "int32"), y: T.Buffer((2,), "int32")):
        for i, k in T.grid(2, 3):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    y[vi] = 100
                y[vi] = y[vi] + x[vi, vk]

    y = np.zeros(2, "int32")
    run(main, np.arange(6, dtype="int32").reshape(2, 3), y)
    assert y.tolist() == [103, 112]


def test_a_returned_value():
    @T.prim_func
    def main(n: T.int32) -> T.int32:
        T.ret(n * 2)

    assert run(main, 21) == 42


def test_symbolic_extents_come_from_the_arguments():
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int64()
        x = T.match_buffer(a, (n,), "int32")
        y = T.match_buffer(b, (n * T.int64(2),), "int32")
        for i in range(n):
            y[i * T.int64(2)] = x[i]

    y = np.zeros(6, "int32")
    run(main, np.array([1, 2, 3], "int32"), y)
    assert y.tolist() == [1, 0, 2, 0, 3, 0]
    with pytest.raises(IRValueError, match="y: expected an extent 4, got 6"):
        run(main, np.zeros(2, "int32"), y)


def test_an_extent_may_be_an_expression_of_a_later_buffers_symbol():
    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int64()
        x = T.match_buffer(a, (n * 2,), "int32")
        y = T.match_buffer(b, (n, 2), "int32")
        for i, j in T.grid(n, 2):
            y[i, j] = x[i * 2 + j]

    y = np.zeros((3, 2), "int32")
    run(main, np.arange(6, dtype="int32"), y)
    assert y.tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(IRValueError, match="x: expected an extent 6, got 5"):
        run(main, np.arange(5, dtype="int32"), y)


def test_faults_name_the_buffer_and_the_numbers():
    @T.prim_func
    def main(n: T.int32, x: T.Buffer((2, 4), "int32")):
        x[1, n] = 5

    with pytest.raises(RuntimeFault, match=r"buffer x: index 4 of axis 1 is outside \[0, 4\)"):
        run(main, 4, np.zeros((2, 4), "int32"))


def test_assertions_fail_with_their_message():
    @T.prim_func
    def main(n: T.int32):
        assert n > 3, "n is too small"
        T.evaluate(0)

    run(main, 4)
    with pytest.raises(RuntimeFault, match="n is too small"):
        run(main, 3)


def test_arrays_that_are_not_in_one_piece_are_updated():
    @T.prim_func
    def main(y: T.Buffer((2, 2), "int32")):
        for i, j in T.grid(2, 2):
            y[i, j] = i * 2 + j

    memory = np.full((4, 4), 9, "int32")
    run(main, memory[::2, ::2])
    assert memory[::2, ::2].tolist() == [[0, 1], [2, 3]]
    assert memory[1].tolist() == [9, 9, 9, 9]


def test_zeros_are_ordered_by_sign_natively_too():
    @T.prim_func
    def extremes(
        x: T.Buffer((4,), "float32"),
        y: T.Buffer((4,), "float32"),
        low: T.Buffer((4,), "float32"),
        high: T.Buffer((4,), "float32"),
    ):
        for i in range(4):
            low[i] = T.min(x[i], y[i])
            high[i] = T.max(x[i], y[i])

    x, y = np.array([0, -0.0, 0, -0.0], "f4"), np.array([0, 0, -0.0, -0.0], "f4")
    expected = [x, y, np.ones(4, "f4"), np.ones(4, "f4")]
    run(extremes, *expected)
    assert list(np.signbit(expected[2])) == [False, True, True, True]
    assert list(np.signbit(expected[3])) == [False, False, False, True]
    arrays = [weft.nd.array(array) for array in (x, y, expected[2], expected[3])]
    weft.build(extremes)(*arrays)
    for position in (2, 3):
        signs = np.signbit(arrays[position].numpy())
        np.testing.assert_array_equal(signs, np.signbit(expected[position]))


def test_constant_zeros_are_ordered_by_sign():
    low = op.minimum(op.const(0.0, "float32"), op.const(-0.0, "float32"))
    high = op.maximum(op.const(-0.0, "float32"), op.const(0.0, "float32"))
    assert np.signbit(low.value)
    assert not np.signbit(high.value)


@pytest.mark.parametrize("base", [0, 5, (1 << 63) + 7, (1 << 64) - 2])
def test_a_ramp_wraps_in_its_own_type(base):
    out = tir.decl_buffer((4,), "uint64", "out")
    start = tir.IntImm("uint64", base)
    value = tir.Ramp(start, tir.IntImm("uint64", 3), 4)
    store = tir.BufferStore(
        out, value, [tir.Ramp(tir.IntImm("int32", 0), tir.IntImm("int32", 1), 4)]
    )
    found = np.zeros(4, "uint64")
    run(tir.PrimFunc([out], store), found)
    assert found.tolist() == [(base + 3 * lane) % (1 << 64) for lane in range(4)]


def test_a_view_that_nothing_declares_follows_its_memory():
    """Each iteration has new memory; what reads it through other extents sees that, not the first.

    As after FlattenVectorAccess: a view is used where no DeclBuffer is around.
    """

    @T.prim_func
    def main(y: T.Buffer((3, 4), "int32")):
        for i in range(3):
            whole = T.decl_buffer((4,), "int32")
            square = T.Buffer((2, 2), "int32", data=whole.data)
            for j in range(4):
                whole[j] = i * 10 + j
            for j in range(4):
                y[i, j] = square[j // 2, j % 2]

    y = np.zeros((3, 4), "int32")
    run(main, y)
    np.testing.assert_array_equal(y, [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]])


@T.prim_func
def backwards(a: T.Buffer((4,), "int32")):
    b = T.decl_buffer((4,), "int32", data=a.data, strides=[-1])
    for i in range(4):
        b[i] = 7


@T.prim_func
def backwards_from_the_end(a: T.Buffer((4,), "int32")):
    b = T.decl_buffer((4,), "int32", data=a.data, strides=[-1], elem_offset=3)
    for i in range(4):
        b[i] = i


def test_a_view_with_negative_strides_stays_in_its_memory():
    big = np.zeros(16, "int32")
    with pytest.raises(RuntimeFault, match=r"reaches from element -3 to 0, its memory has 4"):
        run(backwards, big[8:12])
    assert not big.any()
    run(backwards_from_the_end, big[8:12])
    np.testing.assert_array_equal(big[7:13], [0, 3, 2, 1, 0, 0])


def test_a_view_of_a_larger_type_leaves_the_bytes_over():
    @T.prim_func
    def main(n: T.int32, a: T.Buffer((7,), "int8")):
        v = T.decl_buffer((n,), "int32", data=a.data)
        v[0] = 1

    a = np.full(7, 9, "int8")
    run(main, 1, a)
    assert a.tolist() == [1, 0, 0, 0, 9, 9, 9]
    with pytest.raises(RuntimeFault, match="reaches from element 0 to 1, its memory has 1"):
        run(main, 2, a)


def test_a_matched_region_stays_in_its_buffer():
    @T.prim_func
    def main(n: T.int32, a: T.Buffer((8,), "int32"), s: T.Buffer((), "int32")):
        with T.block("rows"):
            row = T.match_buffer(a[n : n + 2], (2,), "int32")
            one = T.match_buffer(s[()], (), "int32")
            row[0] = 1
            one[()] = 2

    a, s = np.zeros(8, "int32"), np.zeros((), "int32")
    run(main, 6, a, s)
    assert a[6] == 1
    assert s == 2
    for n in (7, -1):
        with pytest.raises(RuntimeFault, match=rf"region \[{n}, {n + 2}\) of axis 0 is outside"):
            run(main, n, a, s)


def test_a_scalar_argument_is_rounded_to_its_type():
    @T.prim_func
    def main(x: T.float16, y: T.Buffer((1,), "float64")):
        y[0] = T.Cast("float64", x)

    y = np.zeros(1)
    run(main, 0.1, y)
    assert y[0] == float(np.float16(0.1))


def test_a_view_that_nothing_declares_moves_with_its_offset():
    @T.prim_func
    def main(a: T.Buffer((4,), "int32")):
        for i in range(5):
            v = T.Buffer((1,), "int32", data=a.data, elem_offset=i)
            v[0] = i + 1

    a, b = np.zeros(4, "int32"), np.zeros(4, "int32")
    with pytest.raises(RuntimeFault, match="reaches from element 4 to 4, its memory has 4"):
        run(main, a)
    with pytest.raises(IndexError, match="view v: reaches to byte 20 of a memory of 16 bytes"):
        weft.build(main)(b)
    assert a.tolist() == b.tolist() == [1, 2, 3, 4]
