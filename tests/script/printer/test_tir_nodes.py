"""One row for each construct of TensorIR: node and text, as TVM 0.20 prints it."""

import numpy as np
import pytest

import weft.script.printer  # noqa: F401 - fills the slot
from weft.ir.expr import FloatImm, IntImm, Range, StringImm
from weft.ir.structural import assert_structural_equal
from weft.ir.type import PointerType, PrimType
from weft.runtime.ndarray import array
from weft.script.parser.entry import from_source
from weft.tir import op
from weft.tir.buffer import BufferRegion, decl_buffer
from weft.tir.expr import (
    EQ,
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    CommReducer,
    Div,
    FloorDiv,
    IterVar,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    Sub,
    Var,
)
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    SeqStmt,
    While,
)

a, b, i, j, n = (Var(name, "int32") for name in "abijn")
x, y = Var("x", "float32"), Var("y", "float32")
p = Var("p", "bool")
A = decl_buffer((128, 128), "float16", name="A")
F = decl_buffer((128, 128), "float32", name="F")


def int32(value):
    return IntImm("int32", value)


FOUR = Broadcast(x, int32(4))
LANES = Ramp(int32(0), int32(1), int32(4))
THREAD = IterVar(None, Var("t", "int32"), 1, "threadIdx.x")

EXPRESSIONS = [
    (a + b, "a + b"),
    (a - b, "a - b"),
    (a * b, "a * b"),
    (a // b, "a // b"),
    (a % b, "a % b"),
    (x / y, "x / y"),
    (Div(a, b), "T.Div(a, b)"),
    (Mod(a, b), "T.truncmod(a, b)"),
    (Min(a, b), "T.min(a, b)"),
    (Max(a, b), "T.max(a, b)"),
    (a < b, "a < b"),
    (a <= b, "a <= b"),
    (a > b, "a > b"),
    (a >= b, "a >= b"),
    (EQ(a, b), "a == b"),
    (op.less_equal(1, a), "1 <= a"),
    (op.equal(1, a), "1 == a"),
    (op.subtract(1, a), "1 - a"),
    (a != b, "a != b"),
    (And(a < b, a < 3), "a < b and a < 3"),
    (op.logical_or(p, a < 3), "p or a < 3"),
    (Not(p), "not p"),
    (Not(And(p, p)), "not (p and p)"),
    ((a + b) * 2, "(a + b) * 2"),
    (a + b * 2, "a + b * 2"),
    (a - (b - 1), "a - (b - 1)"),
    (a - b - 1, "a - b - 1"),
    (a * -1, "a * -1"),
    (EQ(EQ(a, b), p), "(a == b) == p"),
    (Not(EQ(a, b)), "not a == b"),
    (EQ(Not(p), p), "(not p) == p"),
    # what an operator would fold or promote is spelled out
    (Add(int32(1), int32(2)), "T.Add(1, 2)"),
    (Add(a, int32(0)), "T.Add(a, 0)"),
    (Sub(a, int32(0)), "T.Sub(a, 0)"),
    (Mul(a, int32(1)), "T.Mul(a, 1)"),
    (FloorDiv(a, int32(0)), "T.FloorDiv(a, 0)"),
    (Min(a, a), "T.Min(a, a)"),
    (And(p, IntImm("bool", 1)), "T.And(p, T.bool(True))"),
    (Not(IntImm("bool", 1)), "T.Not(T.bool(True))"),
    # constants
    (int32(-3), "-3"),
    (IntImm("int64", 3), "T.int64(3)"),
    (IntImm("uint8", 3), "T.uint8(3)"),
    (IntImm("bool", 1), "T.bool(True)"),
    (FloatImm("float32", 1), "T.float32(1.0)"),
    (FloatImm("float64", 0.1), "T.float64(0.1)"),
    (FloatImm("float32", 0.1), "T.float32(0.10000000149011612)"),
    (FloatImm("float32", float("inf")), 'T.float32("inf")'),
    (FloatImm("float32", float("-inf")), 'T.float32("-inf")'),
    (FloatImm("float16", float("nan")), 'T.float16("nan")'),
    (FloatImm("float32", -0.0), "T.float32(-0.0)"),
    (FloatImm("bfloat16", 2.5), "T.bfloat16(2.5)"),
    (StringImm('say "hi"\n'), '"say \\"hi\\"\\n"'),
    # the rest
    (Cast("float64", x), 'T.Cast("float64", x)'),
    (Select(p, a, b), "T.Select(p, a, b)"),
    (op.if_then_else(p, a, b), "T.if_then_else(p, a, b)"),
    (Ramp(a, int32(1), int32(4)), "T.Ramp(a, 1, 4)"),
    (Broadcast(x, int32(4)), "T.Broadcast(x, 4)"),
    (Shuffle([Broadcast(a, int32(4))], [int32(1)]), "T.Shuffle([T.Broadcast(a, 4)], [1])"),
    (Let(a, int32(1), a + 1), "T.Let(a + 1, where={a: 1})"),
    (op.exp(x), "T.exp(x)"),
    (op.pow(x, y), "T.pow(x, y)"),
    (op.abs(x), "T.abs(x)"),
    (op.bitwise_and(a, b), "T.bitwise_and(a, b)"),
    (op.shift_left(a, b), "T.shift_left(a, b)"),
    (op.likely(p), "T.likely(p)"),
    (op.reinterpret("int32", x), 'T.reinterpret("int32", x)'),
    (op.call_extern("int32", "f", a), 'T.call_extern("int32", "f", a)'),
    (op.call_pure_extern("float32", "f", a), 'T.call_pure_extern("float32", "f", a)'),
    (op.call_packed("f", a), 'T.call_packed("f", a)'),
    (
        op.call_llvm_intrin("int32x4", "llvm.donothing", IntImm("uint32", 0)),
        'T.call_llvm_intrin("int32x4", "llvm.donothing", T.uint32(0))',
    ),
    (op.ret(a), "T.ret(a)"),
    (op.undef(), "T.undef()"),
    (op.type_annotation("float32"), 'T.type_annotation("float32")'),
    (op.vectorlow("float32x2", FOUR), 'T.vectorlow("float32x2", T.Broadcast(x, 4))'),
    (Call("int32", "tir.exp", [x]), 'T.Call("int32", "tir.exp", [x])'),
    (A[1, i], "A[1, i]"),
    (F[i, Ramp(j, int32(1), int32(4))], "F[i, j:j + 4]"),
    (F[i, Ramp(int32(0), int32(2), int32(4))], "F[i, 0:8:2]"),
    (F[i, Ramp(j, int32(-1), int32(4))], "F[i, T.Ramp(j, -1, 4)]"),
    (F[i, Ramp(j, n, int32(4))], "F[i, T.Ramp(j, n, 4)]"),
]  # fmt: skip


@pytest.mark.parametrize(("node", "expected"), EXPRESSIONS, ids=[row[1] for row in EXPRESSIONS])
def test_expression(node, expected):
    assert node.script() == expected
    assert_comes_back(Evaluate(node))


def assert_comes_back(body):
    """The law: what prints parses to a structurally equal program."""
    func = PrimFunc([], body, attrs={"global_symbol": "main"})
    parsed = from_source(func.script(show_meta=True), check_well_formed=False)
    assert_structural_equal(parsed, func, map_free_vars=True)


def test_free_variables_are_declared_when_verbose():
    node = Let(a, IntImm("int32", 1), a + SizeVar("m", "int64").astype("int32"))
    assert node.script(verbose_expr=True) == (
        'a = T.int32()\nm = T.int64(is_size_var=True)\nT.Let(a + T.Cast("int32", m), where={a: 1})'
    )


def test_reduce_prints_combiner_and_axes():
    u, v = Var("u", "float32"), Var("v", "float32")
    reducer = CommReducer([u], [v], [u + v], [FloatImm("float32", 0)])
    k = IterVar(Range(0, 8), Var("k", "int32"), IterVar.CommReduce)
    node = Reduce(reducer, [x], [k], IntImm("bool", 1), 0, [])
    assert node.script() == (
        "T.reduce(T.comm_reducer(lambda u, v: u + v, [T.float32(0.0)]), source=[x], init=[], "
        'axis=[T.iter_var(k, T.Range(0, 8), "CommReduce", "")], condition=T.bool(True), '
        "value_index=0)"
    )


HANDLE = Var("v", PointerType(PrimType("float32"), "global"))
ON_V = decl_buffer((10, 10), "float32", name="buffer", data=HANDLE)
ZERO = Evaluate(0)
PAIR = (Evaluate(1), Evaluate(2))

STATEMENTS = [
    (Evaluate(0), "T.evaluate(0)"),
    (Evaluate(op.call_extern("int32", "f")), 'T.call_extern("int32", "f")'),
    (BufferStore(A, A[1, 2] + FloatImm("float16", 1), [1, 2]),
     'A = T.Buffer((128, 128), "float16")\nA[1, 2] = A[1, 2] + T.float16(1.0)'),
    (BufferStore(F, Broadcast(FloatImm("float32", 1), int32(4)), [1, LANES],
                 Broadcast(IntImm("bool", 1), int32(4))),
     "F = T.Buffer((128, 128))\n"
     "F.vstore([1, T.Ramp(0, 1, 4)], T.Broadcast(T.float32(1.0), 4), "
     "predicate=T.Broadcast(T.bool(True), 4))"),
    (SeqStmt(PAIR), "T.evaluate(1)\nT.evaluate(2)"),
    (For(i, 0, 10, ForKind.SERIAL, ZERO), "for i in range(10):\n    T.evaluate(0)"),
    (For(i, 2, 8, ForKind.SERIAL, ZERO), "for i in range(2, 10):\n    T.evaluate(0)"),
    (For(i, n, 4, ForKind.SERIAL, ZERO),
     "n = T.int32()\nfor i in range(n, n + 4):\n    T.evaluate(0)"),
    (For(i, 0, 10, ForKind.PARALLEL, ZERO), "for i in T.parallel(10):\n    T.evaluate(0)"),
    (For(i, 0, 10, ForKind.VECTORIZED, ZERO), "for i in T.vectorized(10):\n    T.evaluate(0)"),
    (For(i, 0, 10, ForKind.UNROLLED, ZERO), "for i in T.unroll(10):\n    T.evaluate(0)"),
    (For(i, 0, 10, ForKind.THREAD_BINDING, ZERO, THREAD),
     'for i in T.thread_binding(10, thread="threadIdx.x"):\n    T.evaluate(0)'),
    (For(i, 0, 10, ForKind.SERIAL, ZERO, None, {"k": 1, "s": "x"}),
     'for i in T.serial(10, annotations={"k": 1, "s": "x"}):\n    T.evaluate(0)'),
    (For(i, 0, IntImm("int64", 4), ForKind.SERIAL, ZERO).with_(loop_var=Var("i", "int64")),
     "for i in range(T.int64(4)):\n    T.evaluate(0)"),
    (For(i, 0, 8, ForKind.SERIAL, For(j, 0, 4, ForKind.SERIAL, ZERO)),
     "for i, j in T.grid(8, 4):\n    T.evaluate(0)"),
    (For(i, 0, 8, ForKind.SERIAL, For(j, 0, i, ForKind.SERIAL, ZERO)),
     "for i in range(8):\n    for j in range(i):\n        T.evaluate(0)"),
    (While(n < 10, ZERO), "n = T.int32()\nwhile n < 10:\n    T.evaluate(0)"),
    (IfThenElse(n < 10, ZERO), "n = T.int32()\nif n < 10:\n    T.evaluate(0)"),
    (IfThenElse(p, ZERO, SeqStmt(PAIR)),
     "p = T.bool()\nif p:\n    T.evaluate(0)\nelse:\n    T.evaluate(1)\n    T.evaluate(2)"),
    (LetStmt(x, FloatImm("float32", 10), ZERO),
     "with T.LetStmt(T.float32(10.0)) as x:\n    T.evaluate(0)"),
    (AttrStmt("pragma", "unroll", 1, ZERO),
     'with T.attr("pragma", "unroll", 1):\n    T.evaluate(0)'),
    (AssertStmt(IntImm("bool", 1), StringImm("message"), ZERO),
     'with T.Assert(T.bool(True), "message"):\n    T.evaluate(0)'),
    (Allocate(HANDLE, "float32", [128, 128], IntImm("bool", 1), ZERO),
     'with T.allocate([128, 128], "float32", "global") as v:\n    T.evaluate(0)'),
    (Allocate(HANDLE, "float32", [10, 10], IntImm("bool", 1), DeclBuffer(ON_V, Evaluate(HANDLE))),
     "with T.decl_buffer((10, 10)) as buffer:\n    T.evaluate(buffer.data)"),
    (Allocate(HANDLE, "float32", [10, 20], IntImm("bool", 1), DeclBuffer(ON_V, ZERO)),
     'with T.allocate([10, 20], "float32", "global") as v:\n'
     "    buffer = T.decl_buffer((10, 10), data=v)\n    T.evaluate(0)"),
    (DeclBuffer(ON_V, ZERO),
     'v = T.handle("float32", "global")\n'
     "with T.decl_buffer((10, 10), data=v) as buffer:\n    T.evaluate(0)"),
    (AllocateConst(Var("c", PointerType(PrimType("int32"), "global")), "int32", [3],
                   array(np.array([1, 2, 3], "int32")), ZERO),
     'with T.allocate_const([1, 2, 3], "int32", [3]) as c:\n    T.evaluate(0)'),
    (SeqStmt([LetStmt(x, FloatImm("float32", 10), ZERO), LetStmt(y, FloatImm("float32", 1), ZERO)]),
     "with T.LetStmt(T.float32(10.0)) as x:\n    T.evaluate(0)\n"
     "y: T.float32 = T.float32(1.0)\nT.evaluate(0)"),
]  # fmt: skip


@pytest.mark.parametrize(("node", "expected"), STATEMENTS, ids=[row[1][:40] for row in STATEMENTS])
def test_statement(node, expected):
    assert node.script() == expected
    assert_comes_back(node)


def test_a_buffer_prints_its_declaration():
    assert A.script() == 'A = T.Buffer((128, 128), "float16")\nA'


def test_a_region_prints_slices():
    region = BufferRegion(F, [Range(64, 128), Range.from_min_extent(3, 1)])
    assert region.script() == "F = T.Buffer((128, 128))\nF[64:128, 3]"


def test_a_region_whose_slice_says_another_extent_spells_its_ranges():
    odd = Range.from_min_extent(i + n, Add(int32(2), int32(2)))
    region = BufferRegion(F, [odd, Range.from_min_extent(0, 1)])
    text = "T.BufferRegion(F, [T.Range.from_min_extent(i + n, T.Add(2, 2)), T.Range(0, 1)])"
    assert text not in region.script()
    assert "F[i + n:i + n + T.Add(2, 2), 0]" in region.script()


def test_match_buffer_region():
    target = decl_buffer((64, 64), "float32", name="target")
    match = MatchBufferRegion(target, BufferRegion(F, [Range(64, 128), Range(64, 128)]))
    assert match.script() == (
        "F = T.Buffer((128, 128))\ntarget = T.match_buffer(F[64:128, 64:128], (64, 64))"
    )


def test_block_with_every_part():
    vi = IterVar(Range(0, 128), Var("vi", "int32"), 0)
    vk = IterVar(Range(4, 8), Var("vk", "int32"), 2)
    vo = IterVar(Range(0, 2), Var("vo", "int32"), 4)
    extra = decl_buffer((4,), "int8", name="extra", scope="shared")
    block = Block(
        [vi, vk, vo], [], [BufferRegion(F, [Range(0, 128), Range(0, 128)])], "block", ZERO,
        Evaluate(1), [extra], [], {"script_parsing_detect_access": 0},
    )  # fmt: skip
    assert (
        BlockRealize([i, j, a + 1], n < 3, block).script()
        == """\
i = T.int32()
j = T.int32()
a = T.int32()
n = T.int32()
F = T.Buffer((128, 128))
with T.block("block"):
    vi = T.axis.spatial(128, i)
    vk = T.axis.reduce((4, 8), j)
    vo = T.axis.opaque(2, a + 1)
    T.where(n < 3)
    T.reads()
    T.writes(F[0:128, 0:128])
    T.block_attr({"script_parsing_detect_access": 0})
    extra = T.alloc_buffer((4,), "int8", scope="shared")
    with T.init():
        T.evaluate(1)
    T.evaluate(0)"""
    )
    assert 'with T.block("block", no_realize=True):' in block.script()


def test_names_are_made_unique_and_freed():
    first, second = Var("i", "int32"), Var("i", "int32")
    keyword, odd = Var("for", "int32"), Var("blockIdx.x", "int32")
    inner = For(second, 0, first, ForKind.PARALLEL, Evaluate(first + second))
    nest = For(first, 0, 4, ForKind.SERIAL, inner)
    again = For(Var("i", "int32"), 0, 4, ForKind.SERIAL, Evaluate(keyword + odd))
    assert (
        SeqStmt([nest, again]).script()
        == """\
for_ = T.int32()
blockIdx_x = T.int32()
for i in range(4):
    for i_1 in T.parallel(i):
        T.evaluate(i + i_1)
for i in range(4):
    T.evaluate(for_ + blockIdx_x)"""
    )


def test_symbolic_parameters_print_match_buffer():
    size = Var("n", "int32")
    handle, m = Var("var_A", "handle"), SizeVar("m", "int64")
    buffer = decl_buffer((size, 4), "int32", name="A")
    func = PrimFunc([handle, m], BufferStore(buffer, size, [0, 0]), None, {handle: buffer},
                    {"global_symbol": "f"})  # fmt: skip
    assert (
        func.script()
        == """\
# from tvm.script import tir as T

@T.prim_func
def f(var_A: T.handle, m: T.int64(is_size_var=True)):
    n = T.int32()
    A = T.match_buffer(var_A, (n, 4), "int32")
    A[0, 0] = n"""
    )


def test_match_buffer_defines_strides_and_offset():
    handle = Var("a", "handle")
    strides = [Var("s0", "int32"), Var("s1", "int32")]
    buffer = decl_buffer((8, 8), "float32", name="A", strides=strides,
                         offset_factor=8)  # fmt: skip
    body = Evaluate(buffer.strides[0] + buffer.elem_offset)
    func = PrimFunc([handle], body, None, {handle: buffer})
    assert (
        func.script()
        == """\
# from tvm.script import tir as T

@T.prim_func(private=True)
def main(a: T.handle):
    A = T.match_buffer(a, (8, 8), strides=("s0", "s1"), offset_factor=8)
    T.evaluate(A.strides[0] + A.elem_offset)"""
    )


def test_a_handle_that_the_body_uses_keeps_its_name():
    handle = Var("a", "handle")
    func = PrimFunc([handle], Evaluate(op.isnullptr(handle)), None, {handle: F})
    assert (
        func.script()
        == """\
# from tvm.script import tir as T

@T.prim_func(private=True)
def main(a: T.handle):
    F = T.match_buffer(a, (128, 128))
    T.isnullptr(a)"""
    )
    assert_structural_equal(from_source(func.script()), func)


def test_return_type_scalar_parameters_and_pointers():
    pointer = Var("ptr", PointerType(PrimType("float32"), "shared"))
    func = PrimFunc([n, pointer], Evaluate(op.ret(n)), PrimType("int32"))
    assert (
        func.script()
        == """\
# from tvm.script import tir as T

@T.prim_func(private=True)
def main(n: T.int32, ptr: T.handle("float32", "shared")) -> T.int32:
    return n"""
    )


def test_global_symbol_prints_only_if_it_is_not_the_name():
    func = PrimFunc([], ZERO, attrs={"global_symbol": "f", "tir.noalias": True})
    assert 'T.func_attr({"tir.noalias": T.bool(True)})' in func.script()
    assert 'T.func_attr({"global_symbol": "f", "tir.noalias": T.bool(True)})' in func.script(
        name="g"
    )


def test_blocks_without_a_root_block_stay_so():
    block = Block([IterVar(Range(0, 8), Var("vi", "int32"), 0)], [], [], "b", ZERO)
    body = For(i, 0, 8, ForKind.SERIAL, BlockRealize([i], IntImm("bool", 1), block))
    func = PrimFunc([], body)
    assert "@T.prim_func(private=True, s_tir=False)" in func.script()
    assert_comes_back(body)
    assert_comes_back(BlockRealize([a], IntImm("bool", 1), block))


def test_launch_thread():
    thread = IterVar(Range(0, 32), Var("tx", "int32"), 1, "threadIdx.x")
    node = AttrStmt(thread, "thread_extent", IntImm("int32", 32), Evaluate(thread.var))
    assert node.script() == ('with T.launch_thread("threadIdx.x", 32) as tx:\n    T.evaluate(tx)')
