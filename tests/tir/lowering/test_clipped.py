"""Clipped floats that become integers: what is left of the guards, and the same results."""

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.script import tir as T
from weft.tir import expr as e
from weft.tir import interp, op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.function import PrimFunc
from weft.tir.lowering.clipped import clipped
from weft.tir.lowering.define_integers import DefineIntegers
from weft.tir.stmt import BufferStore, For, ForKind

VALUES = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 126.5, 127.5, 128.5,
     254.5, 255.5, -127.5, -128.5, 3e9, -3e9, 1e38, -1e38, 2**31, -(2**31), 7.999, -7.999, 1e-40,
     99.25, 255, 254.499, 32767.5, -32768.5, 65535.5], "float32",
)  # fmt: skip


def test_a_rounded_byte_needs_no_other_guard_than_that_against_nan(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "uint8")):
        for i in range(8):
            b[i] = T.Cast("uint8", T.max(T.min(T.round(a[i]), T.float32(255)), T.float32(0)))

    @T.prim_func
    def expected(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "uint8")):
        x, raised = T.float32(), T.float32()
        for i in range(8):
            b[i] = T.Let(
                T.Let(
                    T.Cast("uint8", T.unchecked_cast("int32", T.round(
                        T.Select(raised < T.float32(255), raised, T.float32(255)),
                    ))),
                    where={raised: T.Select(x > T.float32(0), x, T.float32(0))},
                ),
                where={x: a[i]},
            )  # fmt: skip

    becomes(DefineIntegers(), before, expected)


def test_nan_becomes_0_before_it_becomes_a_lower_end(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            b[i] = T.Cast("int32", T.min(T.max(a[i], T.float32(-2.5)), T.float32(7)))

    @T.prim_func
    def expected(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "int32")):
        x, number, raised = T.float32(), T.float32(), T.float32()
        for i in range(8):
            b[i] = T.Let(
                T.Let(
                    T.Let(
                        T.unchecked_cast(
                            "int32", T.Select(raised < T.float32(7), raised, T.float32(7)),
                        ),
                        where={raised: T.Select(number > T.float32(-2.5), number, T.float32(-2.5))},
                    ),
                    where={number: T.Select(x == x, x, T.float32(0))},
                ),
                where={x: a[i]},
            )  # fmt: skip

    becomes(DefineIntegers(), before, expected)


def clipping(dtype, low, high, *, through="", rounding=True, swapped=False, lanes=1):
    """A function that clips floats of ``a`` and writes them to ``b`` as integers."""
    a, b = (
        decl_buffer(VALUES.shape, kind, name) for kind, name in (("float32", "a"), (dtype, "b"))
    )
    i = e.Var("i", "int32")
    places = [i if lanes == 1 else e.Ramp(i * lanes, 1, lanes)]

    def like(element):
        return element if lanes == 1 else f"{element}x{lanes}"

    def end(value):
        constant = op.const(float(value), "float32")
        return constant if lanes == 1 else e.Broadcast(constant, lanes)

    x = BufferLoad(a, places)
    if rounding:
        x = op.round(x)
    x = e.Min(e.Max(x, end(low)), end(high)) if swapped else e.Max(e.Min(x, end(high)), end(low))
    if through:
        x = e.Cast(like(through), x)
    store = BufferStore(b, e.Cast(like(dtype), x), places)
    loop = For(i, 0, VALUES.size // lanes, ForKind.SERIAL, store)
    return PrimFunc([a, b], loop).with_attr("global_symbol", "main")


CASES = [
    {"dtype": "uint8", "low": 0, "high": 255},
    {"dtype": "uint8", "low": 0, "high": 255, "through": "int32"},
    {"dtype": "uint8", "low": 0, "high": 255, "rounding": False},
    {"dtype": "uint8", "low": -3, "high": 255},
    {"dtype": "uint8", "low": 2, "high": 255},
    {"dtype": "uint8", "low": 0, "high": 300, "through": "int32"},
    {"dtype": "int8", "low": -128, "high": 127, "swapped": True},
    {"dtype": "int8", "low": -127.5, "high": 126.5},
    {"dtype": "int16", "low": -32768, "high": 32767},
    {"dtype": "uint16", "low": 0, "high": 65535, "through": "int32"},
    {"dtype": "int32", "low": -9, "high": 1e6},
    {"dtype": "int32", "low": 0, "high": 2147483648.0},
    {"dtype": "int32", "low": 5, "high": -5},
    {"dtype": "int64", "low": -5, "high": 1e9},
    {"dtype": "uint32", "low": 0, "high": 4e9},
]


@pytest.mark.parametrize("lanes", [1, 16, 32])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_the_results_are_those_of_the_program(case, lanes):
    func = clipping(**case, lanes=lanes)
    wanted, lowered, native = np.zeros((3, VALUES.size), case["dtype"])
    interp.run(func, VALUES, wanted)
    interp.run(DefineIntegers()(IRModule({"main": func}))["main"], VALUES, lowered)
    np.testing.assert_array_equal(lowered, wanted)
    weft.build(func)(weft.nd.array(VALUES), given := weft.nd.array(native))
    np.testing.assert_array_equal(given.numpy(), wanted)


@pytest.mark.parametrize(
    ("case", "is_clipped"),
    [
        ({"dtype": "int32", "low": -9, "high": 1e6}, True),
        ({"dtype": "int32", "low": 0, "high": 2147483648.0}, False),
        ({"dtype": "int32", "low": 0, "high": 2147483647.0}, False),
        ({"dtype": "int32", "low": 2, "high": 9}, False),
        ({"dtype": "int32", "low": 5, "high": -5}, False),
        ({"dtype": "uint8", "low": 0, "high": 256}, False),
        ({"dtype": "int8", "low": -128, "high": 127}, True),
        ({"dtype": "uint8", "low": 0, "high": 300, "through": "int32"}, True),
    ],
)
def test_only_what_is_within_the_type_and_around_0_is_clipped(case, is_clipped):
    func = clipping(**case)
    converted = next(
        cast for cast in collect(func.body, e.Cast) if isinstance(cast.value, (e.Max, e.Min))
    )
    assert (clipped(converted.value, converted.dtype) is not None) == is_clipped


@pytest.mark.parametrize(
    ("target", "rounds"),
    [("llvm -mcpu=haswell", True), ("llvm -mcpu=cascadelake", True), ("llvm -mcpu=x86-64", True),
     ("llvm -mtriple=aarch64-linux-gnu", True), ("wasm", False)],
)  # fmt: skip
def test_processors_round_and_convert_by_one_instruction(target, rounds):
    source = weft.build(clipping("uint8", 0, 255, lanes=16), target=target).get_source("ll")
    assert ("llvm.lrint" in source) == rounds
    assert ("llvm.roundeven" in source) == (not rounds)


def test_no_comparison_is_left_of_a_byte():
    func = clipping("uint8", 0, 255, through="int32", lanes=16)
    assembly = weft.build(func, target="llvm -mcpu=cascadelake").get_source("asm")
    assert "vcvtps2dq" in assembly
    assert "vrndscaleps" not in assembly
    assert "vcmp" not in assembly
