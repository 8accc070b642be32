"""Calls of intrinsics that a program builds by hand are compiled, or refused with what is wrong."""

import itertools

import pytest

import weft
from weft import tir
from weft.ir.op import Op
from weft.script import tir as T
from weft.tir.analysis.intrinsic_calls import check_intrinsic_calls

pytestmark = pytest.mark.sampled(4)
NAMES = sorted(name for name in Op.list_op_names() if name.startswith("tir."))


def program(call, is_value=True):
    """A PrimFunc that stores or evaluates a call."""
    param, buffer = tir.Var("a", "handle"), tir.decl_buffer((4,), call.dtype, name="A")
    body = tir.BufferStore(buffer, call, [0]) if is_value else tir.Evaluate(call)
    return tir.PrimFunc([param], body, buffer_map={param: buffer})


def refusal_of(func):
    """The error that building a PrimFunc raises, or None."""
    try:
        weft.build(func)
    except weft.TVMError as error:
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_arguments_of_any_type(name):
    for dtype, is_value in itertools.product(("int32", "float32"), (True, False)):
        for count in (0, 1, 2, 3, 4, 5, 9):
            call = tir.Call(dtype, name, [tir.const(item, dtype) for item in range(count)])
            error = refusal_of(program(call, is_value))
            assert not isinstance(error, weft.InternalError), f"{count} of {dtype}, {is_value=}"
            assert error is None or len(str(error).splitlines()) <= 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (tir.Call("float32", "tir.exp", []), "main: T.exp: expected 1 argument, got 0"),
        (tir.Call("float32", "tir.pow", [T.float32(1)]), "T.pow: expected 2 arguments, got 1"),
        (tir.Call("int32", "tir.ret", [T.int32(1)]), "T.ret: expected it to be a statement"),
        (tir.Call("int32", "tir.call_extern", []), "expected at least 1 argument, got 0"),
        (tir.Call("float32", "tir.isnan", [T.float32(1)]), "a boolean as its result, got float32"),
        (tir.Call("bool", "tir.isnan", [T.int32(1)]), "T.isnan: expected a float, got int32"),
        (tir.Call("float32", "tir.shift_left", [T.float32(1), T.int32(1)]),
         "expected integers, got float32 as argument 0"),
        (tir.Call("int32", "tir.vectorlow", [T.int32(1)]), "a vector of several lanes, got int32"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused_with_what_is_expected(call, message):
    with pytest.raises(weft.TVMError, match=message):
        check_intrinsic_calls(weft.IRModule({"main": program(call)}))
    with pytest.raises(weft.TVMError, match=message):
        weft.build(program(call))


def test_a_damaged_file_is_refused():
    @T.prim_func
    def f(A: T.Buffer((4,), "int32")) -> T.int32:
        T.ret(A[0])

    empty = tir.Evaluate(tir.Call("int32", "tir.ret", []))
    text = weft.ir.save_json(f.with_(body=tir.SeqStmt([empty, f.body])))
    with pytest.raises(weft.TVMError, match="T.ret: expected 1 argument, got 0"):
        weft.build(weft.ir.load_json(text))
