"""ArgInfo: what the arguments of a function are, in TVM's JSON form."""

from __future__ import annotations

import pytest

import weft
from tests.lib.tuning_programs import matmul, matmul_relu
from weft import tir
from weft.meta_schedule.arg_info import ArgInfo, TensorInfo
from weft.script import tir as T
from weft.support.errors import IRTypeError, IRValueError


def test_a_tensor_prints_and_compares_by_type_and_shape():
    info = TensorInfo("int8", (3, 5))
    assert repr(info) == 'TensorInfo("int8", [3, 5])'
    assert info == TensorInfo("int8", [3, 5])
    assert info != TensorInfo("int8", [5, 3])
    assert info.dtype == "int8"
    assert info.shape == (3, 5)


def test_json_gives_the_argument_again():
    info = TensorInfo("float16", [2, 1])
    assert info.as_json() == ["TENSOR", "float16", [2, 1]]
    assert ArgInfo.from_json(info.as_json()) == info
    assert TensorInfo.from_json(["TENSOR", "bool", []]) == TensorInfo("bool", ())


@pytest.mark.parametrize(
    "damaged", [[], ["TENSOR"], ["SCALAR", "int32", []], ["TENSOR", "int8", ["n"]], "TENSOR", None]
)
def test_other_json_is_refused(damaged):
    with pytest.raises(IRValueError, match=r'expected \["TENSOR", data type, shape\]'):
        ArgInfo.from_json(damaged)


def test_arguments_of_a_function_and_of_the_entry_of_a_module():
    expected = [TensorInfo("float32", (8, 8))] * 3
    assert ArgInfo.from_prim_func(matmul(8)["main"]) == expected
    mod = weft.IRModule({"other": matmul(4)["main"], "main": matmul(8)["main"]})
    assert ArgInfo.from_entry_func(mod) == expected
    marked = matmul(4)["main"].with_attr("tir.is_entry_func", True)
    mod = weft.IRModule({"other": marked, "main": matmul(8)["main"]})
    assert ArgInfo.from_entry_func(mod) == [TensorInfo("float32", (4, 4))] * 3


def test_a_module_without_an_entry_is_refused():
    mod = weft.IRModule({"first": matmul(4)["main"], "second": matmul(8)["main"]})
    with pytest.raises(IRValueError, match=r"found PrimFuncs \['first', 'second'\]"):
        ArgInfo.from_entry_func(mod)


def test_scalars_symbols_and_other_objects_are_refused():
    @T.prim_func
    def scalar(n: T.int32, A: T.Buffer((4,), "float32")):
        A[0] = T.float32(n)

    @T.prim_func
    def symbolic(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        A[0] = T.float32(0)

    with pytest.raises(IRValueError, match="found n: int32"):
        ArgInfo.from_prim_func(scalar)
    with pytest.raises(IRValueError, match=r"found A of shape \['n'\]; bind its symbols"):
        ArgInfo.from_prim_func(symbolic)
    with pytest.raises(IRTypeError, match="expected a PrimFunc, got IRModule"):
        ArgInfo.from_prim_func(matmul_relu())


def with_rewritten_weight():
    """A product whose second matrix a schedule lays out in panels of four columns."""
    sch = tir.Schedule(matmul(8))
    panels = sch.cache_read(sch.get_block("matmul"), 1, "global")
    sch.transform_layout(panels, ("write", 0), lambda k, j: (j // 4, k, j % 4), pad_value=None)
    sch.annotate(panels, "meta_schedule_layout_rewrite_preproc", True)
    return sch.mod


def test_a_weight_whose_layout_is_rewritten_counts_as_it_is_afterwards():
    mod = with_rewritten_weight()
    rewritten, plain = ArgInfo.from_entry_func(mod), ArgInfo.from_entry_func(mod, False)
    assert [info.shape for info in rewritten] == [(8, 8), (2, 8, 4), (8, 8)]
    assert [info.shape for info in plain] == [(8, 8)] * 3
