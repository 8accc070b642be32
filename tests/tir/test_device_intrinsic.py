"""Intrinsics of machines can be built by TVM's signatures, printed and parsed."""

from __future__ import annotations

import inspect

import pytest

from tests.lib.round_trip import assert_round_trip
from weft import tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.device_intrinsic import CONSTRUCTORS
from weft.tir.expr import Call


def arguments(function):
    """An argument for each parameter that must be given."""
    made = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            made += [1, 2]
        elif parameter.default is inspect.Parameter.empty:
            made.append("float32" if name == "dtype" else len(made))
    return made


@pytest.mark.parametrize("name", sorted(CONSTRUCTORS))
def test_every_one_is_built_and_comes_back_from_its_text(name):
    call = getattr(tir, name)(*arguments(CONSTRUCTORS[name]))
    assert call.op.name == f"tir.{name}"
    assert_round_trip(tir.PrimFunc([], tir.Evaluate(call)))


def test_result_types():
    x = tir.Var("x", "int8")
    assert tir.ptx_ldmatrix("float16", True, 4, ".b16", x, 0, x, 0).dtype == "float16"
    assert tir.tvm_struct_get(x, 0, 1, "int32").dtype == "int32"
    assert tir.tvm_warp_shuffle(0, x, 0, 32, 32).dtype == "int8"
    assert tir.tvm_thread_invariant(x).dtype == "int8"
    assert tir.ptx_wait_group(2).dtype == "void"
    assert tir.tvm_tuple(1, 2, 3).dtype == "handle"


def test_parameters_have_names_and_defaults():
    assert [arg.value for arg in tir.dp4a(vec2=2, vec1=1).args] == [1, 2, 0]
    matrix = tir.make_filled_simdgroup_matrix(tir.Var("d", "handle"), 0, 1.0, row=4)
    assert [arg.value for arg in matrix.args[3:]] == [8, 4]
    multiply = [0] * 14
    assert len(tir.ptx_mma("float32", *multiply[1:]).args) == 13
    assert len(tir.ptx_mma("float32", *multiply[1:], operator="xor").args) == 14
    with pytest.raises(TypeError, match="too many positional arguments"):
        tir.ptx_wait_group(1, 2)


def test_in_a_script():
    @T.prim_func
    def func(A: T.Buffer((16,), "float16", scope="local")):
        T.ptx_ldmatrix("float16", T.bool(True), 4, ".b16", A.data, 0, A.data, 0)
        T.ptx_cp_async("float16", A.data, 0, A.data, 8, 16)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        T.tvm_fill_fragment(A.data, 16, 16, 16, 0, T.float32(0))

    @T.prim_func
    def runtime(args: T.handle):
        first: T.handle = T.tvm_struct_get(args, 0, 12, dtype="handle")
        T.evaluate(T.tvm_struct_get(first, 0, 5, "int32"))

    assert [call.dtype for call in collect(runtime.body, Call)] == ["handle", "int32"]
    assert_round_trip(runtime)
    text = func.script()
    assert 'T.ptx_ldmatrix("float16", T.bool(True), 4, ".b16", A.data, 0, A.data, 0)' in text
    assert 'T.ptx_cp_async("float16", A.data, 0, A.data, 8, 16)' in text
    assert "T.ptx_wait_group(0)" in text
    assert "T.tvm_fill_fragment(A.data, 16, 16, 16, 0, T.float32(0.0))" in text
    assert_round_trip(func)
