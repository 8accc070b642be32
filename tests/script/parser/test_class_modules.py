"""Classes as modules: order, references between functions, what a class's body may hold."""
# ruff: noqa: F821 - scripts are no plain Python

from __future__ import annotations

import pytest

from tests.lib.round_trip import assert_round_trip
from tests.lib.script_errors import error_of
from weft.ir.functor import collect
from weft.ir.structural import assert_structural_equal
from weft.relax.expr import Call, ExternFunc
from weft.relax.struct_info import FuncStructInfo, ObjectStructInfo, TensorStructInfo
from weft.script import from_source
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRTypeError
from weft.tir.stmt import Evaluate

INFO = TensorStructInfo((4,), "float32")


def names(module):
    return [var.name_hint for var in module.functions]


def calls(func):
    return collect(func.body, Call)


def test_functions_keep_the_order_of_the_class():
    @I.ir_module
    class Module:
        @R.function
        def zeta(x: R.Tensor((4,), "float32")):
            return x

        @T.prim_func
        def middle():
            T.evaluate(0)

        @R.function
        def alpha(x: R.Tensor((4,), "float32")):
            return x

    assert names(Module) == ["zeta", "middle", "alpha"]


def test_a_function_that_says_its_result_is_called_before_it_stands():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return Module.later(x)

        @R.function
        def later(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

    assert Module["main"].ret_struct_info == INFO


def test_a_function_without_a_stated_result_is_parsed_before_its_caller():
    @I.ir_module
    class Module:
        @R.function
        def first(x: R.Tensor((4,), "float32")):
            y = Module.second(x)
            return y

        @R.function
        def second(x: R.Tensor((4,), "float32")):
            cls = Module
            y = cls.third(x)
            return y

        @R.function
        def third(x: R.Tensor((4,), "float32")):
            return x

    assert names(Module) == ["first", "second", "third"]
    for name in names(Module):
        assert Module[name].ret_struct_info == INFO


def test_functions_that_call_each_other_say_their_results():
    @I.ir_module
    class Module:
        @R.function
        def even(x: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
            return Module.odd(x)

        @R.function
        def odd(x: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
            return Module.even(x)

    assert calls(Module["even"])[0].op is Module.get_global_var("odd")
    assert_round_trip(Module)


def test_a_function_calls_itself():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = Module.main(x)
            return y

    assert calls(Module["main"])[0].op is Module.get_global_var("main")


def test_functions_are_named_by_the_class_by_cls_or_bare():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Module
            a = Module.helper(x)
            b = cls.helper(a)
            c = helper(b)
            return c

        @R.function
        def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

    assert {call.op for call in calls(Module["main"])} == {Module.get_global_var("helper")}


def test_the_signature_of_a_function_is_that_of_its_variable():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Object) -> R.Tensor(("n",), "float32"):
            return x

    info = Module.get_global_var("main").struct_info
    assert isinstance(info, FuncStructInfo)
    assert info.params[0].shape.values[0] is info.ret.shape.values[0]
    assert info.params[1] == ObjectStructInfo()


def test_an_external_function_is_a_function_of_the_module():
    @I.ir_module
    class Module:
        log = R.ExternFunc("env.log")

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            _ = Module.log(x)
            return x

    assert isinstance(Module["log"], ExternFunc)
    assert calls(Module["main"])[0].op is Module.get_global_var("log")
    assert_round_trip(Module)


def test_values_of_the_class_are_values_of_its_functions():
    @I.ir_module
    class Module:
        width = 4
        first, second = 1, "float32"

        @T.prim_func
        def f(A: T.Buffer((width,), second)):
            A[first] = T.float32(0)

        @R.function
        def main(x: R.Tensor((width,), second)):
            return x

    assert Module["main"].params[0].struct_info == INFO
    assert names(Module) == ["f", "main"]


def test_a_class_may_hold_a_docstring_and_nothing_else():
    @I.ir_module
    class Module:
        """No functions."""

    @I.ir_module
    class Empty:
        pass

    assert names(Module) == names(Empty) == []
    assert_round_trip(Module)


def test_prim_funcs_call_each_other_in_any_order():
    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            A[0] = Module.twice(A[1])
            Module.note(A[0])

        @T.prim_func(private=True)
        def twice(x: T.int32) -> T.int32:
            return x * 2

        @T.prim_func(private=True)
        def note(x: T.int32):
            T.evaluate(x)

    store, statement = Module["main"].body.seq
    assert store.value.dtype == "int32"
    assert isinstance(statement, Evaluate)
    assert statement.value.dtype == "void"
    assert_round_trip(Module)


def test_attributes_and_infos_are_set_in_the_class():
    @I.ir_module
    class Module:
        I.module_attrs({"a": 1})
        I.module_attrs({"b": [1, "x"], "a": 2}, allow_overwrite=True)
        I.module_global_infos({"dummy": [I.dummy_global_info(), I.dummy_global_info()]})

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return x

    assert dict(Module.attrs) == {"a": 2, "b": [1, "x"]}
    assert len(Module.global_infos["dummy"]) == 2
    assert_round_trip(Module)


def test_function_names_hold_in_calls_too():
    @I.ir_module
    class Module:
        I.function_names({"a_b": "a.b", "log_": "env/log"})
        log_ = R.ExternFunc("env.log")

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            _ = Module.log_(x)
            return Module.a_b(x)

        @R.function
        def a_b(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

    assert sorted(names(Module)) == ["a.b", "env/log", "main"]
    assert Module["a.b"].attrs["global_symbol"] == "a.b"
    assert {call.op.name_hint for call in calls(Module["main"])} == {"a.b", "env/log"}
    assert_round_trip(Module)


def test_a_virtual_device_is_found_by_kind_index_and_memory():
    @I.ir_module
    class Module:
        I.module_global_infos(
            {"vdevice": [I.vdevice("llvm"), I.vdevice("cuda"), I.vdevice("llvm", 1, "local")]}
        )

        @R.function
        def main(
            a: R.Tensor((4,), "float32", "llvm"),
            b: R.Tensor((4,), "float32", "cuda:0"),
            c: R.Tensor((4,), "float32", vdevice="llvm:1"),
            d: R.Tensor((4,), "float32", "llvm:1:local"),
        ):
            return a

    infos = Module.global_infos["vdevice"]
    devices = [param.struct_info.vdevice for param in Module["main"].params]
    assert [infos.index(device) for device in devices] == [0, 1, 2, 2]
    assert_round_trip(Module)


HEAD = "@I.ir_module\nclass Module:\n"
MAIN = "    @R.function\n    def main(x: R.Tensor((4,), 'float32')):\n        return x\n"
WRONG = {
    "two functions of a name": (
        f"{HEAD}{MAIN}{MAIN}", "the module has two functions named 'main'", "def main("),
    "a method without decorator": (
        f"{HEAD}    def f():\n        pass\n",
        "function 'f' has no decorator of TVMScript: expected @I.ir_module, @T.prim_func or",
        "def f():"),
    "a method that is a module": (
        f"{HEAD}    @I.ir_module\n    def f():\n        pass\n",
        "expected @T.prim_func or @R.function", "def f():"),
    "an attribute twice": (
        f"{HEAD}    I.module_attrs({{'a': 1}})\n    I.module_attrs({{'a': 2}})\n",
        "I.module_attrs: 'a' is already set", "I.module_attrs({'a': 2})"),
    "attributes inside a function": (
        "@T.prim_func\ndef f():\n    I.module_attrs({'a': 1})\n",
        "I.module_attrs belongs inside an I.ir_module", "I.module_attrs({'a': 1})"),
    "no such virtual device": (
        f"{HEAD}    @R.function\n    def main(x: R.Tensor((4,), 'float32', 'cuda:1')):\n"
        "        return x\n", "the module has no virtual device 'cuda:1'",
        "R.Tensor((4,), 'float32', 'cuda:1')"),
    "an unknown function": (
        f"{HEAD}    @R.function\n    def main(x: R.Tensor((4,), 'float32')):\n"
        "        return Module.other(x)\n", "module Module has no function 'other'; it has: main",
        "Module.other"),
    "a loop": (f"{HEAD}    for i in range(3):\n        pass\n", "For is not supported in "
               "I.ir_module", "for i in range(3):"),
    "a class": (f"{HEAD}    class Inner:\n        pass\n", "ClassDef is not supported in "
                "I.ir_module", "class Inner:"),
    "a wrong decorator": ("@T.prim_func\nclass Module:\n    pass\n",
                          "a class needs the decorator @I.ir_module", "class Module:"),
    "a function as a module": ("@I.ir_module\ndef f():\n    pass\n",
                               "a function needs the decorator @T.prim_func or @R.function",
                               "def f():"),
    "no decorator": ("class Module:\n    pass\n", "class 'Module' has no decorator of TVMScript",
                     "class Module:"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_a_class_may_not_be(name):
    text, message, place = WRONG[name]
    found, underlined = error_of(text)
    assert found.startswith(message)
    assert underlined.startswith(place)


def test_an_ill_formed_function_of_a_module_is_underlined():
    message, place = error_of(f"""
@I.ir_module
class Module:
{MAIN}
    @R.function
    def other(x: R.Tensor((4,), "float32")):
        y = R.print(x)
        return x
""")
    assert message.startswith("other: the value of y: relax.print has side effects")
    assert place.startswith("def other(")


def test_a_decorator_on_something_else():
    for decorator, message in (
        (I.ir_module, "@I.ir_module: expected a class, got int"),
        (I.ir_module(), "@I.ir_module: expected a class, got int"),
        (T.prim_func, "expected a function to decorate, got int: 3"),
        (R.function, "expected a function to decorate, got int: 3"),
        (T.prim_func(private=True), "expected a function to decorate, got int: 3"),
    ):
        with pytest.raises(IRTypeError, match=message):
            decorator(3)


def test_options_of_a_class_in_a_text():
    ill = "@I.ir_module{}\nclass Module:\n    @R.function\n" + (
        "    def main(x: R.Tensor((4,), 'float32')):\n        y = R.print(x)\n        return x\n"
    )
    error_of(ill.format(""))
    module = from_source(ill.format("(check_well_formed=False)"))
    assert names(module) == ["main"]
    assert_structural_equal(from_source(ill.format(""), check_well_formed=False), module)


def test_a_module_is_no_value_of_a_graph():
    message, place = error_of(f"{HEAD}{MAIN.replace('return x', 'return Module')}")
    assert message.startswith("expected a graph expression, got ModuleProxy")
    assert place == "return Module"


def test_a_tensor_is_copied_to_a_device_by_its_name():
    text = HEAD + (
        "    I.module_global_infos({'vdevice': [I.vdevice('llvm'), I.vdevice('llvm', 1)]})\n"
        "    @R.function\n    def main(x: R.Tensor((4,), 'float32')):\n"
        "        y = R.to_vdevice(x, 'llvm:1')\n        return y\n"
    )
    module = from_source(text)
    second = module.global_infos["vdevice"][1]
    assert calls(module["main"])[0].attrs["dst_vdevice"] is second
    assert module["main"].ret_struct_info.vdevice is second
    assert_round_trip(module)
    message, _ = error_of(text.replace("llvm:1", "llvm:2"))
    assert message == "the module has no virtual device 'llvm:2'"
    message, _ = error_of(text.replace("'llvm:1'", "3"))
    assert message == "relax.to_vdevice: dst_vdevice: expected a VDevice, got 3"


def test_the_scope_of_a_virtual_device_must_be_its_own():
    text = HEAD + "    I.module_global_infos({'vdevice': [I.vdevice('llvm')]})\n" + MAIN
    message, _ = error_of(text.replace("'float32'", "'float32', 'llvm:0:local'"))
    assert message == "the module has no virtual device 'llvm:0:local'"
