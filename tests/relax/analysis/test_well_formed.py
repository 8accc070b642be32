"""well_formed: each rule has a program that breaks it."""

import pytest

from weft import relax
from weft.ir.module import IRModule
from weft.relax import op
from weft.relax.analysis.well_formed import find_problem, verify_well_formed, well_formed
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import VerifyError
from weft.tir.expr import Var as TirVar

INFO = TensorStructInfo((2, 3), "float32")


@pytest.fixture
def x():
    return relax.Var("x", INFO)


def bound(var, value):
    value.struct_info = var.struct_info
    return relax.VarBinding(var, value)


def function(params, bindings, result, kind=relax.BindingBlock, **options):
    return relax.Function(params, relax.SeqExpr([kind(bindings)], result), INFO, **options)


def test_fine(x, build):
    assert well_formed(build(op.exp, INFO))
    assert well_formed(relax.Function([x], x, INFO))


def test_undefined_variable(x):
    y = relax.Var("y", INFO)
    assert "variable y is not defined" in find_problem(relax.Function([x], y, INFO))


def test_variable_defined_twice(x):
    y = relax.Var("y", INFO)
    func = function([x], [bound(y, op.exp(x)), bound(y, op.exp(x))], y)
    assert "variable y is defined twice" in find_problem(func)


def test_dataflow_variable_outside_of_its_block(x):
    y = relax.DataflowVar("y", INFO)
    func = function([x], [bound(y, op.exp(x))], y, relax.DataflowBlock)
    assert "variable y is used outside of its block" in find_problem(func)
    func = function([x], [bound(y, op.exp(x))], x)
    assert "is defined outside of a dataflow block" in find_problem(func)


def test_dataflow_parameter():
    y = relax.DataflowVar("y", INFO)
    assert "parameter y is a dataflow variable" in find_problem(relax.Function([y], y, INFO))


def test_nested_call(x):
    y = relax.Var("y", INFO)
    func = function([x], [bound(y, op.exp(op.exp(x)))], y)
    assert "a Call stands as an argument" in find_problem(func)


def test_missing_struct_info(x):
    y = relax.Var("y", INFO)
    func = function([x], [relax.VarBinding(y, op.exp(x))], y)
    assert "has no struct info" in find_problem(func)
    assert well_formed(func, check_struct_info=False)


def test_missing_function(x):
    y = relax.Var("y", INFO)
    call = op.call_tir(relax.GlobalVar("f"), (x,), INFO)
    mod = IRModule({"main": function([x], [bound(y, call)], y)})
    assert find_problem(mod) == "main: the value of y: the module has no function f"


def test_effect_in_a_pure_function(x):
    y = relax.Var("y", relax.TupleStructInfo([]))
    bindings = [bound(y, op.print(x, format=""))]
    assert "relax.print has side effects" in find_problem(function([x], bindings, x))
    assert well_formed(function([x], bindings, x, is_pure=False))
    assert well_formed(function([x], bindings, x, attrs={"relax.force_pure": True}))


def test_undefined_symbol():
    n = TirVar("n", "int64")
    x = relax.Var("x", TensorStructInfo((n + 1,)))
    func = relax.Function([x], x, x.struct_info)
    assert "symbolic variable n is defined by no parameter" in find_problem(func)


def test_error_says_the_first_problem(x):
    with pytest.raises(VerifyError, match="variable y is not defined"):
        verify_well_formed(relax.Function([x], relax.Var("y", INFO), INFO))
