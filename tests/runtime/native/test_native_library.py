import ctypes
import gc
from pathlib import Path

import numpy as np
import pytest

from tests.lib.python_process import output_of
from weft import nd
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.call.wrapper import make_wrapper
from weft.runtime.native import native_library
from weft.runtime.native.builtins_ir import BUILTINS, builtin_address
from weft.runtime.native.elf import read_object
from weft.runtime.native.llvm import object_from_ir
from weft.runtime.native.native_library import NativeLibrary, load_library, register_extern
from weft.support.errors import CodegenError

ROOT = Path(__file__).parents[3]

UNARY = """
declare {type} @{name}({type})
define i32 @f({type} %x, ptr %out) {{
  %y = call {type} @{name}({type} %x)
  store {type} %y, ptr %out
  ret i32 0
}}
"""


def unary(name, dtype="float64"):
    return FunctionSpec(name, (ParamSpec("scalar", "x", dtype),), ret=dtype, symbol="f")


@pytest.mark.parametrize("name", ["exp", "log1p", "erf", "tgamma", "sin", "cbrt"])
def test_the_mathematical_library_is_there(load, name):
    import math

    f = load(UNARY.format(name=name, type="double")).function(unary(name))
    exact = getattr(math, "gamma" if name == "tgamma" else name)(0.7)
    assert f(0.7) == pytest.approx(exact, rel=1e-15)


def test_an_unknown_external_function_is_an_error_not_a_crash(load):
    with pytest.raises(
        CodegenError, match=r"test: expected external functions .* no_such_function"
    ):
        load(UNARY.format(name="no_such_function", type="double"))


def test_externals_are_registered_as_callbacks_and_addresses(load):
    callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x * 3)
    register_extern("weft_test_triple", callback)
    f = load(UNARY.format(name="weft_test_triple", type="double")).function(unary("triple"))
    assert f(2.0) == 6.0
    register_extern("weft_test_same", ctypes.cast(callback, ctypes.c_void_p).value)
    assert load(UNARY.format(name="weft_test_same", type="double")).function(unary("s"))(1.0) == 3.0
    with pytest.raises(TypeError, match=r"g: expected an address or a ctypes function, got str"):
        register_extern("g", "address")


def test_the_wrapper_of_a_function_is_made_when_it_is_called(load, monkeypatch):
    wrapped = []

    def noted(spec, address):
        wrapped.append(spec.name)
        return make_wrapper(spec, address)

    monkeypatch.setattr(native_library, "make_wrapper", noted)
    f = load(UNARY.format(name="exp", type="double")).function(unary("exp"))
    assert (repr(f), f.spec.name, wrapped) == ("NativeFunction('exp')", "exp", [])
    assert (f(0.0), f(0.0), wrapped) == (1.0, 1.0, ["exp"])
    with pytest.raises(TypeError, match=r"exp: expected 1 argument"):
        f()
    with pytest.raises(AttributeError, match=r"'NativeFunction' object has no attribute 'nothing'"):
        _ = f.nothing


def test_load_library():
    load_library("libm.so.6")
    with pytest.raises(CodegenError, match=r"cannot load the library 'libnothere.so'"):
        load_library("libnothere.so")


def test_symbols_are_read_and_checked(load):
    lib = load("define i32 @f() {\nret i32 0\n}\ndefine internal i32 @g() noinline {\nret i32 1\n}")
    assert "f" in lib.symbols
    with pytest.raises(KeyError, match=r"expected one of f in the object code, got 'h'"):
        lib.address("h")
    assert read_object(b"MZ" + b"\0" * 100) is None


@pytest.mark.parametrize("size", [70, 200, 500])
def test_damaged_object_code_is_an_error(size):
    code = object_from_ir("define i32 @f() {\nret i32 0\n}")
    with pytest.raises(CodegenError, match=r"expected object code"):
        NativeLibrary(code[:size])


@pytest.mark.parametrize("name", ["main", "exp", "malloc", "weft_raise_not", "GOMP_parallel"])
def test_names_of_the_system_are_free_for_functions(load, name):
    ir = f"define i32 @{name}(ptr %out) {{\nstore i64 5, ptr %out\nret i32 0\n}}"
    assert load(ir).function(FunctionSpec(name, ret="int64"))() == 5


def test_a_function_keeps_its_library(load):
    f = load("define i32 @f(ptr %out) {\nstore i64 5, ptr %out\nret i32 0\n}").function(
        FunctionSpec("f", ret="int64")
    )
    gc.collect()
    assert f() == 5


def test_bfloat16_conversions_round_to_nearest_even():
    import ml_dtypes

    f32 = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(builtin_address("__truncsfbf2"))
    f64 = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_double)(builtin_address("__truncdfbf2"))

    def low_half(value):
        return np.float32(value).view(np.uint32) & 0xFFFF

    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.standard_normal(300) * 10.0 ** rng.integers(-38, 38, 300), [0.0, -0.0, np.inf],
         1 + np.arange(20) / 256, [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 3.4e38]]
    )  # fmt: skip
    for value in values.tolist():
        single = np.float32(value)
        assert low_half(f32(single)) == single.astype(ml_dtypes.bfloat16).view(np.uint16)
    # halfway but for a bit that float32 does not hold
    assert low_half(f64(1 + 2**-8 + 2**-40)) == 0x3F81
    assert low_half(f64(1 + 2**-8 - 2**-40)) == 0x3F80
    assert low_half(f64(1 + 2**-8)) == 0x3F80
    assert low_half(f64(-1 - 2**-8 - 2**-40)) == 0xBF81
    assert np.isnan(np.uint32(int(low_half(f32(float("nan")))) << 16).view(np.float32))
    assert {"__truncsfbf2", "__truncdfbf2"} == BUILTINS


def test_half_conversions_are_there_without_processor_support(load):
    ir = """
define i32 @f(float %x, ptr %out) {
  %h = fptrunc float %x to half
  %y = fpext half %h to float
  store float %y, ptr %out
  ret i32 0
}
"""
    assert load(ir).function(unary("f", "float32"))(0.1) == np.float16(0.1)


def run(program):
    return output_of(program, cwd=ROOT)


def test_importing_the_runtime_loads_neither_compiler_nor_llvm():
    program = """
import sys
import weft.runtime, weft.nd, weft.runtime.module
import weft.runtime.native.native_library, weft.runtime.threads.parallel
weft.runtime.Module, weft.runtime.NDArray, weft.nd.array([1])
heavy = {"ir", "tir", "relax", "codegen", "te", "topi", "script", "arith", "target", "driver"}
print([m for m in sys.modules if m.split(".")[0] == "weft" and heavy & set(m.split(".")[1:2])])
print([m for m in ("llvmlite", "torch", "ml_dtypes") if m in sys.modules])
"""
    assert run(program).split("\n")[:2] == ["[]", "[]"]


def test_code_that_runs_at_exit_does_not_crash():
    program = """
import atexit, threading, time
from weft.runtime.native.llvm import object_from_ir
from weft.runtime.native.native_library import NativeLibrary
from weft.runtime.call.spec import FunctionSpec
f = NativeLibrary(object_from_ir("define i32 @f() { ret i32 0 }")).function(FunctionSpec("f"))
def spin():
    while True:
        f()
threading.Thread(target=spin, daemon=True).start()
atexit.register(f)
time.sleep(0.05)
"""
    run(program)


def test_ctrl_c_arrives_after_the_call():
    program = """
import signal, os
import numpy as np
from weft.runtime.registry import register_func
from weft.runtime.native.llvm import object_from_ir
from weft.runtime.native.native_library import NativeLibrary
from weft.runtime.call.spec import FunctionSpec
ir = '''
declare i32 @weft_call_packed(ptr, ptr, i32, ptr)
@name = private constant [4 x i8] c"int\\\\00"
define i32 @f() {
  %c = call i32 @weft_call_packed(ptr @name, ptr null, i32 0, ptr null)
  ret i32 %c
}
'''
register_func("int", lambda: os.kill(os.getpid(), signal.SIGINT))
f = NativeLibrary(object_from_ir(ir)).function(FunctionSpec("f", calls_packed=True))
try:
    f()
    for _ in range(1000):
        pass
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run(program) == "interrupted\n"


def test_weight_arguments_are_not_copied(load):
    ir = """
define i32 @f(ptr %x, ptr %out) {
  %i = ptrtoint ptr %x to i64
  store i64 %i, ptr %out
  ret i32 0
}
"""
    f = load(ir).function(
        FunctionSpec("f", (ParamSpec("buffer", "x", "float32", ("n",)),), ret="int64")
    )
    a = nd.empty((5,))
    assert f(a) == a._address
