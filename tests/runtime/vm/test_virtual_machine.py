"""What a virtual machine offers beside calls: saved calls, states, names, profiles, settings."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.device import Device, cpu
from weft.runtime.module import BenchmarkResult, Module
from weft.runtime.ndarray import array
from weft.runtime.registry import PackedFunc
from weft.runtime.vm.bytecode import Program, VMFunction
from weft.runtime.vm.executable import Executable, first_names
from weft.runtime.vm.virtual_machine import METHODS, VirtualMachine
from weft.support.errors import (
    IRIndexError,
    IRKeyError,
    IRTypeError,
    IRValueError,
    UnsupportedError,
)

ANY = ("object",)
VECTOR = ("tensor", "float32", ("n",), 1)


def reg(number):
    return ("reg", number)


def add(a, b, out):
    out._array[...] = a.numpy() + b.numpy()


MAIN = VMFunction("main", (("x", VECTOR), ("y", VECTOR)), (
    ("call", 2, ("builtin", "alloc_tensor"), (("shape", ("n",)), ("value", "float32"))),
    ("call", -1, ("kernel", "add"), (reg(0), reg(1), reg(2))),
    ("ret", reg(2)),
), 3)  # fmt: skip
PAIR = VMFunction("pair", (("x", ANY),), (
    ("ret", ("tuple", (reg(0), ("tuple", (("value", 1), ("shape", (2, 3))))))),
), 1)  # fmt: skip
EXECUTABLE = Executable(Program({"main": MAIN, "pair": PAIR}, [array([1.0])]), Module({"add": add}))
X, Y = np.array([1, 2], "float32"), np.array([3, 4], "float32")


@pytest.fixture
def vm():
    return VirtualMachine(EXECUTABLE, cpu())


def test_functions_are_called_by_name(vm):
    assert isinstance(vm["main"], PackedFunc)
    assert vm["main"](X, Y).tolist() == [4, 6]
    assert vm.run("main", (X, Y)).tolist() == [4, 6]
    assert repr(vm) == "VirtualMachine(functions=[main, pair])"


def test_a_name_that_is_not_there(vm):
    with pytest.raises(IRKeyError, match=r"has no function 'mian'; did you mean 'main'\?"):
        vm["mian"]
    with pytest.raises(IRKeyError, match="has no function 'zzz'; it has: main, pair"):
        vm["zzz"]
    with pytest.raises(IRTypeError, match="expected the name of a function, got int"):
        vm[0]


@pytest.mark.parametrize(("arguments", "kind", "text"), [
    ({"rt_mod": 3}, IRTypeError, "expected what relax.build returns, got int"),
    ({"exec_mode": "fast"}, IRValueError, "'native', 'compiled' or 'bytecode', got 'fast'"),
    ({"memory_cfg": "paged"}, IRValueError, "expected 'naive' or 'pooled', got 'paged'"),
    ({"memory_cfg": 3}, IRTypeError, "memory_cfg: expected None, 'naive', 'pooled' or a dict"),
    ({"memory_cfg": {cpu(): "paged"}}, IRValueError, "expected 'naive' or 'pooled', got 'paged'"),
    ({"device": Device(2, 0)}, UnsupportedError, "expected a CPU device, got cuda:0"),
    ({"device": [cpu(), Device(8, 0)]}, UnsupportedError, "expected a CPU device, got metal:0"),
])  # fmt: skip
def test_settings_that_are_none(arguments, kind, text):
    with pytest.raises(kind, match=text):
        VirtualMachine(**{"rt_mod": EXECUTABLE, **arguments})


@pytest.mark.parametrize("memory", [None, "naive", "pooled", {cpu(): "naive"}], ids=str)
@pytest.mark.parametrize("mode", ["native", "compiled", "bytecode"])
def test_all_settings_give_equal_results(memory, mode):
    vm = VirtualMachine(EXECUTABLE, [cpu()], memory, exec_mode=mode)
    assert vm["main"](X, Y).tolist() == [4, 6]


def test_a_saved_call_takes_no_arguments(vm):
    vm.save_function("main", "again", X, Y)
    assert vm["again"]().tolist() == [4, 6]
    vm.save_function("main", "silent", X, y=Y, include_return=False)
    assert vm["silent"]() is None
    vm.save_function("main", "again", Y, Y)  # a saved name may be saved anew
    assert vm["again"]().tolist() == [6, 8]


@pytest.mark.parametrize(("arguments", "kind", "text"), [
    (("main", "main", X, Y), IRValueError, "a new name, got that of the function 'main'"),
    (("main", "", X, Y), IRValueError, "expected a new name, got ''"),
    (("main", 3, X, Y), IRTypeError, "expected a new name and include_return"),
    (("main", "again", X), IRTypeError, r"main: expected 2 arguments \(x, y\), got 1"),
    (("zzz", "again"), IRKeyError, "has no function 'zzz'"),
])  # fmt: skip
def test_calls_that_cannot_be_saved(vm, arguments, kind, text):
    with pytest.raises(kind, match=text):
        vm.save_function(*arguments)


def test_a_call_in_steps(vm):
    vm.set_input("main", X, Y)
    vm.invoke_stateful("main")
    assert vm.get_outputs("main").tolist() == [4, 6]
    vm.set_input("main", x=Y, y=Y)
    assert vm.get_outputs("main").tolist() == [4, 6]  # the result of the last call stays
    vm.invoke_stateful("main")
    assert vm.get_outputs("main").tolist() == [6, 8]


def test_steps_in_another_order(vm):
    with pytest.raises(IRValueError, match="main: no inputs are set; call set_input first"):
        vm.invoke_stateful("main")
    with pytest.raises(IRValueError, match="main: there is no output; call invoke_stateful first"):
        vm.get_outputs("main")
    with pytest.raises(IRKeyError, match="has no function 'zzz'"):
        vm.invoke_stateful("zzz")


def test_inputs_are_checked_when_they_are_set(vm):
    with pytest.raises(IRTypeError, match=r"argument 1 \(y\): expected dtype float32, got int8"):
        vm.set_input("main", X, np.zeros(2, "int8"))
    with pytest.raises(IRValueError, match="main: there is no parameter z; the parameters are"):
        vm.set_input("main", X, z=Y)
    with pytest.raises(IRTypeError, match="expected 2 arguments"):
        vm.set_input("main", x=X)


def test_outputs_are_read_field_by_field(vm):
    vm.set_input("pair", 7)
    vm.invoke_stateful("pair")
    assert vm.get_output("pair") == (7, (1, (2, 3)))
    assert vm.get_output("pair", 0) == 7
    assert vm.get_output("pair", 1, 0) == 1
    assert vm.get_output_arity("pair") == 2
    assert vm.get_output_arity("pair", 1) == 2
    assert vm.get_output_arity("pair", 0) == -1
    assert vm.get_output_arity("pair", 1, 1) == -1  # a shape has no fields
    for indices, found in (((2,), "a tuple of 2"), ((0, 0), "int"), ((1, 1, 0), "ShapeTuple")):
        with pytest.raises(IRIndexError, match=f"of the output, found {found}"):
            vm.get_output("pair", *indices)


def test_parameters_have_numbers_and_names(vm):
    assert (vm.get_function_arity("main"), vm.get_function_arity("pair")) == (2, 1)
    assert [vm.get_function_param_name("main", index) for index in (0, 1)] == ["x", "y"]
    with pytest.raises(IRIndexError, match="main: expected a parameter of 2, got 2"):
        vm.get_function_param_name("main", 2)
    with pytest.raises(IRTypeError, match="main: expected a number, got str"):
        vm.get_function_param_name("main", "x")


def test_methods_are_functions_by_name(vm):
    vm["set_input"]("main", X, Y)
    vm["invoke_stateful"]("main")
    assert vm["get_output"]("main").tolist() == [4, 6]
    assert vm["get_function_arity"]("main") == 2
    assert METHODS >= {"invoke_closure", "save_function"}


def test_a_function_of_the_program_hides_the_method_of_its_name():
    own = VMFunction("set_input", (), (("ret", ("value", "own")),), 0)
    vm = VirtualMachine(Executable(Program({"set_input": own}), Module({})))
    assert vm["set_input"]() == "own"


def test_calls_are_timed(vm):
    result = vm.time_evaluator("main", cpu(), number=2, repeat=3)(X, Y)
    assert isinstance(result, BenchmarkResult)
    assert len(result.results) == 3
    vm.set_input("main", X, Y)
    assert len(vm.time_evaluator("invoke_stateful", cpu(), number=1)("main").results) == 1
    with pytest.raises(UnsupportedError, match="f_preproc is not available yet"):
        vm.time_evaluator("main", f_preproc="cache_flush_cpu_non_first_arg")


def test_the_module_of_a_machine_has_its_functions(vm):
    result = vm.module.time_evaluator("main", cpu(), number=2, repeat=3)(X, Y)
    assert len(result.results) == 3
    assert vm.module["main"](X, Y).tolist() == [4, 6]


def test_a_profile_has_a_row_for_each_call(vm):
    report = vm.profile("main", X, Y)
    names = [call["Name"] for call in report.calls]
    assert names == ["vm.builtin.alloc_tensor", "add"]
    kernel = report.calls[1]
    assert kernel["Argument Shapes"] == "float32[2], float32[2], float32[2]"
    assert kernel["Bytes"].value == 24
    assert vm.recorder is None
    vm.set_input("main", X, Y)
    assert len(vm.profile("main").calls) == 2


def test_what_an_executable_says():
    assert EXECUTABLE.mod is EXECUTABLE.kernels
    assert EXECUTABLE.jit() is EXECUTABLE
    assert isinstance(EXECUTABLE["add"], PackedFunc)
    assert EXECUTABLE.stats() == (
        "Relax VM executable statistics:\n  functions: 2 (0 native)\n  constants: 1\n  kernels: 1"
    )
    assert "@main(x, y):" in EXECUTABLE.as_text()
    assert repr(EXECUTABLE) == "Executable(functions=[main, pair])"
    assert str(type(EXECUTABLE)) == "<class 'weft.relax.vm.Executable'>"
    assert EXECUTABLE.flop_counts == {}


def test_the_first_names_stand_for_all():
    assert first_names({f"f{at}": at for at in range(10)}).endswith("f7 ...")
    assert first_names({}) == ""


def test_what_cannot_be_saved():
    with pytest.raises(UnsupportedError, match="there is no function in this executable to save"):
        Executable(Program(), Module({})).to_artifact()
    linked = Executable(Program({"main": MAIN}), Module({}, imports=[Module({"f": print})]))
    with pytest.raises(UnsupportedError, match="main: a model that calls functions of other"):
        linked.to_artifact()
    with pytest.raises(UnsupportedError, match="fcompile and addons are not available; use cc="):
        EXECUTABLE.export_library("m.so", fcompile=print)
