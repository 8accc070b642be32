"""Types of variables, values and callees agree, or somebody says so."""

import re

import numpy as np
import pytest

import weft
from tests.lib.typed_passes import every_pass_typed
from weft import relax
from weft.ir.functor import rewrite
from weft.ir.op import Op
from weft.relax.analysis.types import type_problem
from weft.relax.transform import Normalize
from weft.relax.transform.passes import function_pass
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import VerifyError


@I.ir_module
class Module:
    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.add(x, x)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        z = cls.f(x)
        y = R.add(z, z)
        return y


@R.function(private=True)
def whole(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "int32"):
    return R.astype(x, "int32")


@R.function(private=True)
def of_two(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
    return R.add(x, y)


def with_f(func):
    mod = Module.clone()
    mod.update_func(mod.get_global_var("f"), func)
    return mod


@pytest.mark.parametrize("pipeline", ["default", "zero", "weft", None])
def test_a_call_of_a_replaced_function_is_not_built(pipeline):
    mod = with_f(whole)
    assert not relax.analysis.well_formed(mod)
    with pytest.raises(VerifyError, match=r"main: the value of z: f returns .*int32.*but the call"):
        relax.build(mod, "llvm", relax_pipeline=pipeline)
    with pytest.raises(VerifyError, match="f returns"):
        weft.compile(mod)


def test_a_body_of_another_type_than_the_function_says_is_not_built():
    """A pass that replaced ``z + z`` by ``sum(z)`` once compiled and returned a number."""
    main = Module["main"]
    total = relax.BlockBuilder().normalize(relax.op.sum(main.params[0]))
    wrong = relax.Function(main.params, relax.SeqExpr([], total))
    wrong.ret_struct_info = main.ret_struct_info
    mod = weft.IRModule({"main": wrong})
    message = r"main: expected a result of type R.Tensor\(\(4,\).*got R.Tensor\(\(\)"
    assert re.search(message, type_problem(mod))
    with pytest.raises(VerifyError, match=message):
        weft.compile(mod)


@pytest.mark.parametrize("kind", ["a call", "another variable", "a constant", "a tuple"])
def test_a_variable_of_another_type_than_its_value_is_not_built(kind):
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    value = {
        "a call": relax.op.add(x, x), "another variable": x, "a tuple": relax.Tuple([x]),
        "a constant": relax.const(np.ones(4, "float32")),
    }[kind]  # fmt: skip
    value = relax.BlockBuilder().normalize(value)
    y = relax.Var("y", relax.TensorStructInfo((4,), "int32"))
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(y, value)])], y)
    mod = weft.IRModule({"main": relax.Function([x], body, y.struct_info)})
    message = "main: variable y: expected the type of its value, "
    assert type_problem(mod).startswith(message)
    with pytest.raises(VerifyError, match=message):
        relax.build(mod)


def test_a_call_of_another_number_of_arguments_is_named():
    assert "call of f: expected 2 arguments, got 1" in type_problem(with_f(of_two))


def test_the_variable_has_the_new_type_and_a_new_call_takes_it():
    mod = with_f(whole)
    gvar = mod.get_global_var("f")
    assert gvar.struct_info.ret.dtype == "int32"
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    body = relax.SeqExpr([], relax.Call(gvar, [x]))
    mod["main"] = relax.Function([x], body, None).with_attr("global_symbol", "main")
    made = Normalize()(mod)
    assert relax.analysis.well_formed(made)
    machine = relax.VirtualMachine(relax.build(made, "llvm"), weft.cpu())
    found = machine["main"](weft.nd.array(np.arange(4, dtype="float32"))).numpy()
    assert found.dtype == "int32"
    np.testing.assert_array_equal(found, np.arange(4))


@function_pass(opt_level=0, name="Wrong")
def wrong(func, mod, ctx):
    """Every sum says that it is of float16."""

    def halve(node):
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == "relax.add":
            made = relax.Call(node.op, node.args)
            made.struct_info = relax.TensorStructInfo((4,), "float16")
            return made
        return None

    return rewrite(func, halve)


@pytest.mark.ill_typed
def test_verify_names_the_pass_that_leaves_a_wrong_type():
    with (
        weft.transform.PassContext(verify=True),
        pytest.raises(VerifyError, match="pass Wrong leaves types that disagree: .*relax.add"),
    ):
        wrong(Module)


@pytest.mark.parametrize(
    ("name", "count", "attrs", "told"),
    [
        ("relax.add", 0, {}, "relax.add takes the arguments x1, x2, got 0"),
        ("relax.add", 3, {}, "relax.add takes the arguments x1, x2, got 3"),
        ("relax.nn.softmax", 1, {}, "relax.nn.softmax has an attribute axis, and the call"),
        ("relax.nn.softmax", 1, {"axis": "x"}, "relax.nn.softmax: axis: "),
    ],
)
def test_a_call_made_by_hand_has_the_form_of_its_operator(name, count, attrs, told):
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    call = relax.Call(weft.ir.Op.get(name), [x] * count, attrs)
    call.struct_info = x.struct_info
    y = relax.Var("y", x.struct_info)
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(y, call)])], y)
    mod = weft.IRModule({"main": relax.Function([x], body, x.struct_info)})
    with pytest.raises(VerifyError, match=f"main: the value of y: {told}"):
        relax.build(mod)


@pytest.mark.ill_typed
def test_the_tests_own_check_names_the_pass_and_blames_none_for_what_it_was_given():
    with every_pass_typed():
        with pytest.raises(AssertionError, match="Wrong leaves types that disagree"):
            wrong(Module)
        wrong(with_f(whole))


def test_a_rule_of_the_users_gets_a_builder_when_it_is_asked_again():
    op = Op.register(
        "tests.typed", FInferStructInfo=lambda call, builder: builder.normalize(
            relax.op.add(call.args[0], call.args[0])
        ).struct_info,
    )  # fmt: skip
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.Call(op, [x])))
    assert type_problem(builder.get(), reinfer=True) is None
