"""Where the text of a decorated definition comes from, and which names it captures."""

from __future__ import annotations

import itertools
import linecache
import sys

import pytest

from weft.ir.structural import structural_equal
from weft.script import from_source
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.script.parser.source import closure_of, find_function
from weft.support.errors import DiagnosticError

NUMBER = itertools.count()


def run(text, **names):
    """The names of a file with this text, which was run as a notebook runs a cell."""
    file = f"<cell {next(NUMBER)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = {"T": T, "R": R, "I": I, "from_source": from_source, **names}
    exec(compile(text, file, "exec"), namespace)
    return namespace


def stored(func):
    return func.body.value.value


HEADS = ["@T.prim_func", "@T.prim_func()", "@T.prim_func(\n    private=True\n)",
         "@same\n@T.prim_func", "# note\n@T.prim_func  # note"]  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_a_decorator_in_each_form(head):
    namespace = run(f"{head}\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = 7\n", same=lambda f: f)
    assert stored(namespace["f"]) == 7


def test_two_functions_of_a_name_are_found_by_their_lines():
    text = "def make(k):\n" + "".join(
        f"    if k == {k}:\n        @T.prim_func\n        def f(A: T.Buffer((8,), 'int32')):\n"
        f"            A[0] = {k * 10}\n" for k in range(3)
    ) + "    return f\n"  # fmt: skip
    make = run(text)["make"]
    assert [stored(make(k)) for k in range(3)] == [0, 10, 20]


def test_a_method_of_a_plain_class_and_a_nested_class():
    namespace = run("""
class Outer:
    class Inner:
        @T.prim_func
        def f(A: T.Buffer((8,), 'int32')):
            A[0] = 7
""")
    assert stored(namespace["Outer"].Inner.f) == 7


def test_a_module_in_a_function_in_a_class():
    namespace = run("""
class Holder:
    def make(self, width):
        @I.ir_module
        class Module:
            @T.prim_func
            def f(A: T.Buffer((8,), 'int32')):
                A[0] = width
        return Module
""")
    holder = namespace["Holder"]()
    assert [stored(holder.make(width)["f"]) for width in (3, 5)] == [3, 5]


def test_names_are_those_of_the_innermost_place():
    namespace = run("""
value = 1
def middle():
    value = 2
    def inner(value):
        @T.prim_func
        def f(A: T.Buffer((8,), 'int32')):
            A[0] = value
        return f
    return inner(3), inner(4)
""")
    assert [stored(func) for func in namespace["middle"]()] == [3, 4]


def test_a_name_of_the_class_body_is_captured():
    namespace = run("""
class Holder:
    width = 4
    @T.prim_func
    def f(A: T.Buffer((width,), 'int32')):
        A[0] = width
""")
    assert stored(namespace["Holder"].f) == 4


def test_a_global_that_changes_is_read_when_the_function_is_defined():
    namespace = run("""
value = 1
def make():
    @T.prim_func
    def f(A: T.Buffer((8,), 'int32')):
        A[0] = value
    return f
first = make()
value = 2
second = make()
""")
    assert (stored(namespace["first"]), stored(namespace["second"])) == (1, 2)


def test_a_name_of_a_function_around_that_only_an_annotation_uses():
    namespace = run("""
from __future__ import annotations
def make(width, kind):
    @T.prim_func
    def f(A: T.Buffer((width,), kind)):
        A[0] = 1
    return f
""")
    func = namespace["make"](5, "int8")
    buffer = func.buffer_map[func.params[0]]
    assert (int(buffer.shape[0]), buffer.dtype) == (5, "int8")


def test_functions_and_values_of_python_are_used_at_parse_time():
    namespace = run("""
import math
sizes = {"rows": 4}
class Config:
    step = 2
def half(x):
    return x // 2
@T.prim_func
def f(A: T.Buffer((sizes["rows"],), 'int32')):
    A[half(6)] = Config.step + math.gcd(12, 18)
""")
    store = namespace["f"].body
    assert (store.indices[0].value, store.value.value) == (3, 8)


def test_a_closure_without_a_value_is_left_out():
    def outer():
        def inner():
            return later

        names = closure_of(inner)
        later = 3
        return names, closure_of(inner)

    before, after = outer()
    assert before == {}
    assert after == {"later": 3}


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "program.py"
    values = []
    for value in (1, 22):
        text = f"@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = {value}\n"
        path.write_text(text)
        namespace = {"T": T}
        exec(compile(text, str(path), "exec"), namespace)
        values.append(stored(namespace["f"]))
    assert values == [1, 22]


def test_a_file_that_is_gone_has_no_source(tmp_path):
    path = tmp_path / "gone.py"
    text = "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = 1\n"
    with pytest.raises(DiagnosticError, match="f: Python keeps no source text here"):
        exec(compile(text, str(path), "exec"), {"T": T})


def test_a_file_that_was_changed_after_it_was_loaded_has_no_such_function(tmp_path):
    path = tmp_path / "changed.py"
    path.write_text("x = 1\n" * 9)
    text = "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = 1\n"
    with pytest.raises(DiagnosticError, match="f: Python keeps no source text here"):
        exec(compile(text, str(path), "exec"), {"T": T})


def test_a_lambda_is_no_definition():
    with pytest.raises(DiagnosticError, match="<lambda>: Python keeps no source text here"):
        find_function(lambda: 1)


def test_an_undecorated_function_or_class_is_parsed_by_its_own_decorator():
    namespace = run("""
keep = lambda item: item
def f():
    pass
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((8,), 'int32')):
        A[0] = 7
""")
    with pytest.raises(DiagnosticError, match="function 'f' has no decorator of TVMScript"):
        from_source(namespace["f"])
    assert stored(namespace["Module"]["f"]) == 7


def test_lines_of_errors_are_those_of_the_file():
    with pytest.raises(DiagnosticError) as caught:
        run("x = 1\n\n\n@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n\n    A[0] = missing\n")
    assert ":7:12" in str(caught.value)


def test_spans_are_those_of_the_file():
    func = run("x = 1\n\n@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = 1 + x\n")["f"]
    assert (func.span.line, func.body.span.line, func.body.span.column) == (4, 5, 5)
    assert func.body.span.source_name.name.startswith("<cell ")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="positions of code need Python 3.11")
def test_a_graph_function_and_its_text_are_the_same():
    text = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        y = R.exp(x)
        R.output(y)
    return y
"""
    assert structural_equal(run(text)["main"], from_source(text))
