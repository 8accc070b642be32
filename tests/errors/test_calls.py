"""Wrong calls of compiled functions, of the machine, of registered functions and of timers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import weft
from weft.support.errors import (
    IRKeyError,
    IRTypeError,
    IRValueError,
    TVMError,
    UnsupportedError,
)  # fmt: skip

SCALARS = """
@T.prim_func
def main(A: T.Buffer((1,), "float32"), n: T.int32, x: T.float32):
    A[0] = x + T.Cast("float32", n)
"""


@pytest.fixture(scope="module")
def scalars():
    return weft.build(weft.script.from_source(SCALARS))["main"]


@pytest.mark.parametrize("value", [1.5, "3", None, np.zeros(3), 1j, np.ndarray, np.float16(1)])
def test_what_is_no_integer(scalars, value):
    with pytest.raises(IRTypeError, match=r"main: argument 1 \(n\): expected an integer \(int32\)"):
        scalars(np.zeros(1, "float32"), value, 1.0)


def test_integers_out_of_range(scalars):
    with pytest.raises(IRValueError, match="from -2147483648 to 2147483647"):
        scalars(np.zeros(1, "float32"), 1 << 31, 1.0)
    with pytest.raises(IRValueError, match="that float32 can hold, got an integer of 1329 bits"):
        scalars(np.zeros(1, "float32"), 1, 10**400)


def test_keywords(built, vm):
    with pytest.raises(IRTypeError, match="add1: expected arguments by position, .* keywords x"):
        built["add1"](x=1)
    with pytest.raises(IRTypeError, match="main: expected arguments by position, .* keywords x"):
        vm["main"](x=1)


def test_names_of_the_machine(vm):
    with pytest.raises(IRKeyError, match="has no function 'mian'; did you mean 'main'"):
        vm["mian"]
    for use in (lambda: vm[5], lambda: vm.set_input(5, 1), lambda: vm.invoke_stateful(None)):
        with pytest.raises(IRTypeError, match="expected the name of a function, got"):
            use()
    with pytest.raises(IRTypeError, match="expected a closure, got int"):
        vm.invoke_closure(5)


X = np.zeros(4, "float32")


@pytest.mark.parametrize(
    ("use", "error", "match"),
    [
        (lambda vm: vm.save_function("main", 5, X), IRTypeError, "a new name .*, got 5 and True"),
        (lambda vm: vm.save_function("main", "s", X, include_return=3), IRTypeError, "got 's' and"),
        (lambda vm: vm.save_function("main", "", X), IRValueError, "expected a new name, got ''"),
        (lambda vm: vm.save_function("main", "main", X), IRValueError, "of the function 'main'"),
        (lambda vm: vm.save_function("mian", "s", X), IRKeyError, "no function 'mian'"),
        (lambda vm: vm.save_function("main", "s"), IRTypeError, "main: expected 1 argument"),
        (lambda vm: vm.save_function("main", "s", X[:3]), IRValueError, r"shape \(4,\)"),
        (lambda vm: vm.save_function("main", "s", "x"), IRTypeError, "expected a tensor"),
        (lambda vm: vm.save_function("main", "s", z=X), IRValueError, "there is no parameter z"),
    ],
)
def test_calls_that_cannot_be_saved(vm, use, error, match):
    with pytest.raises(error, match=match):
        use(vm)
    with pytest.raises(IRKeyError):
        vm["s"]


@pytest.mark.parametrize(
    ("memory", "error", "match"),
    [
        (5, IRTypeError, "memory_cfg: expected None, 'naive', 'pooled' or a dict .*, got 5"),
        ("lots", IRValueError, "memory_cfg: expected 'naive' or 'pooled', got 'lots'"),
        ({weft.cpu(): 1}, IRValueError, "expected 'naive' or 'pooled', got 1"),
        ({weft.cuda(): "naive"}, TVMError, "cuda"),
        ({"x": "naive"}, TVMError, "device"),
    ],
)
def test_allocators(built, memory, error, match):
    with pytest.raises(error, match=match):
        weft.relax.VirtualMachine(built, weft.cpu(), memory)
    for known in (None, "naive", "pooled", {weft.cpu(): "naive"}):
        weft.relax.VirtualMachine(built, weft.cpu(), known)


@pytest.mark.parametrize("name", [3, None, ["a"]])
def test_names_of_registered_functions(name):
    for allow_missing in (False, True):
        with pytest.raises(IRTypeError, match="expected the name of a function, got"):
            weft.get_global_func(name, allow_missing)


def test_a_nameless_callable_cannot_be_registered_by_itself():
    class Callable:
        def __call__(self):
            return 5

    with pytest.raises(IRTypeError, match="a Callable has no name of its own"):
        weft.register_func(Callable())


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"number": "a"}, IRTypeError, "expected an integer for number, got 'a'"),
        ({"number": 1.5}, IRTypeError, "expected an integer for number, got 1.5"),
        ({"repeat": None}, IRTypeError, "expected an integer for repeat, got None"),
        ({"min_repeat_ms": "x"}, IRTypeError, "expected a number for min_repeat_ms"),
        ({"cooldown_interval_ms": []}, IRTypeError, "a number for cooldown_interval_ms"),
        ({"number": 0}, IRValueError, "of at least 1, got 0 and 1"),
    ],
)
def test_timers(built, options, error, match):
    with pytest.raises(error, match=match):
        built.mod.time_evaluator("add1", **options)


def test_a_function_that_calls_itself_for_ever_is_an_error_not_a_crash():
    program = '''
import numpy as np, weft
module = weft.script.from_source("""
@R.function
def main(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        y = R.call_dps_packed("again", (x,), out_sinfo=R.Tensor((4,), "float32"))
        R.output(y)
    return y
""")
vm = weft.relax.VirtualMachine(weft.relax.build(module), weft.cpu())
weft.register_func("again", lambda x, y: y.copyfrom(vm["main"](x)))
try:
    vm["main"](np.zeros(4, "float32"))
except Exception as error:
    assert "recursion" in repr(error).lower(), error
    print("an error")
'''
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, "an error\n"), done.stderr[-500:]


@pytest.mark.parametrize("lanes", [1025, 100_000])
def test_long_vector_loops_run(lanes):
    f = weft.build(weft.script.from_source(
        f"@T.prim_func\ndef main(A: T.Buffer(({lanes},), 'int32'), B: T.Buffer((8,), 'int32')):\n"
        f"    for i in T.vectorized({lanes}):\n        B[i % 8] = A[i]\n"
    ))["main"]  # fmt: skip
    values, last = np.arange(lanes, dtype="int32"), np.zeros(8, "int32")
    f(values, last)
    assert sorted(last) == list(range(lanes - 8, lanes))


def test_huge_vectors_are_refused():
    text = """@T.prim_func
def main(A: T.Buffer((100000,), "float32")):
    A[T.Ramp(0, 1, 100000)] = T.Broadcast(T.float32(1), 100000)
"""
    with pytest.raises(UnsupportedError, match="at most 4096 lanes, got"):
        weft.build(weft.script.from_source(text))


def test_a_huge_temporary_is_an_error():
    text = """@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((1099511627776,), "float32")
    for i in T.serial(1099511627776):
        with T.block("b"):
            vi = T.axis.spatial(1099511627776, i)
            B[vi] = 1.0
    A[0] = B[5]
"""
    with pytest.raises(TVMError, match="cannot allocate 4398046511104 bytes for B"):
        weft.build(weft.script.from_source(text))["main"](np.zeros(8, "float32"))
