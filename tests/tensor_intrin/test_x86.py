"""int8 dot products: what they compute, in the interpreter and on this CPU."""

from pathlib import Path

import numpy as np
import pytest

import weft
import weft.tensor_intrin
from weft import tir
from weft.script import tir as T
from weft.tensor_intrin import x86
from weft.testing.schedules import assert_same_meaning
from weft.tir.interp import run

CPU = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
INTRINSICS = [
    (x86.VNNI_DOT_16x4_INTRIN, 16, "avx512_vnni"),
    (x86.AVX512_DOT_16x4_INTRIN, 16, "avx512bw"),
    (x86.AVX2_DOT_8x4_INTRIN, 8, "avx2"),
]


def packed_product(rows):
    """C = A @ B with B packed in tiles of ``rows`` columns and four k."""

    @T.prim_func
    def product(
        A: T.Buffer((6, 32), "uint8"),
        B: T.Buffer((32 // rows, 8, rows, 4), "int8"),
        C: T.Buffer((6, 32), "int32"),
    ):
        for i, j, k in T.grid(6, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(
                    B[vj // rows, vk // 4, vj % rows, vk % 4], "int32"
                )

    return product


def tensorized(func, rows, name):
    sch = tir.Schedule(func)
    _, j, k = sch.get_loops("C")
    j0, j1 = sch.split(j, [None, rows])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(j0, k0, j1, k1)
    sch.decompose_reduction("C", k0)
    sch.tensorize(j1, name)
    return sch.mod


def extreme_values(rows):
    """Random bytes, with the extremes that saturating instructions get wrong."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (6, 32)).astype("uint8")
    b = rng.integers(-128, 128, (32 // rows, 8, rows, 4)).astype("int8")
    a[0], a[1], b[:, :, 0], b[:, :, 1] = 255, 0, 127, -128
    unpacked = b.transpose(1, 3, 0, 2).reshape(32, 32)
    return a, b, a.astype("int32") @ unpacked.astype("int32")


@pytest.mark.parametrize(("name", "rows", "feature"), INTRINSICS)
def test_a_product_in_the_interpreter(name, rows, feature):
    del feature
    a, b, expected = extreme_values(rows)
    found = np.zeros((6, 32), "int32")
    run(tensorized(packed_product(rows), rows, name)["main"], a, b, found)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "rows", "feature"), INTRINSICS)
def test_a_product_on_this_cpu(name, rows, feature):
    if feature not in CPU:
        pytest.skip(f"this CPU has no {feature}")
    func = packed_product(rows)
    mod = tensorized(func, rows, name)
    assert_same_meaning(func, mod)
    a, b, expected = extreme_values(rows)
    found = weft.nd.array(np.zeros((6, 32), "int32"))
    weft.build(mod["main"], target="llvm")(weft.nd.array(a), weft.nd.array(b), found)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize(("name", "rows", "feature"), INTRINSICS)
def test_descriptions_and_implementations_agree(name, rows, feature):
    del feature
    intrinsic = tir.TensorIntrin.get(name)
    rng = np.random.default_rng(1)
    a = rng.integers(0, 256, 4).astype("uint8")
    b = rng.integers(-128, 128, (rows, 4)).astype("int8")
    results = []
    for func in (intrinsic.desc, intrinsic.impl):
        c = np.arange(rows, dtype="int32")
        run(func, a, b, c)
        results.append(c)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("name", [row[0] for row in INTRINSICS])
def test_their_text_is_read_again(name):
    intrinsic = tir.TensorIntrin.get(name)
    for func in (intrinsic.desc, intrinsic.impl):
        weft.ir.assert_structural_equal(func, weft.script.from_source(func.script()))


def test_a_processor_without_the_instruction_is_an_error():
    impl = tir.TensorIntrin.get(x86.VNNI_DOT_16x4_INTRIN).impl
    with pytest.raises(weft.TVMError, match="vpdpbusd.512 needs avx512vnni, which .* x86-64-v2"):
        weft.build(impl, target="llvm -mcpu=x86-64-v2")
    weft.build(impl, target="llvm -mcpu=cascadelake")
    weft.build(impl, target="llvm -mcpu=x86-64-v4 -mattr=+avx512vnni")
