"""StorageRewrite: temporaries that are never alive together share memory."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.agreement import disagreement
from tests.lib.generate import random_prim_func
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.stmt import Allocate
from weft.tir.transform import MergeSharedMemoryAllocations, StorageRewrite


@T.prim_func
def chain(A: T.Buffer((64,), "float32"), D: T.Buffer((64,), "float32")):
    B = T.decl_buffer((32,), "float32")
    C = T.decl_buffer((64,), "float32")
    E = T.decl_buffer((48,), "float32")
    for i in range(32):
        B[i] = A[i] + 1.0
    for i in range(64):
        C[i] = B[i // 2] * 2.0
    for i in range(48):
        E[i] = C[i] + C[i + 16]
    for i in range(64):
        D[i] = E[i // 2] + 1.0


def sizes(func):
    return [[e.value for e in item.extents] for item in collect(func.body, Allocate)]


def test_a_buffer_takes_the_memory_of_one_that_has_ended():
    after = StorageRewrite()(weft.IRModule({"main": chain}))["main"]
    assert sorted(sizes(after)) == [[48], [64]]
    given, results = np.arange(64, dtype="float32"), []
    for func in (chain, after):
        results.append(np.zeros(64, "float32"))
        run(func, given, results[-1])
    np.testing.assert_array_equal(*results)
    output = weft.nd.array(np.zeros(64, "float32"))
    weft.build(after, name="main")["main"](weft.nd.array(given), output)
    np.testing.assert_array_equal(output.numpy(), results[0])


def test_an_option_disables_it():
    module = weft.IRModule({"main": chain})
    with weft.transform.PassContext(config={"tir.disable_storage_rewrite": True}):
        assert StorageRewrite()(module) is module


def test_buffers_alive_together_or_of_other_widths_or_scopes_stay_apart():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
        B = T.decl_buffer((8,), "float32")
        C = T.decl_buffer((8,), "float64")
        E = T.decl_buffer((8,), "float32", scope="local")
        for i in range(8):
            B[i] = A[i]
        for i in range(8):
            C[i] = T.Cast("float64", B[i])
        for i in range(8):
            E[i] = T.Cast("float32", C[i])
        for i in range(8):
            D[i] = E[i]

    after = StorageRewrite()(weft.IRModule({"main": main}))["main"]
    assert len(sizes(after)) == 3


def test_only_shared_memory():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
        B = T.decl_buffer((8,), "float32", scope="shared")
        C = T.decl_buffer((8,), "float32")
        E = T.decl_buffer((8,), "float32", scope="shared")
        F = T.decl_buffer((8,), "float32")
        for i in range(8):
            B[i] = A[i]
        for i in range(8):
            C[i] = B[i]
        for i in range(8):
            E[i] = C[i]
        for i in range(8):
            F[i] = E[i]
        for i in range(8):
            D[i] = F[i]

    after = MergeSharedMemoryAllocations()(weft.IRModule({"main": main}))["main"]
    assert len(sizes(after)) == 3
    assert len(sizes(StorageRewrite()(weft.IRModule({"main": main}))["main"])) == 2


@pytest.mark.parametrize("seed", [70241, *range(7200, 7220)])
def test_random_programs_agree(seed):
    program = random_prim_func(seed, intrinsics=False)
    assert disagreement(program, native=False, text=False) is None
