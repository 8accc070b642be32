"""unsafe_hide_buffer_access and annotate_buffer_access."""

import json

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import Trace, errors
from weft.tir.schedule.primitive.buffer import buffer_access


def names(regions):
    return [region.buffer.name for region in regions]


def test_hidden_accesses():
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    assert names(sch.get(block).reads) == ["A", "B"]
    sch.unsafe_hide_buffer_access(block, "read", [0])
    assert names(sch.get(block).reads) == ["B"]
    sch.unsafe_hide_buffer_access(block, "write", [0])
    assert names(sch.get(block).writes) == []
    assert_same_meaning(matmul, sch.mod)


def test_several_accesses_are_hidden():
    sch = tir.Schedule(matmul)
    sch.unsafe_hide_buffer_access("C", "read", (1, 0))
    assert names(sch.get(sch.get_block("C")).reads) == []


def test_hidden_accesses_are_no_dependence():
    sch = tir.Schedule(elementwise_chain)
    sch.unsafe_hide_buffer_access("C", "read", [0])
    assert sch.get_producers("C") == []


def test_annotated_reads():
    @T.prim_func
    def expected(a: T.handle, d: T.handle) -> None:
        A = T.match_buffer(a, (16, 12))
        B = T.alloc_buffer((16, 12))
        C = T.alloc_buffer((16, 12))
        D = T.match_buffer(d, (16, 12))
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi - 1 : vi + 2, vj])
                T.writes(B[vi, vj])
                T.block_attr({"explicit_read_region": [0]})
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
    sch.annotate_buffer_access("B", 0, "read", lambda vi, vj: ((vi - 1, vi + 2), vj))
    assert_structural_equal(sch.mod["main"].body, expected.body)
    assert_same_meaning(elementwise_chain, sch.mod)


def test_annotated_writes():
    sch = tir.Schedule(elementwise_chain)
    sch.annotate_buffer_access("C", 0, "write", lambda vi, vj: [(vi, vi + 2), (0, 12)])
    text = sch.mod.script()
    assert "T.writes(C[vi:vi + 2, 0:12])" in text
    assert '"explicit_write_region": [0]' in text


def test_a_second_annotation_replaces_the_first():
    sch = tir.Schedule(matmul)
    for width in (2, 3):
        sch.annotate_buffer_access("C", 1, "read", lambda i, j, k, w=width: [(k, k + w), (0, 24)])
    sch.annotate_buffer_access("C", 0, "read", lambda i, j, k: [i, (0, 20)])
    text = sch.mod.script()
    assert "T.reads(A[vi, 0:20], B[vk:vk + 3, 0:24])" in text
    assert '"explicit_read_region": [1, 0]' in text


def test_the_trace_has_pairs():
    sch = tir.Schedule(elementwise_chain)
    sch.annotate_buffer_access("B", 0, "read", lambda x, y: ((x - 1, x + 2), y))
    assert (
        "gen_new_ranges=lambda vi, vj: [(vi - 1, vi + 2), (vj, vj + 1)])"
        in sch.trace.as_python()[-1]
    )


def test_numbers_for_kinds_as_tvm_writes_them():
    sch = tir.Schedule(elementwise_chain)
    sch.annotate_buffer_access("C", 0, "write", lambda x, y: (x, y))
    text = json.dumps(sch.trace.as_json()).replace('"\\"write\\""', "1")
    made = tir.Schedule(elementwise_chain)
    Trace.apply_json_to_schedule(json.loads(text), made)
    assert_structural_equal(made.mod, sch.mod)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda s: s.unsafe_hide_buffer_access("C", "both", [0]),
            buffer_access.AccessKindError,
            "got 'both'",
        ),
        (
            lambda s: s.unsafe_hide_buffer_access("C", "read", [2]),
            buffer_access.AccessIndexError,
            "block C reads 2 buffers, got place 2",
        ),
        (
            lambda s: s.unsafe_hide_buffer_access("C", "write", [-1]),
            buffer_access.AccessIndexError,
            "writes 1 buffers, got place -1",
        ),
        (lambda s: s.unsafe_hide_buffer_access("C", "read", 0), weft.TVMError, "a list of ints"),
        (
            lambda s: s.annotate_buffer_access("C", 0, "none", lambda i, j, k: (i, k)),
            buffer_access.AccessKindError,
            "got 'none'",
        ),
        (
            lambda s: s.annotate_buffer_access("C", 2, "read", lambda i, j, k: (i, k)),
            errors.BufferIndexError,
            "index 2",
        ),
        (
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda i, j, k: (i,)),
            buffer_access.AccessRegionError,
            "A has 2 axes, got 1 ranges",
        ),
        (
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda i, j, k: (i, j, k)),
            buffer_access.AccessRegionError,
            "got 3 ranges",
        ),
        (
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda i, j, k: (i, (k, k, k))),
            weft.TVMError,
            "got 3 items",
        ),
        (
            lambda s: s.annotate_buffer_access("C", 0, "read", lambda i, j, k: (i + 1, k)),
            buffer_access.AccessRegionError,
            r"reads A at vi, which is not in vi \+ 1 to",
        ),
        (
            lambda s: s.annotate_buffer_access("C", 0, "write", lambda i, j, k: (i, (0, j))),
            buffer_access.AccessRegionError,
            "writes C at vj, which is not in 0 to vj",
        ),
        (lambda s: s.annotate_buffer_access("C", 0, "read", 3), weft.TVMError, "expected a func"),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(matmul)
    with pytest.raises(error, match=message) as raised:
        call(sch)
    assert len(str(raised.value).splitlines()) <= 10
