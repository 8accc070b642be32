"""Casts of small types take whole vectors, on processors with AVX2 and with AVX-512."""

import re

import numpy as np
import pytest

import weft
from weft import dlight, te, topi
from weft.target.host import llvm_options
from weft.tir import interp
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Call
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore

SCALAR = r"__\w*(trunc|extend)\w*|v?p(insr|extr)[bw]|vcvt\w+s[sd]\b|vcvtt?s[sd]2si"
"""Calls of libraries, and what takes elements one by one."""
IS_X86 = llvm_options(weft.target.Target("llvm")).triple.startswith("x86_64")


def code_of(compute, dtypes, target):
    given = [te.placeholder((2, 1024), dtype, f"x{at}") for at, dtype in enumerate(dtypes)]
    func = te.create_prim_func([*given, compute(*given)])
    made = dlight.cpu.Default().apply(func, weft.target.Target(target), False)
    return weft.build(made.mod, target).get_source("asm")


@pytest.mark.skipif(not IS_X86, reason="the assembly of x86")
@pytest.mark.parametrize("target", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize(
    ("source", "result", "instruction"),
    [
        ("float32", "float16", "vcvtps2ph"), ("float16", "float32", "vcvtph2ps"),
        ("float32", "bfloat16", "vpackusdw|vpermt2w"), ("bfloat16", "float32", "vpmovzxwd"),
        ("float32", "int8", "vcvttps2dq"), ("float32", "uint8", "vcvttps2dq"),
        ("int8", "float32", "vpmovsxbd"), ("uint8", "float32", "vpmovzxbd"),
    ],
)  # fmt: skip
def test_vectors_are_cast(source, result, instruction, target):
    code = code_of(lambda x: topi.cast(x, result), [source], f"llvm -mcpu={target} -num-cores=1")
    register = "zmm" if target == "skylake-avx512" else "ymm"
    assert re.search(rf"({instruction})\s[^\n]*%{register}", code)
    assert re.search(SCALAR, code) is None


@pytest.mark.skipif(not IS_X86, reason="the assembly of x86")
@pytest.mark.parametrize("target", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_vectors_of_short_floats_are_added(dtype, target):
    code = code_of(topi.add, [dtype, dtype], f"llvm -mcpu={target} -num-cores=1")
    is_wide = target == "skylake-avx512" and dtype == "bfloat16"  # halves go in eights
    register = "zmm" if is_wide else "ymm"
    assert re.search(rf"vaddps\s[^\n]*%{register}", code)
    assert re.search(SCALAR, code) is None


def test_bits_of_another_width_are_refused():
    """Only a hand-made node or a file says so: ``T.reinterpret`` refuses it."""
    a, b = decl_buffer((4,), "int16", "a"), decl_buffer((4,), "float32", "b")
    bits = Call("float32", "tir.reinterpret", [BufferLoad(a, [0])])
    func = PrimFunc([a, b], BufferStore(b, bits, [0]), attrs={"global_symbol": "main"})
    with pytest.raises(weft.TVMError, match="main: reinterpret: .* got int16 and float32"):
        weft.build(func)
    with pytest.raises(weft.TVMError, match="reinterpret: int16 and float32 differ in width"):
        interp.run(func, np.zeros(4, "int16"), np.zeros(4, "float32"))
