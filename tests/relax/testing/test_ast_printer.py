"""The tree of a graph as text."""

import numpy as np
import pytest

from weft import relax
from weft.relax.testing import dump_ast
from weft.relax.testing.ast_printer import ASTPrinter
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRTypeError
from weft.tir import Var


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
        n = T.int64()
        with R.dataflow():
            total = R.sum(R.add(x, y), axis=[0], keepdims=False)
            R.output(total)
        pair = (total, R.shape([n, 4]), R.prim_value(2), R.str("text"))
        return pair[0]


def test_a_function_is_the_constructors_of_its_nodes():
    text = dump_ast(Module["main"], include_struct_info_annotations=False)
    first = ["Function(", "    params=[", *[f'        Var(name_hint="{name}")' for name in "xy"]]
    first[2] += ","
    assert text.splitlines()[:4] == first
    lines = [line.strip() for line in text.splitlines()]
    for expected in (
        "DataflowBlock(", 'op=Op(name="relax.add"),', 'attrs={"global_symbol": "main"}',
        'DataflowVar(name_hint="lv")', "PrimExpr(value=`n`),", "PrimValue(value=PrimExpr("
        "value=`T.int64(2)`)),", 'StringImm(value="text")', "is_pure=True,", '"keepdims": False',
        '"axis": [0],', "index=0",
    ):  # fmt: skip
        assert any(expected in line for line in lines), expected
    assert "struct_info=" not in text.replace("ret_struct_info=", "")
    assert "attrs={" not in dump_ast(Module["main"].body, include_call_attrs=False)


def test_annotations_are_options():
    var = relax.Var("v", R.Tensor([54, 96], "float32"))
    assert dump_ast(var, include_struct_info_annotations=False) == 'Var(name_hint="v")'
    assert dump_ast(relax.DataflowVar("v")) == 'DataflowVar(name_hint="v")'
    text = dump_ast(var, include_type_annotations=True, indent_str="")
    assert "struct_info=TensorStructInfo(\ndtype=float32,\nshape=ShapeExpr(" in text
    assert text.endswith("checked_type_=TensorType(\nndim=2,\ndtype=float32\n)\n)")


def test_casts_and_constants():
    n = Var("n", "int64")
    value = relax.const(np.arange(2, dtype="int32"))
    cast = relax.MatchCast(relax.Var("v", R.Shape()), value, R.Tensor([n], "int32"))
    text = dump_ast(cast, include_struct_info_annotations=False)
    assert text.startswith('MatchCast(\n    var=Var(name_hint="v"),\n    value=Constant(\n')
    assert "data=[0 1]" in text
    assert "struct_info=TensorStructInfo(" in text
    scalar = dump_ast(relax.const(1), include_struct_info_annotations=False)
    assert scalar == "Constant(data=1)"


INFOS = [
    (R.Object(), "ObjectStructInfo()", "ObjectType()"),
    (R.Prim("int32"), "PrimStructInfo(dtype=int32)", "PrimType(dtype=int32)"),
    (R.Shape(ndim=2), "ShapeStructInfo(ndim=2)", "ShapeType(ndim=2)"),
    (R.Shape([3]), "ShapeStructInfo(ndim=1,values=[PrimExpr(value=`T.int64(3)`)])",
     "ShapeType(ndim=1)"),
    (R.Tensor(dtype="float32"), "TensorStructInfo(dtype=float32,ndim=-1)",
     "TensorType(ndim=-1,dtype=float32)"),
    (R.Tuple(R.Object(), R.Shape()), "TupleStructInfo(fields=[ObjectStructInfo(),"
     "ShapeStructInfo(ndim=-1)])", "TupleType(fields=[ObjectType(),ShapeType(ndim=-1)])"),
    (R.Callable((R.Object(),), R.Object()), "FuncStructInfo(params=[ObjectStructInfo()],"
     "ret=ObjectStructInfo(),purity=True)", "FuncType(arg_types=[ObjectType()],"
     "ret_type=ObjectType())"),
    (R.Callable(), "FuncStructInfo(ret=ObjectStructInfo(),purity=False)", "PackedFuncType()"),
]  # fmt: skip


@pytest.mark.parametrize(("info", "text", "type_text"), INFOS)
def test_struct_infos_and_types(info, text, type_text):
    printer = ASTPrinter(indent_str="")
    assert printer.visit_struct_info_(info).replace("\n", "") == text
    assert printer.visit_type_(info).replace("\n", "") == type_text


def test_what_is_no_node_is_refused():
    with pytest.raises(IRTypeError, match="dump_ast: expected a node of a graph, got int"):
        dump_ast(3)
