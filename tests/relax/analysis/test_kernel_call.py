"""A call of a kernel that cannot be right is found before anything runs."""

from __future__ import annotations

import pytest

import weft
from weft import relax, tir
from weft.relax.analysis.well_formed import find_problem, verify_well_formed
from weft.script import relax as R
from weft.script import tir as T


@T.prim_func(private=True)
def rows(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n, 4), "float32")
    Y = T.match_buffer(y, (n * 2, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
            Y[vi + n, vj] = X[vi, vj]


def call(given, made, kind="call_tir", **options):
    """A module whose main calls ``rows``."""
    bb = relax.BlockBuilder()
    gvar = bb.add_func(rows, "rows")
    x = relax.Var("x", given)
    with bb.function("main", [x]):
        out = bb.emit(getattr(relax, kind)(gvar, (x,), out_sinfo=made, **options))
        bb.emit_func_output(out)
    return bb.get()


def test_a_call_that_fits():
    n = tir.Var("n", "int64")
    made = R.Tensor((6, 4), "float32")
    assert relax.analysis.well_formed(call(R.Tensor((3, 4), "float32"), made))
    assert relax.analysis.well_formed(call(R.Tensor(ndim=2), made))
    symbolic = call(R.Tensor((n, 4), "float32"), R.Tensor((2 * n, 4), "float32"))
    assert relax.analysis.well_formed(symbolic)


@pytest.mark.parametrize(
    ("given", "made", "message"),
    [
        (((3,), "float32"), ((6, 4), "float32"), r"rows: input 0 \(X\): expected 2 dimensions"),
        (((3, 5), "float32"), ((6, 4), "float32"), r"input 0 \(X\): expected shape .*3.*4.*got"),
        (((3, 4), "int32"), ((6, 4), "float32"), r"input 0 \(X\): expected dtype float32"),
        (((3, 4), "float32"), ((3, 4), "float32"), r"output 0 \(Y\): expected shape .*6.*4.*got"),
        (((3, 4), "float32"), ((6, 4), "float16"), r"output 0 \(Y\): expected dtype float32"),
        (((3, 4), "float32"), ((24,), "float32"), r"output 0 \(Y\): expected 2 dimensions"),
    ],
)  # fmt: skip
def test_what_does_not_fit(given, made, message):
    mod = call(R.Tensor(*given), R.Tensor(*made))
    assert not relax.analysis.well_formed(mod)
    with pytest.raises(weft.TVMError, match=message):
        verify_well_formed(mod)


def test_number_of_parameters():
    given, made = R.Tensor((3, 4), "float32"), R.Tensor((6, 4), "float32")
    mod = call(given, [made, made])
    assert "rows takes 2 parameters" in find_problem(mod)
    assert "1 inputs, 2 outputs and 0 scalars" in find_problem(mod)


def test_an_argument_that_is_written_keeps_its_shape():
    given, made = R.Tensor((3, 4), "float32"), R.Tensor((6, 4), "float32")
    mod = call(given, [made, made], "call_tir_inplace", inplace_indices=[0, -1])
    assert "output 0 is written into argument 0: expected shape" in find_problem(mod)
    mod = call(given, [given, made], "call_tir_inplace", inplace_indices=[0, -1])
    assert find_problem(mod) is None


def scalar_before_output():
    """A kernel whose scalar stands before its output."""
    source = """
@I.ir_module(check_well_formed=False)
class Module:
    @T.prim_func(private=True)
    def fill(a: T.handle, k: T.int64, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n + k,))
        for i in range(n + k):
            with T.block("b"):
                v = T.axis.spatial(n + k, i)
                B[v] = T.if_then_else(v < n, A[v], T.float32(0))

    @R.function
    def main(x: R.Tensor(("n",), "float32"), s: R.Shape(["k"])):
        n, k = T.int64(), T.int64()
        y = R.call_tir(
            Module.fill, (x,), out_sinfo=R.Tensor((n + k,), "float32"), tir_vars=R.shape([k])
        )
        return y
"""
    return weft.script.from_source(source)


def test_scalars_come_after_outputs():
    problem = find_problem(scalar_before_output())
    assert "fill: output 0: parameter k is a scalar int64, got R.Tensor((n + k,)" in problem
    assert "its inputs, then its outputs, then the scalars of tir_vars" in problem
