"""Random PrimFuncs: interpreter, lowered code in the interpreter, native code and text agree.

``make test`` runs fixed seeds. ``make fuzz MINUTES=30`` runs new ones for that long and prints the
seed of each failure, with the smallest program that shows it.
"""

from __future__ import annotations

import os
import random
import time

import numpy as np
import pytest

from tests.lib.agreement import EXACT_TARGET, checked, report, shrunk
from tests.lib.generate import FLOATS, INTEGERS, RandomProgram, random_prim_func
from weft.backends.cpu.backend import BACKEND
from weft.driver.pipeline import lower_tir
from weft.ir.module import IRModule
from weft.runtime.native.native_library import NativeLibrary
from weft.runtime.ndarray import array
from weft.support.errors import RuntimeFault
from weft.target.target import Target
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Add, Var
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, For, ForKind, seq

pytestmark = pytest.mark.sampled(3)

KINDS = {
    "integers": INTEGERS,
    "floats": (*FLOATS, "int32", "bool"),
    "all": (*INTEGERS, *FLOATS, "bool"),
}
BLOCK = 30
MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))


def program(kind: str, seed: int) -> RandomProgram:
    return random_prim_func(seed, KINDS[kind], intrinsics=False, faults=seed % 5 == 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(3))
def test_all_executors_agree(kind, block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        failure = report(program(kind, seed))
        assert failure is None, failure


def test_generator_gives_the_same_program_for_the_same_seed():
    assert program("all", 3).func.script() == program("all", 3).func.script()


def test_generator_covers_the_language():
    text = "\n".join(program("all", seed).func.script() for seed in range(150))
    words = (
        "T.match_buffer T.where T.unroll T.vectorized T.parallel T.assume T.LetStmt T.decl_buffer "
        "T.alloc_buffer T.init strides= T.Broadcast T.truncmod T.shift_right T.if_then_else while "
        "assert return"
    )
    for word in words.split():
        assert word in text, word


def test_a_failing_program_shrinks_to_what_fails():
    x = decl_buffer((4,), "int32", "x")
    y = decl_buffer((4,), "int32", "y")
    i, j = Var("i", "int32"), Var("j", "int32")
    value = op.floormod(BufferLoad(x, [i]) * 3 + 1, 5) + i
    loops = [For(v, 0, 4, ForKind.SERIAL, BufferStore(y, e, [v])) for v, e in ((i, value), (j, j))]
    func = PrimFunc([x, y], seq(*loops))
    start = RandomProgram(func, [np.zeros(4, "int32"), np.zeros(4, "int32")], (1,), 0)
    small = shrunk(start, lambda p: "wrong" if "%" in p.func.script() else None)
    assert "y[i] = x[i] % 5" in small.func.script()
    assert "y[j]" not in small.func.script()


def native(func: PrimFunc, target: str):
    compiled = BACKEND.emit(lower_tir()(IRModule({"main": func})), Target(target))
    return NativeLibrary(compiled.object_code).function(compiled.specs[0])


@pytest.mark.parametrize("divide", [op.floordiv, op.floormod, op.truncdiv, op.truncmod])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_zero_divisor_faults_in_both(divide, dtype):
    a, b, c = [decl_buffer((1,), dtype, name) for name in "abc"]
    value = divide(BufferLoad(a, [0]), BufferLoad(b, [0]))
    func = PrimFunc([a, b, c], BufferStore(c, value, [0]), attrs={"global_symbol": "main"})
    arrays = [np.full(1, n, dtype) for n in (3, 0, 7)]
    with pytest.raises(RuntimeFault, match="by zero"):
        run(func, *arrays)
    with pytest.raises(RuntimeFault, match="by zero"):
        native(func, EXACT_TARGET)(*[array(a) for a in arrays])
    assert arrays[2][0] == 7


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_contraction_stays_within_its_bound(dtype):
    rng = np.random.default_rng(0)
    a, b, c = [decl_buffer((n,), dtype, name) for n, name in ((64, "a"), (64, "b"), (1, "c"))]
    k = Var("k", "int32")
    sum_ = Add(BufferLoad(c, [0]), BufferLoad(a, [k]) * BufferLoad(b, [k]))
    func = PrimFunc([a, b, c], For(k, 0, 64, ForKind.SERIAL, BufferStore(c, sum_, [0])))
    fast, exact = native(func, "llvm"), native(func, EXACT_TARGET)
    for _ in range(50):
        x, y = [(rng.standard_normal(64) * 10.0 ** rng.integers(-3, 4)).astype(dtype) for _ in "ab"]
        want = np.zeros(1, dtype)
        run(func, x, y, want)
        got, same = array(np.zeros(1, dtype)), array(np.zeros(1, dtype))
        fast(array(x), array(y), got)
        exact(array(x), array(y), same)
        bound = 4 * np.finfo(dtype).eps * np.abs(x.astype("f8") * y).sum()
        assert abs(float(got.numpy()[0]) - float(want[0])) <= bound
        assert same.numpy()[0] == want[0]


@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_new_seeds():
    end = time.monotonic() + 60 * MINUTES / 6  # the other fuzzers have the rest
    start = random.SystemRandom().randrange(1 << 40)
    count, failures = 0, []
    while time.monotonic() < end:
        kind = list(KINDS)[count % len(KINDS)]
        found = program(kind, start + count)
        count += 1
        if checked(found) is not None:
            failures.append(f"{kind} {report(found)}")
            print(failures[-1], flush=True)  # noqa: T201 - what the fuzzer is for
        if count % 500 == 0:
            print(f"{count} programs from {start}, {len(failures)} fail", flush=True)  # noqa: T201
    assert not failures, f"{len(failures)} of {count} programs from seed {start}"
