"""rfactor: the two blocks it makes, for every known reducer, and what it refuses."""

import numpy as np
import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import te, tir, topi
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir import reducer as known
from weft.tir.schedule import errors, reducer, surgery
from weft.tir.schedule.primitive.loop.loops import LoopStartError
from weft.tir.schedule.primitive.reduction import rfactor as family
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol

pytestmark = pytest.mark.sampled(3)


def test_the_script_of_a_product_of_matrices():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 20))
        B = T.match_buffer(b, (20, 24))
        C = T.match_buffer(c, (32, 24))
        C_rf = T.alloc_buffer((32, 4, 24))
        for i, j, k_0, k_1 in T.grid(32, 24, 5, 4):
            with T.block("C_rf"):
                vk_1, vi, vj, vk_0 = T.axis.remap("SSSR", [k_1, i, j, k_0])
                T.reads(A[vi, vk_0 * 4 + vk_1], B[vk_0 * 4 + vk_1, vj])
                T.writes(C_rf[vi, vk_1, vj])
                with T.init():
                    C_rf[vi, vk_1, vj] = T.float32(0)
                C_rf[vi, vk_1, vj] = (
                    C_rf[vi, vk_1, vj] + A[vi, vk_0 * 4 + vk_1] * B[vk_0 * 4 + vk_1, vj]
                )
        for i, j, k_1 in T.grid(32, 24, 4):
            with T.block("C"):
                vk_1, vi, vj = T.axis.remap("RSS", [k_1, i, j])
                T.reads(C_rf[vi, vk_1, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + C_rf[vi, vk_1, vj]

    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    _, inner = sch.split(sch.get_loops(block)[2], [None, 4])
    partial = sch.rfactor(inner, 1)
    assert sch.get(partial).name_hint == "C_rf"
    assert sch.get(block).name_hint == "C"
    assert sch.get(sch.get_loops(block)[2]) is sch.get(inner)
    assert_structural_equal_ignore_global_symbol(expected, sch.mod["main"])


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("which", [0, 1])
def test_every_place_of_the_new_dimension(axis, which):
    sch = tir.Schedule(matmul)
    parts = sch.split(sch.get_loops("C")[2], [5, 4])
    partial = sch.rfactor(parts[which], axis)
    shape = [32, 24]
    shape.insert(axis + 3 if axis < 0 else axis, 5 if which == 0 else 4)
    assert list(sch.get(partial).writes[0].buffer.shape) == shape
    assert_same_meaning(matmul, sch.mod, native=axis == 0)


@pytest.mark.parametrize(("factors", "which"), [([None, 7], 1), ([3, 7], 0), ([None, 3], 1)])
def test_tails_of_the_reduction(factors, which):
    sch = tir.Schedule(matmul)
    parts = sch.split(sch.get_loops("C")[2], factors)
    partial = sch.rfactor(parts[which], 0)
    assert "T.where" in sch.mod.script()
    assert_same_meaning(matmul, sch.mod)
    assert len(sch.get_loops(partial)) == 4


def test_tails_of_spatial_axes_hold_for_the_join_too():
    sch = tir.Schedule(matmul)
    i, _, k = sch.get_loops("C")
    sch.split(i, [None, 5])
    sch.rfactor(k, 0)
    assert sch.mod.script().count("T.where(i_0 * 5 + i_1 < 32)") == 2
    assert_same_meaning(matmul, sch.mod)


def test_the_whole_reduction_leaves_a_copy():
    sch = tir.Schedule(matmul)
    partial = sch.rfactor(sch.get_loops("C")[2], 2)
    assert sch.get(partial).init is None
    assert_same_meaning(matmul, sch.mod)


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1}, {"n": 7, "m": 13}, {"n": 3, "m": 32}])
@pytest.mark.parametrize("which", [0, 1])
def test_symbolic_extents(sizes, which):
    @T.prim_func
    def rows(a: T.handle, b: T.handle, n: T.int32, m: T.int32) -> None:
        A = T.match_buffer(a, (n, m))
        B = T.match_buffer(b, (n,))
        for i, k in T.grid(n, m):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    sch = tir.Schedule(rows)
    if which == 0:
        sch.rfactor(sch.get_loops("B")[1], 0)
    else:
        outer, _ = sch.split(sch.get_loops("B")[1], [None, 4])
        sch.rfactor(outer, 1)
    assert_same_meaning(rows, sch.mod, sizes)


def pooling(combine, start, dtype):
    """Windows of 7 x 7 reduced to one value, both axes in one fused loop."""
    source = te.placeholder((3, 7, 7), dtype, name="A")
    rows, columns = te.reduce_axis((0, 7), "rows"), te.reduce_axis((0, 7), "columns")
    reduce = te.comm_reducer(combine, lambda dtype: tir.const(start, dtype), name="pool")
    out = te.compute((3,), lambda i: reduce(source[i, rows, columns], [rows, columns]), name="B")
    return te.create_prim_func([source, out])


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "int8"])
@pytest.mark.parametrize(
    ("combine", "start"),
    [
        (lambda x, y: x + y, 0),
        (lambda x, y: x * y, 1),
        (tir.max, -100),
        (tir.min, 100),
    ],
    ids=["sum", "product", "max", "min"],
)
def test_reducers_of_one_value(combine, start, dtype):
    func = pooling(combine, start, dtype)
    sch = tir.Schedule(func)
    _, rows, columns = sch.get_loops("B")
    fused = sch.fuse(rows, columns)
    _, inner = sch.split(fused, [None, 7])
    sch.rfactor(inner, 0)
    assert_same_meaning(func, sch.mod, native=dtype == "int32")


@pytest.mark.parametrize("combine", [tir.all, tir.any], ids=["all", "any"])
def test_conditions(combine):
    func = pooling(combine, combine is tir.all, "bool")
    sch = tir.Schedule(func)
    sch.rfactor(sch.get_loops("B")[1], 0)
    assert_same_meaning(func, sch.mod)


def test_a_fused_window_without_a_rest():
    func = pooling(lambda x, y: x + y, 0, "float32")
    sch = tir.Schedule(func)
    fused = sch.fuse(*sch.get_loops("B")[1:])
    sch.rfactor(fused, 1)
    assert "A[v_i, v_rows, v_columns]" not in sch.mod.script()
    assert_same_meaning(func, sch.mod)


def test_axes_that_share_a_loop_are_split_together():
    @T.prim_func
    def shared(A: T.Buffer((4, 3, 16), "int32"), B: T.Buffer((4,), "int32")):
        for i, k0, k1 in T.grid(4, 6, 8):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.reduce(3, k0 // 2)
                vk = T.axis.reduce(16, k0 % 2 * 8 + k1)
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vj, vk]

    sch = tir.Schedule(shared)
    partial = sch.rfactor(sch.get_loops("B")[2], 0)
    assert [axis.var.name for axis in sch.get(partial).iter_vars] == ["vk1", "vi", "vk0"]
    assert_same_meaning(shared, sch.mod)


def test_a_reducer_of_the_user():
    source = te.placeholder((5, 12), "int32", name="A")
    k = te.reduce_axis((0, 12), "k")
    xor = te.comm_reducer(lambda x, y: x ^ y, lambda dtype: tir.const(0, dtype), name="xor")
    func = te.create_prim_func([source, te.compute((5,), lambda i: xor(source[i, k], k), name="B")])
    sch = tir.Schedule(func)
    _, inner = sch.split(sch.get_loops("B")[1], [None, 4])
    sch.rfactor(inner, 0)
    assert_same_meaning(func, sch.mod)


@pytest.mark.no_replay("the registry is as before when traces are replayed")
def test_a_registered_reducer(monkeypatch):
    @T.prim_func
    def either(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = T.bitwise_or(B[vi], A[vi, vk])

    monkeypatch.setattr(known, "RULES", list(known.RULES))
    sch = tir.Schedule(either)
    with pytest.raises(reducer.UnknownReducerError, match="starts and goes on as no known reducer"):
        sch.rfactor(sch.get_loops("B")[1], 0)
    tir.schedule.register_reducer(1, lambda x, y: [x[0] | y[0]], lambda start: [0])
    sch.rfactor(sch.get_loops("B")[1], 0)
    assert_same_meaning(either, sch.mod)
    with pytest.raises(weft.TVMError, match="n_buffers: expected 1 or more, got 0"):
        tir.schedule.register_reducer(0, lambda x, y: x, lambda start: start)
    with pytest.raises(weft.TVMError, match="must be functions"):
        tir.schedule.register_reducer(1, None, None)


@pytest.mark.parametrize("operator", [topi.argmax, topi.argmin])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_argmax_of_topi(operator, last, dtype):
    source = te.placeholder((5, 24), dtype, name="A")
    func = te.create_prim_func([source, operator(source, 1, select_last_index=last)])
    sch = tir.Schedule(func)
    block = next(b for b in sch.get_child_blocks(sch.get_block("root")) if sch.get(b).init)
    _, inner = sch.split(sch.get_loops(block)[1], [None, 8])
    sch.rfactor(inner, 1)
    assert_same_meaning(func, sch.mod, native=not last)


@T.prim_func
def argmax(
    idx: T.Buffer((6, 16), "int32"),
    val: T.Buffer((6, 16), "float32"),
    out0: T.Buffer((6,), "int32"),
    out1: T.Buffer((6,), "float32"),
) -> None:
    for i, k in T.grid(6, 16):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                out0[vi] = -1
                out1[vi] = T.min_value("float32")
            v0: T.int32 = T.Select(out1[vi] >= val[vi, vk], out0[vi], idx[vi, vk])
            v1: T.float32 = T.Select(out1[vi] >= val[vi, vk], out1[vi], val[vi, vk])
            out0[vi] = v0
            out1[vi] = v1


@T.prim_func
def two_sums_in_statements(
    val: T.Buffer((6, 16), "float32"),
    out0: T.Buffer((6,), "float32"),
    out1: T.Buffer((6,), "float32"),
) -> None:
    for i, k in T.grid(6, 16):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                out1[vi] = T.float32(0)
                out0[vi] = T.float32(0)
            out0[vi] = out0[vi] + val[vi, vk]
            out1[vi] = val[vi, vk] * val[vi, vk] + out1[vi]


def test_the_script_of_a_pair():
    sch = tir.Schedule(argmax)
    _, inner = sch.split(sch.get_loops("argmax")[1], [None, 4])
    sch.rfactor(inner, 1)

    @T.prim_func
    def expected(
        idx: T.Buffer((6, 16), "int32"),
        val: T.Buffer((6, 16), "float32"),
        out0: T.Buffer((6,), "int32"),
        out1: T.Buffer((6,), "float32"),
    ) -> None:
        out0_rf = T.alloc_buffer((6, 4), "int32")
        out1_rf = T.alloc_buffer((6, 4))
        for i, k_0, k_1 in T.grid(6, 4, 4):
            with T.block("argmax_rf"):
                vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
                T.reads(val[vi, vk_0 * 4 + vk_1], idx[vi, vk_0 * 4 + vk_1])
                T.writes(out0_rf[vi, vk_1], out1_rf[vi, vk_1])
                with T.init():
                    out0_rf[vi, vk_1] = -1
                    out1_rf[vi, vk_1] = T.min_value("float32")
                v0: T.int32 = T.Select(
                    out1_rf[vi, vk_1] >= val[vi, vk_0 * 4 + vk_1],
                    out0_rf[vi, vk_1],
                    idx[vi, vk_0 * 4 + vk_1],
                )
                v1: T.float32 = T.Select(
                    out1_rf[vi, vk_1] >= val[vi, vk_0 * 4 + vk_1],
                    out1_rf[vi, vk_1],
                    val[vi, vk_0 * 4 + vk_1],
                )
                out0_rf[vi, vk_1] = v0
                out1_rf[vi, vk_1] = v1
        for i, k_1 in T.grid(6, 4):
            with T.block("argmax"):
                vk_1, vi = T.axis.remap("RS", [k_1, i])
                T.reads(out0_rf[vi, vk_1], out1_rf[vi, vk_1])
                T.writes(out0[vi], out1[vi])
                with T.init():
                    out0[vi] = -1
                    out1[vi] = T.min_value("float32")
                w0: T.int32 = T.Select(out1[vi] >= out1_rf[vi, vk_1], out0[vi], out0_rf[vi, vk_1])
                w1: T.float32 = T.Select(out1[vi] >= out1_rf[vi, vk_1], out1[vi], out1_rf[vi, vk_1])
                out0[vi] = w0
                out1[vi] = w1

    assert_structural_equal_ignore_global_symbol(expected, sch.mod["main"])
    assert_same_meaning(argmax, sch.mod)


def test_statements_one_after_the_other():
    sch = tir.Schedule(two_sums_in_statements)
    _, inner = sch.split(sch.get_loops("sums")[1], [None, 4])
    sch.rfactor(inner, 0)
    assert_same_meaning(two_sums_in_statements, sch.mod)


def test_let_bound_and_swapped_operands():
    @T.prim_func
    def swapped(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                square: T.int32 = A[vi, vk] * A[vi, vk]
                B[vi] = square + B[vi]

    sch = tir.Schedule(swapped)
    sch.rfactor(sch.get_loops("B")[1], 0)
    assert_same_meaning(swapped, sch.mod)


def test_with_other_primitives():
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    _, j, k = sch.get_loops(block)
    k0, k1 = sch.split(k, [None, 4])
    partial = sch.rfactor(k1, 2)
    i, j, k0, k1 = sch.get_loops(partial)
    sch.reorder(i, j, k0, k1)
    sch.vectorize(k1)
    sch.parallel(i)
    sch.reverse_compute_at(block, sch.get_loops(partial)[1])
    sch.decompose_reduction(block, sch.get_loops(block)[-1])
    assert_same_meaning(matmul, sch.mod)


def test_the_partial_results_once_more():
    sch = tir.Schedule(matmul)
    _, _, inner = sch.split(sch.get_loops("C")[2], [None, 2, 5])
    first = sch.rfactor(inner, 0)
    second = sch.rfactor(sch.get_loops(first)[3], 3)
    assert sch.get(second).name_hint == "C_rf_rf"
    assert_same_meaning(matmul, sch.mod)


# ---- what is refused


def prepared(change=None, func=matmul, **options):
    sch = tir.Schedule(func, **options)
    if change is not None:
        change(sch, *sch.get_loops("C"))
    return sch


def factor(block, position, axis=0):
    return lambda sch: sch.rfactor(sch.get_loops(block)[position], axis)


@T.prim_func
def two_in_one_loop(
    A: T.Buffer((8, 8), "int32"), B: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")
):
    for i in range(8):
        for k in range(8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
        for k in range(8):
            with T.block("D"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    D[vi] = 0
                D[vi] = D[vi] + A[vk, vi]


@T.prim_func
def repeated(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for _r, i, k, _s in T.grid(2, 8, 8, 2):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def from_one(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        for k in range(1, 8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce((1, 8), k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def grown(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + C[vi] * A[vi, vk]


@T.prim_func
def from_seven(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 7
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def difference(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] - A[vi, vk]


@T.prim_func
def branching(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            if A[vi, vk] > 0:
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def with_effects(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + T.call_extern("int32", "next_number", A[vi, vk])


@T.prim_func
def one_after_the_other(
    A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")
):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
                D[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
            D[vi] = D[vi] + C[vi]


@T.prim_func
def other_element(A: T.Buffer((8, 8), "int32"), C: T.Buffer((9,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi + 1] = 0
            C[vi] = C[vi] + A[vi, vk]


ILLEGAL = [
    ("a spatial loop", matmul, None, factor("C", 0), family.FactorLoopError,
     "loop i runs a spatial axis of block C"),
    ("parallel", matmul, lambda s, i, j, k: s.unroll(k), factor("C", 2), family.FactorLoopError,
     "loop k is unrolled, expected a serial loop"),
    ("both kinds", matmul, lambda s, i, j, k: s.fuse(j, k), factor("C", 1),
     family.FactorNestError, "loop j_k_fused runs both spatial and reduction axes"),
    ("axis too large", matmul, None, factor("C", 2, 3), family.FactorAxisError,
     "factor_axis 3 is not in .-3, 2.: C has 2 dimensions"),
    ("axis too small", matmul, None, factor("C", 2, -4), family.FactorAxisError, "factor_axis -4"),
    ("empty shares", matmul, lambda s, i, j, k: s.split(k, [7, 5]), factor("C", 2),
     family.FactorPredicateError, "runs where k_0 \\* 5 \\+ k_1 < 20"),
    ("no reduction", elementwise_chain, None, factor("C", 1), errors.NotReductionBlockError,
     "block C is no reduction block: it has no init"),
    ("not the first block", two_in_one_loop, None, factor("D", 1), family.FactorNestError,
     "block D is not the first block in loop i"),
    ("two blocks", two_in_one_loop, None, factor("B", 0), family.FactorNestError,
     "loop i has 2 blocks .B, D., expected one"),
    ("a loop of no axis", repeated, None, factor("C", 0), family.FactorLoopError,
     "loop _r runs no axis of block C"),
    ("one inside", repeated, None, factor("C", 2), family.FactorNestError,
     "loop _s is inside of the reduction and runs no axis"),
    ("a start", from_one, None, factor("C", 1), LoopStartError, "loop k starts at 1, not at 0"),
    ("its own value", grown, None, factor("C", 1), reducer.UnknownReducerError,
     "as no known reducer: 0 and C.vi. . C.vi. . A.vi, vk."),
    ("another start", from_seven, None, factor("C", 1), reducer.UnknownReducerError, "7 and C"),
    ("a difference", difference, None, factor("C", 1), reducer.UnknownReducerError, "C.vi. - A"),
    ("a branch", branching, None, factor("C", 1), reducer.ReductionFormError,
     "its body has a IfThenElse, expected stores alone"),
    ("effects", with_effects, None, factor("C", 1), surgery.ImpureValueError, "may have effects"),
    ("a later read", one_after_the_other, None, factor("C", 1), reducer.ReductionFormError,
     "its body reads C after storing there"),
    ("indices", other_element, None, factor("C", 1), errors.ScheduleFailure, "its init sets C"),
    ("no loop", matmul, None, lambda s: s.rfactor("C", 0), weft.TVMError, "expected a LoopRV"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("func", "change", "call", "kind", "text"),
    [row[1:] for row in ILLEGAL],
    ids=[row[0] for row in ILLEGAL],
)
def test_refusals(func, change, call, kind, text):
    sch = prepared(change, func) if change else tir.Schedule(func)
    before = sch.mod
    with pytest.raises(kind, match=text) as caught:
        call(sch)
    assert len(str(caught.value).splitlines()) <= 10
    assert sch.mod is before or weft.ir.structural_equal(before, sch.mod)


def test_equal_values_of_argmax():
    """Over the outer loop the order is kept, so that the first of equal values is found."""
    sch = tir.Schedule(argmax)
    outer, _ = sch.split(sch.get_loops("argmax")[1], [4, None])
    sch.rfactor(outer, 0)
    index = np.arange(96, dtype="int32").reshape(6, 16) % 16
    values = np.zeros((6, 16), "float32")
    places, best = np.zeros(6, "int32"), np.zeros(6, "float32")
    tir.interp.run(sch.mod["main"], index, values, places, best)
    assert not places.any()
