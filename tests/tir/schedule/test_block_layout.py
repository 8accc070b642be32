"""transform_block_layout: axes and loops mapped, meaning, refusals."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.index_map import IndexMap
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.layout import block_layout


@T.prim_func
def double(A: T.Buffer((16, 12), "float32"), B: T.Buffer((16, 12), "float32")):
    for i, j in T.grid(16, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


@T.prim_func
def conv(
    X: T.Buffer((1, 6, 6, 3), "int32"),
    W: T.Buffer((3, 3, 3, 4), "int32"),
    Y: T.Buffer((1, 4, 4, 4), "int32"),
):
    for n, h, w, o, r, s, c in T.grid(1, 4, 4, 4, 3, 3, 3):
        with T.block("Y"):
            vn, vh, vw, vo, vr, vs, vc = T.axis.remap("SSSSRRR", [n, h, w, o, r, s, c])
            with T.init():
                Y[vn, vh, vw, vo] = 0
            Y[vn, vh, vw, vo] = Y[vn, vh, vw, vo] + X[vn, vh + vr, vw + vs, vc] * W[vr, vs, vc, vo]


def test_axes_are_fused():
    @T.prim_func
    def expected(A: T.Buffer((16, 12), "float32"), B: T.Buffer((16, 12), "float32")):
        for ax0 in range(192):
            with T.block("B"):
                v0 = T.axis.spatial(192, ax0)
                B[v0 // 12, v0 % 12] = A[v0 // 12, v0 % 12] * T.float32(2)

    sch = tir.Schedule(double)
    block = sch.get_block("B")
    sch.transform_block_layout(block, lambda i, j: (i * 12 + j,))
    assert_structural_equal(sch.mod["main"].with_attr("global_symbol", "expected"), expected)
    assert sch.get(block).name_hint == "B"
    assert_same_meaning(double, sch.mod)


def test_a_convolution_becomes_a_matrix_product():
    sch = tir.Schedule(conv)
    sch.transform_block_layout(
        "Y", lambda n, h, w, o, r, s, c: (n * 16 + h * 4 + w, o, r * 9 + s * 3 + c)
    )
    block = sch.get(sch.get_block("Y"))
    assert [axis.dom.extent.value for axis in block.iter_vars] == [16, 4, 27]
    assert [axis.iter_type for axis in block.iter_vars] == [0, 0, 2]
    assert "X[0, v0 // 4 + v2 // 9, v0 % 4 + v2 % 9 // 3, v2 % 3]" in sch.mod.script()
    assert_same_meaning(conv, sch.mod)
    sch.fuse(*sch.get_loops("Y")[:2])
    assert_same_meaning(conv, sch.mod)


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j: (j, i),
        lambda i, j: (i // 4, j // 3, i % 4, j % 3),
        lambda i, j: (i, 0, j),
        lambda i, j: (j // 4, i, j % 4),
    ],
)
def test_other_maps(index_map):
    sch = tir.Schedule(elementwise_chain)
    sch.transform_block_layout("C", index_map)
    assert_same_meaning(elementwise_chain, sch.mod)
    sch.parallel(sch.get_loops("C")[0])
    assert_same_meaning(elementwise_chain, sch.mod)


def test_unit_axes_int64_and_symbolic_extents():
    @T.prim_func
    def program(a: T.handle, b: T.handle, n: T.int64):
        A = T.match_buffer(a, (T.int64(1), n, T.int64(4)))
        B = T.match_buffer(b, (T.int64(1), n, T.int64(4)))
        for u, i, j in T.grid(T.int64(1), n, T.int64(4)):
            with T.block("B"):
                vu, vi, vj = T.axis.remap("SSS", [u, i, j])
                B[vu, vi, vj] = A[vu, vi, vj] + T.float32(1)

    for index_map in (
        lambda u, i, j: (i, j, u),
        IndexMap.from_func(lambda u, i, j: [j, u, i], index_dtype="int32"),
        lambda u, i, j: (u, i * 4 + j),
    ):
        sch = tir.Schedule(program)
        sch.transform_block_layout("B", index_map)
        for n in (1, 5):
            assert_same_meaning(program, sch.mod, {"n": n})


def test_a_block_without_loops_gets_some():
    @T.prim_func
    def point(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        with T.block("B"):
            vi = T.axis.spatial(1, 0)
            B[vi] = A[vi]

    sch = tir.Schedule(point)
    sch.transform_block_layout("B", lambda i: (i, 0))
    assert len(sch.get_loops("B")) == 2
    assert_same_meaning(point, sch.mod)


@T.prim_func
def running(A: T.Buffer((16,), "int32")):
    for i in range(15):
        with T.block("A"):
            vi = T.axis.spatial(15, i)
            A[vi + 1] = A[vi] + 1


NEST, MAP = block_layout.BlockNestError, block_layout.BlockMapError


@pytest.mark.parametrize(
    ("func", "block", "index_map", "prepare", "error", "message"),
    [
        (double, "B", lambda i, j: (i * 12 + j, j), None, MAP, "no bijective affine map"),
        (double, "B", lambda i, j: (i + j,), None, MAP, "no bijective affine map"),
        (double, "B", lambda i, j: (i // 5, i % 5, j), None, MAP, "no bijective affine map"),
        (double, "B", lambda i, j: (i,), None, MAP, "no bijective affine map"),
        (double, "B", IndexMap.from_func(lambda i: [i]), None, MAP, "has 2 axes, the map takes 1"),
        (double, "B", lambda i: (i,), None, weft.TVMError, "takes 1 indices"),
        (
            matmul, "C", lambda i, j, k: (i, j * 20 + k), None, block_layout.MixedAxisError,
            "mixes axes of several kinds: j, k",
        ),
        (
            double, "B", lambda i, j: (j, i), lambda s: s.split(s.get_loops("B")[0], [4, 4]), NEST,
            "is bound to no axis",
        ),
        (
            double, "B", lambda i, j: (j, i), lambda s: s.fuse(*s.get_loops("B")), NEST,
            "is bound to no axis",
        ),
        (
            elementwise_chain, "C", lambda i, j: (j, i),
            lambda s: s.compute_at("B", s.get_loops("C")[0]), NEST, "not all that loop i runs",
        ),
        (
            running, "A", lambda i: (i % 5, i // 5), None,
            errors.NotCompleteOrReductionBlockError, "it reads and writes A",
        ),
        (double, "root", lambda: (), None, errors.RootBlockError, "is the root block"),
    ],
)  # fmt: skip
def test_refused(func, block, index_map, prepare, error, message):
    sch = tir.Schedule(func)
    if prepare is not None:
        prepare(sch)
    before = sch.mod.script()
    with pytest.raises(error, match=message) as caught:
        sch.transform_block_layout(block, index_map)
    assert len(str(caught.value).split("\n")) <= 10
    assert sch.mod.script() == before
