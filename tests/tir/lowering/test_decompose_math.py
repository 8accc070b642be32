"""DecomposeMath: what functions become, and that they compute what they did."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.sharing import post_order_of
from weft.ir.structural import assert_structural_equal
from weft.script import from_source
from weft.script import tir as T
from weft.tir import expr as e
from weft.tir import interp, op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import intrinsic
from weft.tir.lowering.decompose_math import FLOAT32, FLOAT64, DecomposeMath
from weft.tir.lowering.mathematics.library import LIBRARY
from weft.tir.stmt import BufferStore, For, ForKind

NOTHING = ()
AVX2 = ("fma", "lookup")
AVX512 = ("fma", "scaleb", "lookup")


def decomposed(func, instructions=NOTHING):
    """What the pass makes of a function for a target with such instructions."""
    step = DecomposeMath(lambda expr: any(is_call(expr, name) for name in instructions))
    return step(IRModule({"main": func.with_attr("global_symbol", "main")}))["main"]


def becomes(before, expected, instructions=NOTHING):
    after = decomposed(before, instructions)
    assert_structural_equal(after, expected.with_attr("global_symbol", "main"))


def test_exp_where_one_instruction_scales_by_a_power_of_two():
    @T.prim_func
    def before(a: T.Buffer((8,), "float32")):
        for i in range(8):
            a[i] = T.exp(a[i])

    @T.prim_func
    def expected(a: T.Buffer((8,), "float32")):
        x, within, shifted = T.float32(), T.float32(), T.float32()
        n, r, is_zero = T.float32(), T.float32(), T.bool()
        for i in range(8):
            a[i] = T.Let(
                T.uncontracted(
                    T.Let(T.Let(T.Let(T.Let(T.Let(
                        T.scaleb(
                            T.fma(T.fma(T.fma(T.fma(T.fma(T.fma(
                                T.float32(0.0013814464761351276),
                                r, T.float32(0.008368780622560848)),
                                r, T.float32(0.041668394259006265)),
                                r, T.float32(0.1666652010554261)),
                                r, T.float32(0.49999993412261523)),
                                r, T.float32(1.0)),
                                r, T.float32(1.0)),
                            n, not is_zero,
                        ),
                        where={r: T.fma(n, T.float32(-1.42860682030941723212e-6),
                                        T.fma(n, T.float32(-0.693145751953125), within))}),
                        where={n: shifted - T.float32(12582912.0)}),
                        where={shifted: T.fma(within, T.float32(1.0 / math.log(2)),
                                              T.float32(12582912.0))}),
                        where={within: T.Select(
                            is_zero, T.float32(0.0),
                            T.Select(x > T.float32(89.0), T.float32(89.0), x))}),
                        where={is_zero: x < T.float32(-104.0)})
                ),
                where={x: a[i]},
            )  # fmt: skip

    becomes(before, expected, AVX512)


def test_a_function_of_float64_that_c_lacks_becomes_one_that_it_has():
    @T.prim_func
    def before(a: T.Buffer((8,), "float64")):
        for i in range(8):
            a[i] = T.sigmoid(a[i])

    @T.prim_func
    def expected(a: T.Buffer((8,), "float64")):
        x, size, minus, e_x = T.float64(), T.float64(), T.float64(), T.float64()
        for i in range(8):
            a[i] = T.Let(
                T.uncontracted(
                    T.Let(T.Let(T.Let(
                        T.Select(x >= T.float64(0.0), T.float64(1.0), e_x)
                        / (e_x + T.float64(1.0)),
                        where={e_x: T.exp(minus)}),
                        where={minus: T.float64(-0.0) - size}),
                        where={size: T.abs(x)})
                ),
                where={x: a[i]},
            )  # fmt: skip

    becomes(before, expected)


def test_a_function_of_the_c_library_is_called_lane_by_lane():
    @T.prim_func
    def before(a: T.Buffer((2,), "float64")):
        a[0:2] = T.tan(a[0:2])

    @T.prim_func
    def expected(a: T.Buffer((2,), "float64")):
        x = T.float64x2()
        a[0:2] = T.Let(
            T.Shuffle([T.tan(T.Shuffle([x], [0])), T.tan(T.Shuffle([x], [1]))], [0, 1]),
            where={x: a[0:2]},
        )

    becomes(before, expected)


def test_powers_of_integers_are_products():
    @T.prim_func
    def before(a: T.Buffer((8,), "int32")):
        for i in range(8):
            a[i] = T.pow(a[i], 5) + T.pow(a[i], 0)

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32")):
        x, square, fourth = T.int32(), T.int32(), T.int32()
        for i in range(8):
            a[i] = (
                T.Let(T.Let(T.Let(x * fourth, where={fourth: square * square}),
                            where={square: x * x}), where={x: a[i]})
                + 1
            )  # fmt: skip

    becomes(before, expected)


def test_squares_and_cubes_are_products():
    @T.prim_func
    def before(a: T.Buffer((8,), "float32")):
        for i in range(8):
            a[i] = T.pow(a[i], T.float32(2)) + T.pow(a[i], T.float32(3))

    @T.prim_func
    def expected(a: T.Buffer((8,), "float32")):
        x, y = T.float32(), T.float32()
        for i in range(8):
            a[i] = T.Let(x * x, where={x: a[i]}) + T.Let(y * y * y, where={y: a[i]})

    becomes(before, expected)


def test_a_reciprocal_root_is_a_quotient():
    @T.prim_func
    def before(a: T.Buffer((8,), "float32")):
        for i in range(8):
            a[i] = T.rsqrt(a[i])

    @T.prim_func
    def expected(a: T.Buffer((8,), "float32")):
        for i in range(8):
            a[i] = T.float32(1.0) / T.sqrt(a[i])

    becomes(before, expected)


def test_large_angles_are_left_to_c_if_any_lane_has_one():
    x = e.Var("x", "float32x4")
    (choice,) = [
        call for call in collect(decomposed(function_of("sin", 4)).body, e.Call)
        if is_call(call, "if_then_else")
    ]  # fmt: skip
    condition, near, far = choice.args
    assert is_call(condition, "likely")
    assert is_call(condition.args[0], "all_lanes")
    assert condition.args[0].args[0].dtype == "boolx4"
    assert not [call for call in collect(near, e.Call) if is_call(call, "sin")]
    sines = [call for call in collect(far, e.Call) if is_call(call, "sin")]
    assert [call.dtype for call in sines] == ["float64"] * x.dtype.lanes


def test_what_has_an_instruction_stays():
    @T.prim_func
    def before(a: T.Buffer((8,), "float32"), d: T.Buffer((8,), "float64")):
        for i in range(8):
            a[i] = T.sqrt(T.floor(a[i])) + T.fma(a[i], a[i], T.abs(a[i]))
            d[i] = T.exp(d[i]) + T.pow(d[i], d[i])

    module = IRModule({"main": before})
    assert DecomposeMath()(module)["main"].same_as(before)


@pytest.mark.parametrize("instructions", [NOTHING, AVX2, AVX512])
@pytest.mark.parametrize("name", [*FLOAT32, "rsqrt"])
def test_formulas_compute_nothing_twice(name, instructions):
    """What stands at several places is a variable, a constant or a vector of one."""
    for lanes in (1, 4):
        after = decomposed(function_of(name, lanes), instructions)
        (store,) = collect(after.body, BufferStore)
        uses: dict[int, int] = {}
        for node in post_order_of(store.value):
            for part in node._parts_():
                uses[id(part)] = uses.get(id(part), 0) + 1
        nodes = {id(node): node for node in post_order_of(store.value)}
        shared = [nodes[key] for key, count in uses.items() if count > 1 and key in nodes]
        kinds = (e.Add, e.Sub, e.Mul, e.Div, e.Call, e.Select, e.Cast, e.CompareExpr, e.Let)
        assert not [node for node in shared if isinstance(node, kinds)]


def test_the_text_of_a_formula_is_its_program():
    after = decomposed(function_of("gelu", 8), AVX512)
    assert_structural_equal(from_source(after.script(show_meta=True)), after)


# The functions compute what they did.


def function_of(name, lanes, count=64, dtype="float32"):
    """out[k] = name(x[k], ...), by vectors of so many lanes."""
    arity = 2 if name in ("pow", "atan2", "hypot", "fmod", "nextafter") else 1
    given = [decl_buffer((count,), dtype, f"x{at}") for at in range(arity)]
    out, i = decl_buffer((count,), dtype, "out"), e.Var("i", "int32")
    place = i if lanes == 1 else e.Ramp(i * lanes, op.const(1), lanes)
    loads = [e.BufferLoad(x, [place]) for x in given]
    value = intrinsic(loads[0].dtype, name, *loads)
    loop = For(i, op.const(0), op.const(count // lanes), ForKind.SERIAL,
               BufferStore(out, value, [place]))  # fmt: skip
    return PrimFunc([*given, out], loop).with_attr("global_symbol", "main")


def numbers(count, kind, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-20, 20, count).astype(kind)
    x[: count // 2] = rng.uniform(0.05, 3, count // 2)
    x[:12] = 0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-40, 3e38, 32768, 40000, -104.2
    return x


def results(func, *given, kind):
    out = np.zeros(len(given[0]), kind)
    interp.run(func, *given, out)
    return out


def ulps(got, exact):
    """Distances in spacings; results below the normal numbers may be 0."""
    with np.errstate(all="ignore"):
        same = (got == exact) | (np.isnan(got) & np.isnan(exact))
        distance = np.abs(got.astype("float64") - exact) - np.finfo(exact.dtype).tiny
        error = np.maximum(distance, 0) / np.spacing(np.abs(exact))
    return np.where(same, 0, error)


@pytest.mark.parametrize("instructions", [NOTHING, AVX2, AVX512])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", [*FLOAT32, "rsqrt"])
def test_float32_is_within_two_ulp(name, lanes, instructions):
    func = function_of(name, lanes, 128)
    given = [numbers(128, "float32", seed) for seed in range(len(func.params) - 1)]
    exact = results(func, *given, kind="float32")
    after = decomposed(func, instructions)
    assert not after.same_as(func)
    assert ulps(results(after, *given, kind="float32"), exact).max() <= 2


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("name", [*FLOAT64, "rsqrt", "tan", "erfc", "atan2", "exp"])
def test_float64_is_what_it_was(name, lanes):
    func = function_of(name, lanes, 128, "float64")
    given = [numbers(128, "float64", seed) for seed in range(len(func.params) - 1)]
    exact = results(func, *given, kind="float64")
    got = results(decomposed(func), *given, kind="float64")
    np.testing.assert_allclose(got, exact, rtol=2e-13, atol=1e-300)


def test_scaleb_and_lookup_are_written_otherwise_where_no_instruction_does_them():
    x, n = e.Var("x", "float32x4"), e.Var("n", "float32x4")
    table = e.Shuffle([op.const(float(k), "float32") for k in range(8)], [*range(8)])
    place = e.Cast("uint32x4", e.Max(n, op.const(0.0, n.dtype)))
    value = e.Add(T.scaleb(x, n, e.GT(x, op.const(0.5, x.dtype))), T.lookup(table, place))
    x_data, n_data = decl_buffer((32,), "float32", "x"), decl_buffer((32,), "float32", "n")
    out, i = decl_buffer((32,), "float32", "out"), e.Var("i", "int32")
    ramp = e.Ramp(i * 4, op.const(1), 4)
    value = e.Let(x, e.BufferLoad(x_data, [ramp]), e.Let(n, e.BufferLoad(n_data, [ramp]), value))
    loop = For(i, op.const(0), op.const(8), ForKind.SERIAL, BufferStore(out, value, [ramp]))
    func = PrimFunc([x_data, n_data, out], loop)
    after = decomposed(func)
    names = {call.op.name for call in collect(after.body, e.Call)}
    assert not names & {"tir.scaleb", "tir.lookup"}
    rng = np.random.default_rng(0)
    given = rng.uniform(-1, 3, 32).astype("float32"), rng.integers(-160, 130, 32).astype("float32")
    expected = np.where(given[0] > 0.5, np.ldexp(given[0], given[1].astype(int)), 0)
    expected = expected + np.maximum(given[1], 0) % 8
    for program in (func, after):
        np.testing.assert_array_equal(results(program, *given, kind="float32"), expected)


BOUNDED = ["tanh", "sigmoid", "erf", "sin", "cos"]
GROWING = ["silu", "gelu", "gelu_tanh", "expm1", "exp", "exp2"]


def random_value(rng, depth, x, lanes):
    """A formula of functions whose errors do not grow much."""
    if depth == 0:
        return x
    kind = rng.integers(4)
    if kind == 0:
        a, b = (random_value(rng, depth - 1, x, lanes) for _ in range(2))
        return (e.Add if rng.integers(2) else e.Mul)(a, b)
    inner = random_value(rng, depth - 1, x, lanes)
    if kind == 1:
        inner = intrinsic(x.dtype, "tanh", inner)
        return intrinsic(x.dtype, str(rng.choice(GROWING)), inner)
    if kind == 2:
        size = e.Add(intrinsic(x.dtype, "fabs", inner), op.const(1.0, x.dtype))
        return intrinsic(x.dtype, str(rng.choice(["log", "log2", "log1p", "rsqrt"])), size)
    return intrinsic(x.dtype, str(rng.choice(BOUNDED)), inner)


@pytest.mark.parametrize("instructions", [NOTHING, AVX512])
@pytest.mark.parametrize("seed", range(12))
def test_random_formulas_agree(seed, instructions):
    rng = np.random.default_rng(seed)
    lanes = int(rng.choice([1, 2, 8]))
    given, out = decl_buffer((32,), "float32", "x"), decl_buffer((32,), "float32", "out")
    i = e.Var("i", "int32")
    place = i if lanes == 1 else e.Ramp(i * lanes, op.const(1), lanes)
    value = random_value(rng, 4, e.BufferLoad(given, [place]), lanes)
    loop = For(i, op.const(0), op.const(32 // lanes), ForKind.SERIAL,
               BufferStore(out, value, [place]))  # fmt: skip
    func = PrimFunc([given, out], loop)
    x = rng.uniform(-3, 3, 32).astype("float32")
    exact = results(func, x, kind="float32")
    after = decomposed(func, instructions)
    np.testing.assert_allclose(results(after, x, kind="float32"), exact, rtol=2e-5, atol=2e-5)


def test_nothing_is_left_that_is_no_function_of_c():
    for name in [*FLOAT32, "rsqrt", "tan", "hypot"]:
        after = decomposed(function_of(name, 4))
        for call in collect(after.body, e.Call):
            left = call.op.name.removeprefix("tir.")
            assert left not in LIBRARY or call.dtype.lanes == 1
