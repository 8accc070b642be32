"""compute_inline and reverse_compute_inline: scripts, meaning kept, refusals."""

import pytest

from tests.lib.programs import elementwise_chain, matmul, padded
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors, surgery
from weft.tir.schedule.primitive.compute import compute_inline as inline
from weft.tir.schedule.primitive.compute import reverse_compute_inline as reverse
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol as assert_equal


@T.prim_func
def packed(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (6, 4), "int32")
    B = T.alloc_buffer((24,), "int32")
    C = T.match_buffer(c, (24,), "int32")
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi * 4 + vj] = A[vi, vj] * 2
    for i in range(24):
        with T.block("C"):
            vi = T.axis.spatial(24, i)
            C[vi] = B[23 - vi] + 1


@T.prim_func
def sliced(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (10,), "int32")
    B = T.alloc_buffer((10,), "int32")
    C = T.match_buffer(c, (6,), "int32")
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * 2
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi + 3] + 1


@T.prim_func
def two_outputs(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (8,), "int32")
    B = T.alloc_buffer((8,), "int32")
    X = T.alloc_buffer((8,), "int32")
    C = T.match_buffer(c, (8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.writes(B[vi], X[vi])
            B[vi] = A[vi]
            X[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + X[vi]


@T.prim_func
def matched(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (8,), "int32")
    B = T.alloc_buffer((8,), "int32")
    C = T.match_buffer(c, (8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi])
            T.writes(C[vi])
            M = T.match_buffer(B[vi], (1,), "int32", offset_factor=1)
            C[vi] = M[0]


@T.prim_func
def two_readers(a: T.handle, c: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (8,), "int32")
    B = T.alloc_buffer((8,), "int32")
    C = T.match_buffer(c, (8,), "int32")
    D = T.match_buffer(d, (8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * 2
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[7 - vi] * 3


@T.prim_func
def opaque_call(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    B = T.alloc_buffer((8,))
    C = T.match_buffer(c, (8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.call_extern("float32", "next_number", A[vi])
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + B[vi]


def test_a_chain_dissolves_into_its_last_block():
    @T.prim_func
    def expected(A: T.Buffer((16, 12)), D: T.Buffer((16, 12))):
        for i, j in T.grid(16, 12):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = (A[vi, vj] * T.float32(2) + T.float32(1)) * (
                    A[vi, vj] * T.float32(2) + T.float32(1)
                )

    sch = tir.Schedule(elementwise_chain)
    sch.compute_inline("B")
    sch.compute_inline(sch.get_block("C"))
    assert_equal(sch.mod["main"], expected)
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_chain_dissolves_into_its_first_block():
    @T.prim_func
    def expected(A: T.Buffer((16, 12)), D: T.Buffer((16, 12))):
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = (A[vi, vj] * T.float32(2) + T.float32(1)) * (
                    A[vi, vj] * T.float32(2) + T.float32(1)
                )

    sch = tir.Schedule(elementwise_chain)
    kept = sch.get_block("B")
    sch.reverse_compute_inline("C")
    sch.reverse_compute_inline("D")
    assert_equal(sch.mod["main"], expected)
    assert sch.get(kept).name_hint == "B"
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_block_dissolves_through_the_inverse_of_its_indices():
    @T.prim_func
    def expected(A: T.Buffer((6, 4), "int32"), C: T.Buffer((24,), "int32")):
        for i in range(24):
            with T.block("C"):
                vi = T.axis.spatial(24, i)
                C[vi] = A[(23 - vi) // 4, (23 - vi) % 4] * 2 + 1

    sch = tir.Schedule(packed)
    sch.compute_inline("B")
    assert_equal(sch.mod["main"], expected)
    assert_same_meaning(packed, sch.mod)


def test_a_consumer_of_reversed_rows_dissolves():
    sch = tir.Schedule(packed)
    sch.reverse_compute_inline("C")
    assert_same_meaning(packed, sch.mod)


def test_a_consumer_of_a_part_dissolves_under_a_predicate():
    @T.prim_func
    def expected(A: T.Buffer((10,), "int32"), C: T.Buffer((6,), "int32")):
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.where(3 <= i and i < 9)
                C[vi - 3] = A[vi] * 2 + 1

    sch = tir.Schedule(sliced)
    sch.reverse_compute_inline("C")
    assert_equal(sch.mod["main"], expected)
    assert_same_meaning(sliced, sch.mod)


def test_a_block_dissolves_into_several_blocks_and_references_survive():
    sch = tir.Schedule(two_readers)
    readers = [sch.get_block("C"), sch.get_block("D")]
    sch.compute_inline("B")
    assert [sch.get(block).name_hint for block in readers] == ["C", "D"]
    assert not sch.get("root").alloc_buffers
    assert_same_meaning(two_readers, sch.mod)


def test_a_block_dissolves_into_a_reduction_and_its_init():
    @T.prim_func
    def before(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (6, 5), "int32")
        B = T.alloc_buffer((6, 5), "int32")
        S = T.alloc_buffer((6,), "int32")
        C = T.match_buffer(c, (6,), "int32")
        for i, k in T.grid(6, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SS", [i, k])
                B[vi, vk] = A[vi, vk] * 2
        for i in range(6):
            with T.block("S"):
                vi = T.axis.spatial(6, i)
                S[vi] = A[vi, 0] + 7
        for i, k in T.grid(6, 5):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = S[vi]
                C[vi] = C[vi] + B[vi, vk]

    sch = tir.Schedule(before)
    sch.compute_inline("S")
    sch.compute_inline("B")
    assert "C[vi] = A[vi, 0] + 7" in sch.mod.script()
    assert_same_meaning(before, sch.mod)


def test_constants_dissolve():
    @T.prim_func
    def before(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (6,), "int32")
        B = T.alloc_buffer((), "int32")
        C = T.match_buffer(c, (6,), "int32")
        with T.block("B"):
            B[()] = 7
        for i in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                C[vi] = A[vi] + B[()]

    sch = tir.Schedule(before)
    sch.compute_inline("B")
    assert "A[vi] + 7" in sch.mod.script()
    assert_same_meaning(before, sch.mod)


def test_what_is_left_of_a_sequence_is_no_sequence():
    @T.prim_func
    def before(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (6, 4), "int32")
        B = T.alloc_buffer((6, 4), "int32")
        C = T.match_buffer(c, (6, 4), "int32")
        for i in range(6):
            for j in range(4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2
            for j in range(4):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] + 1

    for name in ("compute_inline", "reverse_compute_inline"):
        sch = tir.Schedule(before)
        left, gone = ("C", "B") if name == "compute_inline" else ("B", "C")
        getattr(sch, name)(gone)
        sch.fuse(*sch.get_loops(left))
        assert_same_meaning(before, sch.mod)


def test_symbolic_extents():
    @T.prim_func
    def before(a: T.handle, c: T.handle, n: T.int64) -> None:
        A = T.match_buffer(a, (n, T.int64(4)), "float16")
        B = T.alloc_buffer((n, T.int64(4)), "float16")
        C = T.match_buffer(c, (T.int64(4), n), "float16")
        for i, j in T.grid(n, T.int64(4)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float16(2)
        for j, i in T.grid(T.int64(4), n):
            with T.block("C"):
                vj, vi = T.axis.remap("SS", [j, i])
                C[vj, vi] = B[vi, vj] + T.float16(1)

    for name, block in (("compute_inline", "B"), ("reverse_compute_inline", "C")):
        sch = tir.Schedule(before)
        getattr(sch, name)(block)
        assert "T.where" not in sch.mod.script()
        for n in (0, 1, 9):
            assert_same_meaning(before, sch.mod, {"n": n})


@pytest.mark.parametrize("order", ["BC", "CB"])
def test_inlining_after_splits_and_fusions(order):
    for name in order:
        sch = tir.Schedule(elementwise_chain)
        outer, inner = sch.split(sch.get_loops("C")[1], [None, 5])
        sch.split(sch.get_loops("B")[0], [3, None])
        sch.fuse(*sch.get_loops("D"))
        sch.reorder(inner, outer)
        sch.compute_inline(name)
        assert_same_meaning(elementwise_chain, sch.mod)


REFUSALS = [
    (elementwise_chain, "compute_inline", "D", errors.OutputBlockError, "D is an output block"),
    (matmul, "compute_inline", "C", inline.HasInitError, "block C has an init"),
    (matmul, "reverse_compute_inline", "C", inline.HasInitError, "block C has an init"),
    (two_outputs, "compute_inline", "B", inline.SingleBufferError, r"writes 2 regions \(B, X\)"),
    (matched, "compute_inline", "B", inline.OpaqueAccessError, "B is used by C in another way"),
    (
        two_readers,
        "reverse_compute_inline",
        "C",
        reverse.SingleProducerError,
        "read by block D too",
    ),
    (elementwise_chain, "reverse_compute_inline", "B", inline.SingleBufferError, "reads 0 buffers"),
    (two_outputs, "reverse_compute_inline", "C", inline.SingleBufferError, r"reads 2 .* \(B, X\)"),
    (opaque_call, "compute_inline", "B", surgery.ImpureValueError, "calls tir.call_extern"),
    (matmul, "compute_inline", "root", errors.RootBlockError, "block root is the root block"),
]


@pytest.mark.parametrize(("program", "method", "block", "error", "message"), REFUSALS)
def test_refusals(program, method, block, error, message):
    sch = tir.Schedule(program)
    text = sch.mod.script()
    with pytest.raises(error, match=message) as raised:
        getattr(sch, method)(block)
    assert len(str(raised.value).splitlines()) <= 10
    assert sch.mod.script() == text


@T.prim_func
def one_of_many(a: T.handle, c: T.handle) -> None:
    """C reads the element 0 of each row alone."""
    A = T.match_buffer(a, (6, 4), "int32")
    B = T.alloc_buffer((6, 4), "int32")
    C = T.match_buffer(c, (6,), "int32")
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi, 0]


@T.prim_func
def every_second(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (12,), "int32")
    B = T.alloc_buffer((12,), "int32")
    C = T.match_buffer(c, (6,), "int32")
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi] + 1
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi * 2]


@T.prim_func
def first_half(a: T.handle, c: T.handle) -> None:
    """C runs over half of its declared domain."""
    A = T.match_buffer(a, (8,), "int32")
    B = T.alloc_buffer((8,), "int32")
    C = T.match_buffer(c, (8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def rewritten(a: T.handle, c: T.handle) -> None:
    """Each iteration makes all of X and B anew, and takes one row."""
    A = T.match_buffer(a, (3, 3, 4), "int32")
    X = T.alloc_buffer((3, 4), "int32")
    B = T.alloc_buffer((3, 4), "int32")
    C = T.match_buffer(c, (3, 4), "int32")
    for i in range(3):
        for r, j in T.grid(3, 4):
            with T.block("X"):
                vi, vr, vj = T.axis.remap("SSS", [i, r, j])
                X[vr, vj] = A[vi, vr, vj]
        for r, j in T.grid(3, 4):
            with T.block("B"):
                vr, vj = T.axis.remap("SS", [r, j])
                B[vr, vj] = X[vr, vj] * 2
        for j in range(4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]


HARD = [padded, one_of_many, every_second, first_half, rewritten, sliced]
REFUSED = {
    padded: reverse.NotCoveredError,
    every_second: inline.InlineBodyError,
    rewritten: reverse.UnclearInstancesError,
}


@pytest.mark.parametrize("program", HARD)
def test_producers_of_hard_programs(program):
    sch = tir.Schedule(program)
    sch.compute_inline("B")
    assert_same_meaning(program, sch.mod)


@pytest.mark.parametrize("program", [item for item in HARD if item not in REFUSED])
def test_consumers_of_hard_programs(program):
    """With TVM's conditions alone some of these give another result."""
    sch = tir.Schedule(program)
    sch.reverse_compute_inline("C")
    assert_same_meaning(program, sch.mod)


@pytest.mark.parametrize("program", list(REFUSED))
def test_consumers_that_stay(program):
    sch = tir.Schedule(program)
    with pytest.raises(REFUSED[program]) as raised:
        sch.reverse_compute_inline("C")
    assert len(str(raised.value).splitlines()) <= 10


@T.prim_func
def producer_in_a_block(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 8), "int32")
    B = T.alloc_buffer((16, 8), "int32")
    C = T.match_buffer(c, (13, 8), "int32")
    for io, jo in T.grid(4, 2):
        with T.block("K"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            T.reads(A[vio * 4 : vio * 4 + 4, vjo * 4 : vjo * 4 + 4])
            T.writes(B[vio * 4 : vio * 4 + 4, vjo * 4 : vjo * 4 + 4])
            for ii, ji in T.grid(4, 4):
                with T.block("B"):
                    vii, vji = T.axis.remap("SS", [ii, ji])
                    B[vio * 4 + vii, vjo * 4 + vji] = A[vio * 4 + vii, vjo * 4 + vji] * 2
    for i, j in T.grid(13, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1


@T.prim_func
def consumer_in_a_block(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 8), "int32")
    B = T.alloc_buffer((16, 8), "int32")
    C = T.match_buffer(c, (16, 8), "int32")
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
    for io, jo in T.grid(4, 2):
        with T.block("K"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            T.reads(B[vio * 4 : vio * 4 + 4, vjo * 4 : vjo * 4 + 4])
            T.writes(C[vio * 4 : vio * 4 + 4, vjo * 4 : vjo * 4 + 4])
            for ii, ji in T.grid(4, 4):
                with T.block("C"):
                    vii, vji = T.axis.remap("SS", [ii, ji])
                    C[vio * 4 + vii, vjo * 4 + vji] = B[vio * 4 + vii, vjo * 4 + vji] * 2


def test_a_consumer_dissolves_into_a_block_inside_a_block():
    sch = tir.Schedule(producer_in_a_block)
    inner, outer = sch.get_block("B"), sch.get_block("K")
    sch.reverse_compute_inline("C")
    assert "T.where(vio * 4 + ii < 13)" in sch.mod.script()
    assert [region.buffer.name for region in sch.get(outer).writes] == ["C"]
    assert [region.buffer.name for region in sch.get(inner).writes] == ["C"]
    assert_same_meaning(producer_in_a_block, sch.mod)


def test_a_producer_dissolves_into_a_block_inside_a_block():
    sch = tir.Schedule(consumer_in_a_block)
    inner, outer = sch.get_block("C"), sch.get_block("K")
    sch.compute_inline("B")
    assert [region.buffer.name for region in sch.get(outer).reads] == ["A"]
    assert [region.buffer.name for region in sch.get(inner).reads] == ["A"]
    assert_same_meaning(consumer_in_a_block, sch.mod)


@pytest.mark.parametrize(
    ("program", "method", "block", "loop"),
    [
        (producer_in_a_block, "reverse_compute_at", "C", ("K", 1)),
        (producer_in_a_block, "compute_at", "K", ("C", 0)),
        (consumer_in_a_block, "compute_at", "B", ("K", 0)),
        (consumer_in_a_block, "reverse_compute_at", "K", ("B", 0)),
    ],
)
def test_moves_of_blocks_with_blocks_inside(program, method, block, loop):
    sch = tir.Schedule(program)
    target = sch.get_loops(loop[0])[loop[1]]
    if block == "K" and method == "reverse_compute_at":
        target, _ = sch.split(target, [None, 4])
    getattr(sch, method)(block, target)
    assert_same_meaning(program, sch.mod)
