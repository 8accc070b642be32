"""Annotations that Python evaluates, or keeps as text, are spelled alike."""

# No ``from __future__ import annotations`` here: the functions below have objects as annotations.
import inspect
from typing import Annotated, Any

import pytest

from weft import relax
from weft.ir.op import Op
from weft.relax.expr import Expr
from weft.relax.op import definition
from weft.relax.op.definition import Dtype, Exprs, Ints, Prim, Shape, operator
from weft.relax.op.infer import same_as_input
from weft.support.annotations import spelled
from weft.support.errors import IRTypeError
from weft.tir.schedule import define
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

Kind = Annotated[Any, "Kind"]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ("int | None", "int | None"), (int, "int"), (Expr, "Expr"), (Expr | None, "Expr | None"),
        (None | Expr, "None | Expr"), (BlockRV | LoopRV | str, "BlockRV | LoopRV | str"),
        (Kind, "Kind"), (Kind | None, "Kind | None"), (list[LoopRV], "list"), (None, "None"),
        (Any, "Any"), (inspect.Parameter.empty, "nothing"),
    ],
)  # fmt: skip
def test_spelled(annotation, text):
    assert spelled(annotation) == text


def test_an_operator_of_a_file_without_postponed_annotations(monkeypatch):
    monkeypatch.setattr(definition, "FUNCTIONS", {})  # other tests ask a reference of all there

    @operator("relax.test_annotations_all", same_as_input)
    def everything(
        data: Expr,
        more: Exprs,
        shape: Shape,
        number: Prim,
        bias: Expr | None = None,
        axes: Ints = (0,),
        dtype: Dtype = None,
        axis: int = 1,
        eps: float = 0.5,
        keep: bool = False,
        layout: str = "NCHW",
    ) -> Any:
        """Nothing."""

    op = Op.get("relax.test_annotations_all")
    assert op.get_attr("params") == ("data", "more", "shape", "number", "bias")
    assert op.get_attr("attrs") == ("axes", "dtype", "axis", "eps", "keep", "layout")
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    call = everything(x, [x, x], (2, 3), 4, axes=1)
    assert [type(arg).__name__ for arg in call.args] == ["Var", "Tuple", "ShapeExpr", "PrimValue"]
    assert list(call.attrs["axes"]) == [1]


@pytest.mark.parametrize(("annotation", "said"), [(dict, "dict"), (inspect._empty, "nothing")])
def test_a_parameter_of_no_known_kind(annotation, said):
    def wrong(data, table):
        """Nothing."""

    wrong.__annotations__.update(data=Expr)
    if annotation is dict:
        wrong.__annotations__.update(table=annotation)
    message = f"table is annotated {said}; expected one of Expr, Exprs"
    with pytest.raises(IRTypeError, match=message):
        operator("relax.test_annotations_wrong", same_as_input)(wrong)
    assert "relax.test_annotations_wrong" not in Op.list_op_names()


def test_a_primitive_of_a_file_without_postponed_annotations():
    def noted(self: Schedule, block: BlockRV | str, *loops: LoopRV, factor: int) -> list[LoopRV]:
        """Nothing: the loops again."""

    assert define._checks(inspect.signature(noted)) == [
        ("block", define._block),
        ("loops", define._loops),
        ("factor", define._number),
    ]
