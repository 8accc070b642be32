"""pad_einsum: padded copies, meaning, what cannot be padded."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning, child_names
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.padding import pad_einsum


@T.prim_func
def small(A: T.Buffer((5, 3), "int32"), B: T.Buffer((3, 8), "int32"), C: T.Buffer((5, 8), "int32")):
    for i, j, k in T.grid(5, 8, 3):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def test_copies_around_the_block():
    @T.prim_func
    def expected(
        A: T.Buffer((5, 3), "int32"), B: T.Buffer((3, 8), "int32"), C: T.Buffer((5, 8), "int32")
    ):
        A_pad = T.alloc_buffer((8, 4), "int32")
        B_pad = T.alloc_buffer((4, 8), "int32")
        C_pad = T.alloc_buffer((8, 8), "int32")
        for i0, i1 in T.grid(8, 4):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(A[v0, v1])
                A_pad[v0, v1] = T.if_then_else(v0 < 5 and v1 < 3, A[v0, v1], 0)
        for i0, i1 in T.grid(4, 8):
            with T.block("B_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                T.reads(B[v0, v1])
                B_pad[v0, v1] = T.if_then_else(v0 < 3, B[v0, v1], 0)
        for i, j, k in T.grid(8, 8, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = 0
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
        for i0, i1 in T.grid(5, 8):
            with T.block("C_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                C[v0, v1] = C_pad[v0, v1]

    sch = tir.Schedule(small)
    block = sch.get_block("C")
    i = sch.get_loops(block)[0]
    sch.pad_einsum(block, [4, 4, 4])
    assert_structural_equal(sch.mod["main"].with_attr("global_symbol", "expected"), expected)
    assert (sch.get(block).name_hint, sch.get(i).extent.value) == ("C", 8)
    assert_same_meaning(small, sch.mod)


@pytest.mark.parametrize("padding", [[1, 1, 1], [16, 1, 1], [1, 16, 1], [1, 1, 16], [7, 5, 3]])
def test_matmul(padding):
    sch = tir.Schedule(matmul)
    sch.pad_einsum("C", padding)
    assert_same_meaning(matmul, sch.mod)


def test_then_tiles_divide():
    sch = tir.Schedule(small)
    sch.pad_einsum("C", [4, 4, 4])
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, k, i1, j1)
    assert "T.where" not in sch.mod.script()
    sch.compute_inline("A_pad")
    assert_same_meaning(small, sch.mod)


def test_elementwise_blocks_between_others():
    sch = tir.Schedule(elementwise_chain)
    sch.pad_einsum("C", [5, 8])
    names = child_names(sch)
    assert names == ["B", "B_pad", "C", "C_pad", "D"]
    assert_same_meaning(elementwise_chain, sch.mod)


def test_symbolic_extents():
    @T.prim_func
    def program(a: T.handle, b: T.handle, c: T.handle, n: T.int32):
        A = T.match_buffer(a, (n, 6))
        B = T.match_buffer(b, (6, 4))
        C = T.match_buffer(c, (n, 4))
        for i, j, k in T.grid(n, 4, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(program)
    sch.pad_einsum("C", [8, 1, 4])
    for n in (1, 7, 8, 9):
        assert_same_meaning(program, sch.mod, {"n": n})


@T.prim_func
def maxima(A: T.Buffer((5, 3), "int32"), C: T.Buffer((5,), "int32")):
    for i, k in T.grid(5, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = -100
            C[vi] = T.max(C[vi], A[vi, vk])


@T.prim_func
def shifted(
    A: T.Buffer((5, 3), "float32"), B: T.Buffer((5,), "float32"), C: T.Buffer(5, "float32")
):
    for i, k in T.grid(5, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * B[vi]


@T.prim_func
def window(A: T.Buffer((8,), "int32"), C: T.Buffer((5,), "int32")):
    for i, k in T.grid(5, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi + vk]


@T.prim_func
def part(A: T.Buffer((9,), "int32"), C: T.Buffer((9,), "int32")):
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = A[vi]


@T.prim_func
def accumulated(A: T.Buffer((5, 3), "int32"), C: T.Buffer((5,), "int32")):
    for i, k in T.grid(5, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(C[vi], A[vi, vk])
            C[vi] = C[vi] + A[vi, vk]


INVALID, EINSUM = pad_einsum.InvalidPaddingError, pad_einsum.NonEinsumError


@pytest.mark.parametrize(
    ("func", "padding", "prepare", "error", "message"),
    [
        (small, [4, 4], None, INVALID, r"has 3 axes; expected as many .* got \[4, 4\]"),
        (small, [4, 4, 0], None, INVALID, "positive numbers"),
        (small, [4, 4, -4], None, INVALID, "positive numbers"),
        (small, [4, 4, 1.5], None, weft.TVMError, "expected a list of ints"),
        (maxima, [1, 4], None, EINSUM, "reduction axis vk of block C cannot be padded"),
        (shifted, [1, 4], None, EINSUM, "need not be 0 where what vk indexes is"),
        (window, [1, 4], None, EINSUM, r"index vi \+ vk of A in block C is neither an axis"),
        (part, [4], None, EINSUM, "index vi of A .* whole axis of 9 elements"),
        (accumulated, [4, 4], None, EINSUM, "reads and writes C"),
        (
            small, [4, 4, 4], lambda s: s.split(s.get_loops("C")[0], [None, 2]), EINSUM,
            "has a predicate",
        ),
        (
            small, [4, 4, 4], lambda s: s.fuse(*s.get_loops("C")[1:]), EINSUM,
            "is not a loop over its domain|not a loop over its domain",
        ),
        (
            elementwise_chain, [5, 5], lambda s: s.compute_at("B", s.get_loops("C")[0]), EINSUM,
            "is not all that loop i runs",
        ),
    ],
)  # fmt: skip
def test_refused(func, padding, prepare, error, message):
    sch = tir.Schedule(func)
    if prepare is not None:
        prepare(sch)
    before = sch.mod.script()
    with pytest.raises(error, match=message) as caught:
        sch.pad_einsum("C", padding)
    assert len(str(caught.value).split("\n")) <= 10
    assert sch.mod.script() == before


def test_axes_that_stay_may_make_any_index():
    @T.prim_func
    def convolution(
        A: T.Buffer((7, 2), "int32"), B: T.Buffer((3, 2, 5), "int32"), C: T.Buffer((5, 5), "int32")
    ):
        for i, j, y, k in T.grid(5, 5, 3, 2):
            with T.block("C"):
                vi, vj, vy, vk = T.axis.remap("SSRR", [i, j, y, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + A[vi + vy, vk] * B[vy, vk, vj]

    sch = tir.Schedule(convolution)
    sch.pad_einsum("C", [1, 4, 1, 4])
    assert_same_meaning(convolution, sch.mod)


def test_spatial_axes_of_any_block_and_the_root_block():
    for func in (maxima, shifted):
        sch = tir.Schedule(func)
        sch.pad_einsum("C", [4, 1])
        assert_same_meaning(func, sch.mod)
    with pytest.raises(errors.RootBlockError):
        tir.Schedule(small).pad_einsum("root", [])


def test_an_axis_of_extent_one_that_no_index_of_the_output_names():
    """Its one instance stores an element of its own; those that padding adds store there, too."""

    @T.prim_func
    def rows(A: T.Buffer((2, 12), "int32"), B: T.Buffer((2, 12), "int32")):
        for r in range(2):
            with T.block("outer"):
                vr = T.axis.spatial(2, r)
                row = T.alloc_buffer((1, 12), "int32")
                for i, j in T.grid(1, 12):
                    with T.block("row"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        row[vi, vj] = A[vr, vj]
                for i, j in T.grid(1, 12):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vr, vj] = row[vi, vj] * 3

    with pytest.raises(pad_einsum.NonEinsumError, match="that differ in vi may store to the same"):
        tir.Schedule(rows).pad_einsum("C", [4, 2])
