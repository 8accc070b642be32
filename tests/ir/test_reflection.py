"""``make_node``: nodes by the names of their classes."""

from __future__ import annotations

import pytest

from weft import ir, relax, te, tir


def test_nodes_are_made_by_name():
    ten = ir.make_node("IntImm", dtype="int32", value=10, span=None)
    assert (ten.value, ten.dtype) == (10, "int32")
    x = tir.Var("x", "int32")
    ir.assert_structural_equal(ir.make_node("tir.Add", a=x, b=ten), tir.Add(x, ten))
    call = ir.make_node("relax.expr.Call", op=ir.Op.get("relax.exp"), args=[])
    assert type(call) is relax.Call
    assert type(ir.make_node("relax.TensorStructInfo", ndim=2)) is relax.TensorStructInfo


def test_derived_fields_may_be_given():
    x = te.placeholder((10,), name="x")
    again = ir.make_node("Tensor", shape=x.shape, dtype=x.dtype, op=x.op, value_index=x.value_index)
    assert again.op is x.op
    zero = tir.Var("x", "int32")
    assert ir.make_node("tir.Add", a=zero, b=1, dtype="int32").b.value == 1


def test_attributes_are_a_mapping():
    attrs = ir.make_node("DictAttrs", x=1, name="xyz", padding=(0, 0))
    assert isinstance(attrs, ir.DictAttrs)
    assert attrs["x"] == attrs.x == 1
    assert list(attrs.padding) == [0, 0]
    ir.assert_structural_equal(ir.load_json(ir.save_json(attrs)), attrs)


@pytest.mark.parametrize(
    ("name", "fields", "error", "message"),
    [
        ("tir.Nothing", {}, TypeError, "weft has no node class 'tir.Nothing'"),
        ("tir.Add", {"a": 1, "b": 1, "c": 1}, AttributeError, "no field c; there are: a, b"),
        ("tir.Add", {"a": 1}, AttributeError, "tir.Add needs the fields a, b"),
        ("tir.Add", {"a": 1, "b": []}, TypeError, "expected an expression or a number"),
    ],
)
def test_what_cannot_be_made_is_refused(name, fields, error, message):
    with pytest.raises(error, match=message):
        ir.make_node(name, **fields)
