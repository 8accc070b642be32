"""Names and texts of a program that compiled code cannot hold are the user's errors."""

import pytest

import weft
from weft.codegen.llvm.context import native_text
from weft.codegen.llvm.emit import prim_funcs
from weft.ir.expr import StringImm
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.support.errors import CodegenError
from weft.tir.expr import Call
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate


def calls(kind, *names):
    """A function that calls a function of that name."""
    body = Evaluate(Call("int32", Op.get(f"tir.{kind}"), [StringImm(name) for name in names]))
    return PrimFunc([], body, attrs={"global_symbol": "f"})


@pytest.mark.parametrize("kind", ["call_extern", "tvm_call_packed"])
def test_a_name_with_nul_is_an_error(kind):
    with pytest.raises(CodegenError, match=r"without NUL bytes, got 'a\\x00b' with one at 1"):
        weft.build(calls(kind, "a\0b"), "llvm")


def test_a_text_argument_with_nul_is_an_error():
    with pytest.raises(CodegenError, match="without NUL bytes"):
        weft.build(calls("tvm_call_packed", "f", "a\0"), "llvm")


def test_a_text_that_is_no_utf8_is_an_error():
    with pytest.raises(CodegenError, match="a text that UTF-8 can write"):
        native_text("\ud800")


def test_an_empty_name_is_an_error():
    with pytest.raises(CodegenError, match="expected the name of a function, got an empty text"):
        weft.build(calls("call_extern", ""), "llvm")


def test_a_function_named_with_nul_is_an_error():
    func = PrimFunc([], Evaluate(0), attrs={"global_symbol": "a\0b"})
    with pytest.raises(CodegenError, match="without NUL bytes"):
        prim_funcs(IRModule({"f": func}))
