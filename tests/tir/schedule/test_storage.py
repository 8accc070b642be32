"""set_scope, unsafe_set_dtype and storage_align."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.buffer import storage
from weft.tir.schedule.primitive.cache import cache_stage


@T.prim_func
def views(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")) -> None:
    B = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            part = T.match_buffer(B[vi, vj], (), offset_factor=1)
            part[()] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            piece = T.match_buffer(B[vi, vj], (), offset_factor=1)
            C[vi, vj] = piece[()] + T.float32(1)


@T.prim_func
def pointers(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    with T.block("C"):
        T.reads(B[0:8])
        T.writes(C[0:8])
        T.evaluate(T.call_extern("int32", "copy", C.data, B.data))


def test_set_scope():
    @T.prim_func
    def expected(a: T.handle, d: T.handle) -> None:
        A = T.match_buffer(a, (16, 12))
        B = T.alloc_buffer((16, 12), scope="shared")
        C = T.alloc_buffer((16, 12))
        D = T.match_buffer(d, (16, 12))
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(16, 12):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1)
        for i, j in T.grid(16, 12):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] * C[vi, vj]

    sch = tir.Schedule(elementwise_chain)
    reader = sch.get_block("C")
    sch.set_scope("B", 0, "shared")
    assert_structural_equal(sch.mod["main"].body, expected.body)
    region = sch.get(reader).reads[0].buffer
    assert (region.name, region.scope(), region.data.name) == ("B_shared", "shared", "B_shared")
    assert_same_meaning(elementwise_chain, sch.mod)


@pytest.mark.parametrize("given", [0, "C", "buffer"])
def test_a_buffer_is_named_in_three_ways(given):
    sch = tir.Schedule(elementwise_chain)
    block = sch.get_block("C")
    buffer = sch.get(block).writes[0].buffer if given == "buffer" else given
    sch.set_scope(block, buffer, "local")
    assert sch.get(block).writes[0].buffer.scope() == "local"
    sch.set_scope(block, 0, "local")
    sch.set_scope(block, 0, "global")
    assert sch.get(block).writes[0].buffer.name == "C_local_global"
    assert_same_meaning(elementwise_chain, sch.mod)


def test_views_move_with_their_buffer():
    sch = tir.Schedule(views)
    sch.set_scope("B", 0, "shared")
    for name in "BC":
        view = sch.get(sch.get_block(name)).match_buffers[0]
        assert view.buffer.scope() == view.source.buffer.scope() == "shared"
        assert view.buffer.name.endswith("_shared")
    assert_same_meaning(views, sch.mod)


def test_pointers_move_with_their_buffer():
    sch = tir.Schedule(pointers)
    sch.set_scope("B", 0, "shared")
    assert "B_shared.data" in sch.mod.script()


def bound(tag):
    """A schedule in which the writer and the reader of B are each below a loop over threads."""
    sch = tir.Schedule(elementwise_chain)
    for name in "BC":
        sch.bind(sch.get_loops(name)[0], tag)
    return sch


@pytest.mark.parametrize(
    ("tag", "scope"),
    [("threadIdx.x", "local"), ("blockIdx.x", "shared"), ("blockIdx.x", "local"),
     ("threadIdx.y", "warp"), ("threadIdx.x", "wmma.accumulator"), ("vthread.x", "local")],
)  # fmt: skip
def test_threads_that_would_not_see_it(tag, scope):
    with pytest.raises(storage.ThreadScopeError, match=f"over {tag} runs block"):
        bound(tag).set_scope("B", 0, scope)


@pytest.mark.parametrize(
    ("tag", "scope"), [("threadIdx.x", "shared"), ("threadIdx.x", "warp"), ("vthread.x", "shared")]
)
def test_threads_that_share_it(tag, scope):
    sch = bound(tag)
    sch.set_scope("B", 0, scope)
    assert f'scope="{scope}"' in sch.mod.script()


def test_a_buffer_of_one_thread():
    sch = tir.Schedule(elementwise_chain)
    outer = sch.get_loops("C")[0]
    sch.compute_at("B", outer)
    sch.bind(outer, "threadIdx.x")
    sch.set_scope("B", 0, "local")
    assert 'scope="local"' in sch.mod.script()


def test_unsafe_set_dtype():
    sch = tir.Schedule(elementwise_chain)
    sch.unsafe_set_dtype("B", 0, "float64")
    text = sch.mod.script()
    assert 'B = T.alloc_buffer((16, 12), "float64")' in text
    assert 'T.Cast("float64", A[vi, vj] * T.float32(2' in text
    assert 'T.Cast("float32", B[vi, vj])' in text
    assert_same_meaning(elementwise_chain, sch.mod)
    sch.unsafe_set_dtype("B", 0, "float64")
    assert sch.mod.script() == text


def test_the_type_of_views_follows():
    sch = tir.Schedule(views)
    sch.unsafe_set_dtype("B", 0, "float64")
    for name in "BC":
        assert str(sch.get(sch.get_block(name)).match_buffers[0].buffer.dtype) == "float64"
    assert_same_meaning(views, sch.mod)


def test_a_sum_of_another_type():
    sch = tir.Schedule(matmul)
    sch.cache_write("C", 0, "local")
    sch.unsafe_set_dtype("C", 0, "float64")
    assert_same_meaning(matmul, sch.mod)


@T.prim_func
def widening(A: T.Buffer((16,), "bfloat16"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "bfloat16")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = T.Cast("float32", B[vi]) + T.Cast("float32", B[vi] * B[vi])


def test_what_was_converted_to_the_wider_type_is_loaded_as_it_is():
    sch = tir.Schedule(widening)
    sch.unsafe_set_dtype("B", 0, "float32")
    text = sch.mod.script()
    assert 'B[vi] = T.Cast("float32", A[vi])' in text
    assert "C[vi] = B[vi] + T.Cast(" in text
    assert_same_meaning(widening, sch.mod)


@T.prim_func
def narrowing(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "bfloat16")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(3)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = T.Cast("bfloat16", B[vi])


def test_conversions_that_round_stay():
    sch = tir.Schedule(narrowing)
    sch.unsafe_set_dtype("B", 0, "bfloat16")
    assert 'T.Cast("bfloat16", T.Cast("float32", B[vi]))' in sch.mod.script()


def test_storage_align():
    sch = tir.Schedule(elementwise_chain)
    sch.storage_align("B", 0, axis=-2, factor=16, offset=4)
    sch.storage_align("B", 0, axis=1, factor=4, offset=1)
    sch.storage_align("B", 0, axis=0, factor=32, offset=8)
    assert '"buffer_dim_align": [[0, 0, 32, 8], [0, 1, 4, 1]]' in sch.mod.script()
    assert_same_meaning(elementwise_chain, sch.mod)


@pytest.mark.parametrize("scope", ["global", "local", "shared"])
def test_aligned_strides(scope):
    sch = tir.Schedule(elementwise_chain)
    sch.storage_align("B", 0, axis=0, factor=16, offset=5)
    sch.set_scope("B", 0, scope)
    sch.split(sch.get_loops("B")[1], [None, 5])
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_wrong_annotation():
    sch = tir.Schedule(elementwise_chain)
    sch.annotate(sch.get_block("B"), "buffer_dim_align", [0])
    with pytest.raises(storage.AlignmentError, match=r"buffer_dim_align of block B is \[0\]"):
        sch.storage_align("B", 0, 0, 4, 1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.set_scope("D", 0, "shared"), storage.NotAllocatedError, "D, which block D w"),
        (lambda s: s.set_scope("B", 1, "shared"), errors.BufferIndexError, "1 buffers .*index 1"),
        (lambda s: s.set_scope("B", -1, "shared"), errors.BufferIndexError, "index -1"),
        (lambda s: s.set_scope("B", 0, "fast"), cache_stage.StorageScopeError, "scope 'fast'"),
        (lambda s: s.set_scope("B", "A", "local"), weft.TVMError, "B writes no buffer A"),
        (lambda s: s.set_scope("B", 0, 3), weft.TVMError, "storage_scope: expected a str"),
        (
            lambda s: s.unsafe_set_dtype("D", 0, "float16"),
            storage.NotAllocatedError,
            "D, which block D writes",
        ),
        (lambda s: s.unsafe_set_dtype("B", 2, "float16"), errors.BufferIndexError, "index 2"),
        (
            lambda s: s.unsafe_set_dtype("B", 0, "float16x4"),
            storage.StoredTypeError,
            "float32, which cannot be stored as float16x4",
        ),
        (lambda s: s.unsafe_set_dtype("B", 0, "real"), weft.TVMError, "real"),
        (lambda s: s.storage_align("B", 0, 2, 8, 1), storage.AlignmentError, "2 axes, got axis 2"),
        (lambda s: s.storage_align("B", 0, -3, 8, 1), storage.AlignmentError, "got axis -3"),
        (lambda s: s.storage_align("B", 0, 0, 0, 1), storage.AlignmentError, "got 0"),
        (lambda s: s.storage_align("B", 0, 0, -8, 1), storage.AlignmentError, "got -8"),
        (lambda s: s.storage_align("B", 1, 0, 8, 1), errors.BufferIndexError, "index 1"),
        (lambda s: s.storage_align("D", 0, 0, 8, 1), storage.NotAllocatedError, "D, which"),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(elementwise_chain)
    with pytest.raises(error, match=message) as raised:
        call(sch)
    assert len(str(raised.value).splitlines()) <= 10


def test_a_view_is_not_allocated():
    @T.prim_func
    def nested(A: T.Buffer((8,), "float32")) -> None:
        with T.block("outer"):
            T.writes(A[0:8])
            view = T.match_buffer(A[0:8], (8,), offset_factor=1)
            for i in range(8):
                with T.block("inner"):
                    vi = T.axis.spatial(8, i)
                    view[vi] = T.float32(1)

    with pytest.raises(storage.NotAllocatedError, match="view is a match_buffer of block outer"):
        tir.Schedule(nested).set_scope("inner", 0, "shared")


def test_a_pointer_keeps_its_type():
    with pytest.raises(storage.PointerAccessError, match="B is accessed through its pointer"):
        tir.Schedule(pointers).unsafe_set_dtype("B", 0, "int64")


@pytest.mark.parametrize("sizes", [{"n": 8}, {"n": 5}, {"n": 1}])
def test_an_alignment_of_symbolic_rows(sizes):
    """Strides that are not constant leave the memory its whole size."""

    @T.prim_func
    def symbolic(a: T.handle, d: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (4, n), "int32")
        D = T.match_buffer(d, (n, 4), "int32")
        C = T.alloc_buffer((4, n), "int32")
        for i, j in T.grid(4, n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + 1
        for i, j in T.grid(n, 4):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vj, vi]

    sch = tir.Schedule(symbolic)
    sch.storage_align("C", 0, 0, 8, 2)
    assert_same_meaning(symbolic, sch.mod, sizes)
