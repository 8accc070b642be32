"""Dataflow blocks, branches and local functions of graph scripts: what is seen where."""

from __future__ import annotations

import pytest

from tests.lib.round_trip import assert_round_trip
from tests.lib.script_errors import error_of
from weft.ir.functor import collect
from weft.ir.structural import assert_structural_equal
from weft.relax.expr import DataflowBlock, DataflowVar, Function, If, MatchCast, SeqExpr, Tuple, Var
from weft.relax.struct_info import TensorStructInfo
from weft.script import from_source

HEAD = """@R.function
def main(
    c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32"),
    t: R.Tuple(R.Tensor((4,), "float32"), R.Object),
):
"""


def parse(body):
    func = from_source(HEAD + body)
    assert_round_trip(func)
    return func


def wrong(body):
    return error_of(HEAD + body)


def kinds(func):
    return [type(block).__name__ for block in func.body.blocks]


def names(func):
    return [binding.var.name_hint for block in func.body.blocks for binding in block.bindings]


# ---- dataflow


def test_an_output_is_a_variable_that_is_seen_after_the_block():
    func = parse("""    with R.dataflow():
        a = R.exp(x)
        b = R.add(a, a)
        R.output(b, a)
    return R.add(a, b)
""")
    (block, rest) = func.body.blocks
    assert isinstance(block, DataflowBlock)
    assert [type(binding.var) for binding in block.bindings] == [Var, Var]
    assert block.bindings[1].value.args[0] is block.bindings[0].var
    assert rest.bindings[0].value.args[1] is block.bindings[1].var


def test_an_output_that_is_named_twice_is_one():
    func = parse("""    with R.dataflow():
        a = R.exp(x)
        R.output(a, a)
    return a
""")
    assert names(func) == ["a"]


def test_a_block_without_output_gives_nothing():
    func = parse("""    with R.dataflow():
        a = R.exp(x)
        R.output()
    return x
""")
    assert [type(binding.var) for binding in func.body.blocks[0].bindings] == [DataflowVar]
    message, place = wrong("""    with R.dataflow():
        a = R.exp(x)
        R.output()
    return a
""")
    assert message == (
        "'a' is a variable of the dataflow block above; give it to R.output to use it here"
    )
    assert place == "a"


def test_a_name_that_is_bound_again_after_the_block_is_new():
    func = parse("""    with R.dataflow():
        a = R.exp(x)
        b = R.exp(a)
        R.output(b)
    a = R.negative(b)
    return a
""")
    assert names(func) == ["a", "b", "a"]


def test_a_name_of_python_in_a_block_is_known_after_it():
    func = parse("""    with R.dataflow():
        n = T.int64()
        a = R.match_cast(x, R.Tensor((n,), "float32"))
        R.output(a)
    b: R.Tensor((n,), "float32") = R.exp(a)
    return b
""")
    (binding,) = func.body.blocks[1].bindings
    assert binding.var.struct_info.shape.values[0].name == "n"


def test_neighbouring_blocks_of_one_kind_are_one():
    func = parse("""    with R.dataflow():
        a = R.exp(x)
        R.output(a)
    with R.dataflow():
        b = R.exp(a)
        R.output(b)
    return b
""")
    assert kinds(func) == ["DataflowBlock"]


def test_plain_bindings_stand_around_a_block():
    func = parse("""    a = R.exp(x)
    with R.dataflow():
        b = R.exp(a)
        R.output(b)
    c = R.exp(b)
    return c
""")
    assert kinds(func) == ["BindingBlock", "DataflowBlock", "BindingBlock"]


def test_casts_in_a_block_bind_variables_of_the_block():
    func = parse("""    with R.dataflow():
        a = R.match_cast(t[0], R.Tensor(("n",), "float32"))
        R.match_cast(x, R.Tensor(("n",), "float32"))
        b = R.add(a, a)
        R.output(b)
    return b
""")
    casts = [b for b in func.body.blocks[0].bindings if isinstance(b, MatchCast)]
    assert [type(cast.var) for cast in casts] == [DataflowVar, DataflowVar]
    assert [cast.var.name_hint for cast in casts] == ["a", "_"]
    assert casts[0].struct_info.shape.values[0] is casts[1].struct_info.shape.values[0]


WRONG_BLOCKS = [
    ("with R.dataflow():\n        R.output(x)", "R.output: expected variables of the dataflow"),
    ("with R.dataflow():\n        R.output(3)", "R.output: expected variables of the dataflow"),
    ("with R.dataflow():\n        a = R.exp(x)\n        R.output(a)\n        R.output(a)",
     "the dataflow block has two R.output"),
    ("with R.dataflow():\n        with R.dataflow():\n            R.output()",
     "R.dataflow belongs directly inside a function or a branch"),
    ("with R.dataflow():\n        return x",
     "return must stand at the end of the function, not inside of a block"),
    ("if c:\n        return x\n    else:\n        return x",
     "return must stand at the end of the function, not inside of a block"),
    ("R.output(x)", "R.output must stand directly inside `with R.dataflow()`"),
    ("with T.block('b'):\n        pass", "a TensorIR statement cannot stand in a FunctionFrame"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "message"), WRONG_BLOCKS, ids=[r[0] for r in WRONG_BLOCKS])
def test_a_wrong_block(lines, message):
    found, _ = wrong(f"    {lines}\n    return x\n")
    assert found.startswith(message)


def test_an_effect_in_a_block_is_ill_formed():
    message, _ = error_of(
        HEAD.replace("@R.function", "@R.function(pure=False)")
        + "    with R.dataflow():\n        a = R.print(x)\n        R.output()\n    return x\n"
    )
    assert message.startswith("main: the value of a: relax.print has side effects, which a data")


# ---- branches


def test_the_value_of_a_branch_is_its_last_binding():
    func = parse("""    if c:
        a = R.exp(x)
        y = R.add(a, a)
    else:
        y = x
    return y
""")
    (choice,) = collect(func.body, If)
    assert isinstance(choice.true_branch, SeqExpr)
    assert [b.var.name_hint for b in choice.true_branch.blocks[0].bindings] == ["a", "y"]
    assert choice.true_branch.body is choice.true_branch.blocks[0].bindings[1].var
    assert not choice.false_branch.blocks
    assert choice.false_branch.body is func.params[1]
    assert names(func) == ["y"]


def test_a_branch_may_end_with_a_tuple():
    func = parse("""    if c:
        y = (x, x)
    else:
        y = (x, R.exp(x))
    return y
""")
    (choice,) = collect(func.body, If)
    assert isinstance(choice.true_branch.body, Tuple)
    assert len(choice.false_branch.blocks[0].bindings) == 1


def test_branches_nest_and_stand_in_each_other():
    func = parse("""    if c:
        if c:
            y = R.exp(x)
        else:
            y = R.negative(x)
    elif c:
        y = R.sin(x)
    else:
        y = R.cos(x)
    return y
""")
    assert len(collect(func.body, If)) == 3


def test_a_branch_holds_dataflow():
    func = parse("""    if c:
        with R.dataflow():
            a = R.exp(x)
            y = R.add(a, a)
            R.output(y)
        z = y
    else:
        z = x
    return z
""")
    (choice,) = collect(func.body, If)
    assert isinstance(choice.true_branch.blocks[0], DataflowBlock)


def test_names_of_a_branch_end_with_it():
    message, place = wrong("""    if c:
        a = R.exp(x)
        y = R.add(a, a)
    else:
        y = x
    return a
""")
    assert message.startswith("undefined name 'a'")
    assert place == "a"


def test_the_result_of_different_branches_is_what_both_have_in_common():
    func = from_source(HEAD + """    if c:
        y = R.zeros((4,), "float32")
    else:
        y = R.zeros((5,), "float32")
    return y
""")  # fmt: skip
    assert func.ret_struct_info == TensorStructInfo(None, "float32", ndim=1)


WRONG_BRANCHES = [
    ("if c:\n        y = x", "a choice in a graph function needs both branches: else is missing"),
    ("if c:\n        y = x\n    else:\n        z = x",
     "both branches must end with a binding of the same variable, got 'y' and 'z'"),
    ("if c:\n        pass\n    else:\n        y = x",
     "a branch must end with a binding: both branches give its value"),
    ("if c:\n        y = x\n    else:\n        pass",
     "a branch must end with a binding: both branches give its value"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "message"), WRONG_BRANCHES, ids=[r[1] for r in WRONG_BRANCHES])
def test_a_wrong_branch(lines, message):
    found, _ = wrong(f"    {lines}\n    return x\n")
    assert found == message


@pytest.mark.parametrize(("condition", "name"), [("True", "relax.exp"), ("1 > 2", "relax.sin")])
def test_a_condition_of_python_chooses_now(condition, name):
    func = parse(f"""    if {condition}:
        y = R.exp(x)
    else:
        y = R.sin(x)
    return y
""")
    assert not collect(func.body, If)
    assert func.body.blocks[0].bindings[0].value.op.name == name


# ---- local functions


LOCAL = """    @R.function
    def inner(y: R.Tensor((4,), "float32")){}:
        return R.add(y, x)

    z = inner(x)
    return z
"""


@pytest.mark.parametrize("result", ["", ' -> R.Tensor((4,), "float32")'])
def test_a_local_function_sees_the_names_around_it(result):
    func = parse(LOCAL.format(result))
    (inner,) = [f for f in collect(func.body, Function) if f is not func]
    assert "global_symbol" not in inner.attrs
    assert inner.body.blocks[0].bindings[0].value.args[1] is func.params[1]
    assert func.ret_struct_info == TensorStructInfo((4,), "float32")


def test_a_local_function_may_call_itself_and_share_symbols():
    func = from_source("""
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    @R.function
    def inner(y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        z = inner(y)
        return z

    return inner(x)
""")
    binding = func.body.blocks[0].bindings[0]
    call = binding.value.body.blocks[0].bindings[0].value
    assert call.op is binding.var
    inner = binding.value.params[0].struct_info.shape.values[0]
    assert inner is func.params[0].struct_info.shape.values[0]
    assert_round_trip(func)


def test_a_local_function_with_effects_says_so():
    func = from_source("""
@R.function(pure=False)
def main(x: R.Tensor((4,), "float32")):
    @R.function(pure=False)
    def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.print(y, format="{}")
        return y

    z = inner(x)
    return z
""")
    assert not func.body.blocks[0].bindings[0].value.is_pure
    assert_round_trip(func)


def test_a_local_prim_func_is_refused():
    message, place = wrong("    @T.prim_func\n    def g():\n        T.evaluate(0)\n    return x\n")
    assert message == "inside of an R.function only an R.function can be defined"
    assert place.startswith("def g()")


# ---- results and unpacking


@pytest.mark.parametrize(
    ("statement", "fields"),
    [("return x, x", 2), ("return (x,)", 1), ("return ()", 0), ("return", 0), ("return [x, x]", 2)],
)
def test_a_result_of_several_values(statement, fields):
    func = parse(f"    {statement}\n")
    assert isinstance(func.body.body, Tuple)
    assert len(func.body.body.fields) == fields


UNPACKED = [
    ("a, b = t", ["gv", "a", "b"]), ("a, b = (x, x)", ["a", "b"]), ("[a, b] = [x, x]", ["a", "b"]),
    ("a, b = R.split(x, 2)", ["gv", "a", "b"]), ("a, *b = (x, x, x)", ["a", "b"]),
    ("(a, b), d = (x, x), x", ["a", "b", "d"]),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "wanted"), UNPACKED, ids=[row[0] for row in UNPACKED])
def test_several_names_of_one_value(statement, wanted):
    assert names(parse(f"    {statement}\n    return a\n")) == wanted


def test_a_function_without_result_or_with_two():
    assert wrong("    y = x\n")[0] == "function 'main' has no return"
    assert wrong("    return x\n    return x\n")[0] == "function main returns twice"


def test_a_binding_annotated_with_less_forgets_the_rest():
    func = parse("    y: R.Tensor(ndim=1) = R.exp(x)\n    z: R.Object = y\n    return z\n")
    infos = [str(b.var.struct_info) for b in func.body.blocks[0].bindings]
    assert infos == ["R.Tensor(ndim=1)", "R.Object"]
    assert str(func.ret_struct_info) == "R.Object"


def test_attributes_of_a_function_add_up():
    func = parse("    R.func_attr({'a': 1})\n"
                 "    R.func_attr({'b': [k for k in range(2)], 'a': 2})\n"
                 "    return x\n")  # fmt: skip
    assert dict(func.attrs) == {"global_symbol": "main", "a": 2, "b": [0, 1]}


def test_docstrings_and_pass_bind_nothing():
    func = parse('    "What it does."\n    pass\n    return x\n')
    assert_structural_equal(func, parse("    return x\n"))
