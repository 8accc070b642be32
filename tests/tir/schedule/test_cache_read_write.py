"""cache_read, cache_write, cache_inplace: shapes, places, meaning, refusals."""

import numpy as np
import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning, child_names
from weft.tir.interp import run
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.cache import cache_checks, cache_stage
from weft.tir.schedule.primitive.cache import cache_read_write as cache


def test_an_input_is_copied_at_the_start_of_the_scope():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 20))
        B = T.match_buffer(b, (20, 24))
        C = T.match_buffer(c, (32, 24))
        A_shared = T.alloc_buffer((32, 20), scope="shared")
        for ax0, ax1 in T.grid(32, 20):
            with T.block("A_shared"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_shared[v0, v1] = A[v0, v1]
        for i, j, k in T.grid(32, 24, 20):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A_shared[vi, vk] * B[vk, vj]

    sch = tir.Schedule(matmul)
    copy = sch.cache_read("C", 0, "shared")
    assert sch.get(copy).name_hint == "A_shared"
    assert sch.get(sch.get_block("C")).name_hint == "C"
    assert_structural_equal(
        sch.mod["main"].with_attr("global_symbol", ""), expected.with_attr("global_symbol", "")
    )
    assert_same_meaning(matmul, sch.mod)


def test_an_output_is_copied_back_at_the_end_of_the_scope():
    sch = tir.Schedule(matmul)
    copy = sch.cache_write("C", "C", "local")
    assert child_names(sch) == ["C", "C_local"]
    assert sch.get(copy).writes[0].buffer.name == "C"
    assert sch.get(sch.get_block("root")).alloc_buffers[0].scope() == "local"
    assert_same_meaning(matmul, sch.mod)


def test_the_copy_of_an_intermediate_stands_before_its_first_reader():
    sch = tir.Schedule(elementwise_chain)
    block = sch.get_block("C")
    sch.cache_read(block, 0, "shared")
    sch.cache_read(block, 0, "local")
    sch.cache_write(block, 0, "shared")
    assert child_names(sch) == ["B", "B_shared", "B_shared_local", "C", "C_shared", "D"]
    assert_same_meaning(elementwise_chain, sch.mod)


def test_buffers_are_named_by_place_name_or_themselves():
    made = []
    for given in (1, "B", matmul.buffer_map[matmul.params[1]]):
        sch = tir.Schedule(matmul)
        sch.cache_read("C", given, "shared")
        assert "read_buffer_index=1" in str(sch.trace)
        made.append(sch.mod)
    assert_structural_equal(made[0], made[1])
    assert_structural_equal(made[0], made[2])


@T.prim_func
def three_readers(a: T.handle, b: T.handle, c: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (30,))
    B = T.match_buffer(b, (30,))
    C = T.match_buffer(c, (30,))
    D = T.match_buffer(d, (30,))
    M = T.alloc_buffer((30,))
    for i in range(30):
        with T.block("M"):
            vi = T.axis.spatial(30, i)
            M[vi] = A[vi] + T.float32(1)
    for i in range(30):
        with T.block("B"):
            vi = T.axis.spatial(30, i)
            B[vi] = M[vi] * T.float32(2)
    for i in range(30):
        with T.block("C"):
            vi = T.axis.spatial(30, i)
            C[vi] = M[29 - vi]
    for i in range(30):
        with T.block("D"):
            vi = T.axis.spatial(30, i)
            D[vi] = M[vi] + A[vi]


@pytest.mark.parametrize(
    ("consumers", "order", "readers"),
    [
        (None, ["M", "M_local", "B", "C", "D"], "BCD"),
        (["C"], ["M", "B", "M_local", "C", "D"], "C"),
        (["D", "C"], ["M", "B", "M_local", "C", "D"], "CD"),
    ],
)
def test_consumers_of_a_read_cache(consumers, order, readers):
    sch = tir.Schedule(three_readers)
    sch.cache_read("B", "M", "local", consumers)
    assert child_names(sch) == order
    for name in "BCD":
        read = sch.get(sch.get_block(name)).reads[0].buffer.name
        assert read == ("M_local" if name in readers else "M")
    assert_same_meaning(three_readers, sch.mod)


@pytest.mark.parametrize(
    ("consumers", "order"),
    [
        (None, ["M", "M_local", "B", "C", "D"]),
        (["B"], ["M", "B", "M_local", "C", "D"]),
        (["B", "D"], ["M", "B", "M_local", "C", "D"]),
        (["B", "C", "D"], ["M", "B", "C", "D", "M_local"]),
    ],
)
def test_consumers_of_a_write_cache(consumers, order):
    sch = tir.Schedule(three_readers)
    sch.cache_write("M", 0, "local", consumers)
    assert child_names(sch) == order
    assert_same_meaning(three_readers, sch.mod)


def test_one_loop_around_writer_and_reader():
    @T.prim_func
    def rows(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (8, 12))
        B = T.match_buffer(b, (8, 12))
        M = T.alloc_buffer((8, 12))
        for i in range(8):
            for j in range(12):
                with T.block("M"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    M[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(12):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = M[vi, 11 - vj]

    sch = tir.Schedule(rows)
    copy = sch.cache_read("B", "M", "local")
    assert [sch.get(loop).extent.value for loop in sch.get_loops(copy)] == [8, 1, 12]
    assert str(sch.get(copy).reads[0]).replace(" ", "").endswith("[v0,v1]")
    assert_same_meaning(rows, sch.mod)
    sch.cache_write("M", 0, "local")
    sch.cache_write("B", 0, "local")
    assert_same_meaning(rows, sch.mod)


@T.prim_func
def nested(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (32, 16))
    B = T.match_buffer(b, (32, 16))
    for io in range(4):
        with T.block("outer"):
            vio = T.axis.spatial(4, io)
            T.reads(A[vio * 8 : vio * 8 + 8, 0:16])
            T.writes(B[vio * 8 : vio * 8 + 8, 0:16])
            for ii, j in T.grid(8, 16):
                with T.block("inner"):
                    vii, vj = T.axis.remap("SS", [ii, j])
                    B[vio * 8 + vii, vj] = A[vio * 8 + vii, 15 - vj] * T.float32(3)


def test_inside_a_block_the_region_is_copied():
    @T.prim_func
    def expected(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (32, 16))
        B = T.match_buffer(b, (32, 16))
        for io in range(4):
            with T.block("outer"):
                vio = T.axis.spatial(4, io)
                T.reads(A[vio * 8 : vio * 8 + 8, 0:16])
                T.writes(B[vio * 8 : vio * 8 + 8, 0:16])
                A_shared = T.alloc_buffer((8, 16), scope="shared")
                B_local = T.alloc_buffer((8, 16), scope="local")
                for ax0, ax1 in T.grid(8, 16):
                    with T.block("A_shared"):
                        v0, v1 = T.axis.remap("SS", [ax0, ax1])
                        A_shared[v0, v1] = A[vio * 8 + v0, v1]
                for ii, j in T.grid(8, 16):
                    with T.block("inner"):
                        vii, vj = T.axis.remap("SS", [ii, j])
                        B_local[vii, vj] = A_shared[vii, 15 - vj] * T.float32(3)
                for ax0, ax1 in T.grid(8, 16):
                    with T.block("B_local"):
                        v0, v1 = T.axis.remap("SS", [ax0, ax1])
                        B[vio * 8 + v0, v1] = B_local[v0, v1]

    sch = tir.Schedule(nested)
    sch.cache_read("inner", 0, "shared")
    sch.cache_write("inner", 0, "local")
    assert_structural_equal(
        sch.mod["main"].with_attr("global_symbol", ""), expected.with_attr("global_symbol", "")
    )
    assert_same_meaning(nested, sch.mod)
    whole = tir.Schedule(nested)
    whole.cache_read("outer", "A", "shared")
    whole.cache_write("outer", "B", "local")
    assert_same_meaning(nested, whole.mod)


def test_a_region_that_leaves_the_buffer_is_copied_under_a_condition():
    @T.prim_func
    def tail(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (30,))
        B = T.match_buffer(b, (30,))
        for io in range(4):
            with T.block("outer"):
                vio = T.axis.spatial(4, io)
                T.reads(A[vio * 8 : vio * 8 + 8])
                T.writes(B[vio * 8 : vio * 8 + 8])
                for ii in range(8):
                    with T.block("inner"):
                        T.where(vio * 8 + ii < 30)
                        vi = T.axis.spatial(30, vio * 8 + ii)
                        B[vi] = A[vi] + T.float32(1)

    sch = tir.Schedule(tail)
    sch.cache_read("inner", 0, "shared")
    assert "T.where(vio * 8 + ax0 < 30)" in sch.mod.script()
    assert_same_meaning(tail, sch.mod)


def test_after_a_split_that_does_not_divide():
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    sch.split(i, [None, 5])
    sch.split(j, [None, 7])
    sch.split(k, [None, 3])
    sch.cache_read("C", 0, "shared")
    sch.cache_write("C", 0, "local")
    assert_same_meaning(matmul, sch.mod)


def test_symbolic_shapes():
    @T.prim_func
    def scale(a: T.handle, b: T.handle, n: T.int64) -> None:
        A = T.match_buffer(a, (n, T.int64(3)))
        B = T.match_buffer(b, (n, T.int64(3)))
        for i, j in T.grid(n, T.int64(3)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    sch = tir.Schedule(scale)
    copy = sch.cache_read("B", 0, "shared")
    sch.cache_write("B", 0, "local")
    assert [sch.get(loop).loop_var.dtype for loop in sch.get_loops(copy)] == ["int64", "int64"]
    for n in (0, 1, 7):
        assert_same_meaning(scale, sch.mod, {"n": n})


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "float64", "uint32"])
def test_element_types_are_kept(dtype):
    @T.prim_func
    def copy(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (5, 1), dtype)
        B = T.match_buffer(b, (5, 1), dtype)
        for i, j in T.grid(5, 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(copy)
    sch.cache_read("B", 0, "local")
    sch.cache_write("B", 0, "local")
    assert {str(b.dtype) for b in sch.get(sch.get_block("root")).alloc_buffers} == {dtype}
    assert_same_meaning(copy, sch.mod)


def test_constants_and_declared_buffers():
    @T.prim_func
    def table(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,))
        C = T.match_buffer(c, (4,))
        data = T.allocate_const([0.5, 1.0, 1.5, 2.0], "float32", [4])
        B = T.decl_buffer((4,), data=data)
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + B[vi]

    sch = tir.Schedule(table)
    sch.cache_read("C", "B", "shared")
    sch.cache_read("C", "A", "shared")
    sch.cache_write("C", "C", "local")
    assert_same_meaning(table, sch.mod)


def test_scalars():
    @T.prim_func
    def scalar(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, ())
        B = T.match_buffer(b, ())
        M = T.alloc_buffer(())
        with T.block("M"):
            M[()] = A[()] * T.float32(2)
        with T.block("B"):
            B[()] = M[()] + T.float32(1)

    sch = tir.Schedule(scalar)
    sch.cache_read("B", 0, "shared")
    sch.cache_write("B", 0, "local")
    assert child_names(sch) == ["M", "M_shared", "B", "B_local"]
    assert_same_meaning(scalar, sch.mod)


def test_reads_inside_indices_and_predicates_move_too():
    @T.prim_func
    def gather(a: T.handle, x: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (10, 4))
        X = T.match_buffer(x, (10,), "int32")
        B = T.match_buffer(b, (10, 4))
        for i, j in T.grid(10, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[T.max(X[vi], 0), vj], X[vi])
                T.writes(B[vi, vj])
                B[vi, vj] = A[T.max(X[vi], 0), vj]

    sch = tir.Schedule(gather)
    sch.cache_read("B", "X", "shared")
    assert [r.buffer.name for r in sch.get(sch.get_block("B")).reads] == ["A", "X_shared"]
    assert "A[T.max(X_shared[vi], 0), vj]" in sch.mod.script()
    assert_same_meaning(gather, sch.mod)


def test_views_and_pointers_of_whole_buffers_move_too():
    @T.prim_func
    def views(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16, 16))
        B = T.match_buffer(b, (16, 16))
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi * 4 : vi * 4 + 4, 0:16])
                T.writes(B[vi * 4 : vi * 4 + 4, 0:16])
                A0 = T.match_buffer(
                    A[vi * 4 : vi * 4 + 4, 0:16], (4, 16), strides=[16, 1], offset_factor=1
                )
                B0 = T.match_buffer(
                    B[vi * 4 : vi * 4 + 4, 0:16], (4, 16), strides=[16, 1], offset_factor=1
                )
                for x, y in T.grid(4, 16):
                    B0[x, y] = A0[x, 15 - y]

    sch = tir.Schedule(views)
    sch.cache_read("B", 0, "shared")
    sch.cache_write("B", 0, "local")
    assert_same_meaning(views, sch.mod)


# ---- cache_inplace


@T.prim_func
def increment(a: T.handle) -> None:
    A = T.match_buffer(a, (6, 8), "int32")
    for i, j in T.grid(6, 8):
        with T.block("inc"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + 1


def test_inplace_copies_right_before_and_after():
    sch = tir.Schedule(increment)
    before, after = sch.cache_inplace("inc", "A", "local")
    assert [sch.get(b).writes[0].buffer.name for b in (before, after)] == ["A_local", "A"]
    assert len(sch.get_loops(before)) == 4
    assert_same_meaning(increment, sch.mod)


def test_inplace_under_a_predicate():
    sch = tir.Schedule(increment)
    i, _ = sch.get_loops("inc")
    sch.split(i, [None, 4])
    sch.cache_inplace("inc", 0, "local")
    assert_same_meaning(increment, sch.mod)


def test_a_read_before_an_inplace_block_gets_its_own_copy():
    @T.prim_func
    def swap(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (9,), "int32")
        B = T.match_buffer(b, (9,), "int32")
        for i in range(9):
            with T.block("first"):
                vi = T.axis.spatial(9, i)
                B[vi] = A[vi]
        for i in range(9):
            with T.block("second"):
                vi = T.axis.spatial(9, i)
                A[vi] = B[vi] + 1

    sch = tir.Schedule(swap)
    sch.cache_read("first", "A", "local")
    assert child_names(sch) == ["A_local", "first", "second"]
    sch.cache_write("second", "A", "local")
    assert_same_meaning(swap, sch.mod)


# ---- refusals: each of these would be another program


def schedule(func):
    return tir.Schedule(func)


def test_a_result_that_is_written_in_part_is_not_overwritten():
    @T.prim_func
    def even(a: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        for i in range(5):
            with T.block("A"):
                vi = T.axis.spatial(5, i)
                A[vi * 2] = 7

    @T.prim_func
    def some(a: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        for i in range(10):
            with T.block("A"):
                vi = T.axis.spatial(10, i)
                T.writes(A[vi])
                if vi % 3 == 0:
                    A[vi] = 7

    @T.prim_func
    def scatter(a: T.handle, x: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        X = T.match_buffer(x, (10,), "int32")
        for i in range(10):
            with T.block("A"):
                vi = T.axis.spatial(10, i)
                T.reads(X[vi])
                T.writes(A[0:10])
                A[T.max(X[vi], 0)] = 7

    for func in (even, some, scatter):
        with pytest.raises(cache_checks.PartialWriteError, match="may leave parts of A"):
            schedule(func).cache_write("A", 0, "local")


def test_a_condition_on_a_loop_that_no_index_names_may_leave_all_as_it_was():
    """Where i0 is 1 the condition holds for no f: nothing is written, so nothing may be copied."""

    @T.prim_func
    def guarded(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (16,))
        B = T.match_buffer(b, (16,))
        C = T.match_buffer(c, (16,))
        for i0 in range(2):
            for f, i1 in T.grid(4, 8):
                with T.block("B"):
                    vi = T.axis.spatial(16, i0 * 8 + i1)
                    T.where(i0 * 4 + f < 1)
                    B[vi] = A[vi] + T.float32(1)
            for i1 in range(8):
                with T.block("C"):
                    vi = T.axis.spatial(16, i0 * 8 + i1)
                    C[vi] = B[vi]

    with pytest.raises(cache_checks.PartialWriteError, match="may leave parts of B"):
        schedule(guarded).cache_write("B", 0, "global")


def test_an_accumulation_on_the_callers_values_is_kept():
    with pytest.raises(cache_checks.PreviousContentError, match="reads what A held before"):
        schedule(increment).cache_write("inc", 0, "local")


def test_loop_carried_reads():
    @T.prim_func
    def scan(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        B = T.match_buffer(b, (10,), "int32")
        for i in range(9):
            with T.block("read"):
                vi = T.axis.opaque(9, i)
                B[vi] = A[vi]
            with T.block("write"):
                vi = T.axis.opaque(9, i)
                A[vi + 1] = B[vi] + 1

    with pytest.raises(cache_checks.LoopCarriedReadError, match="in loop i, read reads what write"):
        schedule(scan).cache_read("read", "A", "local")
    with pytest.raises(cache_checks.LoopCarriedReadError, match="iteration before"):
        schedule(scan).cache_write("write", "A", "local")


def test_a_writer_that_does_not_always_run_covers_no_reader_that_does():
    @T.prim_func
    def partial(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (12,), "int32")
        B = T.match_buffer(b, (12,), "int32")
        C = T.match_buffer(c, (12,), "int32")
        for i in range(12):
            with T.block("B"):
                T.where(i < 9)
                vi = T.axis.spatial(12, i)
                B[vi] = A[vi] + 1
            with T.block("C"):
                vi = T.axis.spatial(12, i)
                C[vi] = B[vi]

    with pytest.raises(cache_checks.RegionCoverError, match="C reads more of B than was written"):
        schedule(partial).cache_write("B", 0, "local", ["C"])
    sch = schedule(partial)
    sch.cache_write("B", 0, "local")
    assert "T.where(i < 9)" in str(sch.mod.script()).split('T.block("B_local")')[1]
    assert_same_meaning(partial, sch.mod)


def test_writers_under_conditions():
    @T.prim_func
    def first_five(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (8,), "int32")
        B = T.match_buffer(b, (8,), "int32")
        C = T.match_buffer(c, (8,), "int32")
        for i in range(8):
            if i < 5:
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    with pytest.raises(cache_checks.PartialWriteError, match="may leave parts of B"):
        schedule(first_five).cache_write("B", 0, "local")
    with pytest.raises(cache_checks.RegionCoverError):
        schedule(first_five).cache_read("C", 0, "local")
    sch = schedule(first_five)
    sch.cache_read("B", 0, "local")
    sch.cache_write("C", 0, "local")
    assert_same_meaning(first_five, sch.mod)


def test_a_reader_on_each_side_of_the_writer():
    @T.prim_func
    def sides(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        B = T.match_buffer(b, (10,), "int32")
        C = T.match_buffer(c, (10,), "int32")
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[vi]
        for i in range(10):
            with T.block("A"):
                vi = T.axis.spatial(10, i)
                A[vi] = B[vi] + 1
        for i in range(10):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                C[vi] = A[vi]

    for name in "BC":
        sch = tir.Schedule(sides)
        sch.cache_read(name, "A", "local")
        assert_same_meaning(sides, sch.mod)
    with pytest.raises(cache_checks.ConsumerError, match="one copy cannot serve both"):
        schedule(sides).cache_read("C", "A", "local", ["B", "C"])
    with pytest.raises(cache_checks.ConsumerError, match="B does not read A"):
        schedule(sides).cache_write("A", 0, "local", ["B"])
    for name in (["C"], None):
        sch = tir.Schedule(sides)
        sch.cache_write("A", 0, "local", name)
        assert_same_meaning(sides, sch.mod)


def test_statements_outside_of_blocks():
    @T.prim_func
    def loose(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        B = T.match_buffer(b, (10,), "int32")
        M = T.alloc_buffer((10,), "int32")
        with T.block("whole"):
            T.reads(A[0:10])
            T.writes(B[0:10])
            for i in range(10):
                M[i] = A[i]
            for i in range(10):
                with T.block("B"):
                    vi = T.axis.spatial(10, i)
                    B[vi] = M[vi]

    with pytest.raises(cache_checks.UndeclaredAccessError, match="M is used in block whole"):
        schedule(loose).cache_read("B", "M", "local")


def test_pointers_into_a_compact_copy():
    @T.prim_func
    def pointers(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16, 16))
        B = T.match_buffer(b, (16, 16))
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi * 4 : vi * 4 + 4, 0:16])
                T.writes(B[vi * 4 : vi * 4 + 4, 0:16])
                with T.block("inner"):
                    T.reads(A[vi * 4 : vi * 4 + 4, 0:16])
                    T.writes(B[vi * 4 : vi * 4 + 4, 0:16])
                    T.evaluate(T.call_extern("int32", "f", A.data, B.data, vi))

    with pytest.raises(cache_checks.OpaqueAccessError, match="through a pointer"):
        schedule(pointers).cache_read("inner", "A", "shared")
    sch = tir.Schedule(pointers)
    sch.cache_read("outer", "A", "shared")
    assert "A_shared.data, B.data" in sch.mod.script()


def test_two_writers():
    @T.prim_func
    def two(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        B = T.match_buffer(b, (10,), "int32")
        M = T.alloc_buffer((10,), "int32")
        for i in range(5):
            with T.block("low"):
                vi = T.axis.spatial(5, i)
                M[vi] = A[vi]
        for i in range(5):
            with T.block("high"):
                vi = T.axis.spatial(5, i)
                M[vi + 5] = A[vi]
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = M[vi]

    for call in (
        lambda s: s.cache_read("B", "M", "local"),
        lambda s: s.cache_write("low", "M", "local"),
    ):
        with pytest.raises(cache_checks.WriterCountError, match="by 2 blocks.*: low, high"):
            call(schedule(two))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.cache_read("C", 2, "local"), errors.BufferIndexError, "reads 2 .*got index 2"),
        (lambda s: s.cache_read("C", -1, "local"), errors.BufferIndexError, "got index -1"),
        (lambda s: s.cache_write("C", 1, "local"), errors.BufferIndexError, "writes 1 buffers"),
        (lambda s: s.cache_read("C", 0, "gpu"), cache_stage.StorageScopeError, "no .*'gpu'"),
        (lambda s: s.cache_write("C", 0, "locals"), cache_stage.StorageScopeError, "'locals'"),
        (lambda s: s.cache_read("C", "X", "local"), weft.TVMError, "C reads no buffer X; .* A, B"),
        (lambda s: s.cache_read("C", "C", "local"), weft.TVMError, "reads no buffer C"),
        (lambda s: s.cache_write("C", "A", "local"), weft.TVMError, "writes no buffer A"),
        (lambda s: s.cache_read("C", 1.5, "local"), weft.TVMError, "a number, a name, a Buffer"),
        (lambda s: s.cache_read("root", 0, "local"), weft.TVMError, "reads 0 buffers"),
        (lambda s: s.cache_inplace("C", 0, "local"), cache.NotInplaceError, "does not write it"),
        (
            lambda s: s.cache_read("C", 0, "local", ["root"]),
            cache_checks.ConsumerError,
            "root does not read A",
        ),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(matmul)
    with pytest.raises(error, match=message) as raised:
        call(sch)
    assert len(str(raised.value).splitlines()) <= 10
    assert "cache" not in str(sch.trace)


def test_what_the_caller_passed_stays_outside_of_what_is_written():
    @T.prim_func
    def window(a: T.handle) -> None:
        A = T.match_buffer(a, (10,), "int32")
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi + 3] = 7

    sch = tir.Schedule(window)
    sch.cache_write("A", 0, "local")
    values = np.arange(10, dtype="int32")
    run(sch.mod["main"], values)
    assert values.tolist() == [0, 1, 2, 7, 7, 7, 7, 7, 8, 9]


# ---- what was found by random schedules


def test_the_copy_of_what_a_condition_leaves_empty_has_no_negative_extent():
    @T.prim_func
    def late(A: T.Buffer((11, 4), "int32"), C: T.Buffer((11, 4), "int32")):
        B = T.alloc_buffer((11, 4), "int32")
        for i, j in T.grid(11, 4):
            with T.block("around"):
                vi, vj = T.axis.remap("SS", [i, j])
                for k in range(3, 5):
                    with T.block("B"):
                        vk = T.axis.spatial(4, vj + k)
                        T.where(vj + k < 4)
                        B[vi, vk] = A[vi, vk] + 2
        for i, j in T.grid(11, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.if_then_else(vj == 3, B[vi, vj], 0)

    sch = tir.Schedule(late)
    sch.cache_read("B", 0, "local")
    assert_same_meaning(late, sch.mod)


@pytest.mark.parametrize("primitive", ["cache_write", "reindex_cache_write"])
def test_a_reduction_that_goes_on_outside_of_the_scope_reads_its_sum(primitive):
    @T.prim_func
    def product(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32")):
        for k in range(8):
            with T.block("around"):
                T.reads(A[0:4, k], C[0:4])
                T.writes(C[0:4])
                for i in range(4):
                    with T.block("C"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            C[vi] = 0
                        C[vi] = C[vi] + A[vi, vk]

    sch = tir.Schedule(product)
    rest = (lambda vi, vk: (vi,),) if primitive.startswith("reindex") else ()
    with pytest.raises(cache_checks.PreviousContentError, match="C held before it ran"):
        getattr(sch, primitive)("C", 0, "local", *rest)
    with pytest.raises(cache_checks.PreviousContentError, match="C held before it ran"):
        sch.cache_write("around", 0, "local")
