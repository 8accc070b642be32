"""IRModule: a table of functions that users read and edit."""

from __future__ import annotations

import copy
import pickle

import pytest

from weft import ir, relax, te, tir, topi
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRTypeError


def function(value=0):
    return tir.PrimFunc([], tir.Evaluate(value))


def test_functions_are_read_by_name_and_by_variable():
    func = function()
    module = ir.IRModule({"main": func, ir.GlobalVar("other"): function(1)})
    var = module.get_global_var("main")
    assert module["main"] is func
    assert module[var] is func
    assert module[ir.GlobalVar("main")] is func
    assert "main" in module
    assert ir.GlobalVar("none") not in module
    assert [v.name_hint for v in module.get_global_vars()] == ["main", "other"]
    assert [v.name_hint for v in module] == ["main", "other"]
    assert len(module) == 2
    assert bool(ir.IRModule())


def test_a_missing_function_names_what_there_is():
    with pytest.raises(KeyError, match="the module has no function 'maim'; it has: main"):
        ir.IRModule({"main": function()})["maim"]
    with pytest.raises(KeyError, match="it has: none"):
        ir.IRModule().get_global_var("main")


def test_functions_are_set_replaced_and_deleted_in_place():
    module = ir.IRModule({"main": function()})
    var = module.get_global_var("main")
    module["main"] = function(1)
    module[ir.GlobalVar("main")] = function(2)
    module.update_func(ir.GlobalVar("main"), function(3))
    assert module.get_global_var("main") is var
    assert len(module) == 1
    assert module["main"].body.value.value == 3
    module["new"] = function()
    del module["new"]
    del module[ir.GlobalVar("main")]
    assert len(module) == 0


def test_update_takes_modules_and_mappings():
    module = ir.IRModule({"a": function(), "b": function()})
    module.update(ir.IRModule({"b": function(1), "c": function(2)}))
    module.update({"d": function(3), ir.GlobalVar("e"): function(4)})
    assert [v.name_hint for v in module] == ["a", "b", "c", "d", "e"]
    assert module["b"].body.value.value == 1


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="expected a function, got str"):
        ir.IRModule({"main": "text"})
    with pytest.raises(TypeError, match="expected a function, got int"):
        ir.IRModule()["main"] = 3
    with pytest.raises(ValueError, match="the name 'f' is already taken"):
        ir.IRModule({ir.GlobalVar("f"): function(), ir.GlobalVar("f"): function()})


def test_copies_share_functions_but_not_the_table():
    module = ir.IRModule({"main": function()})
    for made in (module.clone(), copy.copy(module), copy.deepcopy(module)):
        made["new"] = function()
        assert made["main"] is module["main"]
    assert "new" not in module


def test_attributes_are_added_and_removed_in_copies():
    module = ir.IRModule({"main": function()}, attrs={"a": 1})
    changed = module.with_attr("b", [1, 2]).with_attrs({"c": 3})
    assert dict(changed.attrs) == {"a": 1, "b": [1, 2], "c": 3}
    assert changed.get_attr("b") == [1, 2]
    assert module.get_attr("b") is None
    assert dict(changed.without_attr("a").attrs) == {"b": [1, 2], "c": 3}


def test_functions_have_attributes_too():
    func = function().with_attr("a", 1).with_attrs({"b": 2}).with_attr({"c": 3})
    assert dict(func.attrs) == {"a": 1, "b": 2, "c": 3}
    assert func.without_attr("none") is func
    assert dict(func.without_attr("a").attrs) == {"b": 2, "c": 3}


def test_global_infos_are_lists_by_name():
    module = ir.IRModule({}, global_infos={"dummy": [ir.DummyGlobalInfo()]})
    module.update_global_info("vdevice", [ir.VDevice("llvm", 0, "global")])
    assert list(module.global_infos) == ["dummy", "vdevice"]
    assert module.global_infos["vdevice"][0].memory_scope == "global"


def test_from_expr_takes_the_name_from_the_function():
    func = function()
    assert ir.IRModule.from_expr(func)["main"] is func
    named = func.with_attr("global_symbol", "f")
    assert ir.IRModule.from_expr(named, {"g": func})["f"] is named
    with pytest.raises(TypeError, match="from_expr: expected a function, got Evaluate"):
        ir.IRModule.from_expr(tir.Evaluate(0))


def test_functions_items_are_sorted():
    module = ir.IRModule({"b": function(), "a": function()})
    assert [var.name_hint for var, _ in module.functions_items()] == ["a", "b"]


@I.ir_module
class Calls:
    @T.prim_func
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("copy"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Calls
        with R.dataflow():
            y = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(y)
        return y


@pytest.mark.parametrize("new", ["renamed", ir.GlobalVar("renamed")], ids=["name", "variable"])
def test_renamed_functions_are_renamed_in_calls(new):
    module = Calls.replace_global_vars({Calls.get_global_var("copy"): new})
    assert sorted(var.name_hint for var in module) == ["main", "renamed"]
    call = module["main"].body.blocks[0].bindings[0].value
    assert call.args[0] is module.get_global_var("renamed")
    assert module["renamed"].attrs["global_symbol"] == "renamed"
    assert "copy" in Calls


def test_modules_print(capsys):
    assert Calls.script().startswith("# from tvm.script import ir as I")
    assert "@I.ir_module" in str(Calls)
    Calls.show()
    assert "class Module" in capsys.readouterr().out
    assert "<" in Calls._repr_html_()


def test_the_old_name_of_the_text():
    assert Calls.astext() == Calls.script(show_meta=True)


def test_modules_are_pickled_as_text():
    back = pickle.loads(pickle.dumps(Calls))
    ir.assert_structural_equal(back, Calls)
    assert back["main"].body.blocks[0].bindings[0].value.args[0] is back.get_global_var("copy")


def test_repr_is_cut():
    x = te.placeholder((4, 4), name="x")
    module = ir.IRModule({f"f{i}": te.create_prim_func([x, topi.exp(x)]) for i in range(20)})
    assert len(repr(module).splitlines()) <= 11
    assert isinstance(relax.Function, type)


def test_attributes_are_a_dict():
    with pytest.raises(IRTypeError, match=r"attrs: expected a dict, got list \['global_symbol'\]"):
        ir.IRModule(attrs=["global_symbol"])
