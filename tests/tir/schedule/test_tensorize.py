"""tensorize: where an implementation takes the place of its description, and where not."""

import logging

import pytest

import weft
from tests.lib.programs import matmul
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir import tensor_intrinsic
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.block import block_division
from weft.tir.schedule.primitive.block import tensorize as family
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol


@T.prim_func
def tile_desc(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), offset_factor=1)
    B = T.match_buffer(b, (4, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 8), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        for i, j, k in T.grid(4, 8, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def tile_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), offset_factor=1)
    B = T.match_buffer(b, (4, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 8), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        for i, k in T.grid(4, 4):
            C[i, T.ramp(0, 1, 8)] = (
                C[i, T.ramp(0, 1, 8)] + T.broadcast(A[i, k], 8) * B[k, T.ramp(0, 1, 8)]
            )


@T.prim_func
def copy_desc(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,), offset_factor=1)
    B = T.match_buffer(b, (8,), offset_factor=1)
    with T.block("root"):
        T.reads(A[0:8])
        T.writes(B[0:8])
        for i in range(8):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]


@T.prim_func
def copy_impl(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,), offset_factor=1)
    B = T.match_buffer(b, (8,), offset_factor=1)
    with T.block("root"):
        T.reads(A[0:8])
        T.writes(B[0:8])
        T.block_attr({"pragma": "copied"})
        B[T.ramp(0, 1, 8)] = A[T.ramp(0, 1, 8)]


@T.prim_func
def flat_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), offset_factor=1)
    B = T.match_buffer(b, (4, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 8), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        A_flat = T.decl_buffer((16,), data=A.data, elem_offset=A.elem_offset)
        for i, j, k in T.grid(4, 8, 4):
            C[i, j] = C[i, j] + A_flat[i * 4 + k] * B[k, j]


@pytest.fixture(autouse=True, scope="module")
def intrinsics():
    kept = dict(tir.TensorIntrin.REGISTRY)
    tir.TensorIntrin.register("test_tile", tile_desc, tile_impl)
    tir.TensorIntrin.register("test_copy", copy_desc, copy_impl)
    tir.TensorIntrin.register("test_flat", tile_desc, flat_impl)
    yield
    tir.TensorIntrin.REGISTRY.clear()
    tir.TensorIntrin.REGISTRY.update(kept)


def tiled(func=matmul, tiles=(4, 8, 4), **options):
    sch = tir.Schedule(func, **options)
    pairs = [
        sch.split(loop, [None, tile]) for loop, tile in zip(sch.get_loops("C"), tiles, strict=True)
    ]
    sch.reorder(*[outer for outer, _ in pairs], *[inner for _, inner in pairs])
    return sch, [outer for outer, _ in pairs], [inner for _, inner in pairs]


def test_the_script_of_a_tile():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 20))
        B = T.match_buffer(b, (20, 24))
        C = T.match_buffer(c, (32, 24))
        for i_0, j_0 in T.grid(8, 3):
            for i_1_init, j_1_init in T.grid(4, 8):
                with T.block("C_init"):
                    vi = T.axis.spatial(32, i_0 * 4 + i_1_init)
                    vj = T.axis.spatial(24, j_0 * 8 + j_1_init)
                    T.reads()
                    T.writes(C[vi, vj])
                    C[vi, vj] = T.float32(0)
            for k_0 in range(5):
                with T.block("C_update_o"):
                    vi_o, vj_o, vk_o = T.axis.remap("SSR", [i_0, j_0, k_0])
                    T.reads(
                        C[vi_o * 4 : vi_o * 4 + 4, vj_o * 8 : vj_o * 8 + 8],
                        A[vi_o * 4 : vi_o * 4 + 4, vk_o * 4 : vk_o * 4 + 4],
                        B[vk_o * 4 : vk_o * 4 + 4, vj_o * 8 : vj_o * 8 + 8],
                    )
                    T.writes(C[vi_o * 4 : vi_o * 4 + 4, vj_o * 8 : vj_o * 8 + 8])
                    A_1 = T.match_buffer(
                        A[vi_o * 4 : vi_o * 4 + 4, vk_o * 4 : vk_o * 4 + 4],
                        (4, 4),
                        offset_factor=1,
                    )
                    B_1 = T.match_buffer(
                        B[vk_o * 4 : vk_o * 4 + 4, vj_o * 8 : vj_o * 8 + 8],
                        (4, 8),
                        offset_factor=1,
                    )
                    C_1 = T.match_buffer(
                        C[vi_o * 4 : vi_o * 4 + 4, vj_o * 8 : vj_o * 8 + 8],
                        (4, 8),
                        offset_factor=1,
                    )
                    for i, k in T.grid(4, 4):
                        C_1[i, 0:8] = C_1[i, 0:8] + T.Broadcast(A_1[i, k], 8) * B_1[k, 0:8]

    sch, outer, inner = tiled()
    sch.decompose_reduction("C", outer[2])
    sch.tensorize(inner[0], "test_tile")
    assert_structural_equal_ignore_global_symbol(expected, sch.mod["main"])
    assert_same_meaning(matmul, sch.mod)


def test_of_a_block():
    sch, outer, inner = tiled()
    sch.decompose_reduction("C", outer[2])
    block = sch.blockize(inner[0])
    sch.tensorize(block, "test_tile")
    assert sch.get(block).match_buffers
    assert_same_meaning(matmul, sch.mod)


def test_an_init_stays_in_the_block_around():
    sch, outer, inner = tiled()
    block = sch.blockize(inner[0])
    sch.decompose_reduction(block, outer[2])
    sch.tensorize(block, "test_tile")
    assert_same_meaning(matmul, sch.mod)


def test_twice_the_same_intrinsic():
    @T.prim_func
    def copies(A: T.Buffer((2, 6, 8), "float32"), C: T.Buffer((6, 16), "float32")):
        for i, j, k in T.grid(2, 6, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vj, vi * 8 + vk] = A[vi, vj, vk]
        for i, j, k in T.grid(2, 6, 8):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                C[vj, 15 - (1 - vi) * 8 - 7 + vk] = A[vi, vj, vk]

    sch = tir.Schedule(copies)
    sch.tensorize(sch.get_loops("C")[2], "test_copy")
    sch.tensorize(sch.get_loops("D")[2], "test_copy")
    assert sch.get(sch.get_block("C_o")).annotations["pragma"] == "copied"
    assert sch.mod.script().count("T.match_buffer(A[") == 2
    assert_same_meaning(copies, sch.mod)


def test_indices_of_another_width():
    @T.prim_func
    def copy64(A: T.Buffer((T.int64(6), T.int64(8)), "float32"),
               C: T.Buffer((T.int64(6), T.int64(8)), "float32")):  # fmt: skip
        for i, j in T.grid(T.int64(6), T.int64(8)):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]

    sch = tir.Schedule(copy64)
    sch.tensorize(sch.get_loops("C")[1], "test_copy")
    region = sch.get(sch.get_block("C_o")).match_buffers[0].source.region
    assert region[1].extent.dtype == "int64"
    assert_same_meaning(copy64, sch.mod)


@T.prim_func
def rows(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]


def test_indices_as_values():
    @T.prim_func
    def desc(a: T.handle) -> None:
        A = T.match_buffer(a, (8,), "int32", offset_factor=1)
        with T.block("root"):
            T.reads()
            T.writes(A[0:8])
            for i in range(8):
                with T.block("count"):
                    vi = T.axis.spatial(8, i)
                    A[vi] = vi % 8 * 2

    @T.prim_func
    def impl(a: T.handle) -> None:
        A = T.match_buffer(a, (8,), "int32", offset_factor=1)
        with T.block("root"):
            T.reads()
            T.writes(A[0:8])
            A[T.ramp(0, 1, 8)] = T.ramp(0, 2, 8)

    @T.prim_func
    def numbers(A: T.Buffer((4, 8), "int32")):
        for i, j in T.grid(4, 8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = vj + vj

    tir.TensorIntrin.register("test_numbers", desc, impl, override=True)
    sch = tir.Schedule(numbers)
    sch.tensorize(sch.get_loops("A")[1], "test_numbers")
    assert_same_meaning(numbers, sch.mod)


def test_annotations_that_differ(caplog):
    sch = tir.Schedule(rows)
    block = sch.blockize(sch.get_loops("C")[1])
    sch.annotate(block, "pragma", "mine")
    with caplog.at_level(logging.WARNING):
        sch.tensorize(block, "test_copy")
    assert "has 'pragma' = copied and the block mine" in caplog.text
    assert sch.get(block).annotations["pragma"] == "mine"
    assert_same_meaning(rows, sch.mod)


def test_with_other_primitives():
    sch, outer, inner = tiled()
    sch.parallel(outer[0])
    sch.decompose_reduction("C", outer[2])
    sch.tensorize(inner[0], "test_tile")
    sch.annotate(outer[2], "pragma_unroll", 1)
    assert_same_meaning(matmul, sch.mod)


# ---- the registry


def test_registry():
    assert tir.TensorIntrin.get("test_tile").desc is tile_desc
    assert tir.TensorIntrin.get("no such", allow_missing=True) is None
    with pytest.raises(ValueError, match="TensorIntrin 'no such' is not registered"):
        tir.TensorIntrin.get("no such")
    with pytest.raises(ValueError, match="'test_tile' is already registered; pass override=True"):
        tir.TensorIntrin.register("test_tile", tile_desc, tile_impl)
    tir.TensorIntrin.register("test_tile", tile_desc, tile_impl, override=True)
    with pytest.raises(ValueError, match="the desc has 3 parameters, the impl 2"):
        tir.TensorIntrin(tile_desc, copy_impl)
    with pytest.raises(weft.TVMError, match="impl: expected a PrimFunc, got str"):
        tir.TensorIntrin(tile_desc, "impl")


def test_made_at_the_first_use():
    made = []

    def maker():
        made.append(1)
        return copy_desc, copy_impl

    tir.TensorIntrin.register_maker("test_made", maker)
    assert not made
    assert tir.TensorIntrin.get("test_made") is tir.TensorIntrin.get("test_made")
    assert made == [1]
    assert isinstance(tir.TensorIntrin.get("test_made"), tensor_intrinsic.TensorIntrin)


# ---- what is refused


def with_init():
    sch, _, inner = tiled()
    return sch, inner[0]


def decomposed(tiles=(4, 8, 4), func=matmul):
    sch, outer, inner = tiled(func, tiles)
    sch.decompose_reduction("C", outer[2])
    return sch, inner[0]


def product(left, right="B[vk, vj]", dtype="float32", scope="global", kind="SSR"):
    """A product of matrices with one thing changed."""
    return weft.script.from_source(
        f"""
# from tvm.script import tir as T
@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (32, 32), "{dtype}", scope="{scope}")
    B = T.match_buffer(b, (32, 32), "{dtype}")
    C = T.match_buffer(c, (32, 32), "{dtype}")
    for i, j, k in T.grid(32, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("{kind}", [i, j, k])
            with T.init():
                C[vi, vj] = T.{dtype}(0)
            C[vi, vj] = {left} {right}
"""
    )


PLAIN = "C[vi, vj] + A[vi, vk] *"

MISMATCHES = [
    ("a tile of another size", lambda: decomposed((4, 4, 4)), "extent of the region of C: 4 here"),
    ("another depth", lambda: decomposed((4, 8, 2)), "extent of the region of A: 2 here, 4"),
    ("a difference", lambda: decomposed(func=product("C[vi, vj] - A[vi, vk] *")), "value: C.*- "),
    ("a transposed operand", lambda: decomposed(func=product(PLAIN, "B[vj, vk]")),
     "extent of the region of B: 8 here, 4"),
    ("another type", lambda: decomposed(func=product(PLAIN, dtype="float64")),
     "type of C: float64 here, float32"),
    ("another scope", lambda: decomposed(func=product(PLAIN, scope="shared")),
     "scope of A: shared here, global"),
    ("a constant more", lambda: decomposed(func=product(PLAIN, "B[vk, vj] + T.float32(1)")),
     "value: "),
    ("the same operand twice", lambda: decomposed(func=product(PLAIN, "A[vk, vj]")),
     "buffers that the block reads: C, A here"),
    ("an init", with_init, "buffers that the block reads: A, B here, C, A, B in"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "text"), [row[1:] for row in MISMATCHES], ids=[row[0] for row in MISMATCHES]
)
def test_mismatches(make, text):
    sch, loop = make()
    before = sch.mod
    with pytest.raises(family.TensorIntrinMismatchError, match=text) as caught:
        sch.tensorize(loop, "test_tile")
    assert "is not what test_tile computes" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 10
    weft.ir.assert_structural_equal(before, sch.mod)


def test_loops_of_another_kind():
    sch, loop = decomposed()
    sch.unroll(sch.get_loops("C_update")[-1])
    with pytest.raises(family.TensorIntrinMismatchError, match="kind of loop k_1: unrolled here"):
        sch.tensorize(loop, "test_tile")
    sch, loop = decomposed()
    sch.annotate(sch.get_loops("C_update")[-1], "mark", 1)
    with pytest.raises(family.TensorIntrinMismatchError, match="annotations of loop k_1"):
        sch.tensorize(loop, "test_tile")


def test_a_tail():
    sch, loop = decomposed((4, 8, 8))
    assert "T.where" in sch.mod.script()
    with pytest.raises(errors.ScheduleFailure):
        sch.tensorize(loop, "test_tile")


def test_a_buffer_that_is_not_in_one_piece():
    sch, loop = decomposed()
    with pytest.raises(family.TensorIntrinError, match="takes A in one piece, but .4, 4. of A"):
        sch.tensorize(loop, "test_flat")


def test_other_arguments():
    sch, loop = decomposed()
    with pytest.raises(ValueError, match="'missing' is not registered"):
        sch.tensorize(loop, "missing")
    with pytest.raises(errors.RootBlockError, match="is the root block"):
        sch.tensorize(sch.get_block("root"), "test_tile")
    with pytest.raises(weft.TVMError, match="expected a BlockRV"):
        sch.tensorize(3, "test_tile")
    with pytest.raises(weft.TVMError, match="tensor_intrin: expected a str"):
        sch.tensorize(loop, tile_desc)
    with pytest.raises(block_division.BlockizeNestError, match="has 2 blocks"):
        sch.tensorize(sch.get_loops("C_update")[0], "test_tile")


def test_an_implementation_that_is_not_like_its_description():
    @T.prim_func
    def other(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (4,), offset_factor=1)
        B = T.match_buffer(b, (4,), offset_factor=1)
        with T.block("root"):
            T.reads(A[0:4])
            T.writes(B[0:4])
            B[T.ramp(0, 1, 4)] = A[T.ramp(0, 1, 4)]

    tir.TensorIntrin.register("test_other", copy_desc, other, override=True)
    sch = tir.Schedule(rows)
    with pytest.raises(family.TensorIntrinError, match="parameter A of test_other is float32"):
        sch.tensorize(sch.get_loops("C")[1], "test_other")
