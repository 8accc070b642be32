"""What each statement of a PrimFunc script builds."""
# ruff: noqa: F821, UP037 - scripts are no plain Python

from __future__ import annotations

import pytest

import weft.script
from tests.lib.round_trip import assert_round_trip
from weft import tir
from weft.ir.expr import GlobalVar, IntImm
from weft.ir.functor import collect
from weft.ir.structural import assert_structural_equal
from weft.ir.type import PointerType
from weft.script import ir as I
from weft.script import tir as T
from weft.tir import stmt as S
from weft.tir.buffer import BufferLoad
from weft.tir.expr import And, Call, Cast, Let, Ramp, Select, Var


def only(func, kind):
    found = collect(func.body, kind)
    assert len(found) == 1, found
    return found[0]


def test_comparisons_keep_their_sides_where_python_would_ask_the_right_one():
    @T.prim_func
    def func(a: T.handle):
        n = T.int64(is_size_var=True)
        A = T.match_buffer(a, (n,), "bool")
        for i in range(n):
            A[i] = i < n
        for i in range(n):
            A[i] = n > i

    kinds = [type(store.value).__name__ for store in collect(func.body, S.BufferStore)]
    assert kinds == ["LT", "GT"]
    assert_round_trip(func)


def test_loops_of_every_kind():
    @T.prim_func
    def func(A: T.Buffer((64,), "float32")):
        for i in range(2):
            for j in T.serial(1, 5, annotations={"pragma": 1}):
                for k in T.parallel(3):
                    for m in T.vectorized(4):
                        for n in T.unroll(2):
                            for t in T.thread_binding(8, thread="threadIdx.x"):
                                A[i + j + k + m + n + t] = T.float32(1)

    loops = {loop.loop_var.name: loop for loop in collect(func.body, S.For)}
    kinds = [loops[name].kind.name for name in "ijkmnt"]
    assert kinds == ["SERIAL", "SERIAL", "PARALLEL", "VECTORIZED", "UNROLLED", "THREAD_BINDING"]
    assert loops["j"].min.value == 1
    assert loops["j"].extent.value == 4
    assert dict(loops["j"].annotations) == {"pragma": 1}
    assert loops["t"].thread_binding.thread_tag == "threadIdx.x"


def test_both_spellings_of_buffers_are_the_same():
    @T.prim_func
    def old(A: T.Buffer[(128, 128), "float32"], B: T.Buffer[10, "float32"]):
        A[0, 0] = B[0]

    @T.prim_func
    def new(A: T.Buffer((128, 128), "float32"), B: T.Buffer(10, "float32")):
        A[0, 0] = B[0]

    assert_structural_equal(old.without_attr("global_symbol"), new.without_attr("global_symbol"))


def test_block_parts():
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        A = T.match_buffer(a, (16, 16))
        C = T.match_buffer(c, (16,), "float32")
        for i, k in T.grid(16, 16):
            with T.block("sum"):
                T.where(i * 16 + k < 250)
                vi = T.axis.spatial(16, i)
                vk = T.axis.reduce((0, 16), k)
                T.reads(A[vi, 0:16])
                T.writes(C[vi])
                T.block_attr({"note": "x", "list": [1, 2]})
                with T.init():
                    C[vi] = 0
                C[vi] += A[vi, vk]

    block = next(b for b in collect(func.body, S.Block) if b.name_hint == "sum")
    assert [axis.iter_type.name for axis in block.iter_vars] == ["DataPar", "CommReduce"]
    assert block.reads[0].region[1].extent.value == 16
    assert block.init.value.dtype == "float32"
    assert block.annotations["note"] == "x"
    assert func.buffer_map[func.params[0]].name == "A"


def test_blocks_without_regions_get_them_and_the_root_block():
    @T.prim_func
    def func(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj]

    root = func.body.block
    assert root.name_hint == "root"
    assert not root.reads
    block = next(b for b in collect(func.body, S.Block) if b.name_hint == "b")
    assert [region.buffer.name for region in block.reads] == ["A"]
    assert [region.buffer.name for region in block.writes] == ["B"]
    assert "tir.script_parsing_detect_access" not in block.annotations


def test_no_root_block_without_blocks():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = A[i] * 2.0

    assert isinstance(func.body, S.For)


def test_choices_at_run_time_and_at_parse_time():
    flag = True

    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            if i < n and n != 3:
                A[i] = 1
            elif not i == 2:
                A[i] = 2
            else:
                A[i] = 3
            if flag:
                A[i] = 4

    outer = collect(func.body, S.IfThenElse)
    assert len(outer) == 2
    assert isinstance(outer[-1].condition, And)


def test_while_and_assert():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        assert A[0] > 0, "positive"
        while A[0] < 10:
            A[0] = A[0] + 1

    check = only(func, S.AssertStmt)
    assert check.message.value == "positive"
    assert isinstance(check.body, S.While)


def test_let_in_each_spelling():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        x = A[0] + 1
        y: T.int32 = x * 2
        z: T.let = y + 1
        w: T.let[T.int64] = T.Cast("int64", z)
        with T.LetStmt(z + 1) as v:
            A[1] = v + T.Cast("int32", w)
        q = T.int32()
        A[2] = T.Let(q + 1, where={q: 3})

    names = [let.var.name for let in collect(func.body, S.LetStmt)]
    assert names[::-1] == ["x", "y", "z", "w", "v"]
    assert isinstance(only(func, Let).var, Var)


def test_meta_variables_stay_python_values():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        width = T.meta_var(4)
        for i in range(width):
            A[i] = width

    assert not collect(func.body, S.LetStmt)
    assert func.body.extent.value == 4


def test_memory_statements():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        p = T.allocate([8], "float32", "local")
        B = T.decl_buffer((8,), "float32", data=p, scope="local")
        C = T.decl_buffer((4,), "float32")
        k = T.allocate_const([1.0, 2.0], "float32", [2])
        K = T.Buffer((2,), "float32", data=k)
        with T.attr(A.data, "note", 1):
            B[0] = A[0] + K[0]
        C[0] = B[0]

    allocate = collect(func.body, S.Allocate)[-1]
    assert allocate.buffer_var.name == "p"
    assert isinstance(allocate.buffer_var.type_annotation, PointerType)
    assert allocate.buffer_var.type_annotation.storage_scope == "local"
    assert only(func, S.AttrStmt).attr_key == "note"
    assert only(func, S.AllocateConst).data.numpy().tolist() == [1.0, 2.0]
    assert len(collect(func.body, S.DeclBuffer)) == 2


def test_threads():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(tx, 8)
        with T.launch_thread("blockIdx.x", 4) as bx:
            A[tx + bx] = T.float32(0)

    attrs = collect(func.body, S.AttrStmt)
    assert [attr.node.thread_tag for attr in attrs] == ["blockIdx.x", "threadIdx.x"]
    assert attrs[0].node.var.name == "bx"


def test_symbolic_shapes_and_views():
    @T.prim_func
    def func(a: T.handle, b: T.handle, n: T.int32):
        m = T.int64()
        A = T.match_buffer(a, (m, n), "float32", strides=("s0", 1), offset_factor=8)
        B = T.match_buffer(b, (16, 16), "float32")
        with T.block("root"):
            for i in range(16):
                with T.block("view"):
                    vi = T.axis.spatial(16, i)
                    T.reads(B[vi, 0:16])
                    T.writes(A[vi, 0:16])
                    row = T.match_buffer(B[vi, 0:16], (16,), strides=[1])
                    A[vi, 0] = row[0]

    A = func.buffer_map[func.params[0]]
    assert [dim.name for dim in A.shape] == ["m", "n"]
    assert A.shape[1] is func.params[2]
    assert A.strides[0].name == "s0"
    assert func.body.block.name_hint == "root"


def test_values_of_every_kind():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "float16"), p: T.ptr("float32")):
        A[0] = T.exp(A[1]) + T.if_then_else(A[2] > 0.0, A[3], T.float32("-inf"))
        A[0:4] = T.Broadcast(T.float32(2), 4)
        A[T.Ramp(0, 2, 4)] = A[0:8:2]
        A[4:8] = A[0:4] * T.broadcast(A[0], 4)
        H[0] = A[0]
        A[5] = A[0] if A[1] < A[2] < A[3] else A[4]
        A[6] = T.Select(A[0] > A[1] or T.bool(False), A[0], -A[1])
        A[7] = T.reinterpret("float32", T.int32(1))
        T.evaluate(T.call_extern("int32", "f", A.data, A.access_ptr("r"), p))
        T.call_packed("g", A[0], T.float32x4(1.0))
        T.tvm_storage_sync("shared", dtype="void")

    assert len(collect(func.body, Ramp)) >= 3
    assert isinstance(collect(func.body, Select)[0], Select)
    casts = [cast for cast in collect(func.body, Cast) if cast.dtype == "float16"]
    assert len(casts) == 1
    names = {getattr(call.op, "name", "") for call in collect(func.body, Call)}
    assert {"tir.call_extern", "tir.tvm_access_ptr", "tir.tvm_storage_sync"} <= names


def test_reducers_and_lambdas():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        T.attr(
            T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
            "reduce_scope",
            T.reinterpret("handle", T.uint64(0)),
        )
        A[0] = T.float32(0)

    reducer = only(func, S.AttrStmt).node
    assert [var.name for var in (*reducer.lhs, *reducer.rhs)] == ["x", "y"]


def test_function_options():
    @T.prim_func(private=True, check_well_formed=False, s_tir=True)
    def func(x: T.int32) -> T.int32:
        T.func_attr({"tir.noalias": T.bool(True), "note": [1, "a"]})
        return x + 1

    assert "global_symbol" not in func.attrs
    assert list(func.attrs["note"]) == [1, "a"]
    assert func.ret_type.dtype == "int32"
    assert only(func, S.Evaluate).value.op.name == "tir.ret"


def test_macro_expands_in_place_and_is_hygienic():
    value = 5

    @T.macro
    def fill(B, n, what=value):
        for i in range(n):
            B[i] = what + value

    @T.macro(hygienic=False)
    def touch():
        A[0] = T.float32(7)

    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        fill(A, 4)
        touch()

    assert only(func, S.For).extent.value == 4
    assert [store.value.value for store in collect(func.body, S.BufferStore)] == [10.0, 7.0]


def test_every_statement_and_expression_has_a_span():
    text = """
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        for i in T.serial(8):
            A[i] = A[i] + T.float32(1)
    """
    func = weft.script.from_source(text)
    loop = func.body
    assert (loop.span.line, loop.span.column) == (4, 5)
    store = loop.body
    assert (store.span.line, store.span.column, store.span.end_column) == (5, 9, 35)
    assert collect(store.value, BufferLoad)[0].span.column == 16
    assert isinstance(loop.extent, IntImm)


def test_python_values_of_the_script_stay_python():
    shapes = [(4, 4), (2, 2)]

    @T.prim_func
    def func(A: T.Buffer(shapes[0], "float32")):
        for i in range(len(shapes)):
            with T.block(f"b{len(shapes)}"):
                vi = T.axis.S(shapes[1][0], i)
                A[vi, sum([2 * x for x in range(3)])] = T.float32(max(1, 2))

    block = next(b for b in collect(func.body, S.Block) if b.name_hint != "root")
    assert block.name_hint == "b2"


@pytest.mark.parametrize("name", ["T.sblock", "T.block"])
def test_block_by_both_names(name):
    text = f"""
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with {name}("b"):
                vi = T.axis.S(8, i)
                A[vi] = T.float32(0)
    """
    func = weft.script.from_source(text)
    assert func.body.block.body.body.block.name_hint == "b"


def test_a_scalar_condition_joins_a_vector_one():
    @T.prim_func
    def f(A: T.Buffer((8,), "bool"), flag: T.bool):
        A[0:8] = A[0:8] and flag

    assert f.body.value.dtype == "boolx8"
    assert f.body.value.op.name == "tir.bitwise_and"
    assert type(f.body.value.args[1]).__name__ == "Broadcast"


def test_operators_take_the_type_that_old_scripts_name():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.if_then_else(i < 2, A[i], T.exp(A[i], dtype="float32"), dtype="float32")

    assert f.body.body.value.dtype == "float32"


def test_a_macro_is_a_method():
    class Doubler:
        def __init__(self, factor):
            self.factor = factor

        @T.macro
        def apply(self, A, i):
            A[i] = A[i] * self.factor

    doubler = Doubler(2)

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        for i in range(4):
            doubler.apply(A, i)

    assert str(f.body.body.value).endswith("[i] * 2")


def test_macro_takes_keywords_only():
    with pytest.raises(ValueError, match=r"expected a function, got True; write @T.macro\(hyg"):
        T.macro(True)


def test_a_private_function_has_no_global_symbol():
    with pytest.raises(weft.TVMError, match="a private function has no global_symbol"):

        @T.prim_func(private=True)
        def f():
            T.func_attr({"global_symbol": "f"})
            T.evaluate(0)


def test_a_function_keeps_its_name():
    @T.prim_func
    def scale():
        T.evaluate(0)

    assert scale.__name__ == "scale"
    assert not hasattr(scale.without_attr("global_symbol"), "__name__")


def test_threads_count_in_the_type_of_their_extent():
    @T.prim_func
    def f():
        tx = T.launch_thread("threadIdx.x", T.int64(4))
        T.evaluate(tx)

    assert f.body.node.dom.min.dtype == "int64"
    assert f.body.node.var.dtype == "int64"


def test_a_variable_made_outside_is_no_binding():
    @T.prim_func
    def f(a: T.handle):
        start = weft.te.var("start")
        A = T.match_buffer(a, (16,), elem_offset=start)
        A[0] = T.float32(1)

    assert f.buffer_map[f.params[0]].elem_offset.name == "start"
    assert not collect(f.body, S.LetStmt)


def test_a_number_takes_the_type_of_an_unsigned_operand():
    @T.prim_func
    def f(A: T.Buffer((4,), "uint32")):
        for i in range(4):
            A[i] = (A[i] % 5) << 2

    shift = f.body.body.value
    assert shift.dtype == "uint32"
    assert not collect(shift, Cast)


def test_calls_of_a_prim_func_have_its_result_type():
    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = Module.grow(A[i]) + T.int64(1)
                B[i] = Module.half(B[i]) * T.float32(3)
                Module.nothing(i)

        @T.prim_func(private=True)
        def grow(x: T.int64) -> T.int64:
            T.ret(x * T.int64(2))

        @T.prim_func(private=True)
        def half(x: T.float32) -> T.float32:
            T.ret(x * T.float32(0.5))

        @T.prim_func(private=True)
        def nothing(x: T.int32):
            T.evaluate(x)

    calls = {
        call.op.name_hint: call.dtype
        for call in collect(Module["main"].body, Call)
        if isinstance(call.op, GlobalVar)
    }
    assert calls == {"grow": "int64", "half": "float32", "nothing": "void"}
    assert "A[i] = Module.grow(A[i]) + T.int64(1)" in Module.script()
    assert_round_trip(Module)


def test_a_call_of_another_type_is_said_in_full():
    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            A[0] = T.Call("int32", Module.other, [A[1]])

        @T.prim_func(private=True)
        def other(x: T.int32):
            T.evaluate(x)

    assert 'T.Call("int32", Module.other, [A[1]])' in Module.script()
    assert_round_trip(Module)


@pytest.mark.parametrize("stride_type", ["int32", "int64"])
@pytest.mark.parametrize("shape_type", ["int32", "int64"])
def test_symbolic_strides_keep_their_type(stride_type, shape_type):
    stride, size = tir.Var("s", stride_type), tir.Var("n", shape_type)
    handle = tir.Var("a", "handle")
    buffer = tir.decl_buffer((size,), "float32", "A", strides=[stride])
    func = tir.PrimFunc([handle], tir.BufferStore(buffer, 1.0, [0]), buffer_map={handle: buffer})
    assert ('strides=("s",)' in func.script()) is (stride_type == shape_type)
    assert_round_trip(func)


def test_pointers_are_written_with_brackets_too():
    @T.prim_func
    def func(A: T.Ptr[T.float32, "shared"], B: T.Ptr("int8")):
        C: T.Ptr[T.float32] = T.reinterpret("handle", T.uint64(0))
        T.evaluate(C)

    a, b = (param.type_annotation for param in func.params)
    assert (a.element_type.dtype, a.storage_scope) == ("float32", "shared")
    assert (b.element_type.dtype, b.storage_scope) == ("int8", "global")
    assert only(func, S.LetStmt).var.type_annotation.element_type.dtype == "float32"
    assert_round_trip(func)
