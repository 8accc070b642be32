"""The builder called by hand."""

from __future__ import annotations

import pytest

from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.relax.struct_info import TensorStructInfo
from weft.script import ir as I
from weft.script import relax as RS
from weft.script import tir as TS
from weft.script.ir_builder import IRBuilder, tir_frame
from weft.script.ir_builder import ir as IB
from weft.script.ir_builder import relax as R
from weft.script.ir_builder import tir as T
from weft.support.errors import IRTypeError, IRValueError


def test_prim_func_by_hand_equals_its_script():
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_name("func")
            T.func_attr({"note": 1})
            A = T.arg("A", T.Buffer((8, 8), "float32"))
            n = T.arg("n", T.int32())
            with T.grid(8, 8) as (i, j):
                builder.name("i", i)
                builder.name("j", j)
                with T.block("b"):
                    vi = builder.name("vi", T.axis.spatial(8, i))
                    vj = builder.name("vj", T.axis.spatial(8, j))
                    T.reads()
                    T.writes(A[vi, vj])
                    with T.If(n > 3):
                        with T.Then():
                            T.buffer_store(A, 1, [vi, vj])
                        with T.Else():
                            T.buffer_store(A, T.float32(2), [vi, vj])

    @TS.prim_func
    def func(A: TS.Buffer((8, 8), "float32"), n: TS.int32):
        TS.func_attr({"note": 1})
        for i, j in TS.grid(8, 8):
            with TS.block("b"):
                vi, vj = TS.axis.remap("SS", [i, j])
                TS.reads()
                TS.writes(A[vi, vj])
                if n > 3:
                    A[vi, vj] = TS.float32(1)
                else:
                    A[vi, vj] = TS.float32(2)

    assert_structural_equal(builder.get(), func)


def test_graph_function_by_hand_equals_its_script():
    with IRBuilder() as builder:
        with R.function():
            R.func_name("main")
            x = R.arg("x", TensorStructInfo((4,), "float32"))
            with R.dataflow() as frame:
                lv = builder.name("lv", R.emit(R.add(x, x)))
                gv = builder.name("gv", R.emit(R.multiply(lv, x)))
                R.output(gv)
            (shown,) = frame.output_vars
            R.func_ret_value(shown)

    @RS.function
    def main(x: RS.Tensor((4,), "float32")):
        with RS.dataflow():
            lv = RS.add(x, x)
            gv = RS.multiply(lv, x)
            RS.output(gv)
        return gv

    assert_structural_equal(builder.get(), main)


def test_a_parameter_may_be_declared_after_bindings():
    with IRBuilder() as builder:
        with R.function():
            R.func_name("main")
            x = R.arg("x", TensorStructInfo((4,), "float32"))
            with R.dataflow() as block:
                y = R.emit(R.exp(x))
                z = R.arg("z", TensorStructInfo((4,), "float32"))
                out = R.emit(R.add(y, z))
                R.output(out)
            R.func_ret_value(block.output_vars[0])
    func = builder.get()
    (made,) = func.body.blocks
    assert [param.name_hint for param in func.params] == ["x", "z"]
    assert [binding.value.op.name for binding in made.bindings] == ["relax.exp", "relax.add"]


def test_module_by_hand():
    with IRBuilder() as builder:
        with IB.ir_module():
            with T.prim_func():
                T.func_name("f")
                T.evaluate(0)
            with T.prim_func():
                T.func_name("g")
                T.evaluate(1)
    assert [var.name_hint for var in builder.get()] == ["f", "g"]


def test_virtual_devices_of_a_module():
    @I.ir_module
    class Module:
        I.module_global_infos({"vdevice": [I.vdevice("llvm", 0), I.vdevice("llvm", 1)]})

        @RS.function
        def main(x: RS.Tensor((4,), "float32", "llvm:1")):
            return x

    infos = Module.global_infos["vdevice"]
    assert [info.vdevice_id for info in infos] == [0, 1]
    assert Module["main"].params[0].struct_info.vdevice is infos[1]


def test_without_a_builder():
    with pytest.raises(IRValueError, match="no IRBuilder is active"):
        T.evaluate(0)


def test_without_a_function():
    with IRBuilder(), pytest.raises(IRValueError, match=r"T\.func_name belongs inside"):
        T.func_name("f")


def test_no_result():
    with IRBuilder() as builder:
        pass
    with pytest.raises(IRValueError, match="no result"):
        builder.get()


def test_an_error_inside_leaves_the_builder_clean():
    with IRBuilder() as builder:
        with pytest.raises(ValueError, match="mine"), T.prim_func(), T.grid(8, 8):
            raise ValueError("mine")
        assert builder.frames == []


def test_name_many():
    with IRBuilder() as builder:
        with T.grid(2, 3) as (a, b):
            builder.name_many(["row", "column"], [a, b])
            T.evaluate(a + b)
    assert builder.get().script() == (
        "for row, column in T.grid(2, 3):\n    T.evaluate(row + column)"
    )
    with IRBuilder(), pytest.raises(IRValueError, match="2 names for 1 values"):
        IRBuilder.name_many(["a", "b"], [a])


def test_every_statement_by_hand_equals_its_script():
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_name("func")
            A = T.arg("A", T.Buffer((16,), "float32"))
            n = T.arg("n", T.int32())
            block_x = builder.name("block_x", T.env_thread("blockIdx.x"))
            with T.launch_thread(block_x, 4):
                with T.attr(A.data, "mark", 1):
                    with T.Assert(n < 16, "n is small"):
                        with T.allocate([16], "float32", "local") as data:
                            builder.name("data", data)
                            with T.decl_buffer([16], "float32", data=data, scope="local") as B:
                                builder.name("B", B)
                                with T.vectorized(4) as i:
                                    builder.name("i", i)
                                    T.buffer_store(B, A[i], [i])
                                with T.LetStmt(n + 1) as m:
                                    builder.name("m", m)
                                    with T.While(B[m] > 0):
                                        T.buffer_store(B, 0, [m])
                                with T.allocate_const([1, 2], "int32", [2]) as table:
                                    builder.name("table", table)
                                    T.evaluate(0)
                                with T.thread_binding(0, 8, "threadIdx.x") as t:
                                    builder.name("t", t)
                                    with T.unroll(2) as u:
                                        builder.name("u", u)
                                        T.buffer_store(A, B[u], [t * 2 + u])

    @TS.prim_func
    def func(A: TS.Buffer((16,), "float32"), n: TS.int32):
        block_x = TS.launch_thread("blockIdx.x", 4)  # noqa: F841 - the builder takes the name
        with TS.attr(A.data, "mark", 1):
            with TS.Assert(n < 16, "n is small"):
                data = TS.allocate([16], "float32", "local")
                B = TS.decl_buffer([16], "float32", data=data, scope="local")
                for i in TS.vectorized(4):
                    B[i] = A[i]
                with TS.LetStmt(n + 1) as m:
                    while B[m] > TS.float32(0):
                        B[m] = TS.float32(0)
                with TS.allocate_const([1, 2], "int32", [2]) as table:  # noqa: F841
                    TS.evaluate(0)
                for t in TS.thread_binding(0, 8, thread="threadIdx.x"):
                    for u in TS.unroll(2):
                        A[t * 2 + u] = B[u]

    assert_structural_equal(builder.get(), func)


def test_block_by_hand_equals_its_script():
    with IRBuilder() as builder:
        with T.prim_func(is_private=True):
            a = T.arg("a", T.handle())
            A = builder.name("A", T.match_buffer(a, (8, 8), "float32"))
            B = builder.name("B", T.alloc_buffer((8,), "float32"))
            with T.serial(8) as i, T.serial(8) as k:
                builder.name_many(["i", "k"], [i, k])
                with T.block("sum"):
                    vi, vk = builder.name_many(["vi", "vk"], T.axis.remap("SR", [i, k]))
                    T.where(k < 7)
                    T.reads(A[vi, vk])
                    T.writes(B[vi])
                    T.block_attr({"hint": 2})
                    row = builder.name("row", T.match_buffer(A[vi, 0:8], (8,), offset_factor=1))
                    with T.init():
                        T.buffer_store(B, 0, [vi])
                    T.buffer_store(B, B[vi] + row[vk], [vi])

    @TS.prim_func(private=True)
    def func(a: TS.handle):
        A = TS.match_buffer(a, (8, 8), "float32")
        B = TS.alloc_buffer((8,), "float32")
        for i in range(8):
            for k in range(8):
                with TS.block("sum"):
                    vi, vk = TS.axis.remap("SR", [i, k])
                    TS.where(k < 7)
                    TS.reads(A[vi, vk])
                    TS.writes(B[vi])
                    TS.block_attr({"hint": 2})
                    row = TS.match_buffer(A[vi, 0:8], (8,), offset_factor=1)
                    with TS.init():
                        B[vi] = TS.float32(0)
                    B[vi] = B[vi] + row[vk]

    assert_structural_equal(builder.get(), func)


def test_frames_have_the_names_of_their_statements():
    kinds = []
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_name("f")
            with T.If(True):
                kinds.append(builder.frames[-1])
                with T.Then():
                    kinds.append(builder.frames[-1])
                    T.evaluate(0)
                with T.Else():
                    kinds.append(builder.frames[-1])
                    T.evaluate(1)
    assert [type(frame).__name__ for frame in kinds] == ["IfFrame", "ThenFrame", "ElseFrame"]
    assert isinstance(T.serial(4), tir_frame.ForFrame)


def test_a_block_by_itself_keeps_the_mark_of_missing_regions():
    with IRBuilder() as builder:
        with T.block("alone"):
            T.evaluate(0)
    expected = tir.Block(
        [], [], [], "alone", tir.Evaluate(0), alloc_buffers=None, match_buffers=None,
        annotations={"tir.script_parsing_detect_access": tir.IntImm("int64", 3)},
    )  # fmt: skip
    assert_structural_equal(builder.get(), tir.BlockRealize([], True, expected))


def test_functions_may_be_declared_first():
    @RS.function(private=True)
    def signature(x: RS.Tensor((4,), "float32")) -> RS.Tensor((4,), "float32"):
        return x

    with IRBuilder() as builder:
        with IB.ir_module():
            helper = IB.decl_function("helper", signature)
            with R.function():
                R.func_name("main")
                x = R.arg("x", TensorStructInfo((4,), "float32"))
                R.func_ret_value(R.emit(helper(x)))
            IB.def_function("helper", signature)
            assert IB.current_ir_module().functions[helper] is signature
    module = builder.get()
    assert [var.name_hint for var in module] == ["helper", "main"]
    assert module["main"].ret_struct_info.shape is not None
    with pytest.raises(IRValueError, match="declares functions that nothing defines: later"):
        with IRBuilder(), IB.ir_module():
            IB.decl_function("later", signature)
    with IRBuilder(), IB.ir_module() as frame:
        IB.def_function("f", signature)
        with pytest.raises(IRValueError, match="I.decl_function: the module has a function named"):
            IB.decl_function("f", signature)
        with pytest.raises(IRTypeError, match="I.def_function: expected a function, got int"):
            IB.def_function("g", 1)
    assert frame.declared == {}


def test_attributes_and_devices_of_a_module_are_read_back():
    with IRBuilder() as builder:
        with IB.ir_module():
            IB.module_attrs({"note": "a"})
            IB.module_set_attr("count", 1)
            with pytest.raises(IRValueError, match="I.module_set_attr: 'count' is already set"):
                IB.module_set_attr("count", 2)
            IB.module_set_attr("count", 2, allow_overwrite=True)
            IB.module_set_attr("note", None, allow_overwrite=True)
            assert IB.module_get_attrs() == {"count": 2}
            assert IB.module_get_attr("count") == 2
            assert IB.module_get_attr("note") is None
            devices = [IB.vdevice("llvm", 0), IB.vdevice("cuda", 0), IB.vdevice("cuda", 1)]
            IB.module_global_infos({"vdevice": devices})
            assert IB.lookup_vdevice("cuda", 1) is devices[2]
            assert IB.lookup_vdevice("cuda") is devices[1]
            assert IB.lookup_vdevice(device_index=2) is devices[2]
            with pytest.raises(IRValueError, match="index below 1, .* of target 'llvm'.*got 3"):
                IB.lookup_vdevice("llvm", 3)
    assert builder.get().attrs == {"count": 2}


def test_the_result_of_a_function_does_not_name_its_inner_symbols():
    @RS.function
    def main(x: RS.Tensor(dtype="float32")):
        m = TS.int64()
        y = RS.match_cast(x, RS.Tensor((m,), "float32"))  # noqa: F841 - the builder takes the name
        return RS.shape([m, 2])

    assert main.ret_struct_info.values is None
    assert main.ret_struct_info.ndim == 2
    assert R.py_print is print
    assert R.py_str is str
