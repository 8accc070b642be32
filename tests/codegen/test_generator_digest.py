"""A code generator that is patched in memory has another digest: no cache answers for it."""

import os
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.driver.build  # the modules whose values are looked at
from weft import relax
from weft.codegen.generator_digest import _WATCH, generator_digest
from weft.codegen.llvm import expr
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import llvm_type
from weft.codegen.llvm.work import cycles_of
from weft.script import tir as T
from weft.support.dtype import DataType
from weft.tir.expr import Add
from weft.tir.lowering.mathematics import formula
from weft.tir.lowering.ranges import Ranges


@T.prim_func
def plus_one(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in T.vectorized(4):
        y[i] = x[i] + T.float32(1)


def other(*args):
    return args


PATCHES = {
    "a row of a table": lambda patch: patch.setitem(
        expr.EXPRESSIONS, Add, expr._arithmetic("add", "fsub")
    ),
    "a function of a module": lambda patch: patch.setattr(expr, "float_operation", other),
    "a method": lambda patch: patch.setattr(Emitter, "value", other),
    "the code of a function": lambda patch: patch.setattr(expr._var, "__code__", other.__code__),
    "a constructor": lambda patch: patch.setattr(formula.Formula, "__init__", other),
    "a method of what lowers": lambda patch: patch.setattr(Ranges, "of", other),
    "a number": lambda patch: patch.setattr(expr, "_I64", 64),
}


@pytest.mark.parametrize("what", PATCHES)
def test_a_patch_changes_the_digest_until_it_is_undone(what, monkeypatch):
    before = generator_digest()
    with monkeypatch.context() as patch:
        PATCHES[what](patch)
        assert generator_digest() != before
    assert generator_digest() == before


def test_compiling_does_not_change_it_and_every_process_has_the_same(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))  # what is in the cache is not compiled
    before = generator_digest()
    llvm_type.__globals__["_TYPES"].pop(DataType("float32x4"), None)
    weft.build(plus_one)
    assert DataType("float32x4") in llvm_type.__globals__["_TYPES"]
    cycles_of(plus_one.body, 256)  # its visitor remembers the classes of nodes that it met
    _WATCH.values.clear()
    assert generator_digest() == before
    script = (
        "import weft.driver.build; from weft.codegen.generator_digest import generator_digest;"
        "print(generator_digest().hex())"
    )
    another_order = f"import weft.tir.lowering.mathematics.trigonometric; {script}"
    for seed, program in (("1", script), ("2", another_order)):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True,
            check=True, timeout=300,
        )  # fmt: skip
        assert done.stdout.strip() == before.hex()


def test_a_patched_emitter_is_answered_neither_by_the_object_nor_by_the_model_cache(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, relax.const(1, "float32"))))
    ones, out = np.ones(4, "float32"), np.zeros(4, "float32")
    kernels, results = [], []
    for patched in (False, True, False):
        with monkeypatch.context() as patch:
            if patched:
                PATCHES["a row of a table"](patch)
            weft.build(plus_one)["plus_one"](ones, out)
            kernels.append(float(out[0]))
            results.append(float(weft.compile(builder.get())(ones)[0]))
    assert kernels == [2, 0, 2]
    assert results == [2, 0, 2]
