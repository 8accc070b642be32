"""Blocks of scripts: axes in every form, what stands where, regions and the root by themselves."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.round_trip import assert_round_trip
from tests.lib.script_errors import error_of
from weft.ir.functor import collect
from weft.ir.structural import assert_structural_equal
from weft.script import from_source
from weft.tir.expr import IterVar
from weft.tir.stmt import Block, BlockRealize, For, ForKind

HEAD = "@T.prim_func(check_well_formed=False)\ndef f(A: T.Buffer((8, 8), 'float32'), n: T.int32, " \
       "m: T.int64):\n    for i, k in T.grid(8, 8):\n        with T.block('b'):\n"  # fmt: skip


def realize(*lines):
    """The realize of block b with these lines before a store."""
    func = parse(*lines)
    return next(r for r in collect(func.body, BlockRealize) if r.block.name_hint == "b")


def parse(*lines):
    body = [f"            {line}\n" for line in (*lines, "A[0, 0] = 1.0")]
    func = from_source(HEAD + "".join(body))
    assert_round_trip(func)
    return func


# An axis as it is written: kind, first value, extent, type.
AXES = [
    ("T.axis.spatial(8, i)", "DataPar", 0, 8, "int32"),
    ("T.axis.S(8, i)", "DataPar", 0, 8, "int32"),
    ("T.axis.reduce(8, k)", "CommReduce", 0, 8, "int32"),
    ("T.axis.R(8, k)", "CommReduce", 0, 8, "int32"),
    ("T.axis.scan(8, i)", "Ordered", 0, 8, "int32"),
    ("T.axis.opaque(8, i)", "Opaque", 0, 8, "int32"),
    ("T.axis.spatial((2, 8), i + 2)", "DataPar", 2, 6, "int32"),
    ("T.axis.spatial([2, 8], i + 2)", "DataPar", 2, 6, "int32"),
    ("T.axis.spatial(T.Range(2, 8), i + 2)", "DataPar", 2, 6, "int32"),
    ("T.axis.spatial(T.Range.from_min_extent(1, 7), i)", "DataPar", 1, 7, "int32"),
    ("T.axis.spatial(T.int64(8), i)", "DataPar", 0, 8, "int64"),
    ("T.axis.spatial(8, i, dtype='int64')", "DataPar", 0, 8, "int64"),
    ("T.axis.spatial(T.int64(8), i, dtype='int32')", "DataPar", 0, 8, "int64"),
    ("T.axis.spatial(8, i * 8 + k)", "DataPar", 0, 8, "int32"),
    ("T.axis.spatial(8, 0)", "DataPar", 0, 8, "int32"),
]


@pytest.mark.parametrize(
    ("text", "kind", "first", "extent", "dtype"), AXES, ids=[row[0] for row in AXES]
)
def test_an_axis(text, kind, first, extent, dtype):
    (axis,) = realize(f"v = {text}").block.iter_vars
    assert (axis.iter_type.name, int(axis.dom.min), int(axis.dom.extent)) == (kind, first, extent)
    assert (axis.var.name, axis.var.dtype) == ("v", dtype)


def test_the_extent_of_an_axis_may_be_a_variable():
    (axis,) = realize("v = T.axis.spatial(n, i)").block.iter_vars
    assert axis.dom.extent.name == "n"


def test_axes_of_several_loops_in_one_line():
    block = realize("vi, vk = T.axis.remap('SR', [i, k])").block
    assert [axis.iter_type for axis in block.iter_vars] == [IterVar.DataPar, IterVar.CommReduce]
    assert [axis.var.name for axis in block.iter_vars] == ["vi", "vk"]


def test_one_axis_in_one_line_is_itself():
    for left in ("v", "v,", "[v]"):
        (axis,) = realize(f"{left} = T.axis.remap('S', [i])").block.iter_vars
        assert axis.var.name == "v"


def test_a_remapped_axis_has_the_range_of_its_loop():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((64,), "float32")):
    for i in T.serial(2, 10):
        for j in T.parallel(T.int64(4)):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi] = T.float32(1)
""")
    axes = next(b for b in collect(func.body, Block) if b.name_hint == "b").iter_vars
    assert [(int(axis.dom.min), int(axis.dom.extent)) for axis in axes] == [(2, 8), (0, 4)]
    assert [axis.var.dtype for axis in axes] == ["int32", "int64"]
    assert_round_trip(func)


WRONG = [
    ("v = T.axis.spatial((1, 2, 3), i)", "T.axis: expected an extent or a pair, got (1, 2, 3)"),
    ("v = T.axis.spatial(8.5, i)", "T.axis: expected integers, got"),
    ("v = T.axis.remap('S', [i, k])", "T.axis.remap: 1 kinds ('S') for 2 loop variables"),
    ("v = T.axis.remap('SQ', [i, k])", "T.axis.remap: expected kinds S and R, got 'Q'"),
    ("v = T.axis.remap('S', [n])", "T.axis.remap: n is not a loop variable around the block"),
    ("v = T.axis.remap('S', [i + 1])", "T.axis.remap: expected loop variables, got Add: i + 1"),
    ("T.where(i < 4); T.where(i < 5)", "block 'b' has two T.where"),
    ("T.writes(A[0, 0]); T.writes(A[0, 0])", "block 'b' has two T.writes"),
    ("T.block_attr({'a': 1}); T.block_attr({'b': 1})", "block 'b' has two T.block_attr"),
    ("for j in range(3): T.reads(A[0, 0])", "T.reads must stand directly inside `with T.block("),
    ("for j in range(3): T.where(j < 2)", "T.where must stand directly inside `with T.block("),
    ("if n > 2: T.block_attr({'a': 1})", "T.block_attr must stand directly inside `with T.block("),
    ("if n > 2: v = T.axis.S(8, i)", "T.axis must stand directly inside `with T.block("),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_what_the_head_of_a_block_may_not_say(line, message):
    found, place = error_of(f"{HEAD}            {line}\n")
    assert found.startswith(message)
    assert place in line


def test_a_condition_becomes_a_truth_value():
    assert realize("T.where(n)").predicate.dtype == "bool"
    assert realize("T.where(i < n)").predicate.dtype == "bool"
    assert realize("v = T.axis.S(8, i)").predicate.value == 1


@pytest.mark.parametrize("statement", ["while n: T.evaluate(n)", "assert n, 'text'",
                                       "if n: T.evaluate(n)"])  # fmt: skip
def test_a_number_as_condition_of_a_statement_is_a_truth_value(statement):
    func = from_source(f"@T.prim_func\ndef f(n: T.int32):\n    {statement}\n")
    assert func.body.condition.dtype == "bool"
    assert_round_trip(func)


def test_numbers_as_conditions_run_as_in_python():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((2,), "int32"), n: T.Buffer((1,), "int32")):
    while n[0]:
        A[0] += 1
        n[0] -= 256
    assert n[0] + 512, "a number that is not 0 holds"
    A[1] = 7
""")
    A, n = np.zeros(2, "int32"), np.array([512], "int32")
    weft.build(func)(A, n)
    assert A.tolist() == [2, 7]


def test_two_initial_values_are_refused():
    init = "            with T.init():\n                A[0, 0] = 0.0\n"
    found, _ = error_of(HEAD + init + init)
    assert found == "block 'b' has two T.init"


def test_an_initial_value_belongs_to_the_block_around_it():
    found, _ = error_of(
        HEAD + "            for j in range(3):\n                with T.init():\n"
        "                    A[0, 0] = 0.0\n"
    )
    assert found == "T.init must stand directly inside `with T.block(...)`"


def test_a_block_by_itself_has_no_bindings():
    func = from_source("""
@T.prim_func(check_well_formed=False)
def f(A: T.Buffer((8,), "float32")):
    with T.block("b", no_realize=True):
        T.reads()
        T.writes()
        A[0] = T.float32(1)
""")
    assert isinstance(func.body, Block | BlockRealize)
    blocks = collect(func.body, Block)
    assert [block.name_hint for block in blocks if block.name_hint == "b"] == ["b"]
    assert_round_trip(func)
    found, _ = error_of("""
@T.prim_func(check_well_formed=False)
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b", no_realize=True):
            v = T.axis.spatial(8, i)
            A[v] = T.float32(1)
""")
    assert found == "block 'b' has no realize: its axes cannot be bound"


# ---- regions that are left out


def test_regions_that_are_left_out_are_those_of_the_body():
    block = realize("v = T.axis.S(8, i)", "A[v, 0:4] = A[v, 4:8]").block
    (read,), (write,) = block.reads, block.writes
    assert [(str(r.min), int(r.extent)) for r in read.region] == [("v", 1), ("4", 4)]
    assert write.buffer.name == "A"


def test_one_of_both_regions_may_be_left_out():
    block = realize("T.reads(A[0:8, 0:8])").block
    assert len(block.reads) == 1
    assert int(block.reads[0].region[0].extent) == 8
    assert len(block.writes) == 1
    block = realize("T.writes(A[0:8, 0:8])").block
    assert int(block.writes[0].region[0].extent) == 8
    assert not block.reads


def test_a_block_says_that_it_reads_nothing():
    block = realize("T.reads()", "T.writes()").block
    assert not block.reads
    assert not block.writes


def test_what_goes_through_a_pointer_has_regions_by_hand():
    body = "            T.evaluate(T.call_extern('int32', 'g', A.data))\n"
    found, _ = error_of(HEAD + body)
    assert found.startswith("block 'b' accesses A through a pointer: write T.reads and T.writes by")
    from_source(HEAD + "            T.reads(A[0, 0])\n            T.writes(A[0, 0])\n" + body)


def test_memory_of_the_block_is_none_of_its_regions():
    block = realize("B = T.alloc_buffer((4,))", "B[0] = 2.0", "T.evaluate(B[1])").block
    assert {region.buffer.name for region in (*block.reads, *block.writes)} == {"A"}


# ---- the root block


def test_the_root_is_added_around_blocks_and_memory_alone():
    plain = from_source("@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = 1.0\n")
    assert not isinstance(plain.body, BlockRealize)
    blocks = parse("v = T.axis.S(8, i)")
    assert blocks.body.block.name_hint == "root"


def test_a_block_without_axes_around_all_is_the_root():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    with T.block("mine"):
        for i in range(8):
            with T.block("b"):
                v = T.axis.spatial(8, i)
                A[v] = T.float32(1)
""")
    assert func.body.block.name_hint == "mine"
    assert not func.body.block.reads
    assert_round_trip(func)


def test_memory_outside_of_a_block_gets_a_root_of_its_own():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    with T.block("mine"):
        for i in range(8):
            with T.block("b"):
                v = T.axis.spatial(8, i)
                A[v] = B[v]
""")
    assert func.body.block.name_hint == "root"
    assert func.body.block.body.block.name_hint == "mine"
    assert_round_trip(func)


def test_a_lowered_function_gets_no_root():
    text = """
@T.prim_func{}
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            A[v] = T.float32(1)
"""
    assert isinstance(from_source(text.format("(s_tir=False)"), check_well_formed=False).body, For)
    assert isinstance(from_source(text.format("(s_tir=True)")).body, BlockRealize)
    assert isinstance(from_source(text.format("")).body, BlockRealize)


# ---- loops

LOOPS = [
    ("range(8)", 0, 8, ForKind.SERIAL), ("range(2, 8)", 2, 6, ForKind.SERIAL),
    ("range(0, 8, 1)", 0, 8, ForKind.SERIAL), ("T.serial(8)", 0, 8, ForKind.SERIAL),
    ("T.serial(2, 8)", 2, 6, ForKind.SERIAL), ("T.serial(2, stop=8)", 2, 6, ForKind.SERIAL),
    ("T.parallel(8)", 0, 8, ForKind.PARALLEL), ("T.parallel(2, 8)", 2, 6, ForKind.PARALLEL),
    ("T.vectorized(8)", 0, 8, ForKind.VECTORIZED), ("T.vectorized(4, 8)", 4, 4, ForKind.VECTORIZED),
    ("T.unroll(8)", 0, 8, ForKind.UNROLLED), ("T.unroll(1, 8)", 1, 7, ForKind.UNROLLED),
    ("T.thread_binding(8, 'threadIdx.x')", 0, 8, ForKind.THREAD_BINDING),
    ("T.thread_binding(0, 8, 'threadIdx.x')", 0, 8, ForKind.THREAD_BINDING),
    ("T.thread_binding(8, thread='blockIdx.y')", 0, 8, ForKind.THREAD_BINDING),
    ("T.grid(8)", 0, 8, ForKind.SERIAL),
    ("T.grid(T.Range(2, 8))", 2, 6, ForKind.SERIAL), ("range(-3, 3)", -3, 6, ForKind.SERIAL),
]  # fmt: skip


@pytest.mark.parametrize(("text", "first", "extent", "kind"), LOOPS, ids=[row[0] for row in LOOPS])
def test_a_loop(text, first, extent, kind):
    func = from_source(f"@T.prim_func\ndef f():\n    for i in {text}:\n        T.evaluate(i)\n")
    loop = func.body
    assert (int(loop.min), int(loop.extent), loop.kind) == (first, extent, kind)
    assert loop.loop_var.name == "i"
    assert_round_trip(func)


def test_bounds_of_two_types_are_of_the_wider():
    func = from_source(
        "@T.prim_func\ndef f(n: T.int32, m: T.int64):\n    for i in range(n, m):\n"
        "        T.evaluate(i)\n    for j in T.serial(m, n):\n        T.evaluate(j)\n"
    )
    assert {loop.loop_var.dtype for loop in func.body.seq} == {"int64"}


def test_a_grid_is_a_nest_of_serial_loops():
    nest = from_source(
        "@T.prim_func\ndef f(n: T.int32):\n    for i, j, k in T.grid(2, (1, n), 4):\n"
        "        T.evaluate(i + j + k)\n"
    )
    single = from_source(
        "@T.prim_func\ndef f(n: T.int32):\n    for i in range(2):\n        for j in range(1, n):\n"
        "            for k in range(4):\n                T.evaluate(i + j + k)\n"
    )
    assert_structural_equal(nest, single)
    listed = from_source(
        "@T.prim_func\ndef f(n: T.int32):\n    for i, j, k in T.grid([2, (1, n), 4]):\n"
        "        T.evaluate(i + j + k)\n"
    )
    assert_structural_equal(listed, single)


def test_annotations_of_loops_are_values_of_any_kind():
    func = from_source("""
@T.prim_func
def f():
    for i in T.parallel(4, annotations={"a": 1, "b": "x", "c": [1, 2], "d": T.float32(1)}):
        T.evaluate(i)
""")
    notes = func.body.annotations
    assert (notes["a"], notes["b"], list(notes["c"])) == (1, "x", [1, 2])
    assert notes["d"].dtype == "float32"
    assert_round_trip(func)


@pytest.mark.parametrize("loop", ["for i in range(3):", "while n > 3:"])
def test_a_loop_has_no_else(loop):
    found, place = error_of(
        f"@T.prim_func\ndef f(n: T.int32):\n    {loop}\n        T.evaluate(n)\n    else:\n"
        "        T.evaluate(7)\n"
    )
    assert found == "a TensorIR loop has no else branch"
    assert place == "T.evaluate(7)"
