"""Spellings of other years, without the name ``tvm``: rows of the table, and what errors say."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.compat import spellings
from weft.compat.adapt import load
from weft.relax.struct_info import TensorStructInfo
from weft.support import slots
from weft.support.errors import TVMError


@pytest.mark.parametrize("row", spellings.NAMES, ids=lambda row: f"{row.owner}.{row.old}")
def test_each_old_name_is_there(row):
    assert getattr(importlib.import_module(row.owner), row.old) is load(row.new)


@pytest.mark.parametrize("row", spellings.MEMBERS, ids=lambda row: f"{row.owner}.{row.old}")
def test_each_old_attribute_has_a_class_and_an_adapter(row):
    module, _, name = row.owner.rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), name), type)
    assert callable(load(row.new))


@pytest.mark.parametrize("row", spellings.REMOVED, ids=lambda row: f"{row.owner}.{row.old}")
def test_each_removed_name_says_what_to_use(row):
    legacy = slots.legacy.get()
    with pytest.raises(AttributeError, match=f"{row.old} is gone .last in TVM .*; use "):
        legacy.attribute(row.owner, row.old)


def test_no_row_twice():
    for rows in (spellings.NAMES, spellings.MEMBERS, spellings.REMOVED):
        keys = [(row.owner, row.old) for row in rows]
        assert len(keys) == len(set(keys))


def test_call_adapters_exist():
    for adapter, _, _ in spellings.CALLS.values():
        assert callable(load(adapter))


def variable() -> relax.Var:
    return relax.Var("x", (1, 784), relax.DynTensorType(2, "float32"))


def test_variables_with_shape_and_type():
    assert variable().struct_info == TensorStructInfo((1, 784), "float32")
    n = tir.Var("n", "int64")
    assert relax.Var("x", [n, 4], relax.DynTensorType(2)).struct_info.shape.values[0] is n
    assert relax.Var("x", None, relax.DynTensorType(2)).struct_info.ndim == 2
    assert relax.DataflowVar("x", (3,), relax.DynTensorType(1)).struct_info.dtype == "float32"
    assert variable().span is None


def test_a_variable_with_something_else_is_an_error():
    with pytest.raises(TVMError, match="Var x: expected struct info such as"):
        relax.Var("x", 3.5)


def test_a_shape_given_without_a_type_has_an_unknown_data_type():
    assert relax.Var("x", (2, 3)).struct_info == TensorStructInfo((2, 3), "void")


def test_shape_and_type_of_a_variable_make_another_one():
    x = variable()
    y = relax.Var("y", x.shape_, x._checked_type_)
    assert y.struct_info == x.struct_info
    assert x.checked_type is x.checked_type_ is x.ty is x.struct_info
    assert relax.Var("z", relax.ObjectStructInfo()).shape_ is None


def test_types_of_the_years():
    assert isinstance(relax.DynTensorType(2, "int8"), relax.DynTensorType)
    assert isinstance(variable().struct_info, relax.TensorType)
    assert relax.TensorType((2, 3), "int8") == TensorStructInfo((2, 3), "int8")
    assert relax.TensorType(ndim=3, dtype="int8") == TensorStructInfo(None, "int8", ndim=3)
    assert relax.ShapeType(ndim=2) == relax.ShapeStructInfo(ndim=2)
    assert relax.ShapeType([2, 3]) == relax.ShapeStructInfo([2, 3])
    assert relax.ObjectType() == relax.AnyType() == relax.ObjectStructInfo()
    assert relax.TupleType([relax.DynTensorType(2)]).fields[0].ndim == 2
    assert isinstance(relax.TupleType([]), weft.ir.TupleType)
    assert relax.FuncType([relax.ObjectType()], relax.ObjectType()).params is not None
    assert relax.PackedFuncType().params is None


def test_constants_with_a_static_type():
    constant = relax.const(np.ones((2, 2)), relax.DynTensorType(2, "float32"))
    assert constant.struct_info == TensorStructInfo((2, 2), "float32")


def test_call_tir_of_a_registered_function_with_shape_and_dtype():
    x, out = variable(), TensorStructInfo((1, 128), "float32")
    for call in (
        relax.op.call_tir(relax.extern("env.f"), (x,), (1, 128), dtype="float32"),
        relax.op.call_tir("env.f", (x,), (1, 128), dtype="float32"),
        relax.op.call_tir("env.f", (x,), (1, 128), "float32"),
        relax.op.call_tir("env.f", (x,), out),
        relax.op.call_dps_packed("env.f", (x,), out_ty=out),
        relax.op.call_dps_packed("env.f", (x,), (1, 128), dtype="float32"),
    ):
        assert call.op is weft.ir.Op.get("relax.call_dps_packed")
        assert call.args[0].global_symbol == "env.f"
        assert list(call.sinfo_args) == [out]


def test_call_tir_of_a_function_of_the_module():
    x, gvar = variable(), weft.ir.GlobalVar("f")
    one = relax.op.call_tir(gvar, (x,), (1, 128), dtype="float32")
    assert list(one.sinfo_args) == [TensorStructInfo((1, 128), "float32")]
    two = relax.op.call_tir(gvar, (x,), [(2,), (3, 4)], dtype=["int8", "float32"])
    expected = [TensorStructInfo((2,), "int8"), TensorStructInfo((3, 4), "float32")]
    assert list(two.sinfo_args[0].fields) == expected
    renamed = relax.op.call_tir(gvar, (x,), out_ty=TensorStructInfo((3,), "int8"))
    assert renamed.ty_args[0] == TensorStructInfo((3,), "int8")


def test_a_call_that_no_year_had_keeps_its_own_error():
    with pytest.raises(TypeError, match="call_tir"):
        relax.op.call_tir(weft.ir.GlobalVar("f"), (variable(),), 7, colour="red")


def test_names_of_2025_and_2026():
    assert weft.runtime.tensor([1.0]).numpy()[0] == 1
    assert isinstance(weft.nd.array([1]), weft.runtime.Tensor)
    assert weft.register_global_func is weft.register_func
    assert weft.tirx.PrimFunc is weft.s_tir.PrimFunc is tir.PrimFunc
    assert weft.s_tir.SBlock is tir.Block
    assert weft.s_tir.SBlockRealize is tir.BlockRealize
    assert weft.script.tirx is weft.script.tir
    assert tir.Var("n", "int32").ty == weft.ir.PrimType("int32")


NEAREST = [
    (lambda: relax.DynTensorTyp, "did you mean DynTensorType"),
    (lambda: weft.regster_func, "did you mean register_func"),
    (lambda: relax.vm.buid, "did you mean build"),
    (lambda: tir.PrimFnc, "did you mean PrimFunc"),
]


@pytest.mark.parametrize(("use", "message"), NEAREST)
def test_a_name_of_no_year_gives_the_nearest(use, message):
    with pytest.raises(AttributeError) as caught:
        use()
    assert message in str(caught.value)
    assert isinstance(caught.value, TVMError)


def test_looking_for_an_attribute_in_vain_is_cheap():
    x = variable()
    assert not hasattr(x, "no_such_attribute")
    assert getattr(x, "__array_interface__", None) is None
    for _ in range(20_000):
        hasattr(x, "no_such_attribute")
