"""Texts around the definitions: imports, assignments, several functions, wrong texts, long ones."""

from __future__ import annotations

import pytest

import weft
from tests.lib.script_errors import error_of
from weft.ir.expr import IntImm
from weft.ir.json_text import save_json
from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal
from weft.script import from_source, metadata, parse
from weft.script.parser import source
from weft.support.errors import DiagnosticError, IRTypeError, IRValueError

F = "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    A[0] = {}\n"
G = "@R.function\ndef g(x: R.Tensor((8,), 'int32')):\n    return x\n"


def stored(text, extra_vars=None):
    """What the function of a text stores."""
    return from_source(text, extra_vars).body.value.value


# What may stand before a function, and the value that it gives to x.
BEFORE = [
    ("x = 3\n", 3),
    ("x, y = 3, 4\n", 3),
    ("[y, x] = 1, 3\n", 3),
    ("y, *x = 1, 2, 3\nx = x[1]\n", 3),
    ("y = 2\nx = y + 1\n", 3),
    ("x = 1\nx = 3\n", 3),
    ('"""What it is."""\nx = 3\n', 3),
    ("3\nx = 3\n", 3),
    ("# a comment\nx = 3  # another\n\n\n", 3),
    ("x = (lambda n: n + 1)(2)\n", 3),
    ("x = [n for n in range(9) if n == 3][0]\n", 3),
    ("from __future__ import annotations\nx = 3\n", 3),
    ("import tvm\nx = tvm.tir.IntImm('int32', 3).value\n", 3),
    ("import weft as w\nx = w.ir.IntImm('int32', 3).value\n", 3),
    ("from tvm import tir\nx = tir.IntImm('int32', 3).value\n", 3),
    ("from tvm.script import tir as Q\nx = Q.int32(3).value\n", 3),
    ("from weft.script import tir, relax, ir\nx = tir.int32(3).value\n", 3),
]


@pytest.mark.parametrize(("before", "value"), BEFORE, ids=[row[0] for row in BEFORE])
def test_lines_before_a_function(before, value):
    assert stored(before + F.format("x")) == value


def test_the_prefixes_of_a_text_are_its_own():
    text = (
        "from tvm.script import tir as R, relax as T\n"
        + G.replace("R.", "T.")
        + (F.format("1").replace("T.", "R."))
    )
    module = from_source(text)
    assert sorted(var.name_hint for var in module.functions) == ["f", "g"]


def test_a_text_is_indented_as_it_likes():
    shifted = "\n".join("        " + line for line in F.format("7").splitlines())
    assert stored(shifted) == 7


def test_a_text_of_one_function_is_the_function_and_of_two_a_module():
    assert from_source(F.format("1")).attrs["global_symbol"] == "f"
    module = from_source(F.format("1") + "\n" + G)
    assert isinstance(module, IRModule)
    assert [var.name_hint for var in module.functions] == ["f", "g"]


def test_a_later_function_of_a_name_replaces_the_first():
    module = from_source(F.format("1") + F.format("2") + G)
    assert module["f"].body.value.value == 2


WRONG = {
    "no function": ("x = 3\n", "the text has no function or class", None),
    "nothing": ("", "the text has no function or class", None),
    "a comment": ("# nothing\n", "the text has no function or class", None),
    "a class beside a function": (
        F.format("1") + "@I.ir_module\nclass M:\n    pass\n",
        "a text has either one class or functions, not both", "class M:"),
    "a loop": ("for x in range(3):\n    pass\n" + F.format("1"),
               "beside functions and classes a text has imports and assignments only",
               "for x in range(3):"),
    "a call": ("T.evaluate(0)\n" + F.format("1"),
               "beside functions and classes a text has imports and assignments only",
               "T.evaluate(0)"),
    "two left sides": ("x = y = 3\n" + F.format("1"),
                       "beside functions and classes a text has imports and assignments only",
                       "x = y = 3"),
    "an import": ("import os\n" + F.format("1"), "a text imports from weft (or tvm) only, not os",
                  "import os"),
    "a part of an import": ("from os import path\n" + F.format("1"),
                            "a text imports from weft (or tvm) only, not os.path",
                            "from os import path"),
    "a relative import": ("from . import x\n" + F.format("1"),
                          "a text imports from weft (or tvm) only, not x", "from . import x"),
    "an import of nothing": ("from tvm.script import nothing\n" + F.format("1"),
                             "script.nothing is no part of the language", "from tvm.script import"),
    "a name of the left side": ("x.y = 3\n" + F.format("1"),
                                "expected a name on the left side, got this Attribute", "x.y"),
    "too few values": ("x, y = (1,)\n" + F.format("1"), "expected 2 values to unpack, got 1",
                       "x, y"),
    "an undefined name": ("x = y\n" + F.format("1"), "undefined name 'y'", "y"),
    "a coroutine": ("async " + F.format("1").split("\n", 1)[1],
                    "beside functions and classes", "async def f"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_text(name):
    text, message, place = WRONG[name]
    if place is None:
        with pytest.raises(DiagnosticError, match=message) as caught:
            from_source(text)
        assert "--> <str>" in str(caught.value)
        return
    found, underlined = error_of(text)
    assert found.startswith(message)
    assert underlined.startswith(place)


SYNTAX = [
    ("@T.prim_func\ndef f(:\n    pass\n", 2), ("@T.prim_func\ndef f()\n    pass\n", 2),
    ("x = (1,\n", 1), ("@T.prim_func\ndef f():\npass\n", 3), ("x = 'open\n", 1),
    ("@T.prim_func\ndef f():\n    x = 1\n      y = 2\n", 4), ("x = 1 +\n", 1),
    ("def f():\n\treturn 1\n        return 2\n", 3),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), SYNTAX, ids=[text for text, _ in SYNTAX])
def test_a_text_that_is_no_python_is_shown_at_its_line(text, line):
    with pytest.raises(DiagnosticError, match=f"--> <str>:{line}:") as caught:
        from_source(text)
    assert len(str(caught.value).splitlines()) == 5


@pytest.mark.parametrize("value", [3, None, ["x"], b"@T.prim_func", {"x": 1}])
def test_what_is_no_text(value):
    with pytest.raises(IRTypeError, match="expected a text, a function or a class, got"):
        from_source(value)


def test_names_of_the_caller_are_a_mapping():
    with pytest.raises(IRTypeError, match="extra_vars: expected a dict of names, got list"):
        from_source(F.format("1"), ["x"])
    assert stored(F.format("x"), {"x": 5}) == 5
    assert stored("x = 6\n" + F.format("x"), {"x": 5}) == 6


def test_a_definition_comes_back_as_it_is():
    func = from_source(F.format("1"))
    module = IRModule({"f": func})
    assert parse(func) is func
    assert from_source(module) is module


def test_unicode_stands_in_names_comments_and_texts():
    func = from_source(
        "# größer → 大\n@T.prim_func\ndef f(größe: T.int32, Ä: T.Buffer((8,), 'int32')):\n"
        "    T.func_attr({'ключ': '値'})\n    Ä[größe] = größe\n"
    )
    assert func.attrs["ключ"] == "値"
    assert func.params[0].name == "größe"
    assert_structural_equal(from_source(func.script()), func)


def test_carets_stand_under_wide_texts():
    head = "@T.prim_func\ndef f(a: T.int32):\n"
    message, place = error_of(head + "    T.evaluate('größe' + ungültig)\n")
    assert message == "undefined name 'ungültig'"
    assert place == "ungültig"


def test_windows_lines_are_lines():
    func = from_source(F.format("7").replace("\n", "\r\n"))
    assert func.body.value.value == 7
    assert func.body.span.line == 3


def test_a_tab_is_one_column():
    message, place = error_of("@T.prim_func\ndef f(a: T.int32):\n\tT.evaluate(b)\n")
    assert (message, place) == ("undefined name 'b'", "b")


def test_a_long_text_is_read_in_a_thread_of_its_own():
    padding = "# " + "x" * source.LONG_TEXT + "\n"
    assert stored(padding + F.format("7")) == 7
    with pytest.raises(DiagnosticError, match="--> <str>:2:"):
        from_source(padding + "x = (1,\n")


def test_a_text_that_is_nested_too_deep_is_an_error():
    for padding in ("", "# " + "x" * source.LONG_TEXT + "\n"):
        with pytest.raises(DiagnosticError):
            from_source(padding + "x = " + "(" * 5000 + ")" * 5000 + "\n" + F.format("1"))


def test_the_whole_traceback_is_shown_where_it_is_asked_for(monkeypatch):
    with pytest.raises(DiagnosticError) as short:
        from_source(F.format("missing"))
    monkeypatch.setenv("WEFT_FULL_TRACEBACK", "1")
    with pytest.raises(DiagnosticError) as full:
        from_source(F.format("missing"))
    assert len(full.traceback) > len(short.traceback)
    assert str(full.value) == str(short.value)


# ---- metadata


def test_metadata_is_read_from_the_line_that_the_printer_writes():
    line = metadata.to_statement({"k": [IntImm("int32", 3), 'a "b" \\ """c"""']})
    text = line + "\nx = metadata['k'][0].value\n" + F.format("x")
    assert stored(text) == 3
    assert eval(line.removeprefix("metadata = "), {"tvm": weft})["k"][1] == 'a "b" \\ """c"""'


METADATA = [
    ('metadata = tvm.ir.load_json("{")\n', "expected the JSON of save_json"),
    (f"metadata = tvm.ir.load_json({save_json(IntImm('int32', 3))!r})\n",
     "metadata: expected a map of lists, got a IntImm"),
    ("metadata = tvm.ir.load_json(3)\n", "no part of the language"),
    ("metadata = tvm.ir.load_json('a', 'b')\n", "no part of the language"),
    ("x = metadata['a'][0]\n", "the text names 'metadata' but does not hold it: print the program"),
    ("x = meta['a'][0]\n", "the text names 'meta' but does not hold it: print the program"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), METADATA, ids=[row[0][:40] for row in METADATA])
def test_wrong_metadata(line, message):
    found, _ = error_of(line + F.format("1"))
    assert message in found


def test_an_entry_that_metadata_does_not_have():
    line = metadata.to_statement({"k": [1]})
    found, place = error_of(line + "\nx = metadata['q'][0]\n" + F.format("1"))
    assert "q" in found
    assert place == "metadata['q']"
    found, place = error_of(line + "\nx = metadata['k'][1]\n" + F.format("1"))
    assert place == "metadata['k'][1]"


def test_metadata_is_a_map_of_lists():
    with pytest.raises(IRValueError, match="metadata: expected a map of lists, got a IntImm"):
        metadata.from_json(save_json(IntImm("int32", 3)))
    assert metadata.from_json(metadata.to_json({})) == {}
