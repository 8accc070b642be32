"""The ways into the parser: decorators in every place, texts, notebooks, captured names."""
# ruff: noqa: F821 - scripts are no plain Python

import linecache

import numpy as np
import pytest

import weft.script
from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal, structural_equal
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import DiagnosticError
from weft.tir.buffer import Buffer

SIZE = 16  # a global that annotations below use, evaluated by Python (no future import here)


@T.prim_func
def at_module_level(A: T.Buffer((SIZE,), "float32"), B: T.Buffer[SIZE, "float32"]) -> None:
    for i in T.serial(SIZE):
        B[i] = A[i]


def test_module_level_without_future_import():
    assert at_module_level.body.extent.value == 16
    assert at_module_level.attrs["global_symbol"] == "at_module_level"


def test_names_of_enclosing_functions_are_captured():
    def make(n, dtype, scale):
        @T.prim_func
        def func(A: T.Buffer((n,), dtype)):
            for i in range(n):
                A[i] = A[i] * scale

        return func

    assert make(4, "float32", 2.0).body.extent.value == 4
    assert not structural_equal(make(4, "float32", 2.0), make(4, "float32", 3.0))


def test_names_that_only_annotations_use_come_from_the_frame():
    n = 12
    namespace = {"T": T}
    text = (
        "from __future__ import annotations\n"
        "def outer(n):\n"
        "    @T.prim_func\n"
        "    def func(A: T.Buffer((n,), 'float32')):\n"
        "        A[0] = 1.0\n"
        "    return func\n"
    )
    name = "<cell of a notebook>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), namespace)
    func = namespace["outer"](n)
    assert func.buffer_map[func.params[0]].shape[0].value == 12


def test_cells_with_the_same_class_name_keep_their_own_text():
    made = []
    for value in (1, 2):
        text = (
            "@I.ir_module\n"
            "class MyModule:\n"
            "    @T.prim_func\n"
            "    def f(A: T.Buffer((8,), 'int32')):\n"
            f"        A[0] = {value}\n"
        )
        name = f"<cell {value}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        namespace = {"T": T, "I": I, "__name__": "__main__"}
        exec(compile(text, name, "exec"), namespace)
        made.append(namespace["MyModule"])
    values = [module["f"].body.value.value for module in made]
    assert values == [1, 2]


def test_function_in_a_plain_class_is_parsed_at_once():
    class Holder:
        @T.prim_func
        def func(A: T.Buffer((8,), "float32")):
            A[0] = 1.0

    assert Holder.func.attrs["global_symbol"] == "func"


def test_module_with_options():
    @I.ir_module(check_well_formed=False)
    class Module:
        @T.prim_func(private=True)
        def f(A: T.Buffer((SIZE,), "float32")):
            A[0] = 1.0

        @R.function
        def main(x: R.Tensor((SIZE,), "float32")):
            return x

    assert isinstance(Module, IRModule)
    assert "global_symbol" not in Module["f"].attrs


TEXT = """# from tvm.script import ir as I
# from tvm.script import tir as T
# from tvm.script import relax as R

@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        T.func_attr({"tir.noalias": True})
        A[0] = T.float32(1.0)

    @R.function
    def main(x: R.Tensor((8,), dtype="float32")) -> R.Tensor((8,), dtype="float32"):
        return x
"""


def test_text_with_header_comments():
    module = weft.script.from_source(TEXT)
    assert [var.name_hint for var in module] == ["f", "main"]
    assert_structural_equal(module, weft.script.parse(TEXT))


def test_text_with_imports_and_assignments():
    text = "from __future__ import annotations\nfrom tvm.script import tir as T\nN = 8\n" + (
        "@T.prim_func\ndef f(A: T.Buffer((N,), 'float32')):\n    A[0] = 1.0\n"
    )
    func = weft.script.from_source(text)
    assert func.buffer_map[func.params[0]].shape[0].value == 8


def test_text_of_several_functions_is_a_module():
    text = (
        "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = 1.0\n"
        "@T.prim_func\ndef g(A: T.Buffer((8,), 'float32')):\n    A[0] = 2.0\n"
    )
    module = weft.script.from_source(text)
    assert sorted(var.name_hint for var in module) == ["f", "g"]


def test_extra_vars():
    text = "@T.prim_func\ndef f(A: T.Buffer((n,), dtype)):\n    A[0] = value\n"
    func = weft.script.from_source(text, {"n": 4, "dtype": "int32", "value": 3})
    assert func.body.value.value == 3


def test_from_source_takes_functions_and_nodes():
    assert weft.script.from_source(at_module_level) is at_module_level

    def plain(A: T.Buffer((8,), "float32")):
        A[0] = 1.0

    with pytest.raises(DiagnosticError, match="'plain' has no decorator of TVMScript"):
        weft.script.from_source(plain)


def test_annotations_evaluate_outside_of_scripts():
    assert isinstance(T.Buffer((8, 8), "float32"), Buffer)
    assert isinstance(T.Buffer[(8, 8), "float32"], Buffer)
    assert R.Tensor((2, 3), "float32").ndim == 2
    assert R.Tuple(R.Tensor(("n",), "float32"), R.Object) is not None
    assert T.int32().dtype == "int32"
    assert repr(T.float16x4) == "T.float16x4"


def test_reading_files_is_not_part_of_a_text():
    for name in ("open", "eval", "__import__"):
        text = f"@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = {name}('x')\n"
        with pytest.raises(DiagnosticError, match=f"undefined name '{name}'"):
            weft.script.from_source(text)


def test_constants_come_back_through_the_metadata_block():
    values = np.array([[1.5, -0.0, np.inf]], "float32")

    @R.function
    def main(x: R.Tensor((1, 3), "float32")):
        w = R.const(values)
        return R.add(x, w)

    assert_structural_equal(weft.script.from_source(main.script(show_meta=True)), main)
