"""Statements that mean nothing in a graph function: what the error says, and what it underlines."""

from __future__ import annotations

import pytest

import weft.script
from tests.lib.script_errors import error_of
from weft.ir.structural import structural_equal

HEAD = """@R.function
def main(
    x: R.Tensor((3, 4), "float32"), y: R.Tensor((4,), "float32"),
    t: R.Tuple(R.Tensor((3,), "float32"), R.Object), n: R.Prim("int64"),
    s: R.Shape(["m", 2]), c: R.Tensor((), "bool"),
):
    """


def error_at(statement):
    """The message of the error of a statement, and the text that it underlines."""
    ends = statement.startswith("return") or ": return" in statement
    return error_of(f"{HEAD}{statement}" + ("" if ends else "\n    return x"))


# Statement, what is underlined, how the message begins.
# fmt: off
ROWS = [
    ("return z", "z", "undefined name 'z'"),
    ("return x, q", "q", "undefined name 'q'"),
    ('return {"a": x}', 'return {"a": x}', "expected a graph expression, got dict: {'a': x}"),
    ("return x[0]", "x[0]",
     'TupleGetItem: expected a tuple, got R.Tensor((3, 4), dtype="float32"); R.take an'),
    ("return t[5]", "t[5]", "TupleGetItem: index 5 of a tuple of 2 fields"),
    ('return t["a"]', 't["a"]', "expected the number of a field, got 'a'"),
    ("return t[x]", "t[x]", "expected the number of a field, got x"),
    ("return x.foo", "x.foo", "Var has no attribute 'foo' that a script's text can use"),
    ("return x()", "return x()",
     'call: the callee is no function, its struct info is R.Tensor((3, 4), dtype="floa'),
    ("return R", "return R", "expected a graph expression, got Namespace: <the names of R>"),
    ("return R.foo(x)", "R.foo",
     "R.foo is neither an operator nor a part of the language; did you mean R.floor?"),
    ("return R.add(x)", "R.add(x)",
     "relax.add: missing a required argument: 'x2'; its parameters are (x1: 'Expr', x2"),
    ("return R.add(x, y, y)", "R.add(x, y, y)",
     "relax.add: too many positional arguments; its parameters are (x1: 'Expr', x2: 'E"),
    ('return R.add(x, "text")', 'return R.add(x, "text")',
     "relax.add: x2: expected a tensor, got R.Object"),
    ("return R.add(x, z=3)", "R.add(x, z=3)",
     "relax.add: missing a required argument: 'x2'; its parameters are (x1: 'Expr', x2"),
    ("return R.add(x, t)", "return R.add(x, t)",
     'relax.add: x2: expected a tensor, got R.Tuple(R.Tensor((3,), dtype="float32"), R'),
    ("return R.matmul(x, x)", "return R.matmul(x, x)",
     "relax.matmul: the inner dimensions 4 and 3 of (3, 4) and (3, 4) must be equal"),
    ("return R.reshape(x, (5, 5))", "return R.reshape(x, (5, 5))",
     "relax.reshape: cannot reshape (3, 4) of 12 elements to (5, 5) of 25"),
    ('return R.reshape(x, "a")', 'R.reshape(x, "a")',
     'a dimension must be an integer, got handle: "a"'),
    ("return R.permute_dims(x, [0, 0])", "return R.permute_dims(x, [0, 0])",
     "relax.permute_dims: axes [0, 0] names one axis twice"),
    ("return R.concat(x)", "return R.concat(x)",
     'relax.concat: tensors: expected a tuple of tensors, got R.Tensor((3, 4), dtype="'),
    ("return R.concat([x, y])", "return R.concat([x, y])",
     "relax.concat: the tensors have different numbers of dimensions: [1, 2]"),
    ("return R.split(x, 5, axis=0)", "return R.split(x, 5, axis=0)",
     "relax.split: cannot split an extent of 3 into 5 sections"),
    ('return R.astype(x, "foo")', 'R.astype(x, "foo")',
     "relax.astype: dtype: expected a data type such as 'float32', 'int64' or 'bool', "),
    ('return R.zeros("a", "float32")', 'R.zeros("a", "float32")',
     'relax.zeros: shape: a dimension must be an integer, got handle: "a"'),
    ('return R.const(3, "foo")', 'R.const(3, "foo")',
     "expected a data type such as 'float32', 'int64' or 'bool', got 'foo'"),
    ("return R.const(None)", "R.const(None)",
     "expected numbers, nested lists of one shape, or an array, got NoneType of numpy "),
    ("return R.call_tir()", "R.call_tir()",
     "call_tir() missing 2 required positional arguments: 'func' and 'args'"),
    ('return R.call_tir(x, (y,), R.Tensor((3,), "float32"))',
     'R.call_tir(x, (y,), R.Tensor((3,), "float32"))',
     "call_tir: expected a GlobalVar (a function of the module), got Var; for a functi"),
    ("return R.call_packed()", "R.call_packed()",
     "call_packed() missing 1 required positional argument: 'func'"),
    ('return R.call_packed("f", x, sinfo_args=3)', 'R.call_packed("f", x, sinfo_args=3)',
     "expected struct info such as R.Tensor((2, 3), 'float32'), got int: 3"),
    ("return R.call_packed(3, x, sinfo_args=R.Tensor)",
     "return R.call_packed(3, x, sinfo_args=R.Tensor)",
     "normalize: expected a graph expression, got int"),
    ('return R.call_dps_packed("f", x)', 'R.call_dps_packed("f", x)',
     "R.call_dps_packed: out_sinfo=R.Tensor(shape, dtype) is missing"),
    ("return R.invoke_closure(x, ())", "R.invoke_closure(x, ())",
     "invoke_closure() missing 1 required positional argument: 'sinfo_args'"),
    ("return R.match_cast(x)", "R.match_cast(x)",
     "match_cast() missing 1 required positional argument: 'struct_info'"),
    ("return R.match_cast(x, 3)", "R.match_cast(x, 3)",
     "expected struct info such as R.Tensor((2, 3), 'float32'), got int: 3"),
    ('return R.shape([1, "a"])', 'R.shape([1, "a"])',
     'a dimension must be an integer, got handle: "a"'),
    ("return R.shape([x])", "R.shape([x])", "expected an expression or a number, got Var: x"),
    ("return R.prim_value(x)", "R.prim_value(x)", "expected an expression or a number, got Var: x"),
    ('return R.dtype("foo")', 'R.dtype("foo")',
     "expected a data type such as 'float32', 'int64' or 'bool', got 'foo'"),
    ('return x + "a"', 'return x + "a"', "relax.add: x2: expected a tensor, got R.Object"),
    ("return x + t", "return x + t",
     'relax.add: x2: expected a tensor, got R.Tuple(R.Tensor((3,), dtype="float32"), R'),
    ("return x @ x", "return x @ x",
     "relax.matmul: the inner dimensions 4 and 3 of (3, 4) and (3, 4) must be equal"),
    ("return -t", "return -t",
     'relax.negative: x: expected a tensor, got R.Tuple(R.Tensor((3,), dtype="float32"'),
    ("return not x", "not x",
     "the value is not known before the function runs; write R.logical_not(x)"),
    ("return x and y", "x and y",
     "the value is not known before the function runs; write R.logical_and(x, y) or R."),
    ("return x == x", "x == x", "graph values are compared element by element: R.equal(x, y)"),
    ("return x != 1", "x != 1", "graph values are compared element by element: R.not_equal(x, y)"),
    ("return 1 == x", "1 == x", "graph values are compared element by element: R.equal(x, y)"),
    ("return x < y < x", "x < y < x",
     "the value is not known before the function runs; write R.logical_and of two comp"),
    ("return x if c else y", "x if c else y",
     "the value is not known before the function runs; write R.where(c, x, y), or a st"),
    ("return [v for v in x]", "[v for v in x]",
     "expected a tuple of known length to go through, got a Var with struct_info R.Ten"),
    ("return (yield)", "yield", "yield is not part of TVMScript"),
    ("a, b = x", "a, b = x",
     'TupleGetItem: expected a tuple, got R.Tensor((3, 4), dtype="float32"); R.take an'),
    ("a, b = t, y, x", "a, b", "expected 2 values to unpack, got 3"),
    ("a, b, d = t", "a, b, d = t", "TupleGetItem: index 2 of a tuple of 2 fields"),
    ("a = b = x", "b", "one assignment has one left side: a = b = c is none"),
    ('a: R.Tensor((3, 4), "int32") = x', 'a: R.Tensor((3, 4), "int32") = x',
     "the annotation R.Tensor((3, 4), dtype=\"int32\") does not fit the value's R.Tensor"),
    ('a: R.Tensor((4, 4), "float32") = x', 'a: R.Tensor((4, 4), "float32") = x',
     "the annotation R.Tensor((4, 4), dtype=\"float32\") does not fit the value's R.Tens"),
    ("a: R.Tensor(ndim=3) = x", "a: R.Tensor(ndim=3) = x",
     "the annotation R.Tensor(ndim=3) does not fit the value's R.Tensor((3, 4), dtype="),
    ("a: 5 = x", "5", "expected struct info such as R.Tensor((2, 3), 'float32'), got int: 5"),
    ("a: foo = x", "foo", "undefined name 'foo'"),
    ('a: R.Tensor((3, 4), "float32")', 'a: R.Tensor((3, 4), "float32")',
     "expected `name: struct info = value`"),
    ("a += x", "a += x", "AugAssign is not supported in R.function"),
    ('x += "a"', 'x += "a"', "AugAssign is not supported in R.function"),
    ("x[0] = y", "x[0]", "expected a name on the left side: graph values do not change"),
    ("x.foo = y", "x.foo", "expected a name on the left side: graph values do not change"),
    ("a = R.foo", "R.foo",
     "R.foo is neither an operator nor a part of the language; did you mean R.floor?"),
    ("a = z", "z", "undefined name 'z'"),
    ("del x", "del x", "Delete is not supported in R.function"),
    ("global x", "global x", "Global is not supported in R.function"),
    ("import math", "import math", "Import is not supported in R.function"),
    ("x", "x",
     'this value (R.Tensor((3, 4), dtype="float32")) is not used: assign it to a variable'),
    ("R.add(x, x)", "R.add(x, x)",
     'this value (R.Tensor((3, 4), dtype="float32")) is not used: assign it to a variable'),
    ("R.output(x)", "R.output(x)", "R.output must stand directly inside `with R.dataflow()`"),
    ("3", "3", "expected a statement, got int"),
    ("assert c", "assert c", "Assert is not supported in R.function"),
    ("assert x", "assert x", "Assert is not supported in R.function"),
    ("for i in range(3): pass", "for i in range(3): pass", "For is not supported in R.function"),
    ("for i in x: pass", "for i in x: pass", "For is not supported in R.function"),
    ("while c: pass", "while c: pass", "While is not supported in R.function"),
    ("with x: pass", "x", "expected R.dataflow() after `with`"),
    ("with R.dataflow(): R.output(x)", "R.output(x)",
     "R.output: expected variables of the dataflow block, got x"),
    ("with R.dataflow(): R.output(zz)", "zz", "undefined name 'zz'"),
    ("with R.dataflow(): return x", "return x",
     "return must stand at the end of the function, not inside of a block"),
    ("with R.dataflow(), R.dataflow(): pass", "with R.dataflow(), R.dataflow(): pass",
     "expected one item after `with`"),
    ("with R.foo(): pass", "R.foo",
     "R.foo is neither an operator nor a part of the language; did you mean R.floor?"),
    ("with R.If(c): pass", "with R.If(c): pass",
     "a choice in a graph function needs both branches"),
    ("if c: a = x", "if c: a = x",
     "a choice in a graph function needs both branches: else is missing"),
    ("if x: a = x", "if x: a = x",
     "a choice in a graph function needs both branches: else is missing"),
    ("if t: a = x", "if t: a = x",
     "a choice in a graph function needs both branches: else is missing"),
    ("def g(): pass", "def g(): pass",
     "function 'g' has no decorator of TVMScript: expected @I.ir_module, @T.prim_func "),
    ("class G: pass", "class G: pass", "ClassDef is not supported in R.function"),
    ("raise ValueError", "raise ValueError", "Raise is not supported in R.function"),
    ("R.func_attr(3)", "R.func_attr(3)", "R.func_attr: expected a dict of values by name, got 3"),
    ("R.func_attr({3: 1})", "R.func_attr({3: 1})",
     "R.func_attr: expected a dict of values by name, got {3: 1}"),
    ("R.match_cast(x, R.Tensor((q, 4)))", "q", "undefined name 'q'"),
]
# fmt: on


@pytest.mark.parametrize(("statement", "place", "message"), ROWS, ids=[row[0] for row in ROWS])
def test_what_a_statement_may_not_be(statement, place, message):
    found, underlined = error_at(statement)
    assert found.startswith(message)
    assert underlined == place


@pytest.mark.parametrize(
    "expression",
    ["not c", "c and c", "c or x", "x if c else y", "x < y < x", "1 < x < 2", "not x < y"],
)
def test_python_decides_nothing_about_a_graph_value(expression):
    """It takes any object for true: ``x if c else y`` once was x, ``x < y < x`` was ``y < x``."""
    found, underlined = error_at(f"return {expression}")
    assert found.startswith("the value is not known before the function runs; write R.")
    assert underlined == expression


@pytest.mark.parametrize(
    ("python", "graph"),
    [
        ("x if True else y", "x"), ("x if not False else y", "x"), ("(None or 3) * x", "3 * x"),
        ("x if 1 < 2 < 3 else y", "x"), ("x + (1 if None is None else 2)", "x + 1"),
    ],
)  # fmt: skip
def test_python_decides_about_values_of_python(python, graph):
    found, wanted = (
        weft.script.from_source(f"{HEAD}return {expression}") for expression in (python, graph)
    )
    assert structural_equal(found, wanted)


def test_a_field_of_a_tensor_is_no_element():
    for statement in ("return x[0]", "a, b = x"):
        found, _ = error_at(statement)
        assert found.startswith("TupleGetItem: expected a tuple, got R.Tensor((3, 4)")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('return R.call_packed("f", x)', "main: the value of gv: f has side effects"),
        ("return R.print(x)", "main: the value of gv: relax.print has side effects"),
        ("R.print(x)", "main: the value of _: relax.print has side effects"),
    ],
)
def test_effects_in_a_pure_function(statement, message):
    found, underlined = error_at(statement)
    assert found.startswith(message)
    assert underlined == "def main("


PARAMETERS = [
    ("x", "x", "parameter 'x' needs a type, such as R.Tensor"),
    ("x: 5", "5", "expected struct info such as R.Tensor((2, 3), 'float32'), got int: 5"),
    ("x: foo", "foo", "undefined name 'foo'"),
    ("x: R.Tensor((2.5,))", "R.Tensor((2.5,))", "a dimension must be an integer, got float32"),
    ("x: R.Tensor(('n n',))", "R.Tensor(('n n',))", "'n n' is no dimension"),
    ("x: R.Tensor((2, 3), 'foo')", "R.Tensor((2, 3), 'foo')", "expected a data type such as"),
    ("x: R.Tensor((2, 3), ndim=3)", "R.Tensor((2, 3), ndim=3)", ""),
    ("*x", "x", "a script's function has plain parameters only"),
    ("x: R.Object = 3", "3", "a script's parameter has no default value"),
]


@pytest.mark.parametrize(("parameter", "place", "message"), PARAMETERS)
def test_what_a_parameter_may_not_be(parameter, place, message):
    found, underlined = error_of(f"@R.function\ndef main({parameter}):\n    return R.tuple()")
    assert found.startswith(message)
    assert underlined == place
