"""The ``@node`` decorator: constructors, conversions, copies, field tables, containers."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from weft import ir, te, tir
from weft.ir.expr import PrimExpr
from weft.ir.functor import substitute
from weft.ir.node import NODE_CLASSES, NODE_TYPES, Array, Map, Node, derived, field, freeze, node
from weft.relax.expr import DataflowVar
from weft.support.errors import IRAttributeError, IRTypeError, IRValueError
from weft.tir.stmt import For


@node
class Sample(Node):
    """A node class of this test."""

    first: PrimExpr
    items: Array[PrimExpr] = field(default=())
    table: Map[str, str] = field(default=None)
    note: str = field(default="", compare=False)
    link: object = field(default=None, visit=False)
    half: int = derived()

    def _check_(self) -> None:
        self.half = self.first.value // 2


def test_the_constructor_takes_fields_in_order_and_by_name():
    made = Sample(4, [1, 2], {"a": "b"}, "text")
    again = Sample(first=4, items=[1, 2], table={"a": "b"}, note="text")
    assert (made.first.value, made.note, made.half, made.link) == (4, "text", 2, None)
    assert ir.structural_equal(made, again)
    assert Sample.INIT_FIELDS == ("first", "items", "table", "note", "link")


def test_conversions_follow_the_annotations():
    made = Sample(4, (1, 2.5), None)
    assert type(made.first) is ir.IntImm
    assert type(made.items) is Array
    assert [type(item) for item in made.items] == [ir.IntImm, ir.FloatImm]
    assert type(made.table) is Map
    assert made.table == {}


def test_an_iteration_variable_stands_for_its_variable():
    axis = te.reduce_axis((0, 4), name="k")
    assert tir.Add(axis, axis.var).a is axis.var


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Sample(), "missing 1 required positional argument: 'first'"),
        (lambda: Sample(1, wrong=2), "unexpected keyword argument 'wrong'"),
        (lambda: Sample(object()), "expected an expression or a number, got object"),
        (lambda: tir.Add(tir.Var("x", "int32"), tir.Var("y", "int64")), "mismatched types"),
        (lambda: tir.Var(3), "expected a name, got 3"),
        (lambda: tir.Ramp(0, 1, 0), "at least 1, got 0"),
        (lambda: tir.Not(1), "expected a bool operand, got int32"),
        (lambda: tir.For(1, 0, 4, 0, tir.Evaluate(0)), "expected a Var, got"),
        (lambda: tir.IntImm("float32", 1), "expected an integer type, got float32"),
        (lambda: tir.IntImm("int32", 1.5), "expected an int, got 1.5"),
        (lambda: tir.FloatImm("int32", 1.5), "expected a floating-point type, got int32"),
        (lambda: tir.Var("x", "flot32"), "expected a data type such as 'float32'"),
        (lambda: tir.Var("x", tir.Var("y", "int32")), "expected a data type such as 'float32'"),
    ],
)
def test_wrong_arguments_are_type_errors(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_a_constant_that_does_not_fit_names_the_range():
    with pytest.raises(ValueError, match=r"128 does not fit int8, \[-128, 127\]"):
        tir.IntImm("int8", 128)


def test_with_returns_the_same_object_when_nothing_changes():
    made = Sample(4, [1, 2])
    assert made.with_(first=made.first, items=made.items) is made
    changed = made.with_(first=ir.IntImm("int32", 6))
    assert (changed.half, changed.items is made.items) == (3, True)


def test_with_refuses_unknown_fields():
    with pytest.raises((IRTypeError, IRAttributeError), match="nothing"):
        Sample(4).with_(nothing=1)


def test_nodes_have_slots_and_no_dict():
    lost = [kind for kind in NODE_TYPES.values() if hasattr(kind, "__dictoffset__") and
            kind.__dictoffset__]  # fmt: skip
    assert not lost, f"with a __dict__: {lost}"
    with pytest.raises(AttributeError):
        Sample(4).anything = 1


def test_field_tables_follow_the_flags():
    assert "link" not in Sample.CHILDREN
    assert "note" not in [name for name, _ in Sample.STRUCTURE]
    assert "half" not in Sample.INIT_FIELDS
    assert dict(For.STRUCTURE)["loop_var"] is True
    assert dict(For.STRUCTURE)["body"] is False
    assert set(For.CHILDREN) >= {"loop_var", "min", "extent", "body"}


@node
class Holder(Node):
    """A node class with every kind of field that walks enter."""

    first: PrimExpr
    maybe: PrimExpr | None = field(default=None)
    items: Array[PrimExpr] = field(default=())
    inner: Node | None = field(default=None)
    table: Map[str, Node] = field(default=None)
    note: str = field(default="")


def test_parts_are_the_nodes_right_below_from_left_to_right():
    x, y, z = (tir.Var(name, "int32") for name in "xyz")
    inner = Holder(x)
    table = {"a": inner, "b": [y, "text", [z]]}
    whole = Holder(x + 1, y, [z, x], inner, table, "a note")
    assert whole._parts_() == (whole.first, y, z, x, inner, inner, y, z)
    assert Holder(x)._parts_() == (x,)
    assert x._parts_() == ()


def test_a_node_is_rebuilt_only_where_a_child_changes():
    x, y, z = (tir.Var(name, "int32") for name in "xyz")
    whole = Holder(x + 1, y, [z, y], Holder(x), {"a": Holder(y)}, "a note")
    assert substitute(whole, {tir.Var("w", "int32"): z}) is whole
    rebuilt = substitute(whole, {y: z})
    assert (rebuilt.first, rebuilt.inner, rebuilt.note) == (whole.first, whole.inner, "a note")
    assert (rebuilt.maybe, list(rebuilt.items), rebuilt.table["a"].first) == (z, [z, z], z)
    assert rebuilt.items[0] is z
    assert type(rebuilt.items) is Array
    assert type(rebuilt.table) is Map
    alone = Holder(x, None, [], None, None)
    assert substitute(alone, {x: y})._parts_() == (y,)


def test_python_suggests_the_nearest_attribute():
    program = "from weft import tir\ntir.Var('x', 'int32').dtyp"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "'Var' object has no attribute 'dtyp'. Did you mean: 'dtype'?" in ended.stderr


def test_attributes_of_nodes_are_looked_up_at_full_speed():
    """Python 3.11 specialises neither ``isinstance`` nor attributes otherwise (weft.ir.node)."""
    for kind in NODE_CLASSES:
        assert type(kind) is type
        assert not hasattr(kind, "__getattr__")
        assert "__dict__" not in dir(kind)


def test_nodes_are_compared_and_hashed_by_identity():
    one, other = tir.Evaluate(0), tir.Evaluate(0)
    assert one != other
    assert len({one, other}) == 2


def test_a_copy_is_the_node_itself_and_pickle_keeps_the_structure():
    x = tir.Var("x", "int32")
    expr = tir.Let(x, tir.IntImm("int32", 3), x + x)
    assert copy.copy(expr) is expr
    assert copy.deepcopy(expr) is expr
    back = pickle.loads(pickle.dumps(expr))
    assert back.body.a is back.var
    ir.assert_structural_equal(back, expr)
    assert pickle.loads(pickle.dumps(ir.Op.get("tir.exp"))) is ir.Op.get("tir.exp")


def test_deep_expressions_pickle():
    x = expr = tir.Var("x", "int32")
    for _ in range(5000):
        expr = tir.Add(expr, x)
    assert ir.structural_equal(pickle.loads(pickle.dumps(expr)), expr, map_free_vars=True)


def test_a_node_of_what_has_no_text_says_so_when_pickled():
    with pytest.raises(TypeError, match=r"builtins\.object cannot be written as JSON"):
        pickle.dumps(Sample(4, link=object()))


def test_types_are_values():
    assert tir.Var("x", ir.PointerType(ir.PrimType("int8"))).dtype == "handle"
    assert ir.PrimType("int8") == ir.PrimType("int8")
    assert ir.PointerType(ir.PrimType("int8"), "shared") != ir.PointerType(ir.PrimType("int8"))
    assert len({ir.TupleType([]), ir.TupleType(())}) == 1


# ---- containers


def test_array_prints_and_adds_like_a_sequence():
    made = Array([1, 2])
    assert repr(made) == str(made) == "[1, 2]"
    assert made + [3] == [1, 2, 3]
    assert (0,) + made == (0, 1, 2)
    assert type(made + (3,)) is Array
    assert type([0] + made) is Array
    assert type(made[:1]) is Array
    assert made[-1] == 2
    assert isinstance(made, tuple)


def test_array_of_shapes_compares_by_value_and_identity():
    n = tir.Var("n", "int32")
    shape = Array([n, ir.IntImm("int32", 4)])
    assert shape == [n, 4]
    assert shape == (n, 4)
    assert shape != [tir.Var("n", "int32"), 4]
    assert shape != [n]
    assert shape != "[n, 4]"


def test_array_equality_agrees_with_its_hash():
    assert hash(Array([1, 2])) == hash((1, 2))
    assert {Array([1, 2]): "found"}[(1, 2)] == "found"


def test_freeze_makes_containers_of_nodes():
    made = freeze({"a": [1, (2,)], "b": {"c": []}})
    assert type(made) is Map
    assert type(made["a"]) is Array
    assert type(made["a"][1]) is Array
    assert type(made["b"]) is Map


def test_attrs_read_as_attributes_and_name_what_there_is():
    attrs = ir.Attrs(
        {"strides": [1, 1], "layout": tir.StringImm("NCHW"), "n": ir.IntImm("int32", 3)}
    )
    assert attrs.strides == [1, 1]
    assert attrs["layout"] == "NCHW"
    assert (attrs.n, attrs.get_int("n"), attrs.get_str("layout")) == (3, 3, "NCHW")
    assert attrs.updated(n=4).n == 4
    with pytest.raises(AttributeError, match="no attribute 'stride'; there are: strides, layout"):
        attrs.stride


# ---- the truth of ==


CONSTANTS = [
    0, 1, -1, 2.0, 0.1, float("inf"), True,
    ir.IntImm("int32", 1), ir.IntImm("int64", 1), ir.IntImm("int8", -1), ir.IntImm("uint8", 255),
    ir.IntImm("int32", 2**24 + 1), ir.IntImm("bool", 1), ir.FloatImm("float32", 1.0),
    ir.FloatImm("float32", 0.1), ir.FloatImm("float64", 0.1), ir.FloatImm("float16", 0.1),
    ir.FloatImm("float32", 2.0**24),
]  # fmt: skip


@pytest.mark.parametrize("lhs", [item for item in CONSTANTS if isinstance(item, Node)], ids=repr)
def test_equal_constants_hash_alike(lhs):
    for rhs in CONSTANTS:
        if bool(lhs == rhs):
            assert hash(lhs) == hash(rhs), rhs
            assert {lhs: 1}.get(rhs) == 1
        assert bool(lhs == rhs) is not bool(lhs != rhs)
        assert bool(rhs == lhs) is bool(lhs == rhs)


def test_constants_are_found_in_dicts_by_their_python_value():
    table = {ir.IntImm("int32", 3): "i", ir.FloatImm("float64", 0.5): "f", tir.StringImm("a"): "s"}
    assert (table[3], table[0.5], table["a"]) == ("i", "f", "s")


def test_variables_are_equal_to_themselves_only():
    x, y = tir.Var("x", "int32"), tir.Var("x", "int32")
    assert isinstance(x == y, tir.EQ)
    assert bool(x == x)
    assert not bool(x == y)
    assert bool(x != y)
    assert {x: 1}.get(y) is None
    assert x not in [y]
    assert (x == None) is False  # noqa: E711 - the operator is tested
    assert (x == "x") is False


def test_an_expression_has_no_truth_value():
    x = tir.Var("x", "int32")
    with pytest.raises(IRValueError, match="no truth value; use tir.all"):
        bool(x < 3)


def test_dataflow_variables_have_a_kind_of_their_own():
    assert DataflowVar.KIND == "DataflowVar"
    assert tir.Var.KIND == "Var"
