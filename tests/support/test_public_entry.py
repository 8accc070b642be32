"""Exceptions that weft did not mean say that they are weft's; the caller's own stay as they are."""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.cli import main
from weft.ir.transform import module_pass
from weft.relax.frontend.onnx import from_onnx
from weft.relax.transform import LegalizeOps
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.script import tir as T
from weft.script.parser import entry
from weft.support.errors import InternalError, IRTypeError, IRValueError, TVMError
from weft.support.public_entry import public_entry
from weft.tir.transform import Simplify


def failing(error):
    """A function of weft, as far as its frames tell, that raises an exception."""
    scope = {"__name__": "weft.somewhere", "error": error}
    exec("def function(*args, **kwargs):\n    raise error", scope)
    return scope["function"]


@T.prim_func
def doubled(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        y[i] = x[i] * T.float32(2)


def test_an_exception_of_weft_says_so_and_keeps_its_cause():
    cause = KeyError("a\nb")
    cause.add_note("while lowering main")
    with pytest.raises(InternalError, match="this is a fault of weft.*: f stopped with Key") as e:
        public_entry("f")(failing(cause))()
    text = str(e.value)
    assert e.value.__cause__ is cause
    assert e.value.__notes__ == ["while lowering main"]
    assert f"versions: weft {weft.__version__}, Python 3." in text
    assert "please report it with what you called" in text
    assert len(text.splitlines()) <= 10


@pytest.mark.parametrize(
    ("error", "told"),
    [(RecursionError("maximum"), "f: it is nested deeper than Python's stack allows"),
     (MemoryError("3 TiB"), "f: there is not enough memory: 3 TiB; make shapes"),
     (OverflowError("too large"), r"f: a number is too large to compute with \(too large, in"),
     (OSError(28, "No space left"), r"f: the system refused it: \[Errno 28\] No space left")],
)  # fmt: skip
def test_limits_have_words_of_their_own(error, told):
    with pytest.raises(TVMError, match=told) as found:
        public_entry("f")(failing(error))()
    assert not isinstance(found.value, InternalError)
    assert found.value.__cause__ is error


def raising(*args):
    raise ValueError("mine")


@pytest.mark.parametrize(
    ("function", "kind"),
    [(raising, ValueError), (failing(IRValueError("told")), IRValueError),
     (failing(DeprecationWarning("old")), DeprecationWarning),
     (failing(ModuleNotFoundError("no torch", name="torch")), ModuleNotFoundError),
     (failing(KeyboardInterrupt()), KeyboardInterrupt), (lambda: max(3, key=raising), TypeError)],
)  # fmt: skip
def test_what_is_not_wefts_stays(function, kind):
    with pytest.raises(kind) as found:
        public_entry("f")(function)()
    assert type(found.value) is kind
    assert found.value.__cause__ is None


def test_wrong_arguments_of_an_entry_are_python_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'") as found:
        weft.build(doubled, colour=3)
    assert type(found.value) is TypeError


def test_a_fault_inside_of_each_entry_is_told_once(monkeypatch):
    """The innermost entry tells it; those around it pass it on."""
    outer = public_entry("outer")
    fault = failing(AttributeError("no dtype"))
    monkeypatch.setattr("weft.driver.build.target_meant", fault)
    monkeypatch.setattr(entry, "parse_text", fault)
    for call, told in [
        (lambda: weft.build(doubled), "weft.build stopped with AttributeError"),
        (lambda: weft.relax.build(doubled), "relax.build stopped with AttributeError"),
        (lambda: weft.script.from_source("x = 1"), "from_source stopped with AttributeError"),
        (lambda: weft.runtime.PackedFunc(fault, "g")(), "the call of g stopped with Attribute"),
    ]:
        with pytest.raises(InternalError, match=told):
            outer(call)()


def test_callbacks_of_the_caller_keep_their_exceptions():
    @weft.register_func("tests.raising", override=True)
    def named(*args):
        return raising(*args)

    with pytest.raises(ValueError, match="mine") as found:
        weft.get_global_func("tests.raising")(3)
    assert type(found.value) is ValueError
    with pytest.raises(TypeError, match="no len") as found:
        weft.runtime.PackedFunc(len)(3)  # a function of C: it has no frame
    assert type(found.value) is TypeError
    with pytest.raises(ZeroDivisionError):
        public_entry("f")(weft.runtime.PackedFunc(operator.floordiv))(1, 0)

    @T.prim_func
    def calling(x: T.Buffer((1,), "float32")):
        T.evaluate(T.call_packed("tests.raising", x.data))

    with pytest.raises(ValueError, match="mine") as found:
        weft.build(calling)(weft.nd.array(np.zeros(1, "float32")))
    assert type(found.value) is ValueError


def test_passes_of_the_caller_keep_their_exceptions():
    @module_pass(opt_level=0)
    def mine(mod, context):
        Simplify()(mod)
        return raising()

    with pytest.raises(ValueError, match="mine") as found:
        weft.build(doubled, pipeline=mine)
    assert type(found.value) is ValueError


def test_a_command_writes_the_traceback_beside(monkeypatch, capsys):
    monkeypatch.setattr("weft.cli.ops.run", failing(AttributeError("no dtype")))
    assert main.main(["ops", "model.onnx"]) == 2
    told = capsys.readouterr().err.rstrip().splitlines()
    assert len(told) <= 10
    assert told[0].startswith("weft: this is a fault of weft, not of your program: weft ops stopp")
    path = Path(told[-1].partition("the traceback: ")[2])
    assert "AttributeError: no dtype" in path.read_text(encoding="utf-8")
    path.unlink()


def test_calls_that_keep_their_arguments_are_entries(monkeypatch):
    machine = VirtualMachine(weft.relax.build(one()), weft.cpu())
    machine.set_input("main", np.ones(2, "float32"))
    monkeypatch.setattr(machine, "callable_of", failing(AttributeError("gone")))
    with pytest.raises(InternalError, match="call of a virtual machine stopped with AttributeErr"):
        machine.invoke_stateful("main")


def one():
    """A graph of one operator."""
    x = weft.relax.Var("x", weft.relax.TensorStructInfo((2,), "float32"))
    builder = weft.relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(weft.relax.op.nn.relu(x)))
    return builder.get()


def test_wrong_arguments_of_a_registered_function_of_weft_are_told_with_its_name():
    with pytest.raises(IRTypeError, match="relax.run.unique: .*missing 4 required positional arg"):
        weft.get_global_func("relax.run.unique")(weft.nd.empty((2,)))

    @weft.register_func("tests.of_two", override=True)
    def of_two(x, y):
        return x

    with pytest.raises(TypeError, match="missing 1 required") as found:
        weft.get_global_func("tests.of_two")(1)  # the caller's own: as Python says it
    assert type(found.value) is TypeError


@pytest.mark.onnx
def test_converters_and_legalizations_of_the_caller_keep_their_exceptions():
    helper, name = pytest.importorskip("onnx.helper"), "Relu"
    info = [helper.make_tensor_value_info(item, 1, [2]) for item in "xy"]
    graph = helper.make_graph([helper.make_node(name, ["x"], ["y"])], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    def converter(context, x):
        return raising()

    for call in (
        lambda: from_onnx(model, custom_converters={name: converter}),
        lambda: weft.compile(model, cache=False, custom_converters={name: converter}),
        lambda: LegalizeOps({"relax.nn.relu": lambda bb, call: raising()})(one()),
    ):
        with pytest.raises(ValueError, match="mine") as found:
            public_entry("outer")(call)()
        assert type(found.value) is ValueError
