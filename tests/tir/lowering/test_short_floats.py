"""WidenShortFloats: what operations become, and that their bits are the same."""

from __future__ import annotations

import numpy as np
import pytest

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.script import from_source
from weft.script import tir as T
from weft.tir import expr as e
from weft.tir import interp, op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import intrinsic
from weft.tir.lowering.short_floats import WidenShortFloats, is_short
from weft.tir.stmt import BufferStore, For, ForKind

N = 4096
KINDS = ["float16", "bfloat16"]


def test_a_product_of_float16_is_rounded_once(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "float16"), b: T.Buffer((8,), "float16")):
        for i in range(8):
            a[i] = a[i] * b[i]

    @T.prim_func
    def expected(a: T.Buffer((8,), "float16"), b: T.Buffer((8,), "float16")):
        for i in range(8):
            a[i] = T.Cast("float16", T.Cast("float32", a[i]) * T.Cast("float32", b[i]))

    becomes(WidenShortFloats(), before, expected)


def test_a_bfloat16_is_the_upper_half_of_a_float32(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "bfloat16"), b: T.Buffer((8,), "float32")):
        for i in range(8):
            b[i] = T.Cast("float32", a[i])

    @T.prim_func
    def expected(a: T.Buffer((8,), "bfloat16"), b: T.Buffer((8,), "float32")):
        for i in range(8):
            b[i] = T.reinterpret(
                "float32",
                T.shift_left(T.Cast("uint32", T.reinterpret("uint16", a[i])), T.uint32(16)),
            )

    becomes(WidenShortFloats(), before, expected)


def test_other_types_and_conversions_that_processors_have_stay():
    @T.prim_func
    def before(a: T.Buffer((8,), "float16"), b: T.Buffer((8,), "float32")):
        for i in range(8):
            b[i] = T.Cast("float32", a[i]) + T.exp(b[i])
            a[i] = T.Cast("float16", b[i])

    module = IRModule({"main": before})
    assert WidenShortFloats()(module)["main"].same_as(before)


def bits_of(count, dtype, seed):
    """Numbers of any bits, the ends among them."""
    bits = np.random.default_rng(seed).integers(0, 1 << 16, count, dtype="uint16")
    bits[:8] = 0, 0x8000, 0x7C00, 0xFC00, 0x7F80, 0xFF80, 0x7FC1, 0x0001
    return bits.view(decl_buffer((1,), dtype).dtype.numpy)


def function_of(compute, sources, target, lanes, count):
    """out[k] = compute(a[k], ...), by vectors of so many lanes."""
    given = [decl_buffer((count,), dtype, f"x{at}") for at, dtype in enumerate(sources)]
    out, i = decl_buffer((count,), target, "out"), e.Var("i", "int32")
    place = i if lanes == 1 else e.Ramp(i * lanes, op.const(1), lanes)
    store = BufferStore(out, compute(*[BufferLoad(x, [place]) for x in given]), [place])
    loop = For(i, op.const(0), op.const(count // lanes), ForKind.SERIAL, store)
    return PrimFunc([*given, out], loop).with_attr("global_symbol", "main")


def agree(func, *given):
    """The results of a function and of what the pass makes of it have the same bits."""
    after = WidenShortFloats()(IRModule({"main": func}))["main"]
    assert not structural_equal(after, func)
    target = func.buffer_map[func.params[-1]].dtype
    results = [np.zeros(len(given[0]), target.numpy) for _ in range(2)]
    with np.errstate(all="ignore"):
        for program, out in zip((func, after), results, strict=True):
            interp.run(program, *given, out)
    if target.is_float:
        with np.errstate(all="ignore"):
            nan = [np.isnan(out.astype("float64")) for out in results]
        np.testing.assert_array_equal(*nan)
        kind = f"u{target.bits // 8}"
        results = [np.where(~nan[0], out.view(kind), 0) for out in results]
    np.testing.assert_array_equal(*results)
    return after


OPERATIONS = [e.Add, e.Sub, e.Mul, e.Div, e.Min, e.Max, e.Mod]


@pytest.mark.parametrize("lanes", [1, 2, 8])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", OPERATIONS)
def test_operations_have_the_same_bits(kind, dtype, lanes):
    count = 512
    func = function_of(kind, (dtype, dtype), dtype, lanes, count)
    after = agree(func, bits_of(count, dtype, 0), np.roll(bits_of(count, dtype, 1), 3))
    assert not [x for x in collect(after.body, e.BinaryExpr) if is_short(x.dtype)]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", [e.EQ, e.NE, e.LT, e.LE, e.GT, e.GE])
def test_comparisons_agree(kind, dtype):
    func = function_of(kind, (dtype, dtype), "bool", 1, 256)
    agree(func, bits_of(256, dtype, 0), np.roll(bits_of(256, dtype, 0), 1))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["exp", "floor", "sqrt", "fabs", "isnan", "isfinite"])
def test_functions_agree(name, dtype):
    result = "bool" if name.startswith("is") else dtype
    func = function_of(lambda x: intrinsic(result, name, x), (dtype,), result, 1, 256)
    agree(func, bits_of(256, dtype, 2))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
def test_conversions_have_the_same_bits(source, target, lanes):
    if target == source or not {source, target} & set(KINDS):
        return
    if {source, target} in ({"float16", "float32"}, {"float16", "float64"}) and (
        source == "float16" or target == "float32" or source == "float32"
    ):
        return  # the processor's own
    given = decl_buffer((1,), source).dtype
    if given.bits == 16:
        numbers = bits_of(256, source, 3)
    elif given.is_float:
        scale = np.random.default_rng(4).integers(-30, 30, 256)
        numbers = np.ldexp(np.random.default_rng(5).standard_normal(256), scale)
        numbers[:4] = 65519.99, np.inf, np.nan, 1.0 + 2.0**-11 + 2.0**-40  # just above a tie
        numbers = numbers.astype(given.numpy)
    else:
        numbers = np.random.default_rng(6).integers(0, 200, 256).astype(given.numpy)
        numbers[:2] = np.iinfo(given.numpy).min, np.iinfo(given.numpy).max
    func = function_of(
        lambda x: e.Cast(target if lanes == 1 else f"{target}x{lanes}", x),
        (source,), target, lanes, 256,
    )  # fmt: skip
    agree(func, numbers)


def test_a_constant_is_widened_as_a_number():
    func = function_of(lambda x: x * e.FloatImm("bfloat16", 3.0), ("bfloat16",), "bfloat16", 1, 8)
    after = WidenShortFloats()(IRModule({"main": func}))["main"]
    (product,) = collect(after.body, e.Mul)
    assert product.b.dtype == "float32"
    assert product.b.value == 3.0


def test_its_text_is_the_program():
    func = function_of(e.Max, ("bfloat16", "bfloat16"), "bfloat16", 8, 64)
    after = WidenShortFloats()(IRModule({"main": func}))["main"]
    assert structural_equal(from_source(after.script()), after)
