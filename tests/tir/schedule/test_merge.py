"""merge: the result, what it may not turn around, refusals."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule.primitive.loop import loops, merge


@T.prim_func
def two_outputs(
    A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 4), "float32")
) -> None:
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(8, 4):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi, vj] * T.float32(2)


def stencil(shift):
    """B is computed, then C reads B ``shift`` rows further on."""

    @T.prim_func
    def func(A: T.Buffer((16, 8), "float32"), C: T.Buffer((8, 8), "float32")) -> None:
        B = T.alloc_buffer((16, 8))
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi + 4, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi + shift, vj] + T.float32(1)

    return func


def test_merge():
    @T.prim_func
    def expected(
        A: T.Buffer((8, 8), "float32"),
        C: T.Buffer((8, 8), "float32"),
        D: T.Buffer((8, 4), "float32"),
    ) -> None:
        for i_m in range(8):
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i_m, j])
                    C[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(4):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i_m, j])
                    D[vi, vj] = A[vi, vj] * T.float32(2)

    sch = tir.Schedule(two_outputs)
    made = sch.merge(sch.get_loops("C")[0], sch.get_loops("D")[0])
    assert_structural_equal(sch.mod["main"].body, expected.body)
    assert sch.get(made).loop_var.name == "i_m"
    assert_same_meaning(two_outputs, sch.mod)


def test_merged_nests():
    sch = tir.Schedule(elementwise_chain)
    blocks = [sch.get_block(name) for name in "BCD"]
    made = sch.merge(*[sch.get_loops(block)[1] for block in blocks])
    assert sch.get(made).loop_var.name == "j_m"
    assert [sch.get(block).name_hint for block in blocks] == ["B", "C", "D"]
    names = [[sch.get(x).loop_var.name for x in sch.get_loops(block)] for block in blocks]
    assert names == [["i_m", "j_m"]] * 3
    assert_same_meaning(elementwise_chain, sch.mod)


def test_merged_inside_of_a_loop():
    sch = tir.Schedule(elementwise_chain)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    sch.merge(sch.get_loops("B")[1], sch.get_loops("C")[1])
    sch.merge(sch.get_loops("B")[0], sch.get_loops("D")[0])
    assert_same_meaning(elementwise_chain, sch.mod)


def test_independent_nests_in_another_order():
    sch = tir.Schedule(two_outputs)
    sch.merge(sch.get_loops("D")[0], sch.get_loops("C")[0])
    children = sch.get_child_blocks(sch.get_loops("C")[0])
    assert [sch.get(block).name_hint for block in children] == ["D", "C"]
    assert_same_meaning(two_outputs, sch.mod)


def test_merge_and_other_primitives():
    sch = tir.Schedule(two_outputs)
    outer = sch.merge(*[sch.get_loops(name)[0] for name in "CD"])
    first, second = sch.split(outer, [None, 3])
    sch.parallel(first)
    sch.unroll(second)
    sch.vectorize(sch.get_loops("C")[2])
    assert_same_meaning(two_outputs, sch.mod)


def test_several_types_of_loops():
    @T.prim_func
    def mixed(A: T.Buffer((8,), "float32"), B: T.Buffer((T.int64(8),), "float32")) -> None:
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.float32(1)
        for i in range(T.int64(8)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(8), i)
                B[vi] = T.float32(2)

    for names in ("AB", "BA"):
        sch = tir.Schedule(mixed)
        sch.merge(*[sch.get_loops(name)[0] for name in names])
        assert_same_meaning(mixed, sch.mod)


def test_symbolic_extents():
    @T.prim_func
    def func(a: T.handle, b: T.handle, c: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        C = T.match_buffer(c, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[vi] + A[vi]

    sch = tir.Schedule(func)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    for n in (0, 1, 5):
        assert_same_meaning(func, sch.mod, {"n": n})


@pytest.mark.parametrize("shift", [0, 2, 4])
def test_what_is_read_was_written_before(shift):
    func = stencil(shift)
    sch = tir.Schedule(func)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    if shift == 4:  # else rows are read that nobody writes
        assert_same_meaning(func, sch.mod)


@pytest.mark.parametrize("shift", [5, 8])
def test_what_is_read_is_written_later(shift):
    sch = tir.Schedule(stencil(shift))
    with pytest.raises(merge.MergeOrderError, match="block C might touch B before an iteration of"):
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])


def test_a_reduction_must_be_whole():
    @T.prim_func
    def func(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32")) -> None:
        S = T.alloc_buffer((8,))
        for k, i in T.grid(8, 8):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
        for j, i in T.grid(8, 8):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = S[vi]

    sch = tir.Schedule(func)
    with pytest.raises(merge.MergeOrderError, match="might touch S"):
        sch.merge(sch.get_loops("S")[0], sch.get_loops("D")[0])


def test_a_nest_does_not_move_past_what_it_feeds():
    sch = tir.Schedule(elementwise_chain)
    with pytest.raises(merge.MergeOrderError, match="loop i would move past block C, and both"):
        sch.merge(sch.get_loops("B")[0], sch.get_loops("D")[0])


def test_dependent_nests_in_another_order():
    sch = tir.Schedule(elementwise_chain)
    with pytest.raises(merge.MergeOrderError, match="might touch B"):
        sch.merge(sch.get_loops("C")[1], sch.get_loops("B")[1])


@T.prim_func
def shapes(A: T.Buffer((8, 8), "float32"), B: T.Buffer((4, 8), "float32")) -> None:
    for i, j in T.grid(8, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(1)
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.float32(2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s, a, b: s.merge(a[0], b[0]), merge.MergeShapeError, "i has extent 8, loop i 4"),
        (lambda s, a, b: s.merge(a[0]), merge.MergeShapeError, "at least two loops, got 1"),
        (lambda s, a, b: s.merge(), merge.MergeShapeError, "got 0"),
        (lambda s, a, b: s.merge(a[0], a[1]), merge.MergeShapeError, "inside of loop i"),
        (lambda s, a, b: s.merge(a[0], a[0]), merge.MergeShapeError, "inside of loop i"),
        (lambda s, a, b: s.merge(a[0], b[1]), merge.MergeShapeError, "no. 1 of its nest, loop j"),
        (lambda s, a, b: s.merge(a[1], b[1]), merge.MergeShapeError, "has extent 8, loop i 4"),
        (lambda s, a, b: s.merge([a[0], b[0]]), weft.TVMError, "unpack the list"),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(shapes)
    with pytest.raises(error, match=message) as raised:
        call(sch, sch.get_loops("A"), sch.get_loops("B"))
    assert len(str(raised.value).splitlines()) <= 10


def test_loops_with_annotations():
    sch = tir.Schedule(two_outputs)
    one, other = sch.get_loops("C")[0], sch.get_loops("D")[0]
    sch.annotate(one, "mark", 1)
    with pytest.raises(loops.AnnotatedLoopError, match="loop i has mark"):
        sch.merge(one, other)
    sch.unannotate(one, "mark")
    sch.bind(one, "threadIdx.x")
    with pytest.raises(loops.AnnotatedLoopError, match="a thread binding"):
        sch.merge(one, other)


def test_loops_of_several_blocks():
    sch = tir.Schedule(matmul)
    sch.blockize(sch.get_loops("C")[1])
    inner, outer = sch.get_loops("C")[0], sch.get_loops("C_o")[0]
    with pytest.raises(merge.MergeShapeError):
        sch.merge(inner, outer)
