"""The registry of operators."""

from __future__ import annotations

import pytest

from weft import ir
from weft.ir.traits import Trait, has
from weft.support.errors import IRTypeError, IRValueError


def test_an_operator_is_one_object_per_name():
    assert ir.Op.get("tir.exp") is ir.Op.get("tir.exp")
    assert ir.Op.get("tir.exp").name == "tir.exp"
    assert "tir.exp" in ir.Op.list_op_names()
    assert ir.Op.list_op_names() == sorted(ir.Op.list_op_names())


def test_an_unknown_operator_names_the_nearest():
    with pytest.raises(
        KeyError, match=r"operator 'tir.expp' is not registered; did you mean tir\.exp"
    ):
        ir.Op.get("tir.expp")


def test_attributes_are_set_read_and_removed():
    op = ir.Op.register("test.attributes", level=1)
    assert op.get_attr("level") == 1
    ir.register_op_attr("test.attributes", "level", 2, override=True)
    assert op.get_attr("level") == 2
    ir.register_op_attr("test.attributes", "level", 3, level=11)
    assert op.get_attr("level") == 3
    with pytest.raises(IRValueError, match="level of the operator 'test.attributes' is already"):
        ir.register_op_attr("test.attributes", "level", 2)

    @ir.register_op_attr("test.attributes", "rule")
    def rule():
        return 3

    assert op.get_attr("rule")() == 3
    assert rule() == 3
    assert op.has_attr("rule")
    op.reset_attr("rule")
    assert not op.has_attr("rule")
    assert op.get_attr("rule") is None
    op.set_attr("level", 4, plevel=15)
    assert op.get_attr("level") == 4


def test_an_operator_prints_its_name_and_is_not_called():
    assert repr(ir.Op.get("tir.exp")) == "Op(tir.exp)"
    with pytest.raises(IRValueError, match=r"tir\.exp is an operator; build a call with"):
        ir.Op.get("tir.exp")(1)


def test_traits_are_no_text():
    with pytest.raises(IRTypeError, match=r"expected a Trait .* got str 'elementwise'"):
        ir.Op.register("test.text_traits", traits="elementwise")
    assert has(ir.Op.register("test.text_traits", traits=Trait.ELEMENTWISE), Trait.ELEMENTWISE)
