"""Programs whose text once did not give them back: declarations out of place, shared names."""

from __future__ import annotations

import weft
from weft.ir.structural import assert_structural_equal
from weft.script import from_source
from weft.script import ir as I
from weft.script import tir as T
from weft.tir import Evaluate, PrimFunc, SeqStmt


def check(program):
    text = program.script(show_meta=True)
    assert_structural_equal(from_source(text, check_well_formed=False), program, True)
    return text


def test_a_view_is_declared_where_its_memory_is_known():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            memory = T.allocate([4], "float32", "global")
            view = T.Buffer((2, 2), data=memory)
            view[0, 0] = A[i]
            A[i] = view[0, 0]

    lines = check(f).split("\n")
    where = [n for n, line in enumerate(lines) if "T.Buffer((2, 2), data=memory)" in line]
    assert len(where) == 1
    assert "T.allocate" in lines[where[0] - 1]


def test_sizes_that_nothing_defines_are_declared_before_the_buffer():
    @T.prim_func(check_well_formed=False)
    def f():
        size = T.int32()
        step = T.int32()
        memory = T.decl_buffer((size,), strides=[step])
        T.evaluate(memory[0])

    assert "size = T.int32()\n" in check(f)


def test_a_bound_variable_that_was_used_before():
    @T.prim_func(check_well_formed=False)
    def f():
        y = T.int32()
        with T.LetStmt(y):
            with T.LetStmt(0, var=y):
                T.evaluate(0)
        T.evaluate(0)

    assert "T.LetStmt(0, var=y)" in check(f)


def test_memory_of_a_region_with_and_without_scope():
    @T.prim_func(check_well_formed=False)
    def f(A: T.Buffer((8,), "float32")):
        B = T.decl_buffer((8,))
        with T.realize(B[0:8], "shared"):
            with T.realize(A[0:8], ""):
                T.evaluate(0)

    text = check(f)
    assert 'T.realize(B[0:8], "shared")' in text
    assert 'T.realize(A[0:8], "")' in text
    assert f.body.body.body.attr_key == "realize_scope"


def test_one_thread_variable_launched_twice():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        tx = T.env_thread("threadIdx.x")
        with T.launch_thread(tx, 4):
            A[tx] = T.float32(1)
        with T.launch_thread(tx, 4):
            A[tx] = A[tx] + T.float32(1)

    text = check(f)
    assert text.count('T.env_thread("threadIdx.x")') == 1
    assert text.count("T.launch_thread(tx, 4)") == 2


def test_nested_sequences_are_flat():
    inner = SeqStmt([Evaluate(0), Evaluate(1)])
    func = PrimFunc([], SeqStmt([inner, Evaluate(2)]))
    assert [stmt.value.value for stmt in func.body.seq] == [0, 1, 2]
    check(func)


def test_an_attribute_of_several_buffers():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.attr([A, B], "bound", T.tvm_tuple(0, 4))
        A[0] = B[0]

    assert 'T.attr([A, B], "bound", ' in check(f)


def test_vector_conjunctions_print_as_what_they_are():
    a, b = weft.tir.Var("a", "boolx4"), weft.tir.Var("b", "boolx4")
    assert str(weft.tir.And(a, b)) == "T.And(a, b)"
    assert str(a & b) == "T.bitwise_and(a, b)"


def test_a_number_as_stride_takes_the_type_of_the_base():
    assert weft.tir.Ramp(weft.tir.IntImm("int64", 0), 1, 3).dtype == "int64x3"


def test_calls_inside_the_module():
    @I.ir_module
    class Module:
        @T.prim_func
        def f():
            weft.tir.call_tir(Module.g, 3)

        @T.prim_func
        def g(n: T.int32):
            T.evaluate(n)

    call = Module["f"].body.value
    assert call.op.name_hint == "g"
    assert call.dtype == "void"
    check(Module)


def test_intrinsics_of_known_type():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        A[0] = T.tvm_warp_shuffle(T.tvm_warp_activemask(), A[1], 1, 32, 32) + T.float32(1)

    assert f.body.value.a.dtype == "float32"
    check(f)


def test_a_shape_parameter_names_the_shape_of_the_result():
    shape = weft.relax.Var("s", weft.relax.ShapeStructInfo(ndim=2))
    info = weft.relax.TensorStructInfo(shape, "float32")
    x = weft.relax.Var("x", info)
    body = weft.relax.SeqExpr([], x)
    func = weft.relax.Function([shape, x], body, info, attrs={"global_symbol": "main"})
    assert "-> R.Tensor(s, " in func.script()
    check(weft.IRModule({"main": func}))
