"""float16 by integer operations is what numpy makes of it, for all float16 and many float32."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from weft.codegen.llvm import half_bits
from weft.codegen.llvm.builder import FunctionBuilder
from weft.codegen.llvm.context import ModuleContext
from weft.runtime.native.llvm import object_from_ir
from weft.runtime.native.parts import load_code

LANES = 8


def converted(convert, source, target, values, dtype):
    """The lanes of an array, eight at a time, through code compiled for this machine."""
    b = FunctionBuilder(ModuleContext())
    value = b.op(f"load <{LANES} x {source}>, ptr %p, align 2")
    result = convert(b, value, LANES)
    b.do(f"store <{LANES} x {target}> {result}, ptr %q, align 2")
    code = load_code(object_from_ir(b.finish("define i32 @f(ptr %p, ptr %q)", "f")))
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(code.address("f"))
    results = np.zeros(len(values), dtype)
    for at in range(0, len(values), LANES):
        function(values[at:].ctypes.data, results[at:].ctypes.data)
    return results


def same(a, b):
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


HALVES = np.arange(1 << 16, dtype="uint16").view("float16")


def test_every_float16_becomes_its_float32():
    results = converted(half_bits.extended, "half", "float", HALVES, "float32")
    assert same(results, HALVES.astype("float32")).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float32_is_rounded_to_the_nearest_float16():
    exact, rng = HALVES.astype("float32"), np.random.default_rng(0)
    values = np.concatenate([
        exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf)),
        (exact + np.roll(exact, 1)) / 2,
        rng.integers(0, 1 << 32, 1 << 16, "uint32").view("float32"),
    ])  # fmt: skip
    results = converted(half_bits.shortened, "float", "half", values, "float16")
    assert same(results, values.astype("float16")).all()
