"""Bytecode written by hand: what each instruction, callee and operand does, and what it refuses."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from weft.runtime.containers import ShapeTuple
from weft.runtime.module import Module
from weft.runtime.ndarray import NDArray, array, empty
from weft.runtime.registry import register_func, remove_global_func
from weft.runtime.vm.bytecode import Program, VMFunction
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.interpreter import Closure, VMInstrumentReturnKind
from weft.runtime.vm.stack import MAX_DEPTH
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support.errors import AssertionFault, IRTypeError, IRValueError, RuntimeFault

ANY = ("object",)
NUMBER = ("prim", "int64", None)
VECTOR = ("tensor", "float32", ("n",), 1)


def add(a, b, out):
    """A kernel: its output comes last."""
    out._array[...] = a.numpy() + b.numpy()


def function(name, params, *code, registers=8):
    """A function of parameters ``name: pattern`` or plain names."""
    named = [param if isinstance(param, tuple) else (param, ANY) for param in params]
    return VMFunction(name, tuple(named), code, registers)


def machine(*functions, constants=(), kernels=None):
    """A virtual machine of these functions."""
    program = Program({item.name: item for item in functions}, list(constants))
    return VirtualMachine(Executable(program, Module(kernels or {"add": add})))


def call(target, kind, name, *operands):
    return ("call", target, (kind, name), operands)


def reg(number):
    return ("reg", number)


def value(plain):
    return ("value", plain)


OPERANDS = [
    (reg(0), 7), (value("text"), "text"), (value(None), None), (("expr", "n * 2 + 1"), 7),
    (("shape", ("n", 4)), (3, 4)), (("shape", ()), ()), (("tuple", (reg(0), value(5))), (7, 5)),
    (("tuple", (("tuple", ()), ("expr", "n"))), ((), 3)),
]  # fmt: skip


@pytest.mark.parametrize(("operand", "expected"), OPERANDS)
def test_operands(operand, expected):
    main = function("main", ["x", ("n", ("prim", "int64", "n"))], ("ret", operand))
    assert machine(main)["main"](7, 3) == expected


def test_a_shape_of_operands_is_a_shape():
    main = function("main", [("n", ("prim", "int64", "n"))], ("ret", ("shape", ("n", "n // 2"))))
    result = machine(main)["main"](7)
    assert isinstance(result, ShapeTuple)
    assert result == (7, 3)


def test_a_kernel_fills_its_output():
    main = function(
        "main", [("x", VECTOR)],
        call(1, "builtin", "alloc_tensor", ("shape", ("n",)), value("float32")),
        call(-1, "kernel", "add", reg(0), reg(0), reg(1)),
        ("ret", reg(1)),
    )  # fmt: skip
    result = machine(main)["main"](np.array([1, 2, 3], "float32"))
    assert result.numpy().tolist() == [2, 4, 6]


def test_a_registered_function_is_looked_up_at_each_call():
    main = function("main", ["x"], call(1, "packed", "test.interp.f", reg(0)), ("ret", reg(1)))
    vm = machine(main)
    register_func("test.interp.f", lambda x: x + 1)
    try:
        assert vm["main"](1) == 2
        register_func("test.interp.f", lambda x: x * 10, override=True)
        assert vm["main"](1) == 10
    finally:
        remove_global_func("test.interp.f")
    with pytest.raises(IRValueError, match=r"cannot find global function 'test.interp.f'"):
        vm["main"](1)


def test_an_imported_module_comes_before_registered_functions():
    main = function("main", ["x"], call(1, "packed", "print", reg(0)), ("ret", reg(1)))
    library = Module({"print": lambda x: x * 3})
    kernels = Module({}, imports=[library])
    vm = VirtualMachine(Executable(Program({"main": main}), kernels))
    assert vm["main"](2) == 6


def test_a_function_calls_another():
    twice = call(1, "packed", "test.interp.twice", reg(0))
    double = function("double", ["x"], twice, ("ret", reg(1)))
    main = function(
        "main", ["x"], call(1, "function", "double", reg(0)),
        call(1, "function", "double", reg(1)), ("ret", reg(1)),
    )  # fmt: skip
    register_func("test.interp.twice", lambda x: 2 * x)
    try:
        assert machine(main, double)["main"](3) == 12
    finally:
        remove_global_func("test.interp.twice")


def test_a_result_that_nobody_wants_is_dropped():
    seen = []
    register_func("test.interp.see", seen.append)
    main = function("main", ["x"], call(-1, "packed", "test.interp.see", reg(0)), ("ret", reg(0)))
    try:
        assert machine(main)["main"](4) == 4
    finally:
        remove_global_func("test.interp.see")
    assert seen == [4]


CONDITIONS = [
    (True, "yes"), (False, "no"), (1, "yes"), (0, "no"), (np.array(True), "yes"),
    (np.array(0, "int64"), "no"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), CONDITIONS)
def test_conditions_choose_a_branch(given, expected):
    main = function(
        "main", ["c"],
        ("if", reg(0), 2),
        call(1, "builtin", "identity", value("yes")),
        ("goto", 1),
        call(1, "builtin", "identity", value("no")),
        ("ret", reg(1)),
    )  # fmt: skip
    condition = array(given) if isinstance(given, np.ndarray) else given
    assert machine(main)["main"](condition) == expected


def test_a_condition_of_several_elements_is_an_error():
    main = function("main", ["c"], ("if", reg(0), 0), ("ret", value(1)))
    with pytest.raises(IRValueError, match=r"a condition must be a scalar, got shape \(2,\)"):
        machine(main)["main"](array([True, False]))


def test_a_match_binds_symbols_for_what_follows():
    main = function(
        "main", ["x"], ("match", 0, ("tensor", "float32", ("n", "m"), 2), "x of main"),
        ("ret", ("shape", ("m", "n", "n * m"))),
    )  # fmt: skip
    vm = machine(main)
    assert vm["main"](np.zeros((2, 3), "float32")) == (3, 2, 6)
    with pytest.raises(IRValueError, match=r"x of main: expected shape \(n, m\), got \(2,\)"):
        vm["main"](np.zeros(2, "float32"))
    with pytest.raises(IRTypeError, match=r"x of main: expected dtype float32, got int32"):
        vm["main"](np.zeros((2, 3), "int32"))


def test_closures_keep_what_they_captured():
    body = function("body", ["x", "k"], ("ret", ("tuple", (reg(0), reg(1)))))
    main = function(
        "main", ["k"], call(1, "builtin", "make_closure", value("body"), reg(0)), ("ret", reg(1))
    )
    apply = function("apply", ["f", "x"], call(2, "register", 0, reg(1)), ("ret", reg(2)))
    vm = machine(main, body, apply)
    closure = vm["main"]("kept")
    assert isinstance(closure, Closure)
    assert closure(1) == (1, "kept")
    assert vm.invoke_closure(closure, 2) == (2, "kept")
    assert vm["apply"](closure, 3) == (3, "kept")
    assert vm["apply"](lambda x: -x, 3) == -3


def test_what_is_no_closure_is_not_called():
    main = function("main", ["f"], call(1, "register", 0), ("ret", reg(1)))
    with pytest.raises(RuntimeFault, match="expected a function to call, got int"):
        machine(main)["main"](3)
    with pytest.raises(IRTypeError, match="expected a closure, got str"):
        machine(main).invoke_closure("main")


def countdown():
    """``down(n)`` calls itself until n is 0."""
    return function(
        "down", [("n", ("prim", "int64", "n"))],
        ("if", reg(0), 2),
        call(1, "function", "down", ("expr", "n - 1")),
        ("ret", reg(1)),
        ("ret", value("bottom")),
    )  # fmt: skip


def test_recursion_takes_no_stack_of_python():
    assert machine(countdown())["down"](20_000) == "bottom"


def tail_call(name, target, kind, *operands):
    """``countdown``'s call, with a tensor beside the number, as the last thing that is done."""
    return function(
        name, [("n", ("prim", "int64", "n")), "kept"],
        ("if", ("expr", "n"), 3),
        call(2, "packed", "test.fresh", reg(1)),
        ("tail", 3, (kind, target), (("expr", "n - 1"), reg(2), *operands)),
        ("goto", 1),
        call(3, "builtin", "identity", reg(1)),
        ("ret", reg(3)),
    )  # fmt: skip


@pytest.fixture
def alive():
    """Weak references to the tensors of ``test.fresh``; at most three live at once."""
    references = []

    def fresh(_):
        value = empty((4,))
        references.append(weakref.ref(value))
        assert sum(reference() is not None for reference in references[-9:]) <= 3
        return value

    register_func("test.fresh", fresh)
    yield references
    remove_global_func("test.fresh")


def test_a_tail_call_takes_the_place_of_its_caller(alive):
    loop = tail_call("loop", "loop", "function")
    last = machine(loop)["loop"](2 * MAX_DEPTH, 0)
    assert last is alive[-1]()
    assert len(alive) == 2 * MAX_DEPTH
    listing = Program({"loop": loop}).as_text()
    assert "%3 = tail call function loop(n - 1, %2)" in listing


def test_functions_that_call_each_other_last(alive):
    there = tail_call("there", "back", "function")
    back = tail_call("back", "there", "function")
    assert machine(there, back)["there"](MAX_DEPTH + 5, 0) is alive[-1]()


def test_a_tail_call_of_python_returns_its_value():
    register_func("test.python", lambda n, kept: (n, kept), override=True)
    register_func("test.fresh", lambda x: x, override=True)
    loop = tail_call("loop", "test.python", "packed")
    assert machine(loop)["loop"](7, "kept") == (6, "kept")


def test_a_tail_call_of_a_function_that_is_watched():
    register_func("test.fresh", lambda x: x, override=True)
    watched = machine(tail_call("loop", "loop", "function"))
    calls = []
    watched.set_instrument(lambda _func, name, before, *_: calls.append((name, before)))
    assert watched["loop"](3, "kept") == "kept"
    assert calls.count(("loop", True)) == calls.count(("loop", False)) == 3


def test_a_recursion_without_an_end_is_an_error():
    endless = function("endless", [], call(0, "function", "endless"), ("ret", reg(0)))
    with pytest.raises(RuntimeFault, match=f"endless: calls are nested more than {MAX_DEPTH}"):
        machine(endless)["endless"]()


def test_values_go_after_their_last_use():
    alive = []

    def make():
        made = empty((1000,))
        alive.append(weakref.ref(made))
        return made

    def count(*_):
        return sum(1 for ref in alive if ref() is not None)

    register_func("test.interp.make", make)
    register_func("test.interp.count", count)
    main = function(
        "main", [],
        call(0, "packed", "test.interp.make"),
        call(1, "packed", "test.interp.count", reg(0)),
        call(2, "packed", "test.interp.make"),
        call(3, "packed", "test.interp.count"),
        ("ret", ("tuple", (reg(1), reg(3)))),
    )  # fmt: skip
    try:
        assert machine(main)["main"]() == (1, 0)  # the second one is never read
    finally:
        remove_global_func("test.interp.make")
        remove_global_func("test.interp.count")


def test_constants_that_are_returned_are_copies():
    constant = array([1.0, 2.0])
    main = function("main", [], ("ret", ("tuple", (("const", 0), value(1)))))
    vm = machine(main, constants=[constant])
    result, _ = vm["main"]()
    assert result is not constant
    result[0] = 9
    assert constant.tolist() == [1, 2]
    nested = function("main", [], ("ret", ("tuple", (("tuple", (("const", 0),)),))))
    ((inner,),) = machine(nested, constants=[constant])["main"]()
    assert inner is not constant


def test_an_argument_that_is_returned_is_itself():
    given = array([1.0])
    main = function("main", ["x"], ("ret", reg(0)))
    assert machine(main)["main"](given) is given


def test_the_builtins_of_the_machine_itself():
    constant = array([1.0])
    kernels = {"fill": lambda value, out, n: out._array.fill(value * n)}
    main = function(
        "main", [],
        call(0, "builtin", "alloc_tensor", ("shape", (2,)), value("float32")),
        call(-1, "builtin", "call_tir_dyn", value("fill"), value(3), reg(0), ("shape", (4,))),
        call(1, "builtin", "detach", ("const", 0)),
        ("ret", ("tuple", (reg(0), reg(1)))),
    )  # fmt: skip
    filled, detached = machine(main, constants=[constant], kernels=kernels)["main"]()
    assert filled.tolist() == [12, 12]
    assert detached.tolist() == [1]


WRONG_ARGUMENTS = [
    ((), IRTypeError, r"main: expected 2 arguments \(x, n\), got 0"),
    ((1, 2, 3), IRTypeError, r"main: expected 2 arguments \(x, n\), got 3"),
    ((np.zeros(3, "float32"), 4), IRValueError, r"argument 1 \(n\): expected 3 \(n\), got 4"),
    ((np.zeros(3, "int8"), 3), IRTypeError, r"argument 0 \(x\): expected dtype float32, got int8"),
    ((3, 3), IRTypeError, r"argument 0 \(x\): expected a tensor, got the number 3"),
    ((np.zeros(3, "float32"), "3"), IRTypeError, r"argument 1 \(n\): expected a number"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), WRONG_ARGUMENTS)
def test_arguments_that_do_not_fit(arguments, kind, text):
    main = function("main", [("x", VECTOR), ("n", ("prim", "int64", "n"))], ("ret", reg(1)))
    with pytest.raises(kind, match=text):
        machine(main)["main"](*arguments)


IMPOSSIBLE = [
    (call(0, "kernel", "nothing"), "Module has no function 'nothing'"),
    (call(0, "builtin", "tuple_getitem", value(()), value(0)), "field 0 of a tuple of 0"),
    (call(0, "builtin", "tuple_getitem", value(3), value(0)), "expected a tuple to take field 0"),
    (call(0, "builtin", "shape_of", value(3)), "shape_of: expected a tensor, got int"),
    (call(0, "builtin", "check_limit", value("f"), value("n"), value(9), value(8)),
     "f: n is 9, but memory was planned for at most 8"),
    (call(0, "builtin", "alloc_tensor", ("shape", (-1,)), value("float32")),
     r"expected extents of 0 or more, got shape \(-1,\)"),
    (call(0, "builtin", "assert_op", value(False)), "Assertion Failed"),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "text"), IMPOSSIBLE)
def test_errors_of_instructions(instruction, text):
    main = function("main", [], instruction, ("ret", reg(0)))
    with pytest.raises(Exception, match=text):
        machine(main)["main"]()


def test_bytecode_that_cannot_be_run_names_the_instruction():
    main = function("main", [], call(0, "builtin", "identity"), ("ret", reg(0)))
    with pytest.raises(RuntimeFault, match=r"main: the bytecode cannot be run .*at instruction 0"):
        machine(main)["main"]()


def test_an_assertion_that_fails_is_an_assertion_error():
    main = function(
        "main", ["c"],
        call(-1, "builtin", "assert_op", reg(0), value("{} is not {}"), value(3), value(4)),
        ("ret", value(1)),
    )  # fmt: skip
    assert machine(main)["main"](True) == 1
    with pytest.raises(AssertionFault, match="Assertion Failed: 3 is not 4"):
        machine(main)["main"](False)


def test_the_error_of_a_callback_arrives_as_it_is():
    class Mine(Exception):
        pass

    def fails():
        raise Mine("as it is")

    register_func("test.interp.fails", fails)
    main = function("main", [], call(0, "packed", "test.interp.fails"), ("ret", reg(0)))
    try:
        with pytest.raises(Mine, match="as it is"):
            machine(main)["main"]()
    finally:
        remove_global_func("test.interp.fails")


def test_an_instrument_sees_every_call_before_and_after():
    seen = []

    def instrument(_function, name, before, result, *arguments):
        seen.append((name, before, result, len(arguments)))
        return VMInstrumentReturnKind.NO_OP

    inner = function("inner", ["x"], call(1, "builtin", "identity", reg(0)), ("ret", reg(1)))
    main = function("main", ["x"], call(1, "function", "inner", reg(0)), ("ret", reg(1)))
    vm = machine(main, inner)
    vm.set_instrument(instrument)
    assert vm["main"](5) == 5
    assert seen == [
        ("inner", True, None, 1), ("identity", True, None, 1), ("identity", False, 5, 1),
        ("inner", False, 5, 1),
    ]  # fmt: skip


def test_an_instrument_may_leave_a_call_out():
    def instrument(_function, name, before, _result, *_):
        skipped = before and name == "add"
        return VMInstrumentReturnKind.SKIP_RUN if skipped else VMInstrumentReturnKind.NO_OP

    twice = call(-1, "kernel", "add", reg(0), reg(0), reg(1))
    main = function("main", ["x", "out"], twice, ("ret", reg(1)))
    vm = machine(main)
    out = array(np.zeros(2, "float32"))
    vm.set_instrument(instrument)
    assert vm["main"](array(np.ones(2, "float32")), out).tolist() == [0, 0]
    register_func("test.interp.instrument", lambda *a: VMInstrumentReturnKind.NO_OP)
    try:
        vm.set_instrument("test.interp.instrument")
        assert vm["main"](array(np.ones(2, "float32")), out).tolist() == [2, 2]
    finally:
        remove_global_func("test.interp.instrument")
    with pytest.raises(IRTypeError, match="expected a function or its name, got int"):
        vm.set_instrument(3)


def test_arrays_of_numpy_share_their_memory_with_the_program():
    main = function("main", [("x", VECTOR)], ("ret", reg(0)))
    given = np.zeros(2, "float32")
    result = machine(main)["main"](given)
    assert isinstance(result, NDArray)
    result[0] = 5
    assert given[0] == 5
