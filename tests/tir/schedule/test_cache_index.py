"""cache_index: which expressions are computed ahead, meaning, what is left alone."""

import pytest

import weft
from tests.lib.programs import elementwise_chain
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.cache import cache_stage


@T.prim_func
def resize(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (3, 8, 6))
    B = T.match_buffer(b, (3, 12, 12))
    for c, i, j in T.grid(3, 12, 12):
        with T.block("B"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            B[vc, vi, vj] = A[vc, vi // 4 + vj // 4, vj // 2]


def test_the_largest_expressions_are_computed_ahead():
    @T.prim_func
    def expected(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (3, 8, 6))
        B = T.match_buffer(b, (3, 12, 12))
        index_var_0 = T.alloc_buffer((12, 12), "int32", scope="local")
        index_var_1 = T.alloc_buffer((12,), "int32", strides=[1], scope="local")
        for ax0, ax1 in T.grid(12, 12):
            with T.block("index_0"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                index_var_0[v0, v1] = v0 // 4 + v1 // 4
        for ax0 in range(12):
            with T.block("index_1"):
                v0 = T.axis.spatial(12, ax0)
                index_var_1[v0] = v0 // 2
        for c, i, j in T.grid(3, 12, 12):
            with T.block("B"):
                vc, vi, vj = T.axis.remap("SSS", [c, i, j])
                T.reads(A[vc, vi // 4 + vj // 4, vj // 2], index_var_0[vi, vj], index_var_1[vj])
                T.writes(B[vc, vi, vj])
                B[vc, vi, vj] = A[vc, index_var_0[vi, vj], index_var_1[vj]]

    sch = tir.Schedule(resize)
    made = sch.cache_index("B", "local")
    assert [sch.get(block).name_hint for block in made] == ["index_0", "index_1"]
    assert_structural_equal(
        sch.mod["main"].with_attr("global_symbol", ""), expected.with_attr("global_symbol", "")
    )
    assert_same_meaning(resize, sch.mod)


@T.prim_func
def often(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (40,))
    B = T.match_buffer(b, (10,))
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi * 3 + 1] + A[vi + vi + vi + 1] + A[vi * 3] + A[vi % 7]


@pytest.mark.parametrize(("threshold", "count"), [(0, 3), (1, 3), (2, 1), (4, 0)])
def test_expressions_count_when_they_simplify_to_the_same(threshold, count):
    sch = tir.Schedule(often)
    assert len(sch.cache_index("B", "global", threshold)) == count
    assert_same_meaning(often, sch.mod)


def test_rare_expressions_are_broken_into_parts():
    @T.prim_func
    def parts(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (30,))
        B = T.match_buffer(b, (10,))
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[vi // 3 * 5 + 1] + A[vi // 3 * 4 + vi // 3 % 2]

    sch = tir.Schedule(parts)
    sch.cache_index("B", "global", 3)
    assert "index_var_0[v0] = v0 // 3" in sch.mod.script()
    assert_same_meaning(parts, sch.mod)


def test_split_loops_and_tails():
    sch = tir.Schedule(resize)
    _, i, j = sch.get_loops("B")
    sch.split(i, [None, 5])
    sch.reorder(*sch.split(j, [None, 7])[::-1])
    sch.cache_index("B", "global")
    assert_same_meaning(resize, sch.mod)


def test_later_primitives_see_what_is_looked_up():
    sch = tir.Schedule(resize)
    first, _ = sch.cache_index("B", "global")
    assert [sch.get(block).name_hint for block in sch.get_consumers(first)] == ["B"]
    sch.cache_read("B", "index_var_0", "local")
    assert_same_meaning(resize, sch.mod)


def test_symbolic_shapes():
    @T.prim_func
    def rows(a: T.handle, b: T.handle, n: T.int64, m: T.int64) -> None:
        A = T.match_buffer(a, (n * m,))
        B = T.match_buffer(b, (n, m))
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * m + vj]

    sch = tir.Schedule(rows)
    (made,) = sch.cache_index("B", "global")
    assert {str(sch.get(loop).loop_var.dtype) for loop in sch.get_loops(made)} == {"int64"}
    for n, m in ((0, 3), (1, 1), (4, 3)):
        assert_same_meaning(rows, sch.mod, {"n": n, "m": m})


def test_what_may_trap_or_is_loaded_stays_where_it_is():
    @T.prim_func
    def guarded(a: T.handle, x: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (12,))
        X = T.match_buffer(x, (12,), "int32")
        B = T.match_buffer(b, (12,))
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                T.reads(A[0:12], X[vi])
                T.writes(B[vi])
                if vi > 3:
                    B[vi] = A[T.max(T.min(X[vi] % 12 // (vi - 3), 11), 0)] + A[11 // (vi - 3)]

    sch = tir.Schedule(guarded)
    made = sch.cache_index("B", "global")
    assert [sch.get(block).name_hint for block in made] == ["index_0"]
    assert "index_var_0[v0] = v0 - 3" in sch.mod.script()
    assert_same_meaning(guarded, sch.mod)


def test_nothing_to_compute_leaves_the_program():
    sch = tir.Schedule(elementwise_chain)
    assert sch.cache_index("C", "global") == []
    assert_structural_equal(sch.mod["main"], elementwise_chain)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.cache_index("B", "nowhere"), cache_stage.StorageScopeError, "'nowhere'"),
        (lambda s: s.cache_index("B", "local", -1), weft.TVMError, "at least 0, got -1"),
        (lambda s: s.cache_index("X", "local"), errors.BlockNotFoundError, "no block 'X'"),
        (lambda s: s.cache_index("root", "local"), errors.RootBlockError, "root is the root"),
        (lambda s: s.cache_index("B", "local", "two"), weft.TVMError, "expected an int"),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(resize)
    with pytest.raises(error, match=message) as raised:
        call(sch)
    assert len(str(raised.value).splitlines()) <= 10
    assert "cache_index" not in str(sch.trace)
