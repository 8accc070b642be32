"""What a notebook shows of a tensor."""

import pytest

from weft import te, topi
from weft.tir import op

A = te.placeholder((16, 64), "float32", name="A")
B = te.placeholder((64, 8), "float32", name="B")
K = te.reduce_axis((0, 64), "k")


def product():
    return te.compute((16, 8), lambda i, j: te.sum(A[i, K] * B[K, j], axis=K), name="C")


def largest_of_some():
    k = te.reduce_axis((2, 9), "k")
    return te.compute((16,), lambda i: te.max(A[i, k], axis=k, where=A[i, k] < 5.0), name="M")


def of_two():
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], te.max(x[1], y[1])),
        lambda s, t: (te.const(0, s), te.min_value(t)),
    )
    return te.compute((16,), lambda i: both((A[i, K], A[i, K]), axis=K), name="D")[1]


@pytest.mark.parametrize(
    ("tensor", "shown"),
    [
        (A, "A: float32[16, 64]"),
        (te.placeholder((te.var("n"), 4), "int8", name="P"), "P: int8[n, 4]"),
        (te.compute((3,), lambda i: A[i, 0] * 2.0, name="T"),
         "T: float32[3]\nT[i] = A[i, 0] * T.float32(2.0)"),
        (te.compute((), lambda: A[1, 2], name="S"), "S: float32[]\nS() = A[1, 2]"),
        (product(), "C: float32[16, 8]\nC[i, j] = sum(A[i, k] * B[k, j] for k in range(64))"),
        (largest_of_some(), "M: float32[16]\nM[i] = max(A[i, k] for k in range(2, 9)"
                            " if A[i, k] < T.float32(5.0))"),
    ],
)  # fmt: skip
def test_the_formula_is_shown(tensor, shown):
    assert tensor.description() == shown


def test_a_users_reducer_is_shown_with_the_part_of_its_result():
    shown = of_two().description()
    assert shown.startswith("D.v1: float32[16]\nD.v1[i] = reduce[")
    assert shown.endswith("((A[i, k], A[i, k]) for k in range(64))[1]")


def test_the_beginning_of_a_long_formula_is_shown():
    x = te.compute((4,), lambda i: sum([A[i, j] for j in range(60)], te.const(0.0)), name="L")
    first, second = x.description().splitlines()
    assert first == "L: float32[4]"
    assert second.startswith("L[i] = ")
    assert second.endswith(" ...")
    assert len(second) < 410


def test_of_a_tensor_that_a_statement_writes_there_is_no_formula():
    given = te.extern(
        (4,), [A], lambda ins, outs: op.call_packed("f", ins[0], outs[0]), dtype="float32", name="E"
    )
    assert given.description() == "E: float32[4]"


def test_notebooks_show_it():
    assert product()._repr_html_() is None
    ipython = pytest.importorskip("IPython.lib.pretty")
    assert ipython.pretty(product()).splitlines()[1].startswith("C[i, j] = sum(")
    assert "T_softmax_norm[" in ipython.pretty(topi.nn.softmax(A))
