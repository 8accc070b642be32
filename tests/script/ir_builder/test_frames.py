"""The builder called by hand."""

from __future__ import annotations

import pytest

from weft.ir.structural import assert_structural_equal
from weft.relax.struct_info import TensorStructInfo
from weft.script import ir as I
from weft.script import relax as RS
from weft.script import tir as TS
from weft.script.ir_builder import IRBuilder
from weft.script.ir_builder import ir as IB
from weft.script.ir_builder import relax as R
from weft.script.ir_builder import tir as T
from weft.support.errors import IRValueError


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
            R.func_ret_value(frame.replaced[gv])

    @RS.function
    def main(x: RS.Tensor((4,), "float32")):
        with RS.dataflow():
            lv = RS.add(x, x)
            gv = RS.multiply(lv, x)
            RS.output(gv)
        return gv

    assert_structural_equal(builder.get(), main)


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
