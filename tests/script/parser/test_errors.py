"""Errors of scripts: each text has one line marked ``# error: text``; line and text must match."""

from __future__ import annotations

import re

import pytest

import weft.script
from weft.support.errors import DiagnosticError, TVMError

TIR = {
    "undefined name": """
def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = BB[i]  # error: undefined name 'BB'; did you mean 'B'?
""",
    "unknown function": """
def func(A: T.Buffer((8,), "float32")):
    A[0] = T.expp(A[1])  # error: T.expp is not part of TVMScript; did you mean T.exp
""",
    "no type": """
def func(A):  # error: parameter 'A' needs a type, such as T.Buffer
    A[0] = 1
""",
    "wrong type of parameter": """
def func(A: 5):  # error: parameter 'A': expected a type such as T.Buffer
    T.evaluate(0)
""",
    "wrong dtype": """
def func(A: T.Buffer((8,), "float33")):  # error: got 'float33'
    A[0] = 1
""",
    "wrong number of indices": """
def func(A: T.Buffer((8, 8), "float32")):
    A[0] = 1.0  # error: buffer A has 2 dimensions, got 1 indices
""",
    "unpacking": """
def func(A: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8):  # error: expected 3 values to unpack, got 2
        A[i, j] = 1.0
""",
    "not a loop": """
def func(A: T.Buffer((8,), "float32")):
    for i in [1, 2]:  # error: expected a loop: range, T.serial, T.grid
        A[i] = 1.0
""",
    "float extent": """
def func(A: T.Buffer((8,), "float32")):
    for i in T.serial(2.5):  # error: a loop needs integer bounds, got float32
        A[i] = 1.0
""",
    "float extent of a grid": """
def func(A: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, 2.5):  # error: a loop needs integer bounds, got float32: 2.5
        A[i] = 1.0
""",
    "text as an extent": """
def func(A: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, "n"):  # error: a loop needs integer bounds, got handle: 'n'
        A[i] = 1.0
""",
    "a module as a statement": """
def func(A: T.Buffer((8,), "float32")):
    T  # error: expected a statement, got the module weft.script.tir
""",
    "wrong arity": """
def func(A: T.Buffer((8,), "float32")):
    A[0] = T.if_then_else(A[1] > A[2], A[3])  # error: missing 1 required positional argument
""",
    "reads outside": """
def func(A: T.Buffer((8,), "float32")):
    T.reads(A[0])  # error: T.reads must stand directly inside `with T.block(...)`
""",
    "two reads": """
def func(A: T.Buffer((8,), "float32")):
    with T.block("b"):
        T.reads(A[0])
        T.reads(A[0])  # error: block 'b' has two T.reads
        A[0] = 1.0
""",
    "init outside": """
def func(A: T.Buffer((8,), "float32")):
    with T.init():  # error: T.init must stand directly inside `with T.block(...)`
        A[0] = 1.0
""",
    "remap kinds": """
def func(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SX", [i, j])  # error: expected kinds S and R, got 'X'
            A[vi, vj] = 1.0
""",
    "remap count": """
def func(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("S", [i, j])  # error: 1 kinds ('S') for 2 loop variables
            A[vi, vj] = 1.0
""",
    "chained assignment": """
def func(A: T.Buffer((8,), "int32")):
    a = b = A[0]  # error: one assignment has one left side
""",
    "redefinition": """
def func(A: T.Buffer((8,), "int32")):
    a = A[0]
    a = a + 1  # error: 'a' is already defined in this scope
    A[0] = a
""",
    "store into a value": """
def func(A: T.Buffer((8,), "int32")):
    a = A[0]
    a[0] = 1  # error: expected a buffer to store into, got Var
""",
    "break": """
def func(A: T.Buffer((8,), "int32")):
    for i in range(8):
        break  # error: break has no TensorIR form
""",
    "unsupported statement": """
def func(A: T.Buffer((8,), "int32")):
    import os  # error: Import is not supported in T.prim_func
""",
    "unsupported expression": """
def func(A: T.Buffer((8,), "int32")):
    A[0] = (x := 1)  # error: := is not part of TVMScript
""",
    "double underscore": """
def func(A: T.Buffer((8,), "int32")):
    A[0] = T.prim_func.__globals__  # error: attribute '__globals__' cannot be used in a script
""",
    "wrong with": """
def func(A: T.Buffer((8,), "int32")):
    with 5:  # error: expected T.block, T.init, T.attr, ... after `with`, got int 5
        A[0] = 1
""",
    "match_buffer of no parameter": """
def func(a: T.handle):
    n = T.int32()
    B = T.match_buffer(n, (8,))  # error: n is not a parameter of the function
    B[0] = 1.0
""",
    "mixed logic": """
def func(A: T.Buffer((8,), "int32")):
    if A[0] and A[1]:  # error: And: expected bool operands, got int32 and int32
        A[0] = 1
""",
    "store of a handle": """
def func(A: T.Buffer((8,), "int32")):
    A[0] = A.data  # error: A holds int32, the value is handle
""",
}
RELAX = {
    "undefined name": """
def main(x: R.Tensor((3,), "float32")):
    y = R.add(x, z)  # error: undefined name 'z'
    return y
""",
    "unknown operator": """
def main(x: R.Tensor((3,), "float32")):
    y = R.addd(x, x)  # error: R.addd is neither an operator nor a part of the language; did you
    return y
""",
    "no annotation": """
def main(x):  # error: parameter 'x' needs a type, such as R.Tensor
    return x
""",
    "shape mismatch": """
def main(x: R.Tensor((3,), "float32"), y: R.Tensor((4,), "float32")):
    z = R.add(x, y)  # error: relax.add
    return z
""",
    "no return": """
def main(x: R.Tensor((3,), "float32")):  # error: function 'main' has no return
    y = R.add(x, x)
""",
    "dataflow variable outside": """
def main(x: R.Tensor((3,), "float32")):
    with R.dataflow():
        lv = R.add(x, x)
        gv = R.add(lv, x)
        R.output(gv)
    return lv  # error: 'lv' is a variable of the dataflow block above; give it to R.output
""",
    "value not used": """
def main(x: R.Tensor((3,), "float32")):
    R.add(x, x)  # error: is not used: assign it to a variable
    return x
""",
    "else missing": """
def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")):
    if c:  # error: both branches: else is missing
        y = R.add(x, x)
    return x
""",
    "wrong annotation": """
def main(x: R.Tensor((3,), "float32")):
    y: R.Tensor((3,), "int32") = R.add(x, x)  # error: does not fit the value's
    return y
""",
    "tuple index": """
def main(x: R.Tuple(R.Object, R.Object)):
    y = x[2]  # error: index 2 of a tuple of 2 fields
    return y
""",
    "call_tir of a text without result": """
def main(x: R.Tensor((3,), "float32")):
    y = R.call_tir("f", (x,))  # error: R.call_tir: out_sinfo=R.Tensor(shape, dtype) is missing
    return y
""",
    "bad symbolic dimension": """
def main(x: R.Tensor(("n[0]",), "float32")):  # error: 'n[0]' is no dimension
    return x
""",
}


def check(text):
    marked = [line for line in text.splitlines() if "# error: " in line]
    (line,) = marked
    wanted = line.split("# error: ")[1]
    with pytest.raises(DiagnosticError, match=re.escape(wanted)) as caught:
        weft.script.from_source(text)
    message = str(caught.value)
    assert len(message.splitlines()) <= 10
    number = text.splitlines().index(line) + 1
    assert f"--> <str>:{number}:" in message
    assert line in message
    assert re.search(r"\| +\^+$", message)


@pytest.mark.parametrize("name", TIR)
def test_tensor_program(name):
    check(f"@T.prim_func{TIR[name]}")


@pytest.mark.parametrize("name", RELAX)
def test_graph_function(name):
    check(f"@R.function{RELAX[name]}")


def test_unknown_function_of_a_module():
    check("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        cls = Module
        y = cls.fun(x)  # error: module Module has no function 'fun'; it has: main, func
        return y

    @R.function
    def func(x: R.Tensor((3,), "float32")):
        return x
""")


def test_no_decorator():
    check("def func(): # error: function 'func' has no decorator of TVMScript\n    pass")


def test_syntax_error():
    with pytest.raises(DiagnosticError, match="<str>:2:") as caught:
        weft.script.from_source("@T.prim_func\ndef f(:\n    pass")
    assert "def f(:" in str(caught.value)


def test_caret_counts_characters_not_bytes():
    with pytest.raises(DiagnosticError) as caught:
        weft.script.from_source('@T.prim_func\ndef f(a: T.int32):\n    T.evaluate("ü" + bb)')
    line, caret = str(caught.value).splitlines()[-2:]
    assert line.index("bb") == caret.index("^")


def test_error_of_a_decorated_function_names_this_file():
    from weft.script import tir as T

    with pytest.raises(DiagnosticError, match=r"test_errors\.py") as caught:

        @T.prim_func
        def func(A: T.Buffer((8,), "float32")):
            A[0] = missing  # noqa: F821 - the error is tested

    assert "A[0] = missing" in str(caught.value)


def test_no_source_is_an_error_of_three_lines():
    program = """
from weft.script import tir as T
@T.prim_func
def func(A: T.Buffer((8,), "float32")):
    A[0] = 1.0
"""
    with pytest.raises(DiagnosticError, match="from_source") as caught:
        exec(program, {"__name__": "nowhere"})
    assert len(str(caught.value).splitlines()) == 3


def test_no_source_of_a_class():
    program = """
from weft.script import ir as I
@I.ir_module
class Module:
    pass
"""
    with pytest.raises(DiagnosticError, match="from_source"):
        exec(program, {"__name__": "nowhere"})


@pytest.mark.parametrize("value", [5, None, print])
def test_from_source_of_something_else(value):
    with pytest.raises(TVMError, match="expected a text, a function or a class, got"):
        weft.script.from_source(value)


def test_metadata_that_is_not_there():
    check("""@R.function
def main(x: R.Tensor((3,), "float32")):
    y = R.add(x, metadata["relax.expr.Constant"][0])  # error: print the program with show_meta=True
    return y
""")


def test_ill_formed_program():
    text = """@T.prim_func
def func(A: T.Buffer((8, 8), "float32")):  # error: loop variable i is defined outside of any block
    for i in range(8):
        with T.block("b"):
            vi = T.axis.S(8, i)
            A[i, vi] = 1.0
"""
    check(text)
    weft.script.from_source(text, check_well_formed=False)


def test_traceback_ends_in_the_users_code():
    with pytest.raises(DiagnosticError) as caught:
        weft.script.from_source("@T.prim_func\ndef f(a: T.int32):\n    T.evaluate(b)")
    assert len(caught.traceback) <= 4
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "expression",
    [
        "A[0]" + " + A[0]" * 200_000,
        "(" * 1000 + "1" + ")" * 1000,
        "-" * 20_000 + "A[0]",
        "A" + ".data" * 1000,
    ],
)
def test_programs_nested_too_deep_are_errors(expression):
    text = f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = {expression}\n"
    with pytest.raises(TVMError) as caught:
        weft.script.from_source(text)
    assert len(str(caught.value)) < 1000


def test_deep_but_possible_expression():
    text = "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = A[1]" + "+ A[0]" * 5000
    assert weft.script.from_source(text).body.value.dtype == "float32"
