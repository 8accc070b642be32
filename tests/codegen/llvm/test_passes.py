"""Which of LLVM's passes a module gets, and which loops LLVM may unroll."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft import relax
from weft.codegen.llvm import compile as compiling
from weft.codegen.llvm.worker import ALL, FEW, NO_SLP
from weft.script import tir as T

SIZE = 32


def residuals() -> weft.IRModule:
    """``h = softmax(h) @ w + h``, three times: sums may be written over what they add to."""
    builder = relax.BlockBuilder()
    info = relax.TensorStructInfo((SIZE, SIZE), "float32")
    x, w = relax.Var("x", info), relax.Var("w", info)
    with builder.function("main", [x, w]):
        with builder.dataflow():
            h = x
            for _ in range(3):
                weights = builder.emit(relax.op.nn.softmax(h))
                h = builder.emit(relax.op.add(relax.op.matmul(weights, w), h))
            result = builder.emit_output(h)
        builder.emit_func_output(result)
    return builder.get()


@pytest.fixture
def chosen(monkeypatch):
    """The names of functions and the passes that LLVM ran on them, of what a test compiles."""
    rows = []

    def spied(text):
        passes = passes_for(text)
        rows.append((re.findall(r"^define i32 @weft__(\w+)", text, re.MULTILINE), passes))
        return passes

    passes_for = compiling.passes_for
    monkeypatch.setattr(compiling, "passes_for", spied)
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    return rows


def test_kernels_and_the_host_of_a_model_get_few_passes(chosen):
    """Kernels that write over an argument as well: those are functions of another pass."""
    model = weft.compile(residuals(), target="llvm -num-cores=1")  # several: all are one kernel
    names = {name for row, _ in chosen for name in row}
    assert "main__host" in names
    assert any(name.endswith("inplace") for name in names)
    assert {passes for _, passes in chosen} == {FEW}
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, SIZE, SIZE), np.float32)
    expected = x
    for _ in range(3):
        powers = np.exp(expected)
        expected = powers / powers.sum(-1, keepdims=True) @ w + expected
    np.testing.assert_allclose(model(x, w), expected, rtol=1e-4, atol=1e-5)


def test_loops_of_a_user_get_all_passes(chosen):
    """LLVM's search for vectors is all that they have, whatever their attributes say."""

    @T.prim_func
    def main(A: T.Buffer((SIZE,), "float32"), B: T.Buffer((SIZE,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(SIZE):
            B[i] = A[i] * T.float32(2)

    weft.build(main)
    assert chosen == [(["main"], ALL)]


def test_what_the_search_in_straight_code_gets_wrong_is_done_without_it(chosen):
    @T.prim_func
    def main(A: T.Buffer((SIZE,), "uint32"), B: T.Buffer((SIZE,), "float32")):
        for i in range(SIZE):
            B[i] = T.Cast("float32", A[i])

    weft.build(main)
    assert chosen == [(["main"], NO_SLP)]


def test_only_short_bodies_are_unrolled_by_llvm():
    @T.prim_func
    def main(A: T.Buffer((SIZE, 16), "float32"), B: T.Buffer((SIZE, 16), "float32")):
        for i in range(SIZE):
            for j in T.unroll(16):
                B[i, j] = T.sqrt(A[i, j]) + T.float32(1)
        for i in range(SIZE):
            B[i, 0] = B[i, 0] * T.float32(2)

    text = weft.build(main).get_source("ll")
    loops = re.findall(r"br i1 [^\n]*!llvm.loop !(\d+)", text)
    [disabled] = re.findall(r'!(\d+) = !\{!"llvm.loop.unroll.disable"\}', text)
    assert text.count("icmp slt i64") == 2
    assert loops == [str(int(disabled) - 1)]


SUMS = 12


@T.prim_func
def tile(A: T.Buffer((64,), "float32"), B: T.Buffer((64, SUMS), "float32"), C: T.Buffer((SUMS,))):
    total = T.alloc_buffer((SUMS,), scope="local")
    for j in T.unroll(SUMS):
        total[j] = T.float32(0)
    for k in range(64):
        for j in T.unroll(SUMS):
            total[j] = total[j] + A[k] * B[k, j]
    for j in T.unroll(SUMS):
        C[j] = total[j]


@T.prim_func
def spread(A: T.Buffer((64,), "float32"), B: T.Buffer((64, SUMS), "float32"), C: T.Buffer((SUMS,))):
    for k in range(64):
        for j in T.unroll(SUMS):
            C[j] = C[j] + A[k] * B[k, j]


def test_instructions_stay_in_order_where_sums_take_the_registers(monkeypatch):
    """LLVM's scheduler is for all other functions, and for processors with few registers."""
    jobs = []
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    job_of = compiling.job_of
    monkeypatch.setattr(
        compiling, "job_of", lambda *args, **kw: jobs.append(job_of(*args, **kw)) or jobs[-1]
    )
    for cpu in ("skylake-avx512", "x86-64-v3"):
        for function in (tile, spread, tile):
            weft.build(function, f"llvm -mcpu={cpu}").get_source("asm")
    orders = [job.in_order for job in jobs if job.wanted == "assembly"]
    assert orders == [True, False, True, False, False, False]


def test_sums_in_registers_are_right():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(64, np.float32), rng.standard_normal((64, SUMS), np.float32)
    for function in (tile, spread):
        c = np.zeros(SUMS, np.float32)
        weft.build(function)(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


def test_the_order_of_one_module_is_not_that_of_the_next(monkeypatch):
    """The option is one of the process that LLVM runs in."""
    monkeypatch.setenv("WEFT_COMPILE_WORKERS", "0")
    target = "llvm -mcpu=skylake-avx512"
    functions = (spread, tile, spread, tile)
    texts = [weft.build(function, target).get_source("asm") for function in functions]
    assert texts[0] == texts[2]
    assert texts[1] == texts[3]
