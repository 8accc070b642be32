"""Products of 8-bit integers: exact for every mix of signs, some steps an instruction."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft import relax, te, tir
from weft.backends.cpu.schedules import default
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.target.host import host_features
from weft.target.machine import machine_of
from weft.tir.byte_pairs import EXACT_BYTE_PAIRS, has_exact_pairs
from weft.tir.interp import run
from weft.tir.stmt import Block

pytestmark = pytest.mark.sampled(3)

HOST, HASWELL = "llvm -num-cores=2", "llvm -mcpu=haswell -num-cores=2"
X86 = machine_of(HOST).dot_products != ()
AVX2 = host_features().get("avx2", False)
TARGETS = [
    pytest.param(HOST, marks=pytest.mark.skipif(not X86, reason="dot products are x86's")),
    pytest.param(HASWELL, marks=pytest.mark.skipif(not AVX2, reason="cannot run code for AVX2")),
]
RNG = np.random.default_rng(7)
EXTREMES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}


def numbers(shape, dtype):
    low, high = EXTREMES[dtype]
    made = RNG.integers(low, high + 1, shape).astype(dtype)
    made.flat[: made.size // 3] = RNG.choice([low, high], made.size // 3)
    return made


WORDS, BYTES = ("int16", "int16"), ("uint8", "int8")


def product(m, n, k, turned=False, dtypes=WORDS):
    a = te.placeholder((m, k), dtype=dtypes[0], name="A")
    b = te.placeholder((n, k) if turned else (k, n), dtype=dtypes[1], name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i, j):
        other = b[j, r] if turned else b[r, j]
        return te.sum(a[i, r].astype("int32") * other.astype("int32"), axis=r)

    c = te.compute((m, n), element, name="C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: c[i, j] + 3, name="D")])


def scheduled(func, target, is_weight=True, pairs=()):
    if pairs:
        func = func.with_attr(EXACT_BYTE_PAIRS, [[] if i != 1 else pairs for i in range(3)])
    weights = [func.buffer_map[func.params[1]]] if is_weight else []
    return default.schedule(tir.Schedule(func), machine_of(target), weights).mod["main"]


def dots_of(func):
    return set(re.findall(r"llvm\.x86\.\w+\.(vpdpbusd|vpdpwssd|pmadd)", func.script()))


def expected_dots(target, dtypes):
    """The instructions of the target for these types; bytes without one are not in dots."""
    present = machine_of(target).dot_products
    if dtypes == BYTES:
        return {"vpdpbusd"} & set(present)
    return {"vpdpwssd"} if "vpdpwssd" in present else {"pmadd"}


def native(func, target, arrays, shape):
    out = weft.nd.array(np.full(shape, 7, "int32"))
    weft.build(func, target)["main"](*[weft.nd.array(array) for array in arrays], out)
    return out.numpy()


def expected(a, b):
    return (a.astype("int64") @ b.astype("int64") + 3).astype("int32")


SHAPES = [
    (1, 10, 9, False, True), (7, 10, 9, True, True), (33, 80, 17, False, True),
    (5, 2, 3, True, True), (20, 70, 8, False, False),
]  # fmt: skip
CASES = [
    pytest.param(*shape, dtypes, *target.values, marks=target.marks)
    for target in TARGETS for dtypes in (WORDS, BYTES) for shape in SHAPES
    if (dtypes, target) != (BYTES, TARGETS[1])
]  # fmt: skip


@pytest.mark.parametrize(("m", "n", "k", "turned", "is_weight", "dtypes", "target"), CASES)
def test_any_shape(m, n, k, turned, is_weight, dtypes, target):
    func = product(m, n, k, turned, dtypes)
    made = scheduled(func, target, is_weight)
    assert dots_of(made) == expected_dots(target, dtypes)
    a, b = numbers((m, k), dtypes[0]), numbers((k, n), dtypes[1])
    given = [a, np.ascontiguousarray(b.T) if turned else b]
    np.testing.assert_array_equal(native(made, target, given, (m, n)), expected(a, b))


def paired(shape, axis):
    """Bytes of which neighbours add up to 128 at most, the extremes among them."""
    made = np.moveaxis(np.zeros(shape, "int8"), axis, 0)
    first = RNG.integers(-128, 128, made[::2].shape)
    room = np.where(first > 0, 128 - first, -128 - first)
    second = (room * RNG.choice([0, 0.5, 1], first.shape)).astype("int64").clip(-128, 127)
    made[::2], made[1::2] = first, second[: made.shape[0] // 2]
    return np.ascontiguousarray(np.moveaxis(made, 0, axis))


PAIRS_OF = ("llvm -mcpu=haswell -num-cores=2", "llvm -mcpu=x86-64-v2 -num-cores=2")


@pytest.mark.parametrize("target", PAIRS_OF)
@pytest.mark.parametrize(("m", "n", "k", "turned"), [shape[:4] for shape in SHAPES])
@pytest.mark.skipif(not AVX2, reason="cannot run code for AVX2")
def test_bytes_are_multiplied_in_pairs_where_int16_holds_these(m, n, k, turned, target):
    func, axis = product(m, n, k, turned, BYTES), 1 if turned else 0
    made = scheduled(func, target, pairs=[axis])
    assert "pmadd.ub.sw" in made.script()
    a, b = numbers((m, k), "uint8"), paired((n, k) if turned else (k, n), axis)
    assert has_exact_pairs(b, axis)
    a[0] = 255
    wanted = expected(a, b.T if turned else b)
    np.testing.assert_array_equal(native(made, target, [a, b], (m, n)), wanted)
    out = np.full((m, n), 7, "int32")
    run(made, a, b, out)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("pairs", [(), [1]])
def test_bytes_stay_apart_where_int16_might_not_hold_pairs(pairs):
    made = scheduled(product(8, 16, 8, dtypes=BYTES), HASWELL, pairs=pairs)
    assert "llvm.x86." not in made.script()


@pytest.mark.parametrize("left", ["int8", "uint8"])
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.skipif(not AVX2, reason="cannot run code for AVX2")
def test_the_instruction_follows_from_the_weights(shift, left):
    """One pair that int16 does not hold, in one column of 37, and all products are of int16."""
    weights, x = paired((31, 37), 0), numbers((9, 31), left)
    weights[4:6, 20] = 127, 1 + shift
    x[0] = EXTREMES[left][1]
    compiled = weft.compile(module(9, 37, 31, left, weights), target=HASWELL)
    assert ("vpmaddubsw" in compiled.get_source("asm")) == (shift == 0)
    wanted = np.maximum(x.astype("int32") @ weights.astype("int32"), 0)
    np.testing.assert_array_equal(compiled(x), wanted)


@pytest.mark.parametrize("target", [HOST, HASWELL, "llvm -mcpu=cascadelake -num-cores=1"])
@pytest.mark.skipif(not X86, reason="dot products are x86's")
@pytest.mark.parametrize("dtypes", [WORDS, BYTES])
def test_the_interpreter_knows_the_instructions(dtypes, target):
    func = product(3, 20, 5, dtypes=dtypes)
    made = scheduled(func, target)
    a, b = numbers((3, 5), dtypes[0]), numbers((5, 20), dtypes[1])
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    for one in (func, made, lowered):
        out = np.full((3, 20), 7, "int32")
        run(one, a, b, out)
        np.testing.assert_array_equal(out, expected(a, b))


@pytest.mark.parametrize(("target", "dtypes"), [(HOST, BYTES), (HASWELL, WORDS)])
@pytest.mark.skipif(not AVX2, reason="cannot run code for AVX2")
def test_any_number_of_rows(target, dtypes):
    made = scheduled(product(te.var("m", "int64"), 70, 33, dtypes=dtypes), target)
    assert dots_of(made) == expected_dots(target, dtypes)
    for m in (1, 13):
        a, b = numbers((m, 33), dtypes[0]), numbers((33, 70), dtypes[1])
        np.testing.assert_array_equal(native(made, target, [a, b], (m, 70)), expected(a, b))


def module(m, n, k, left, weights):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((m, k), left))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.matmul(x, relax.const(weights), out_dtype="int32"))
            out = builder.emit_output(relax.op.nn.relu(made))
        builder.emit_func_output(out)
    return builder.finalize()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("right", ["int8", "uint8"])
@pytest.mark.parametrize("left", ["int8", "uint8"])
def test_mixes_of_signs(left, right, target):
    weights, x = numbers((31, 37), right), numbers((9, 31), left)
    compiled = weft.compile(module(9, 37, 31, left, weights), target=target)
    wanted = np.maximum(x.astype("int32") @ weights.astype("int32"), 0)
    np.testing.assert_array_equal(compiled(x), wanted)
    assert re.search("pmaddwd|vpdpwssd|vpdpbusd", compiled.get_source("asm"))


@pytest.mark.parametrize(
    ("target", "instruction", "dtypes"),
    [("llvm -mcpu=haswell", "vpmaddwd", WORDS), ("llvm -mcpu=skylake-avx512", "vpmaddwd", WORDS),
     ("llvm -mcpu=cascadelake", "vpdpwssd", WORDS), ("llvm -mcpu=cascadelake", "vpdpbusd", BYTES),
     ("llvm -mcpu=alderlake", "vpdpbusd", BYTES)],
)  # fmt: skip
@pytest.mark.skipif(not X86, reason="dot products are x86's")
def test_sums_stay_in_registers(target, instruction, dtypes):
    made = scheduled(product(64, 128, 128, dtypes=dtypes), f"{target} -num-cores=1")
    parts = re.split(r"^\.?[\w$]+:", weft.build(made, target).get_source("asm"), flags=re.M)
    whole = max(parts, key=lambda part: part.count(instruction))
    loop = whole[: re.search(r"\tj\w+\t", whole).start()]
    assert loop.count(instruction) >= 8
    assert "(%rsp" not in loop


@pytest.mark.parametrize("target", ["llvm -mtriple=aarch64-linux-gnu -mcpu=generic"])
def test_other_processors_keep_their_schedule(target):
    assert machine_of(target).dot_products == ()
    assert "llvm.x86." not in scheduled(product(8, 16, 8), target).script()


def test_wider_numbers_are_left_alone():
    assert "llvm.x86." not in scheduled(product(8, 16, 8, dtypes=("int32", "int32")), HOST).script()


H, W = tir.Var("h", "int64"), tir.Var("w", "int64")


def product_of_rows(batch, rows, dtypes):
    """A product for each row of a batch; all sizes have 64 bits, as those of graphs."""
    batch, rows, k, n = [T.int64(size) if isinstance(size, int) else size
                         for size in (batch, rows, 9, 20)]  # fmt: skip
    a, r = te.placeholder((batch, rows, k), dtypes[0], name="A"), te.reduce_axis((0, k), name="k")
    b = te.placeholder((k, n), dtypes[1], name="B")
    c = te.compute(
        (batch, rows, n),
        lambda n, i, j: te.sum(a[n, i, r].astype("int32") * b[r, j].astype("int32"), axis=r),
        name="C",
    )
    return te.create_prim_func([a, b, te.compute(c.shape, lambda n, i, j: c[n, i, j] + 3)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axes", [(H, W), (5, W), (H, 7)])
@pytest.mark.parametrize("dtypes", [WORDS, BYTES])
def test_rows_of_symbolic_size_become_one_axis(dtypes, axes, target):
    """Else a batch of sentences of one word each has tiles of one row."""
    func = product_of_rows(*axes, dtypes)
    new = scheduled(func, target)
    assert dots_of(new) == expected_dots(target, dtypes)
    made = [buffer for block in collect(new.body, Block) for buffer in block.alloc_buffers]
    assert [len(buffer.shape) for buffer in made if buffer.scope() == "local"] == [2]
    for high, wide in ((1, 1), (1, 9), (3, 1), (5, 13), (0, 3), (3, 0), (33, 2)):
        sizes = [{H: high, W: wide}.get(axis, axis) for axis in axes]
        a, b = numbers((*sizes, 9), dtypes[0]), numbers((9, 20), dtypes[1])
        np.testing.assert_array_equal(native(new, target, [a, b], (*sizes, 20)), expected(a, b))
