"""decompose_padding and can_decompose_padding: scripts, meaning, refusals."""

import pytest

import weft
from tests.lib.programs import matmul
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors, surgery
from weft.tir.schedule.primitive.padding import decompose_padding as padding


@T.prim_func
def rows(X: T.Buffer((12, 8), "int32"), Y: T.Buffer((20, 8), "int32")):
    for i, j in T.grid(20, 8):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.if_then_else(vi >= 3 and vi < 15, X[vi - 3, vj], 7)


@T.prim_func
def image(X: T.Buffer((2, 5, 6), "float32"), Z: T.Buffer((2, 5, 6), "float32")):
    P = T.alloc_buffer((2, 7, 8))
    for n, h, w in T.grid(2, 7, 8):
        with T.block("P"):
            vn, vh, vw = T.axis.remap("SSS", [n, h, w])
            P[vn, vh, vw] = T.if_then_else(
                1 <= vh and vh < 6 and 1 <= vw and vw < 7, X[vn, vh - 1, vw - 1], T.float32(0)
            )
    for n, h, w, r, s in T.grid(2, 5, 6, 3, 3):
        with T.block("Z"):
            vn, vh, vw, vr, vs = T.axis.remap("SSSRR", [n, h, w, r, s])
            with T.init():
                Z[vn, vh, vw] = T.float32(0)
            Z[vn, vh, vw] = Z[vn, vh, vw] + P[vn, vh + vr, vw + vs]


def test_before_the_outer_loop():
    @T.prim_func
    def expected(X: T.Buffer((12, 8), "int32"), Y: T.Buffer((20, 8), "int32")):
        for i, j in T.grid(20, 8):
            with T.block("Y_pad_const"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                Y[vi, vj] = 7
        for i, j in T.grid(12, 8):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi + 3, vj] = X[vi, vj]

    sch = tir.Schedule(rows)
    block = sch.get_block("Y")
    filler = sch.decompose_padding(block, sch.get_loops(block)[0])
    assert_structural_equal(sch.mod["main"].with_attr("global_symbol", "expected"), expected)
    assert (sch.get(block).name_hint, sch.get(filler).name_hint) == ("Y", "Y_pad_const")
    assert_same_meaning(rows, sch.mod)


def test_before_an_inner_loop_the_outer_one_is_guarded():
    @T.prim_func
    def expected(X: T.Buffer((12, 8), "int32"), Y: T.Buffer((20, 8), "int32")):
        for i in range(20):
            for j in range(8):
                with T.block("Y_pad_const"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads()
                    Y[vi, vj] = 7
            for j in range(8):
                with T.block("Y"):
                    vi = T.axis.spatial(12, i - 3)
                    vj = T.axis.spatial(8, j)
                    T.where(3 <= i and i < 15)
                    Y[vi + 3, vj] = X[vi, vj]

    sch = tir.Schedule(rows)
    sch.decompose_padding("Y", sch.get_loops("Y")[1])
    assert_structural_equal(sch.mod["main"].with_attr("global_symbol", "expected"), expected)
    assert_same_meaning(rows, sch.mod)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_padding_of_a_pooling(depth):
    sch = tir.Schedule(image)
    sch.decompose_padding("P", sch.get_loops("P")[depth])
    assert_same_meaning(image, sch.mod)


@pytest.mark.parametrize("where", [0, 1, 2, 3])
def test_below_other_loops(where):
    sch = tir.Schedule(image)
    sch.compute_at("P", sch.get_loops("Z")[1])
    sch.decompose_padding("P", sch.get_loops("P")[where])
    assert_same_meaning(image, sch.mod)


def test_split_and_vectorized_loops():
    sch = tir.Schedule(image)
    n, _, w = sch.get_loops("P")
    outer, inner = sch.split(w, [None, 4])
    sch.vectorize(inner)
    assert sch.can_decompose_padding("P", outer)
    filler = sch.decompose_padding("P", n)
    sch.vectorize(sch.get_loops(filler)[-1])
    assert_same_meaning(image, sch.mod)


def test_symbolic_extents():
    @T.prim_func
    def program(x: T.handle, y: T.handle, n: T.int32):
        X = T.match_buffer(x, (n,))
        Y = T.match_buffer(y, (n + 4,))
        for i in range(n + 4):
            with T.block("Y"):
                vi = T.axis.spatial(n + 4, i)
                Y[vi] = T.if_then_else(2 <= vi and vi < n + 2, X[vi - 2], T.float32(1))

    sch = tir.Schedule(program)
    loop = sch.get_loops("Y")[0]
    if sch.can_decompose_padding("Y", loop):
        sch.decompose_padding("Y", loop)
        for n in (1, 5):
            assert_same_meaning(program, sch.mod, {"n": n})


def test_asking_changes_nothing():
    sch = tir.Schedule(rows)
    loop = sch.get_loops("Y")[0]
    text, trace = sch.mod.script(), str(sch.trace)
    assert sch.can_decompose_padding(sch.get_block("Y"), loop) is True
    assert sch.mod.script() == text
    assert "decompose" not in str(sch.trace)
    assert trace in str(sch.trace)
    other = tir.Schedule(matmul)
    assert other.can_decompose_padding("C", other.get_loops("C")[0]) is False


@T.prim_func
def plain(X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            Y[vi] = X[vi]


@T.prim_func
def not_constant(X: T.Buffer((8,), "int32"), Y: T.Buffer((12,), "int32")):
    for i in range(12):
        with T.block("Y"):
            vi = T.axis.spatial(12, i)
            Y[vi] = T.if_then_else(vi < 8, X[T.min(vi, 7)], X[0])


@T.prim_func
def trivial(X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            Y[vi] = T.if_then_else(vi < 9, X[vi], 0)


@T.prim_func
def triangle(X: T.Buffer((8, 8), "int32"), Y: T.Buffer((8, 8), "int32")):
    for i, j in T.grid(8, 8):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.if_then_else(vi < vj, X[vi, vj], 0)


@T.prim_func
def ring(X: T.Buffer((8,), "int32"), Y: T.Buffer((4,), "int32")):
    for i in range(12):
        with T.block("Y"):
            vi = T.axis.spatial(12, i)
            Y[vi % 4] = T.if_then_else(vi < 8, X[T.min(vi, 7)], 0)


@T.prim_func
def early_reader(X: T.Buffer((8,), "int32"), Y: T.Buffer((12,), "int32"), Z: T.Buffer(1, "int32")):
    with T.block("Z"):
        vu = T.axis.spatial(1, 0)
        Z[vu] = Y[11]
    for i in range(12):
        with T.block("Y"):
            vi = T.axis.spatial(12, i)
            Y[vi] = T.if_then_else(vi < 8, X[T.min(vi, 7)], 0)


@T.prim_func
def twice(X: T.Buffer((8,), "int32"), Y: T.Buffer((12,), "int32")):
    for i in range(12):
        with T.block("Y"):
            vi = T.axis.spatial(12, i)
            Y[vi] = T.if_then_else(vi < 8, X[T.min(vi, 7)], 0)
    for i in range(12):
        with T.block("again"):
            vi = T.axis.spatial(12, i)
            Y[vi] = 3


@T.prim_func(check_well_formed=False)
def loop_variable(X: T.Buffer((8,), "int32"), Y: T.Buffer((12,), "int32")):
    for i in range(12):
        with T.block("Y"):
            vi = T.axis.spatial(12, i)
            Y[vi] = T.if_then_else(i < 8, X[T.min(vi, 7)], 0)


PATTERN, REGION, PLACE = (
    padding.PaddingPatternError, padding.PaddingRegionError, padding.PaddingPlaceError,
)  # fmt: skip


@pytest.mark.parametrize(
    ("func", "error", "message"),
    [
        (plain, PATTERN, r"the value is X\[vi\], not T.if_then_else"),
        (not_constant, PATTERN, r"the value of padding, X\[0\], is no constant"),
        (trivial, PATTERN, "vi < 9 always holds"),
        (triangle, REGION, "vi < vj does not bound the axes"),
        (ring, PATTERN, "may store an element of Y twice"),
        (early_reader, PLACE, "Z reads Y before block Y stores it"),
        (twice, errors.IncompleteBlockError, "Y is written by again too"),
        (loop_variable, surgery.OuterVariableError, "uses i of the loop around it directly"),
        (matmul, errors.IncompleteBlockError, "axis vk is not data-parallel"),
    ],
)
def test_refused(func, error, message):
    sch = tir.Schedule(func)
    block = "C" if func is matmul else "Y"
    loop = sch.get_loops(block)[0]
    before = sch.mod.script()
    with pytest.raises(error, match=message) as caught:
        sch.decompose_padding(block, loop)
    assert len(str(caught.value).split("\n")) <= 10
    assert sch.mod.script() == before
    assert not sch.can_decompose_padding(block, loop)


def test_a_loop_elsewhere_and_wrong_arguments():
    sch = tir.Schedule(image)
    with pytest.raises(padding.PaddingPlaceError, match="loop n is not around block P"):
        sch.decompose_padding("P", sch.get_loops("Z")[0])
    with pytest.raises(weft.TVMError, match="loop: expected a LoopRV"):
        sch.decompose_padding("P", "Z")
