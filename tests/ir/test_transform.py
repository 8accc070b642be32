"""Passes: decorators, composition, contexts, and what an error of a pass says."""

from __future__ import annotations

import threading

import pytest

from weft import ir, relax, tir
from weft.ir.pass_options import CHANGES_NOTHING
from weft.ir.transform import (
    ApplyPassToFunction,
    FunctionPass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    module_pass,
)
from weft.relax.expr import Function
from weft.support.errors import PassError
from weft.tir.transform import prim_func_pass


def function(value=0):
    return tir.PrimFunc([], tir.Evaluate(value))


def values(module):
    return {var.name_hint: func.body.value.value for var, func in module.functions.items()}


@pytest.fixture
def module():
    return ir.IRModule({"f": function(1), "g": function(2)})


@prim_func_pass(opt_level=1, name="Increment")
def increment(func, mod, ctx):
    return func.with_(body=tir.Evaluate(func.body.value.value + 1))


@prim_func_pass(opt_level=0)
class Add:
    """A pass with an argument."""

    def __init__(self, amount, times=1):
        self.amount = amount * times

    def transform_function(self, func, mod, ctx):
        return func.with_(body=tir.Evaluate(func.body.value.value + self.amount))


@module_pass(opt_level=2, name="Drop", required=["Increment"])
def drop(mod, ctx):
    return ir.IRModule({"f": mod["f"]})


@module_pass(opt_level=0)
class Keep:
    def __init__(self, *names):
        self.names = names

    def transform_module(self, mod, ctx):
        return ir.IRModule({name: mod[name] for name in self.names})


def test_a_function_becomes_a_pass(module):
    assert values(increment(module)) == {"f": 2, "g": 3}
    assert values(module) == {"f": 1, "g": 2}
    assert increment.info == PassInfo(1, "Increment")
    assert drop.info == PassInfo(2, "Drop", ("Increment",))
    assert repr(increment) == "Pass(Increment, opt_level=1)"


def test_a_class_becomes_a_pass_with_arguments(module):
    made = Add(5, times=2)
    assert values(made(module)) == {"f": 11, "g": 12}
    assert made.info.name == "Add"
    assert Add.__doc__ == "A pass with an argument."
    assert values(Keep("g")(module)) == {"g": 2}


def test_a_pass_of_one_class_leaves_the_other_functions_alone(module):
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    module["graph"] = Function([x], x, x.struct_info)
    assert increment(module)["graph"] is module["graph"]


def test_the_same_module_comes_back_when_nothing_changes(module):
    same = FunctionPass(lambda func, mod, ctx: func, PassInfo(0, "same"))
    assert same(module) is module
    assert Sequential([same, same])(module) is module


def test_a_pass_that_returns_none_deletes_nothing(module):
    gone = FunctionPass(lambda func, mod, ctx: None, PassInfo(0, "gone"))
    with pytest.raises(PassError, match="gone: expected a function, got None: end the pass with"):
        gone(module)


def test_global_variables_and_attributes_are_kept(module):
    module = module.with_attr("a", 1)
    result = increment(module)
    assert result.get_global_var("f") is module.get_global_var("f")
    assert result.attrs == {"a": 1}


def test_sequential_runs_in_order_and_skips_by_level(module):
    both = Sequential([increment, drop])
    assert values(both(module)) == {"f": 2}
    with PassContext(opt_level=1):
        assert values(both(module)) == {"f": 2, "g": 3}
    with PassContext(opt_level=0):
        assert both(module) is module
    with PassContext(opt_level=0, required_pass=["Drop"]):
        assert values(both(module)) == {"f": 1}
    with PassContext(opt_level=3, disabled_pass=["Increment"]):
        assert values(both(module)) == {"f": 1}


def test_sequential_takes_passes_only():
    with pytest.raises(PassError, match="Sequential: expected passes, got int"):
        Sequential([1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: increment(function()), "Increment: expected an IRModule, got PrimFunc; wrap a"),
        (lambda: module_pass(lambda mod, ctx: mod), "needs opt_level="),
        (lambda: module_pass(lambda mod: mod, opt_level=0, name="One"),
         r"One: too many positional arguments; it is called with \(mod, ctx\)"),
        (lambda: prim_func_pass(type("P", (), {}), opt_level=0),
         "P: expected a class with the method transform_function, it has none"),
        (lambda: module_pass(lambda mod, ctx: 3, opt_level=0)(ir.IRModule()),
         "a pass returns an IRModule, this one gave int"),
        (lambda: prim_func_pass(lambda f, m, c: 3, opt_level=0)(ir.IRModule({"f": function()})),
         "expected a function, got int"),
        (lambda: PassContext(config={"tir.UnrolLoop": {}}),
         r"no pass has the option 'tir\.UnrolLoop'; did you mean 'tir\.UnrollLoop'\? there are: "),
    ],
)  # fmt: skip
def test_errors_of_use(call, message):
    with pytest.raises(PassError, match=message):
        call()


def test_an_error_in_a_pass_keeps_its_class_and_names_pass_and_function(module):
    def wrong(func, mod, ctx):
        raise ZeroDivisionError("text")

    one = FunctionPass(wrong, PassInfo(0, "Wrong"))
    with pytest.raises(ZeroDivisionError) as caught:
        Sequential([one], name="all")(module)
    assert caught.value.__notes__ == ["in function f", "in pass Wrong"]


# ---- contexts


def test_contexts_nest_and_end():
    outside = PassContext.current()
    assert outside.opt_level == 2
    with PassContext(opt_level=3) as outer:
        assert PassContext.current() is outer
        with PassContext(opt_level=1) as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current() is outside


def test_contexts_end_after_an_error():
    with pytest.raises(ValueError, match="text"), PassContext(opt_level=3):
        raise ValueError("text")
    assert PassContext.current().opt_level == 2


def test_each_thread_has_its_own_context():
    seen = []
    with PassContext(opt_level=3):
        thread = threading.Thread(target=lambda: seen.append(PassContext.current().opt_level))
        thread.start()
        thread.join()
    assert seen == [2]


def test_options_of_tvm_that_change_nothing_are_taken():
    config = {"tir.noalias": False, "tir.instrument_bound_checkers": True,
              "relax.backend.use_cuda_graph": False}  # fmt: skip
    with PassContext(opt_level=3, config=config) as context:
        assert context.config == config
    for name, reason in CHANGES_NOTHING.items():
        assert PassContext.list_configs()[name] == reason


def test_options_reach_the_passes():
    assert set(PassContext.list_configs()) >= {"tir.UnrollLoop", "tir.disable_vectorize"}
    buffer = tir.decl_buffer((4,), "float32", name="A")
    i = tir.Var("i", "int32")
    store = tir.BufferStore(buffer, tir.FloatImm("float32", 0.0), [i])
    serial = ir.IRModule({"f": tir.PrimFunc([buffer], tir.For(i, 0, 4, 0, store))})
    assert isinstance(tir.transform.UnrollLoop()(serial)["f"].body, tir.For)
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 8}}):
        assert isinstance(tir.transform.UnrollLoop()(serial)["f"].body, tir.SeqStmt)
    vector = ir.IRModule({"f": tir.PrimFunc([buffer], tir.For(i, 0, 4, 2, store))})
    assert isinstance(tir.transform.VectorizeLoop()(vector)["f"].body, tir.BufferStore)
    with PassContext(config={"tir.disable_vectorize": True}):
        assert tir.transform.VectorizeLoop()(vector)["f"].body.kind == tir.ForKind.SERIAL


# ---- passes that make or show passes


def test_a_pass_on_chosen_functions(module):
    assert values(ApplyPassToFunction(increment, "f")(module)) == {"f": 2, "g": 2}
    assert values(ApplyPassToFunction(increment, "f|g")(module)) == {"f": 2, "g": 3}
    assert ApplyPassToFunction(increment, "no.*")(module) is module
    with pytest.raises(PassError, match="no function matches 'no'"):
        ApplyPassToFunction(increment, "no", True)(module)


def test_print_ir_prints(module, capsys):
    assert PrintIR("# here")(module) is module
    printed = capsys.readouterr().out
    assert printed.startswith("# here\n")
    assert "@I.ir_module" in printed
