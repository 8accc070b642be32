"""What a learner types first, and the words that help."""

from __future__ import annotations

import math
import runpy

import numpy as np
import pytest

import weft
from weft import relax, te, tir, topi
from weft.relax.dpl import is_op, wildcard
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import DiagnosticError, IRTypeError, IRValueError, TVMError

X = te.placeholder((4, 8), name="x")
N = tir.Var("n", "int32")

ELEMENT = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            {statement}
"""
BODY = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    {statement}
"""
GRAPH = """
@R.function
def f(x: R.Tensor((8,), "float32"), y: R.Tensor((8,), "float32")):
    z = {statement}
    return z
"""
SCRIPTS = {
    "whole slices": (BODY, "B[:] = A[:]", r"for all elements loop over them: for i in range\(n\)"),
    "axis alone": (
        ELEMENT,
        "vj = T.axis.spatial(i)",
        r"write T\.axis\.spatial\(extent, i\), where",
    ),
    "axis of nothing": (
        ELEMENT,
        "vj = T.axis.spatial()",
        r"bound to, got neither; write T\.axis\.spatial\(extent, i\), where",
    ),
    "a width": (BODY, 'C = T.alloc_buffer((8,), "float23")', r"did you mean 'float32'\?"),
    "a type": (BODY, 'C = T.alloc_buffer((8,), "flaot32")', r"did you mean 'float32'\?"),
    "two indices": (ELEMENT, "B[vi] = A[vi, vi]", r"buffer A has 1 dimension, .*write A\[i\]"),
    "max": (ELEMENT, "B[vi] = max(A[vi], 0)", r"max works on numbers.* write T\.max\(a, b\)"),
    "min": (ELEMENT, "B[vi] = min(0, A[vi])", r"min works on numbers.* write T\.min\(a, b\)"),
    "abs": (ELEMENT, "B[vi] = abs(A[vi])", r"abs works on numbers.* write T\.abs\(x\)"),
    "float": (ELEMENT, "B[vi] = float(A[vi])", r'write T\.Cast\("float32", x\)'),
    "len": (BODY, "for i in range(len(A)): B[i] = A[i]", r"write the extent, A\.shape\[0\]"),
    "ellipsis": (BODY, "...", "code that is still missing; write statements here"),
    "block ellipsis": (ELEMENT, "...", "code that is still missing; write statements here"),
    "index": (ELEMENT, "B[vi] = A[...]", r"got `\.\.\.`; write each index"),
    "return": (BODY, "return B", "got the buffer B; a PrimFunc writes its results into buffers"),
    "whole buffer": (ELEMENT, "B[vi] = (A + A)[vi]", r"whole buffer A; loop .* write A\[i\]"),
    "axis": (ELEMENT, "vj = T.axis.spacial(8, i)", r"no T\.axis\.spacial; did you mean T\.axis"),
    "no block": (BODY, "vi = T.axis.spatial(8, 0)", r"inside `with T\.block\(\.\.\.\)`; put the"),
    "grid": (BODY, "for i, j in T.grid(8): B[i] = A[j]", "expected 2 variables, but .* gives one"),
    "graph ellipsis": (GRAPH + "    ...", "R.add(x, y)\n    ...", "that is still missing; write b"),
    "graph max": (GRAPH, "max(x, y)", r"write R\.maximum\(x, y\), or R\.max\(x, axis\)"),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_script(case):
    template, statement, match = SCRIPTS[case]
    with pytest.raises(DiagnosticError, match=match) as caught:
        weft.script.from_source(template.format(statement=statement))
    assert "-->" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 10


def numpy_in_a_script():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = np.exp(A[i])


def arctan_in_a_script():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = np.arctan(A[i])


def math_in_a_script():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = math.sqrt(A[i])


def array_in_a_script():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        C = np.zeros((8,))
        for i in range(8):
            C[i] = A[i]


def result_type():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")) -> T.Buffer((8,), "float32"):
        A[0] = T.float32(0)


def numpy_in_a_graph():
    @R.function
    def f(x: R.Tensor((8,), "float32")):
        y = np.exp(x)
        return y


@T.prim_func
def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@T.prim_func
def no_block(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]


def element(function):
    return lambda: te.compute((4,), lambda i: function(X[i, 0]))


def schedule():
    return tir.Schedule(copy)


PROGRAMS = {
    "np in a script": (numpy_in_a_script, r"np\.exp works on numbers.* write (T|te)\.exp"),
    "np's own name": (arctan_in_a_script, r"np\.arctan works on numbers.* write (T|te)\.atan"),
    "math in a script": (math_in_a_script, r"math\.sqrt works on numbers.* write T\.sqrt"),
    "np.zeros": (array_in_a_script, r"memory of a PrimFunc is made by T\.alloc_buffer"),
    "a buffer as result": (result_type, "or None; a PrimFunc writes its results into buffers"),
    "np in a graph": (numpy_in_a_graph, r"np\.exp works on numbers.* write R\.exp"),
    "np in te": (element(np.exp), r"np\.exp works on numbers.* write te\.exp"),
    "np.maximum in te": (element(lambda x: np.maximum(x, 0)), r"write te\.max"),
    "math in te": (element(math.exp), r"no value before the program runs.* te\.exp\(x\)"),
    "max in te": (element(lambda x: max(x, 0)), r"no truth value.* tir\.max or tir\.min for max"),
    "np of a tensor": (lambda: np.exp(X), r"np\.exp works on numbers.* write topi\.exp"),
    "te.sum of a tensor": (lambda: te.sum(X, axis=1), r"te\.sum: expected an element.*topi\.sum\("),
    "te.sum without axis": (element(te.sum), r"te\.sum: the axis is missing; k = te\.reduce_axis"),
    "te's names": (lambda: te.placholder, "te has no name 'placholder'; did you mean te.placeh"),
    "create_schedule": (lambda: te.create_schedule, r"write sch = weft\.tir\.Schedule\("),
    "topi's names": (lambda: topi.reshap, "no operator 'reshap'; did you mean topi.reshape"),
    "topi.nn's names": (lambda: topi.nn.rleu, r"did you mean topi\.nn\.relu"),
    "operators' names": (lambda: relax.op.ad, r"'ad'; did you mean relax\.op\.add"),
    "relax.op.nn's names": (lambda: relax.op.nn.rleu, r"did you mean relax\.op\.nn\.relu"),
    "sch's names": (lambda: schedule().get_blocks, r"did you mean sch\.get_block,"),
    "factors": (
        lambda: schedule().split(schedule().get_loops("B")[0], 4),
        r"factors: expected a list such as \[None, 4\].* got int 4",
    ),
    "no block at all": (lambda: tir.Schedule(no_block), r"has no block.*\n.*with T\.block\("),
    "a call": (lambda: copy(np.zeros(8), np.zeros(8)), r"copy is a program.* weft\.build\(copy"),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_program(case):
    action, match = PROGRAMS[case]
    with pytest.raises(TVMError, match=match) as caught:
        action()
    assert len(str(caught.value).splitlines()) <= 10


def test_numpy_numbers_stay_operands():
    assert isinstance(np.float32(2) * X[0, 0], tir.Mul)
    assert isinstance(np.int64(3) < N, tir.GT)
    assert isinstance(np.int64(3) == N, tir.EQ)


def test_pattern_tells_that_values_of_variables_are_needed():
    @R.function
    def main(x: R.Tensor((8,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.nn.relu(a)
            R.output(b)
        return b

    values = relax.analysis.get_var2val(main)
    relu = next(value for var, value in values.items() if var.name_hint == "b")
    pattern = is_op("relax.nn.relu")(is_op("relax.exp")(wildcard()))
    assert pattern.match(relu, values)
    assert "a variable; give var2val=relax.analysis.get_var2val(function)" in pattern.explain(relu)


@pytest.mark.parametrize(
    "annotation", ['T.Buffer((8,), "flaot32")', 'R.Tensor((8,), "int23")', "T.Buffer((-1,))"]
)
def test_a_mistake_in_an_annotation_is_shown_at_the_users_line(annotation, tmp_path):
    file = tmp_path / "program.py"
    head = "from weft.script import relax as R, tir as T\n\n"
    file.write_text(f"{head}def f(x: {annotation}):\n    pass\n")
    with pytest.raises((IRTypeError, IRValueError)) as caught:
        runpy.run_path(str(file))
    assert f"--> {file}:3:10\n" in str(caught.value)
    assert f"3 | def f(x: {annotation}):" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 10


def test_functions_of_pytorch_name_those_of_weft():
    torch = pytest.importorskip("torch")
    graph_value = relax.Var("x", R.Tensor((8,), "float32"))
    cases = [
        (lambda: torch.exp(X), r"torch\.exp works on tensors of PyTorch.* write topi\.exp"),
        (element(torch.exp), r"write te\.exp"),
        (lambda: torch.exp(graph_value), r"write relax\.op\.exp"),
    ]
    for action, match in cases:
        with pytest.raises(IRTypeError, match=match):
            action()


def test_names_that_tab_completion_offers():
    assert {"grid", "prim_func", "block", "exp", "float32"} <= set(dir(T))
    assert {"function", "dataflow", "call_tir", "add", "nn"} <= set(dir(R))
    assert {"relu", "conv2d"} <= set(dir(R.nn))
    assert "relu" in dir(topi.nn)
    assert T.grid.__doc__
    assert R.add is not None


def test_schedule_repr():
    sch = schedule()
    sch.vectorize(sch.get_loops("B")[0])
    assert repr(sch).startswith("Schedule(functions=[main], 3 steps")
