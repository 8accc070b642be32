"""``tir.trace``: Python sees values of a program while it runs, and may change them."""

import numpy as np
import pytest

import weft
from weft import te, tir
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.interp import run


@pytest.fixture
def registered():
    """``registered(name, function)`` for the time of a test."""
    names = []

    def register(name, function):
        weft.register_func(name, function, override=True)
        names.append(name)
        return name

    yield register
    for name in names:
        weft.runtime.remove_global_func(name)


def results(func, value):
    """What native code and the interpreter make of an array."""
    native, interpreted = weft.nd.array(np.zeros_like(value)), np.zeros_like(value)
    weft.build(func, target="llvm")["main"](weft.nd.array(value), native)
    run(func, value, interpreted)
    np.testing.assert_array_equal(native.numpy(), interpreted)
    return interpreted


def program(action, dtype, *more):
    x = te.placeholder((3,), dtype, name="x")
    y = te.compute((3,), lambda i: tir.trace([*[i + m for m in more], x[i]], action) + x[i])
    return te.create_prim_func([x, y])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_a_function_without_a_result_sees_values(registered, dtype):
    seen = []
    func = program(registered("test.trace", lambda *values: seen.append(values)), dtype, 0, 5)
    value = np.array([3, 1, 2]).astype(dtype)
    np.testing.assert_array_equal(results(func, value), 2 * value)
    assert seen == [(i, i + 5, v) for i, v in enumerate(value)] * 2


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_result_takes_the_place_of_the_value(registered, dtype):
    func = program(registered("test.trace", lambda value: value * 3), dtype)
    value = np.array([3, 1, 2]).astype(dtype)
    np.testing.assert_array_equal(results(func, value), 4 * value)


def test_the_default_prints(capfd):
    results(program("tvm.default_trace_action", "int32", 7), np.array([3, 1, 2], "int32"))
    assert capfd.readouterr().out.split("\n")[:3] == ["7 3", "8 1", "9 2"]


def test_its_text_is_read_again():
    func = program("test.trace", "float32", 1)
    weft.ir.assert_structural_equal(weft.script.from_source(func.script()), func)


def test_what_is_refused(registered):
    with pytest.raises(IRTypeError, match="trace: expected a list of values, got Var"):
        tir.trace(tir.Var("x", "int32"))
    with pytest.raises(IRValueError, match="trace: expected at least one value"):
        tir.trace([])

    def fail(value):
        raise RuntimeError(f"seen {value}")

    func = program(registered("test.trace", fail), "int32")
    with pytest.raises(RuntimeError, match="seen 3"):
        results(func, np.array([3, 1, 2], "int32"))
