"""Calls nested in one another print each object once, and read as ``normalize`` makes them."""

from __future__ import annotations

import pytest

from weft import relax
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.relax import op
from weft.script import from_source

FOUR = relax.TensorStructInfo((4,), "float32")


def doubled(value, times):
    for _ in range(times):
        value = op.add(value, value)
    return value


def function_of(make, block=relax.BindingBlock):
    """``y = make(x)`` and ``return y``, as it is written by hand: not normalised."""
    x = relax.Var("x", FOUR)
    y = relax.DataflowVar("y") if block is relax.DataflowBlock else relax.Var("y")
    z = relax.Var("z")
    bindings = [relax.VarBinding(y, make(x)), relax.VarBinding(z, x)]
    made = relax.Function([x], relax.SeqExpr([block(bindings)], z), FOUR)
    return made.with_attr("global_symbol", "main")


def read_again(func):
    return from_source(func.script())


def normalised(func):
    return relax.transform.Normalize()(IRModule({"main": func}))["main"]


X = relax.Var("x", FOUR)


@pytest.mark.parametrize("text", [lambda e: e.script(), lambda e: function_of_value(e).script()])
def test_the_text_grows_with_the_number_of_objects(text):
    ten, twenty, forty = (text(doubled(X, times)).count("\n") for times in (10, 20, 40))
    assert forty - twenty == 2 * (twenty - ten) == 20
    assert text(doubled(X, 40)).count("R.add") == 40


def function_of_value(value):
    return relax.Function([X], relax.SeqExpr([], value), FOUR)


def test_an_expression_alone_has_its_names_above_it():
    assert str(doubled(X, 2)) == "gv = R.add(x, x)\nR.add(gv, gv)"
    assert repr(doubled(X, 40)).endswith("more lines; show() prints all)")


def test_what_stands_in_one_place_stays_in_it():
    assert str(op.add(op.add(X, X), op.add(X, X))) == "R.add(R.add(x, x), R.add(x, x))"


FORMS = {
    "a chain": lambda x: doubled(x, 30),
    "the order of calls": lambda x: op.multiply(op.exp(x), op.add(s := op.negative(x), s)),
    "levels": lambda x: op.add(s := op.exp(x), op.negative(s)),
    "a tuple": lambda x: op.add(op.concat([s := op.exp(x), s]), op.concat(relax.Tuple([s, s]))),
    "items": lambda x: op.add(s := relax.TupleGetItem(op.split(x, 2), 0), s),
    "a tuple in two places": lambda x: op.add(
        op.concat(t := relax.Tuple([op.exp(x), x])), op.concat(t)
    ),
}


@pytest.mark.parametrize("block", [relax.BindingBlock, relax.DataflowBlock])
@pytest.mark.parametrize("form", FORMS)
def test_the_text_reads_as_the_normal_form(form, block):
    func = function_of(FORMS[form], block)
    assert structural_equal(read_again(func), normalised(func))


def test_a_call_with_effects_that_stands_in_two_places_is_made_once():
    def value(x):
        call = relax.Call(relax.ExternFunc("f"), [x], None, [FOUR])
        return op.add(call, op.negative(call))

    func = function_of(value)
    assert func.script().count("call_packed") == 1
    func = func.with_(is_pure=False)
    assert structural_equal(read_again(func), normalised(func))


def test_conditions_and_casts_have_their_lines_above_them():
    x, y, z = relax.Var("x", FOUR), relax.Var("y", FOUR), relax.Var("z", FOUR)
    scalar = relax.TensorStructInfo((), "bool")
    s = op.exp(x)
    flag = relax.Call("relax.call_pure_packed", [relax.ExternFunc("f"), s, s], None, [scalar])
    choice = relax.If(flag, relax.SeqExpr([], s), relax.SeqExpr([], op.add(s, s)))
    cast = relax.MatchCast(z, op.add(t := op.exp(y), t), FOUR)
    block = relax.BindingBlock([relax.VarBinding(y, choice), cast])
    func = relax.Function([x], relax.SeqExpr([block], z), FOUR).with_attr("global_symbol", "main")
    for text in (func.script(), read_again(func).script()):
        assert text.count("R.exp") == 4  # of the condition, of each branch, of the cast


def test_nested_tuples_have_names_where_they_stand_in_many_places():
    value = X
    for _ in range(30):
        value = relax.Tuple([value, value])
    assert value.script().count("\n") == 28  # the innermost is written out
