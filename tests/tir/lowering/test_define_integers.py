"""DefineIntegers: guards before and after, what is proved, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.script import from_source
from weft.script import tir as T
from weft.support.errors import RuntimeFault
from weft.tir import expr as e
from weft.tir import interp, op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import intrinsic
from weft.tir.lowering.define_integers import DefineIntegers
from weft.tir.stmt import BufferStore, For, ForKind

INT32 = [-(2**31), -7, -1, 0, 1, 3, 31, 32, 33, 2**31 - 1]


def test_a_divisor_that_may_be_0_is_tested(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "uint32"), b: T.Buffer((8,), "uint32")):
        for i in range(8):
            a[i] = a[i] // (b[i] | T.uint32(1))

    @T.prim_func
    def expected(a: T.Buffer((8,), "uint32"), b: T.Buffer((8,), "uint32")):
        for i in range(8):
            a[i] = a[i] // T.checked(
                b[i] | T.uint32(1), (b[i] | T.uint32(1)) != T.uint32(0),
                "division", "integer division by zero",
            )  # fmt: skip

    becomes(DefineIntegers(), before, expected)


def test_floor_division_is_division_and_a_step_down(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32")):
        for i in range(8):
            a[i] = T.floordiv(a[i], -3)

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32")):
        x, rest = T.int32(), T.int32()
        for i in range(8):
            a[i] = T.Let(
                T.Let(
                    T.truncdiv(x, -3) - T.Cast(
                        "int32",
                        T.bitwise_and(T.bitwise_xor(rest, -3) < 0, rest != 0),
                    ),
                    where={rest: T.truncmod(x, -3)},
                ),
                where={x: a[i]},
            )  # fmt: skip

    becomes(DefineIntegers(), before, expected)


def test_a_count_beyond_the_width_shifts_everything_out(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            a[i] = T.shift_right(T.shift_left(i, b[i]), i)

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        count, inside = T.int32(), T.bool()
        for i in range(8):
            a[i] = T.shift_right(
                T.Let(
                    T.Let(
                        T.Select(inside, T.shift_left(i, T.Select(inside, count, 0)), 0),
                        where={inside: T.Cast("uint32", count) < T.uint32(32)},
                    ),
                    where={count: b[i]},
                ),
                i,
            )

    becomes(DefineIntegers(), before, expected)


def test_a_float_becomes_an_integer_within_its_range(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "uint8")):
        for i in range(8):
            b[i] = T.Cast("uint8", a[i])

    @T.prim_func
    def expected(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "uint8")):
        x, raised = T.float32(), T.float32()
        for i in range(8):
            b[i] = T.Let(
                T.Let(
                    T.Cast(
                        "uint8",
                        T.unchecked_cast(
                            "int32",
                            T.Select(raised < T.float32(255), raised, T.float32(255)),
                        ),
                    ),
                    where={raised: T.Select(x > T.float32(0), x, T.float32(0))},
                ),
                where={x: a[i]},
            )

    becomes(DefineIntegers(), before, expected)


def test_what_is_proved_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            a[i] = a[i] // 3 + a[i] % (i + 1) + T.shift_left(i, 3) + T.truncdiv(i, -2)
            if n > 0:
                a[i] = a[i] // n
            a[i] = T.Cast("int32", T.Cast("int64", a[i]))

    module = IRModule({"main": before})
    assert DefineIntegers()(module) is module


def test_a_conversion_that_the_target_has_stays():
    @T.prim_func
    def before(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "uint8")):
        for i in range(8):
            b[i] = T.Cast("uint8", a[i])

    module = IRModule({"main": before})
    assert DefineIntegers(lambda expr: expr.dtype.bits == 8)(module) is module


def test_a_size_is_guarded_wherever_it_is_used():
    @T.prim_func
    def before(n: T.int32, m: T.int32, a: T.Buffer((64,), "int32")):
        b = T.Buffer((4, n // m), "int32", data=a.data)
        for i in range(n // m):
            b[0, i] = b[1, i]

    func = DefineIntegers()(IRModule({"main": before}))["main"]
    (load,) = collect(func.body, BufferLoad)
    (store,) = collect(func.body, BufferStore)
    (loop,) = collect(func.body, For)
    assert load.buffer is store.buffer
    for size in (load.buffer.shape[1], loop.extent):
        (test,) = [call for call in collect(size, e.Call) if is_call(call, "checked")]
        assert test.args[3].value == "integer division by zero"


def two_operands(compute, dtype, lanes=1):
    """out[k] = compute(a[k], b[k]) for ten numbers, or twelve as vectors of four."""
    count = 12
    a, b, out = (decl_buffer((count,), dtype, name) for name in ("a", "b", "out"))
    i = e.Var("i", "int32")
    place = i if lanes == 1 else e.Ramp(i * lanes, op.const(1), lanes)
    value = compute(BufferLoad(a, [place]), BufferLoad(b, [place]))
    body = BufferStore(out, value, [place])
    return PrimFunc([a, b, out], op_loop(i, count // lanes, body))


def op_loop(var, extent, body):
    return For(var, op.const(0), op.const(extent), ForKind.SERIAL, body)


OPERATIONS = {
    "floordiv": op.floordiv, "floormod": op.floormod, "truncdiv": op.truncdiv,
    "truncmod": op.truncmod,
    "shift_left": lambda a, b: intrinsic(a.dtype, "shift_left", a, b),
    "shift_right": lambda a, b: intrinsic(a.dtype, "shift_right", a, b),
}  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_pair_of_extremes_computes_the_same(name, dtype, lanes):
    func = two_operands(OPERATIONS[name], dtype, lanes)
    after = DefineIntegers()(IRModule({"main": func}))["main"]
    assert not structural_equal(after, func)
    kind = np.dtype(dtype)
    ends = np.iinfo(kind)
    numbers = np.array([ends.min, ends.max, 0, 1, 2, 3, 7, 8, 31, 5], "int64").astype(kind)
    numbers = np.append(numbers, np.array([-1, -7]).astype(kind))
    for shift in range(12):
        other = np.roll(numbers, shift)
        if "div" in name or "mod" in name:
            other = np.where(other == 0, 1, other).astype(kind)
        results = [np.zeros(12, kind), np.zeros(12, kind)]
        interp.run(func, numbers, other, results[0])
        interp.run(after, numbers, other, results[1])
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_every_conversion_saturates(source, target):
    values = [0.0, -0.0, 0.9, -0.9, 1.5, 127.0, 128.0, -128.5, -129.0, 255.0, 256.0, 65504.0,
              2.0**31 - 128, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 2.0**64, -(2.0**63), 1e30,
              -1e30, np.inf, -np.inf, np.nan]  # fmt: skip
    given, out = decl_buffer((len(values),), source, "x"), decl_buffer((len(values),), target, "y")
    i = e.Var("i", "int32")
    store = BufferStore(out, e.Cast(target, BufferLoad(given, [i])), [i])
    func = PrimFunc([given, out], op_loop(i, len(values), store))
    after = DefineIntegers()(IRModule({"main": func}))["main"]
    assert not [c for c in collect(after.body, e.Cast) if c.value.dtype.is_float and c.dtype.is_int]
    with np.errstate(all="ignore"):
        numbers = np.array(values).astype(given.dtype.numpy)
    results = [np.zeros(len(values), target), np.zeros(len(values), target)]
    interp.run(func, numbers, results[0])
    interp.run(after, numbers, results[1])
    np.testing.assert_array_equal(*results)


def test_a_division_by_0_faults():
    func = two_operands(op.floordiv, "int32")
    after = DefineIntegers()(IRModule({"main": func}))["main"]
    ones, zeros = np.ones(12, "int32"), np.zeros(12, "int32")
    with pytest.raises(RuntimeFault, match="integer division by zero"):
        interp.run(after, ones, zeros, zeros.copy())


def test_lanes_that_nobody_wants_do_not_fault():
    def compute(a, b):
        zero = e.Broadcast(op.const(0), 4)
        return e.Select(e.NE(b, zero), op.floordiv(a, b), zero)

    func = two_operands(compute, "int32", 4)
    after = DefineIntegers()(IRModule({"main": func}))["main"]
    a = np.arange(12, dtype="int32")
    b = np.array([0, 1, 2, 0, 5, 0, 0, 0, 1, 2, 3, 4], "int32")
    out = np.zeros(12, "int32")
    interp.run(after, a, b, out)
    np.testing.assert_array_equal(out, np.where(b == 0, 0, a // np.where(b == 0, 1, b)))


def test_an_operand_with_an_effect_is_evaluated_once():
    called = op.call_packed("tests.lowering.number")
    buffer = decl_buffer((1,), "int32", "a")
    store = BufferStore(buffer, op.floordiv(called, BufferLoad(buffer, [0])), [0])
    after = DefineIntegers()(IRModule({"main": PrimFunc([buffer], store)}))["main"]
    packed = [call for call in collect(after.body, e.Call) if "packed" in call.op.name]
    assert len(packed) == 1


def test_its_text_is_the_program():
    func = two_operands(op.floormod, "int32", 4).with_attr("global_symbol", "main")
    after = DefineIntegers()(IRModule({"main": func}))["main"]
    assert structural_equal(from_source(after.script()), after)


def test_a_wrong_promise_of_unchecked_cast_is_found():
    func = PrimFunc(
        [out := decl_buffer((1,), "int8", "y")],
        BufferStore(out, op.unchecked_cast("int8", op.const(200.0, "float32")), [0]),
    )
    with pytest.raises(RuntimeFault, match="out of range of int8"):
        interp.run(func, np.zeros(1, "int8"))
